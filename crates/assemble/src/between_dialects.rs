//! Routes of several dialects that have the same requests of a host: that of the first dialect is served, the others are told.
//!
//! In: what is served of each match. Out: the same without routes that another dialect's route takes all requests from. Two matches are
//! compared as they are in this host: a dialect whose routes are shared by many hosts adds a condition about the host name, which here
//! may be one that every request fulfils. Inside a dialect its own order decides about such routes.

use crate::{order, virtual_host::groups};
use model::{Host, Route};
use std::sync::Arc;

/// What is served of these routes. `report` is called with the one that is and each that is not.
pub(crate) fn decided(host: &Host, routes: Vec<Arc<Route>>, report: &mut dyn FnMut(&Route, &Route)) -> Vec<Arc<Route>> {
    if routes.iter().all(|route| route.conditions.host.is_none()) {
        return routes;
    }
    let mut served = Vec::with_capacity(routes.len());
    for group in groups(routes, |a, b| order::by_requests(host, a, b)) {
        for route in &group {
            match group.iter().find(|other| takes_all(other, route)) {
                Some(winner) => report(winner, route),
                None => served.push(Arc::clone(route)),
            }
        }
    }
    served
}

/// Whether a route takes all requests of one of another dialect that has the same match.
fn takes_all(winner: &Route, loser: &Route) -> bool {
    let (first, second) = (&winner.precedence, &loser.precedence);
    winner.fraction.is_none() && first.dialect != second.dialect && first < second
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::testing::{AGE, LENGTH, changed, route};
    use model::route::{Dialect, HostCondition};

    fn of(dialect: Dialect, name: &str, change: impl FnOnce(&mut Route)) -> Arc<Route> {
        changed(&route(name, 1, "p /a"), |route| {
            route.precedence.dialect = dialect;
            change(route);
        })
    }

    fn named(route: &mut Route, host: &str) {
        route.conditions.host = HostCondition::of(&Host::parse(host).unwrap());
    }

    /// Who is served, and who lost to whom.
    fn outcome(routes: Vec<Arc<Route>>) -> (Vec<String>, Vec<String>) {
        let host = Host::parse("a.example.com").unwrap();
        let (mut lost, name) = (Vec::new(), |route: &Route| route.origin.object.name.to_string());
        let served =
            decided(&host, routes, &mut |winner, loser| lost.push(format!("{} to {}", name(loser), name(winner))));
        (served.iter().map(|route| name(route)).collect(), lost)
    }

    #[test]
    fn a_condition_that_the_host_implies_makes_no_other_match() {
        let stronger = of(AGE, "stronger", |_| {});
        let narrow = of(LENGTH, "narrow", |route| named(route, "a.example.com"));
        let (served, lost) = outcome(vec![narrow.clone(), stronger.clone()]);
        assert_eq!((served, lost), (vec!["stronger".to_owned()], vec!["narrow to stronger".to_owned()]));
        // Those of one dialect are left to its order, and so is what takes a part.
        let every = of(LENGTH, "every", |_| {});
        assert_eq!(outcome(vec![narrow.clone(), every]).1, Vec::<String>::new());
        let part = changed(&stronger, |route| route.fraction = Some(10));
        assert_eq!(outcome(vec![narrow.clone(), part]).1, Vec::<String>::new());
        let raised = changed(&narrow, |route| route.precedence.priority = 1);
        assert_eq!(outcome(vec![raised, stronger]).1, ["stronger to narrow"]);
    }
}
