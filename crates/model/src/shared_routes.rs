//! Routes for hosts that their author does not name one by one: shared routes, and the selectors by which hosts take them.
//!
//! An object that owns a host says by labels which routes it takes, an object with routes says for which host names they are;
//! both have to agree, and at least one has to say something. No route gets into a host whose owner did not select it. Shared routes
//! are in a [pool](RoutePool) of a fleet and know no listener: one that comes or goes is no matter of theirs. What a host does with
//! requests that are not secure is a matter of the host ([`Exposure`]).

use crate::{
    FleetId, Host, ListenerId, Origin, Route,
    route::{HostCondition, Precedence},
};
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

/// Where shared routes are, and selectors look for them: one for each fleet and dialect that has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutePool {
    /// The fleet.
    pub fleet: FleetId,
    /// The dialect.
    pub name: &'static str,
}

/// Routes for all hosts that take them from a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRoutes {
    /// The pool.
    pub pool: RoutePool,
    /// The names that they are for, a wildcard at any depth. Without, selectors have to choose them by labels. A route for some of
    /// these names only, or for one that may be in a wider host, has a condition about the host.
    pub hosts: Option<Host>,
    /// The labels that selectors look at.
    pub labels: Labels,
    /// The routes.
    pub routes: Vec<Arc<Route>>,
}

/// By what a host of a listener takes shared routes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteSelector {
    /// The listener.
    pub listener: ListenerId,
    /// The host; the object that has the selector names it, too.
    pub host: Host,
    /// The pool that it selects from.
    pub pool: &'static str,
    /// The labels that routes must have. Without, routes have to name the host.
    pub labels: Option<Labels>,
    /// What becomes of their requests.
    pub exposure: Exposure,
}

/// A host that is not looked up by itself, because proxies know hosts by whole labels and without ports: a part of a name, or a name
/// with a port. Its requests are told from others by a condition, inside of the virtual host that has them; that one's routes are not
/// for them, whether the host has a route for a request or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConditionalHost {
    /// The listener.
    pub listener: ListenerId,
    /// The narrowest host that has all of its names.
    pub host: Host,
    /// Which requests it has.
    pub condition: HostCondition,
    /// By what it takes shared routes; without, its requests answer 503.
    pub selector: Option<RouteSelector>,
    /// Whether wider virtual hosts have it as well, for where there is none for `host`.
    pub in_wider: bool,
    /// Which of too many are served.
    pub precedence: Precedence,
    /// Who wrote it.
    pub origin: Origin,
}

impl ConditionalHost {
    /// The virtual hosts that its requests may be in, the narrowest first.
    pub fn virtual_hosts(&self) -> impl Iterator<Item = Host> {
        let every = (self.host != Host::Any).then_some(Host::Any);
        let wider = self.host.wildcards_above().into_iter().chain(every).filter(|_| self.in_wider);
        std::iter::once(self.host.clone()).chain(wider)
    }
}

/// What becomes of requests for shared routes in a host, by whether they came over HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exposure {
    /// The routes serve all of them.
    All,
    /// None of them came over HTTPS: this is done with them.
    Insecure(InsecureAction),
    /// The routes serve those of which `x-forwarded-proto` says that they came over HTTPS; this is done with the others. The header
    /// counts where a proxy in front is trusted.
    Forwarded(InsecureAction),
}

/// What becomes of a request that did not come over HTTPS. ACME challenges are always served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InsecureAction {
    /// It is redirected to HTTPS; to this port, if clients do not reach HTTPS at 443.
    Redirect(Option<u16>),
    /// There is no route for it.
    Reject,
}
