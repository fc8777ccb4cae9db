//! One virtual host: every dialect's routes for one host of one listener, in the order a proxy must try them.
//!
//! In: the contributions to this host. Out: a [`VirtualHost`], and a verdict for each contribution that lost. Routes that
//! match differently merge, whoever wrote them; of those that match alike, the one with the least rank is served.

use crate::order;
use model::{Code, Host, Route, Verdict, VirtualHost};
use std::sync::Arc;

/// A virtual host, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The virtual host.
    pub host: VirtualHost,
    /// A verdict for each route that lost, on the object that wrote it.
    pub lost: Vec<Verdict>,
}

/// Assembles a host. `everyone` are the routes of whoever takes every host, in their order: below a wildcard that is one
/// label deep they take the names that lie deeper.
pub fn assemble(host: &Host, mut routes: Vec<Arc<Route>>, everyone: &[Arc<Route>]) -> Assembled {
    routes.sort_by(|a, b| order::compare(a, b));
    let mut lost = Vec::new();
    let mut kept: Vec<Arc<Route>> = Vec::with_capacity(routes.len());
    for route in routes {
        match kept.last() {
            Some(winner) if order::by_match(winner, &route).is_eq() => lost.extend(verdict(host, winner, &route)),
            _ => kept.push(route),
        }
    }
    // One object at most owns a host as a whole, so all routes that know of a limit know of the same.
    let limit = kept.iter().find_map(|route| route.policy.host_limit.clone());
    let deeper = if matches!(host, Host::Wildcard(_)) { everyone.to_vec() } else { Vec::new() };
    Assembled { host: VirtualHost { host: host.clone(), routes: kept, deeper, limit }, lost }
}

/// Nobody asked for what is only implied, so nobody is told when it gives way.
fn verdict(host: &Host, winner: &Route, loser: &Route) -> Option<Verdict> {
    if loser.rank.implied {
        return None;
    }
    let why = format!("host {host}, path {}{}: {} is served", loser.path, loser.conditions, winner.origin);
    Some(Verdict::new(Code::RouteConflict, loser.origin.clone(), why))
}

#[cfg(test)]
mod tests;
