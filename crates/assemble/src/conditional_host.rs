//! Hosts that are parts of others: names of which only an end is known, and names with a port.
//!
//! In: the routes that such a host takes from the pool. Out: the same routes for its requests alone, with an answer for those that no
//! route takes, so that none of them reaches a route of the virtual host around it. That one [has](insert) them before its own
//! routes, the most specific host first. How many it has is bounded: each is compared with every request.

use crate::virtual_host::{Assembled, Contributions};
use model::{
    Code, HeaderName, Host, Regex, Route, Verdict,
    route::{
        Action, Conditions, Depth, DirectResponse, HeaderMatch, HostCondition, Overlap, Path, PathMatch, Precedence,
        RouteList, StringMatch, ValueMatch,
    },
    shared_routes::ConditionalHost,
};
use std::sync::Arc;

/// The most hosts that are parts of one virtual host.
pub const MOST_HOSTS: usize = 256;

/// The most routes that they have together.
pub const MOST_ROUTES: usize = 10_000;

/// What requests of a host get: these routes, which several selections may have in common, or 503 where there are none to be served.
pub fn assemble<'r>(host: &ConditionalHost, selected: Option<impl IntoIterator<Item = &'r [Arc<Route>]>>) -> Assembled {
    let ConditionalHost { host: around, condition, .. } = host;
    let mut contributions = Contributions::new(around);
    let closing = match selected {
        Some(selected) => {
            selected.into_iter().for_each(|routes| _ = contributions.shared(routes));
            contributions.narrow(|route| within(route, condition));
            closing(host, DirectResponse::because(404, Code::HostNotFound))
        }
        None => closing(host, DirectResponse::unavailable()),
    };
    let mut assembled = contributions.assemble();
    assembled.host.routes = assembled.host.routes.iter().cloned().chain([closing]).collect();
    assembled
}

/// A route for those of its requests that fulfil a condition, if there are any.
fn within(route: &Arc<Route>, condition: &HostCondition) -> Option<Arc<Route>> {
    let mut conditions = route.conditions.clone();
    match &route.conditions.host {
        None => conditions.host = Some(condition.clone()),
        Some(own) => match own.and(condition) {
            Overlap::Never => return None,
            Overlap::One(both) => conditions.host = Some(both),
            Overlap::Both => {
                let text = StringMatch::Regex(Regex::parse(&condition.pattern()).ok()?);
                let value = ValueMatch::Text { text, ignore_case: false };
                let name = HeaderName::authority();
                conditions.headers.push(HeaderMatch { name, invert: false, value, missing_is_empty: false });
            }
        },
    }
    Some(Arc::new(Route { conditions: conditions.sorted(), ..Route::clone(route) }))
}

/// Whether some request for a route may be for a host.
pub fn overlaps(route: &Route, condition: &HostCondition) -> bool {
    route.conditions.host.as_ref().is_none_or(|own| own.and(condition) != Overlap::Never)
}

/// What all requests of a host get that no route takes.
fn closing(host: &ConditionalHost, response: DirectResponse) -> Arc<Route> {
    Arc::new(Route {
        path: PathMatch::Prefix(Path::root()),
        conditions: Conditions { host: Some(host.condition.clone()), ..Conditions::default() },
        depth: Depth::AnyLabels,
        action: Action::DirectResponse(response),
        policy: Default::default(),
        precedence: Precedence { implied: true, ..host.precedence.clone() },
        origin: host.origin.clone(),
        fraction: None,
        combined: None,
    })
}

/// Puts the hosts that are parts of a virtual host before its own routes. Of too many, the first by precedence are served; one with
/// too many routes answers 503. Whoever is not served is told.
pub fn insert(mut parts: Vec<(&ConditionalHost, &Assembled)>, around: &mut Assembled) {
    if parts.is_empty() {
        return;
    }
    parts.sort_by(|(a, _), (b, _)| (&a.precedence, &a.origin).cmp(&(&b.precedence, &b.origin)));
    let host: &Host = &around.host.host;
    let mut lost = Vec::new();
    let mut report = |part: &ConditionalHost, why: String| {
        let why = format!("host {host}: {why}");
        lost.push(Verdict::new(Code::SharedRoutesLimit, part.origin.clone(), why));
    };
    for (part, _) in parts.split_off(parts.len().min(MOST_HOSTS)) {
        report(part, format!("at most {MOST_HOSTS} hosts with part of a name or a port are served"));
    }
    let mut left = MOST_ROUTES;
    let mut served: Vec<(&ConditionalHost, RouteList)> = Vec::with_capacity(parts.len());
    for (part, assembled) in parts {
        let routes = &assembled.host.routes;
        match left.checked_sub(routes.len()) {
            Some(rest) => {
                left = rest;
                served.push((part, routes.clone()));
            }
            None => {
                report(
                    part,
                    format!("hosts with part of a name or a port have more than {MOST_ROUTES} routes together"),
                );
                served.push((part, vec![closing(part, DirectResponse::unavailable())].into()));
            }
        }
    }
    served.sort_by(|(a, _), (b, _)| a.condition.specificity().cmp(&b.condition.specificity()));
    let own = std::mem::take(&mut around.host.routes);
    around.host.routes = served.iter().flat_map(|(_, routes)| routes).chain(&own).cloned().collect();
    around.lost.extend(lost);
    around.lost.sort();
}

#[cfg(test)]
mod tests {
    //! Which requests such hosts have, and how many are served.

    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use super::*;
    use crate::testing::{changed, route};
    use model::{Fqdn, ListenerId, route::HostNames};

    fn suffix(text: &str) -> HostCondition {
        HostCondition { names: HostNames::Suffix(text.into()), port: None }
    }

    fn host(name: &str, created: i64, condition: HostCondition) -> ConditionalHost {
        let Route { precedence, origin, .. } = Route::clone(&route(name, created, "/ /"));
        let (listener, selector) = (ListenerId::http(), None);
        ConditionalHost { listener, host: Host::Any, condition, selector, in_wider: true, precedence, origin }
    }

    fn with_host(route: &Arc<Route>, names: HostNames) -> Arc<Route> {
        changed(route, |route| route.conditions.host = Some(HostCondition { names: names.clone(), port: None }))
    }

    fn shown(assembled: &Assembled) -> Vec<String> {
        let shown = assembled.host.routes.iter().map(|route| {
            let Action::DirectResponse(response) = &route.action else { panic!("a response") };
            format!("{}{} {}", route.origin.object.name, route.conditions, response.status)
        });
        shown.collect()
    }

    #[test]
    fn routes_are_for_its_requests_alone_and_the_rest_answers_404() {
        let exact = |name: &str| HostNames::Exact(Fqdn::parse(name).unwrap());
        let routes = [
            route("every", 1, "p /a"),
            with_host(&route("own", 1, "p /b"), exact("x-api.test")),
            with_host(&route("other", 1, "p /c"), exact("b.test")),
            with_host(&route("start", 1, "p /d"), HostNames::Prefix("x".into())),
        ];
        let api = host("host", 1, suffix("-api.test"));
        // Two selections may have a route in common.
        let assembled = assemble(&api, Some([&routes[..], &routes[..1]]));
        let expected = [
            "start and header :authority and host x* 503",
            "own and host x-api.test 503",
            "every and host *-api.test 503",
            "host and host *-api.test 404",
        ];
        assert_eq!(shown(&assembled), expected);
        assert_eq!(assembled.lost, []);
        assert_eq!(shown(&assemble(&api, None::<[&[Arc<Route>]; 0]>)), ["host and host *-api.test 503"]);
    }

    #[test]
    fn the_most_specific_comes_first_and_all_before_the_routes_around() {
        let hosts = [host("wide", 1, suffix("test")), host("narrow", 2, suffix("-api.test"))];
        let parts: Vec<_> = hosts.iter().map(|host| (host, assemble(host, Some([&[][..]])))).collect();
        let mut around = Contributions::new(&Host::Any);
        around.routes([route("around", 1, "p /")]);
        let mut around = around.assemble();
        insert(parts.iter().map(|(host, assembled)| (*host, assembled)).collect(), &mut around);
        let names: Vec<_> = around.host.routes.iter().map(|route| &*route.origin.object.name).collect();
        assert_eq!(names, ["narrow", "wide", "around"]);
    }

    #[test]
    fn hosts_and_routes_are_bounded_and_the_youngest_are_told() {
        let hosts: Vec<_> =
            (0..=MOST_HOSTS).map(|at| host(&format!("{at:03}"), at as i64, suffix(&format!("{at}.test")))).collect();
        let many: Vec<_> = (0..MOST_ROUTES).map(|at| route("many", 1, &format!("= /{at}"))).collect();
        let parts = hosts.iter().enumerate().map(|(at, host)| {
            let routes = if at == 1 { &many[..] } else { &[][..] };
            (host, assemble(host, Some([routes])))
        });
        let parts: Vec<_> = parts.collect();
        let mut around = Contributions::new(&Host::Any).assemble();
        insert(parts.iter().map(|(host, assembled)| (*host, assembled)).collect(), &mut around);
        assert_eq!(around.host.routes.len(), MOST_HOSTS, "one answer for each");
        let told: Vec<_> = around.lost.iter().map(|verdict| (&*verdict.origin.object.name, verdict.code)).collect();
        assert_eq!(told, [("001", Code::SharedRoutesLimit), ("256", Code::SharedRoutesLimit)]);
    }
}
