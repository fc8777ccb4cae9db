//! Routes that match the same requests: one is served and the others lose, or they share the requests.
//!
//! In: the routes, in any order. Out: the route that is served, and each route that lost with the reason. Which of several
//! wins is [`Precedence`](model::route::Precedence)'s order. Routes of one dialect whose authors say so are combined with the one
//! that wins: weighted clusters of one route, with the origins of all. They must agree in everything but their backends; a route
//! that would lose what protects it loses instead. A share of another namespace's requests needs the consent of both sides. Routes that
//! [split](crate::split) their requests stay routes of their own.

use crate::split;
use model::{
    Code, Route,
    route::{Action, Forward, OnEqual, Precedence, Share, WeightedCluster},
};
use std::sync::Arc;

/// The sum of the weights of a combined route: fine enough for a share of a share.
const WHOLE: u64 = 1_000_000;

/// What is reported about a route beside the one that is served: why it lost, or that it shares the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another one takes precedence.
    Precedence,
    /// It asks for a share, but not with the settings of the one that is served.
    OtherSettings,
    /// It asks for a share, but no more than a hundred in a hundred can be had.
    SharesExceeded,
    /// It asks for a share of requests of another namespace.
    OtherNamespace,
    /// It cannot have its share beside others, in the words of the dialect.
    Split(Code, Box<str>),
    /// It has not lost: it has a share of requests of another namespace, of which both sides are told.
    Share,
    /// It has not lost: its backend gets copies of requests of another namespace, of which both sides are told.
    Copies,
}

impl Reason {
    /// What is added to the sentence that says which route is served.
    pub fn text(&self) -> &'static str {
        match self {
            Self::Precedence | Self::Split(..) | Self::Share | Self::Copies => "",
            Self::OtherSettings => "; they cannot be combined: only their backends may differ",
            Self::SharesExceeded => "; they cannot be combined: the shares add up to more than 100 percent",
            Self::OtherNamespace => "; they cannot be combined: they are in different namespaces",
        }
    }
}

/// What is served of routes that match the same requests: one route, or several that each take a part. `report` is called with the one
/// that is served and each other of which there is something to tell: it is not served as it asks, or it has a share of another
/// namespace's requests.
pub fn resolve(mut routes: Vec<Arc<Route>>, report: &mut dyn FnMut(&Route, &Route, Reason)) -> Vec<Arc<Route>> {
    routes.sort_by(|a, b| a.precedence.cmp(&b.precedence).then_with(|| a.origin.cmp(&b.origin)));
    let Some(first) = routes.first().map(|route| route.precedence.clone()) else { return Vec::new() };
    if split::is_split(&first) {
        return split::split(routes, report);
    }
    // A route that asks for a share does not take the place of one that does not, be it older.
    let whole = routes
        .iter()
        .position(|route| is_peer(&route.precedence, &first) && matches!(route.precedence.on_equal, OnEqual::Lose));
    let base = routes.remove(whole.unwrap_or(0));
    let mut members = vec![(Arc::clone(&base), share(&base.precedence))];
    let mut percent = match share(&base.precedence) {
        Share::Percent(percent) => u32::from(percent),
        Share::Rest => 0,
    };
    for route in routes {
        match joins(&base, &route, percent) {
            Ok(share) => {
                percent += if let Share::Percent(percent) = share { u32::from(percent) } else { 0 };
                members.push((route, share));
            }
            Err(reason) => report(&base, &route, reason),
        }
    }
    vec![if members.len() == 1 { base } else { Arc::new(combined(&base, &members, percent)) }]
}

/// Whether two routes are ordered by age alone.
pub(crate) fn is_peer(one: &Precedence, other: &Precedence) -> bool {
    let key = |it: &Precedence| (it.implied, it.priority, it.widening, it.dialect);
    key(one) == key(other)
}

fn share(precedence: &Precedence) -> Share {
    match precedence.on_equal {
        OnEqual::Lose | OnEqual::Mirror { .. } => Share::Rest,
        OnEqual::Combine { share, .. } | OnEqual::Split { share, .. } => share,
    }
}

/// The share that a route takes beside another, if it can.
fn joins(base: &Route, route: &Route, taken: u32) -> Result<Share, Reason> {
    let (own, other) = (&route.precedence, &base.precedence);
    let OnEqual::Combine { share, across_namespaces } = own.on_equal else { return Err(Reason::Precedence) };
    if own.implied || !is_peer(own, other) {
        return Err(Reason::Precedence);
    }
    let both_allow = across_namespaces && matches!(other.on_equal, OnEqual::Combine { across_namespaces: true, .. });
    if own.namespace != other.namespace && !both_allow {
        return Err(Reason::OtherNamespace);
    }
    let (Action::Forward(left), Action::Forward(right)) = (&base.action, &route.action) else {
        return Err(Reason::OtherSettings);
    };
    if base.policy != route.policy || without_clusters(left) != without_clusters(right) {
        return Err(Reason::OtherSettings);
    }
    match share {
        Share::Percent(percent) if taken + u32::from(percent) > 100 => Err(Reason::SharesExceeded),
        share => Ok(share),
    }
}

fn without_clusters(forward: &Forward) -> Forward {
    Forward { clusters: Vec::new(), ..forward.clone() }
}

/// One route with the backends of all. If no route takes the rest, shares are relative to their sum.
fn combined(base: &Route, members: &[(Arc<Route>, Share)], percent: u32) -> Route {
    let rests = members.iter().filter(|(_, share)| *share == Share::Rest).count() as u64;
    let left = u64::from(100_u32.saturating_sub(percent)) * WHOLE / 100;
    let mut clusters: Vec<WeightedCluster> = Vec::new();
    for (route, share) in members {
        let Action::Forward(forward) = &route.action else { continue };
        let units = match share {
            Share::Percent(percent) => u64::from(*percent) * WHOLE / 100,
            Share::Rest => left / rests.max(1),
        };
        let sum: u64 = forward.clusters.iter().map(|share| u64::from(share.weight)).sum();
        clusters.extend(forward.clusters.iter().filter_map(|share| {
            let exact = units * u64::from(share.weight);
            let weight = (exact + sum / 2) / sum.max(1);
            let weight = if exact == 0 { 0 } else { weight.max(1) };
            let weight = u32::try_from(weight).ok().filter(|&weight| weight > 0)?;
            Some(WeightedCluster { weight, ..share.clone() })
        }));
    }
    let mut route = base.clone();
    if let Action::Forward(forward) = &mut route.action
        && !clusters.is_empty()
    {
        forward.clusters = clusters;
    }
    route.combined = Some(members[1..].iter().map(|(route, _)| route.origin.clone()).collect());
    route
}

#[cfg(test)]
mod tests {
    //! Shares, who may take them, and who loses.

    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use super::*;
    use crate::testing::{AGE, changed, route};
    use model::{ClusterId, EndpointsId, Timeout};
    use std::time::Duration;

    fn cluster(name: &str) -> ClusterId {
        let backend = EndpointsId::tcp("ns", name, 80);
        ClusterId::from(backend)
    }

    /// A route to backends of these weights, called after its object.
    fn to(name: &str, created: i64, weights: &[u32], on_equal: OnEqual) -> Arc<Route> {
        changed(&route(name, created, "/ /"), |route| {
            let clusters = weights.iter().enumerate();
            let clusters = clusters.map(|(at, weight)| WeightedCluster::new(cluster(&format!("{name}{at}")), *weight));
            route.action = Action::Forward(Box::new(Forward { clusters: clusters.collect(), ..Default::default() }));
            route.precedence.on_equal = on_equal;
        })
    }

    fn percent(percent: u8) -> OnEqual {
        OnEqual::Combine { share: Share::Percent(percent), across_namespaces: false }
    }

    const REST: OnEqual = OnEqual::Combine { share: Share::Rest, across_namespaces: false };

    /// What each backend gets, in thousandths, the origins, and who lost to whom and why.
    type Outcome = (Vec<(String, u32)>, Vec<String>, Vec<(String, Reason)>);

    fn outcome(routes: Vec<Arc<Route>>) -> Outcome {
        let run = |routes: Vec<Arc<Route>>| {
            let mut lost = Vec::new();
            let served = resolve(routes, &mut |_, loser, reason| {
                lost.push((loser.origin.object.name.to_string(), reason));
            });
            let [served] = &served[..] else { panic!("{} routes", served.len()) };
            let Action::Forward(forward) = &served.action else { panic!("it goes to a backend") };
            let sum: u32 = forward.clusters.iter().map(|share| share.weight).sum();
            let part = |share: &WeightedCluster| {
                let thousandths = (u64::from(share.weight) * 1000 + u64::from(sum) / 2) / u64::from(sum);
                (share.cluster.service().unwrap().service.to_string(), u32::try_from(thousandths).unwrap())
            };
            let clusters = forward.clusters.iter().map(part).collect();
            (clusters, served.origins().map(|origin| origin.object.name.to_string()).collect(), lost)
        };
        let mut reversed = routes.clone();
        reversed.reverse();
        let outcome: Outcome = run(routes);
        assert_eq!(run(reversed), outcome, "whatever the order they come in");
        outcome
    }

    fn parts(parts: &[(&str, u32)]) -> Vec<(String, u32)> {
        parts.iter().map(|(name, part)| ((*name).to_owned(), *part)).collect()
    }

    #[test]
    fn where_nobody_combines_the_oldest_is_served_as_it_is() {
        let (old, young) = (to("old", 1, &[1], OnEqual::Lose), to("young", 2, &[1], OnEqual::Lose));
        let served = resolve(vec![young.clone(), old.clone()], &mut |_, _, _| {});
        assert!(Arc::ptr_eq(&served[0], &old));
        let (_, origins, lost) = outcome(vec![old, young]);
        assert_eq!((origins, lost), (vec!["old".to_owned()], vec![("young".to_owned(), Reason::Precedence)]));
    }

    #[test]
    fn a_share_is_taken_from_the_one_that_would_be_served_alone() {
        // Though it is older, what takes a share is not the one that it is taken from.
        let canary = to("canary", 0, &[1], percent(20));
        let (main, other) = (to("main", 1, &[3, 1], OnEqual::Lose), to("other", 2, &[1], OnEqual::Lose));
        let (clusters, origins, lost) = outcome(vec![canary, main, other]);
        assert_eq!(clusters, parts(&[("main0", 600), ("main1", 200), ("canary0", 200)]));
        assert_eq!(origins, ["main", "canary"]);
        assert_eq!(lost, [("other".to_owned(), Reason::Precedence)]);
    }

    #[test]
    fn those_without_a_number_share_the_rest() {
        let routes = vec![to("a", 1, &[1], REST), to("b", 2, &[1], percent(10)), to("c", 3, &[1], REST)];
        let (clusters, origins, lost) = outcome(routes);
        assert_eq!(clusters, parts(&[("a0", 450), ("b0", 100), ("c0", 450)]));
        assert_eq!(origins, ["a", "b", "c"]);
        assert!(lost.is_empty());
    }

    #[test]
    fn without_a_rest_shares_are_relative() {
        let (clusters, ..) = outcome(vec![to("a", 1, &[1], percent(10)), to("b", 2, &[1], percent(30))]);
        assert_eq!(clusters, parts(&[("a0", 250), ("b0", 750)]));
        // Nothing of nothing is what the first one says.
        let (clusters, ..) = outcome(vec![to("a", 1, &[1], percent(0)), to("b", 2, &[1], percent(0))]);
        assert_eq!(clusters, parts(&[("a0", 1000)]));
    }

    #[test]
    fn a_small_share_of_a_small_share_is_still_one() {
        let small = to("small", 2, &[1, 3_000_000_000], percent(1));
        let (clusters, ..) = outcome(vec![to("main", 1, &[1], REST), small]);
        assert_eq!(clusters, parts(&[("main0", 990), ("small0", 0), ("small1", 10)]));
    }

    #[test]
    fn no_more_than_everything_can_be_shared() {
        let routes = vec![to("main", 1, &[1], REST), to("a", 2, &[1], percent(70)), to("b", 3, &[1], percent(40))];
        let (clusters, _, lost) = outcome(routes);
        assert_eq!(clusters, parts(&[("main0", 300), ("a0", 700)]));
        assert_eq!(lost, [("b".to_owned(), Reason::SharesExceeded)]);
    }

    #[test]
    fn only_backends_may_differ() {
        let slow = changed(&to("slow", 2, &[1], percent(50)), |route| {
            let Action::Forward(forward) = &mut route.action else { panic!("it goes to a backend") };
            forward.timeout = Timeout::After(Duration::from_secs(1));
        });
        let refused = changed(&to("refused", 3, &[1], percent(50)), |route| {
            route.action = route_action();
        });
        let (clusters, _, lost) = outcome(vec![to("main", 1, &[1], REST), slow, refused]);
        assert_eq!(clusters, parts(&[("main0", 1000)]));
        let reasons = [("slow".to_owned(), Reason::OtherSettings), ("refused".to_owned(), Reason::OtherSettings)];
        assert_eq!(lost, reasons);
    }

    fn route_action() -> Action {
        route("x", 0, "/ /").action.clone()
    }

    #[test]
    fn a_share_of_another_namespace_needs_the_consent_of_both() {
        let elsewhere = |across_namespaces| {
            changed(&to("b", 2, &[1], REST), |route| {
                route.precedence.namespace = "other".into();
                route.precedence.on_equal = OnEqual::Combine { share: Share::Percent(50), across_namespaces };
            })
        };
        let open =
            |name, across_namespaces| to(name, 1, &[1], OnEqual::Combine { share: Share::Rest, across_namespaces });
        let lost = |routes| outcome(routes).2;
        assert_eq!(lost(vec![open("a", true), elsewhere(true)]), []);
        let refused = [("b".to_owned(), Reason::OtherNamespace)];
        for (here, there) in [(false, false), (true, false), (false, true)] {
            assert_eq!(lost(vec![open("a", here), elsewhere(there)]), refused);
        }
        assert_eq!(lost(vec![to("a", 1, &[1], OnEqual::Lose), elsewhere(true)]), refused);
    }

    #[test]
    fn dialects_and_priorities_do_not_combine() {
        let main = to("main", 1, &[1], OnEqual::Lose);
        let stronger = changed(&to("stronger", 2, &[1], percent(50)), |route| route.precedence.dialect = AGE);
        let higher = changed(&to("higher", 3, &[1], percent(50)), |route| route.precedence.priority = 1);
        let (_, origins, lost) = outcome(vec![main.clone(), stronger]);
        assert_eq!((origins, lost), (vec!["stronger".to_owned()], vec![("main".to_owned(), Reason::Precedence)]));
        let (_, origins, lost) = outcome(vec![main, higher]);
        assert_eq!((origins, lost), (vec!["higher".to_owned()], vec![("main".to_owned(), Reason::Precedence)]));
    }
}
