//! Routes for hosts that their author does not name one by one: shared routes, and the selectors by which hosts take them.
//!
//! An object that owns a host says by labels which routes it takes, an object with routes says for which host names they are;
//! both have to agree, and at least one has to say something. No route gets into a host whose owner did not select it.

use crate::{Host, ListenerId, Route};
use std::sync::Arc;

/// A label: name and value.
pub type Label = (Arc<str>, Arc<str>);

/// Labels, sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[Label]>);

impl Labels {
    /// Labels in any order.
    pub fn new(labels: impl IntoIterator<Item = Label>) -> Self {
        let mut labels: Vec<_> = labels.into_iter().collect();
        labels.sort_unstable();
        labels.dedup();
        Self(labels.into())
    }

    /// The labels, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter()
    }

    /// Whether all of these are among them.
    pub fn contains(&self, others: &Self) -> bool {
        others.iter().all(|label| self.0.binary_search(label).is_ok())
    }
}

/// Routes for all hosts of a listener that take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRoutes {
    /// The listener.
    pub listener: ListenerId,
    /// The names that they are for, a wildcard at any depth. Without, selectors have to choose them by labels.
    pub hosts: Option<Host>,
    /// The labels that selectors look at.
    pub labels: Labels,
    /// The routes.
    pub routes: Vec<Arc<Route>>,
}

/// By what a host of a listener takes shared routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteSelector {
    /// The listener.
    pub listener: ListenerId,
    /// The host; the object that has the selector names it, too.
    pub host: Host,
    /// The labels that routes must have. Without, routes have to name the host.
    pub labels: Option<Labels>,
}
