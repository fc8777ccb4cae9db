//! Routes of wider hosts in narrower ones: in some dialects a request that no route of its host matches is tried with the routes of
//! the wider hosts of the listener. A proxy looks into one virtual host only, so a host repeats theirs behind its own.
//!
//! In: the routes of a wide host. Out: what the hosts below it repeat. Hosts times routes is a product, so there is a limit; beyond
//! it nothing is repeated, whoever has a route for a host below is told, and requests that it does not match answer 503. A host one
//! of whose routes matches every request repeats nothing.

use crate::catch_all::unavailable;
use model::{Code, Host, Route, route::Depth};
use std::sync::Arc;

/// The most routes of a wide host that each host below it repeats.
pub const MOST_REPEATED: usize = 100;

/// What hosts below a wide host repeat of its routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WiderRoutes {
    /// The routes, in order.
    pub routes: Vec<Arc<Route>>,
    /// How many there are, where they are too many to be repeated.
    pub too_many: Option<usize>,
}

impl WiderRoutes {
    /// What is repeated of these routes.
    pub fn of(routes: &[Arc<Route>]) -> Self {
        let Some(first) = routes.first().filter(|_| routes.len() > MOST_REPEATED) else {
            return Self { routes: routes.to_vec(), too_many: None };
        };
        let unavailable = unavailable(Code::WiderRoutesTooMany, first);
        Self { routes: vec![unavailable], too_many: Some(routes.len()) }
    }
}

/// Whether a route leaves what it does not match to those of wider hosts, and is tried behind those of narrower ones.
pub fn falls_through(route: &Route) -> bool {
    route.precedence.dialect.falls_through
}

/// Whether one of these routes matches every request of a host.
pub fn match_all(host: &Host, routes: &[Arc<Route>]) -> bool {
    let is_deep = |route: &Route| route.depth == Depth::AnyLabels || !matches!(host, Host::Wildcard(_));
    let is_for_all = |route: &Route| {
        let implied = route.conditions.host.as_ref().is_none_or(|condition| condition.is_implied(host));
        let conditions = route.conditions.headers.is_empty() && route.conditions.query.is_empty();
        route.path.is_every_path() && conditions && implied && route.fraction.is_none()
    };
    routes.iter().any(|route| is_for_all(route) && is_deep(route))
}
