//! One virtual host: every dialect's routes for one host of one listener, in the order a proxy must try them.
//!
//! In: the contributions to this host. Out: a [`VirtualHost`], and a verdict for each contribution that lost. Routes
//! that match differently merge, whoever wrote them; of those that match alike, the one with the least rank is served.
//!
//! The most specific is tried first: exact paths, then patterns, then prefixes; the longer one first; a prefix by path
//! element before the same text as a plain prefix. That is the order the Kubernetes API documents for Ingress (the
//! longest match wins, exact before prefix), and Contour's. Of routes with one path, that with more conditions comes
//! first. Routes that match alike are ordered by rank.
//!
//! One thing is stronger than a pattern: the path of an ACME challenge. Without it a pattern that sends every client
//! to HTTPS would keep the certificate from ever being renewed.

use model::{
    Code, Host, Route, Verdict, VirtualHost,
    route::{Action, Conditions, Depth, DirectResponse, Path, PathMatch, Policy},
};
use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

/// The most routes of the catch-all that are repeated in each wildcard host.
pub const MOST_DEEPER: usize = 100;

/// A virtual host, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The virtual host.
    pub host: VirtualHost,
    /// A verdict for each route that lost, on the object that wrote it; sorted.
    pub lost: Vec<Verdict>,
}

/// Assembles a host. `catch_all` are the routes for names that lie deeper than one label below a wildcard: see [`catch_all`].
pub fn assemble(host: &Host, mut routes: Vec<Arc<Route>>, catch_all: &[Arc<Route>]) -> Assembled {
    routes.sort_by(|a, b| compare(a, b));
    let mut lost = Vec::new();
    let mut kept: Vec<Arc<Route>> = Vec::with_capacity(routes.len());
    for route in routes {
        match kept.last() {
            Some(winner) if by_match(winner, &route).is_eq() => lost.extend(verdict(host, winner, &route)),
            _ => kept.push(route),
        }
    }
    lost.sort();
    // One object at most owns a host as a whole, so all routes that know of a limit know of the same.
    let limit = kept.iter().find_map(|route| route.policy.host_rate_limit.clone());
    let catch_all = if matches!(host, Host::Wildcard(_)) { catch_all.to_vec() } else { Vec::new() };
    Assembled { host: VirtualHost { host: host.clone(), routes: kept, catch_all, limit }, lost }
}

/// The routes of the catch-all, as every wildcard host repeats them for names that lie deeper than one label below it. More
/// than [`MOST_DEEPER`] are not repeated: such names answer 503. A part of the routes would not do, since requests for the
/// others would get a less specific one.
pub fn catch_all(catch_all: &[Arc<Route>]) -> Vec<Arc<Route>> {
    let Some(first) = catch_all.first().filter(|_| catch_all.len() > MOST_DEEPER) else { return catch_all.to_vec() };
    let code = Code::CatchAllTooLong;
    let body = format!("{code}: {}\n", code.title()).into();
    vec![Arc::new(Route {
        path: PathMatch::Prefix(Path::root()),
        conditions: Conditions::default(),
        depth: Depth::AnyLabels,
        action: Action::DirectResponse(DirectResponse { status: 503, body }),
        policy: Policy::default(),
        rank: first.rank.clone(),
        origin: first.origin.object.at(""),
    })]
}

/// A verdict for each object that has routes of the catch-all, if there are more of them than wildcard hosts repeat.
pub fn too_many_deeper(catch_all: &[Arc<Route>]) -> Vec<Verdict> {
    if catch_all.len() <= MOST_DEEPER {
        return Vec::new();
    }
    let count = catch_all.len();
    let why =
        format!("there are {count} routes without a host; wildcard hosts can repeat at most {MOST_DEEPER} of them");
    let objects: BTreeSet<_> = catch_all.iter().map(|route| &route.origin.object).collect();
    objects.into_iter().map(|object| Verdict::new(Code::CatchAllTooLong, object.at(""), why.clone())).collect()
}

/// Nobody asked for what is only implied, so nobody is told when it gives way. Where both were written in one object, or in
/// what it includes, nobody else has a part in it: that is worth knowing, and no error.
fn verdict(host: &Host, winner: &Route, loser: &Route) -> Option<Verdict> {
    if loser.rank.implied {
        return None;
    }
    let code = if winner.rank.is_same_object(&loser.rank) { Code::RouteShadowed } else { Code::RouteConflict };
    let why = format!("host {host}, path {}{} is already served by {}", loser.path, loser.conditions, winner.origin);
    Some(Verdict::new(code, loser.origin.clone(), why))
}

/// How two routes of one virtual host stand to each other.
fn compare(a: &Route, b: &Route) -> Ordering {
    by_match(a, b).then_with(|| a.rank.cmp(&b.rank))
}

/// The same without the ranks: equal means that the two take exactly the same requests.
fn by_match(a: &Route, b: &Route) -> Ordering {
    class(&a.path)
        .cmp(&class(&b.path))
        .then_with(|| b.path.text().len().cmp(&a.path.text().len()))
        .then_with(|| b.path.text().cmp(a.path.text()))
        .then_with(|| a.path.cmp(&b.path))
        .then_with(|| has_method(b).cmp(&has_method(a)))
        .then_with(|| b.conditions.headers.len().cmp(&a.conditions.headers.len()))
        .then_with(|| b.conditions.query.len().cmp(&a.conditions.query.len()))
        .then_with(|| a.conditions.cmp(&b.conditions))
        .then_with(|| a.depth.cmp(&b.depth))
}

fn has_method(route: &Route) -> bool {
    route.conditions.headers.iter().any(|header| header.name.as_str() == ":method")
}

fn class(path: &PathMatch) -> u8 {
    match path {
        PathMatch::Exact(_) => 0,
        PathMatch::Below(_) | PathMatch::Prefix(_) if path.is_acme() => 1,
        PathMatch::Regex(_) => 2,
        PathMatch::Below(_) | PathMatch::Prefix(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    //! The order of routes and who wins, with routes as small as they can be.

    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use super::*;
    use model::{
        ObjectRef, Regex,
        route::{Dialect, Rank},
    };

    fn path(text: &str) -> PathMatch {
        let path = |text: &str| Path::parse(text).unwrap();
        match text.split_once(' ').unwrap() {
            ("=", rest) => PathMatch::Exact(path(rest)),
            ("~", rest) => PathMatch::Regex(Regex::parse(rest).unwrap()),
            ("/", rest) => PathMatch::below(&path(rest)),
            (_, rest) => PathMatch::Prefix(path(rest)),
        }
    }

    fn route(name: &str, created: i64, text: &str) -> Arc<Route> {
        Arc::new(Route {
            path: path(text),
            conditions: Default::default(),
            depth: Depth::OneLabel,
            action: Action::DirectResponse(DirectResponse::unavailable()),
            policy: Default::default(),
            rank: Rank {
                dialect: Dialect::Ingress,
                implied: name.starts_with("implied"),
                created,
                namespace: "ns".into(),
                name: name.into(),
                index: 0,
            },
            origin: ObjectRef::new("Ingress", "ns", name).at("spec"),
        })
    }

    fn host() -> Host {
        Host::parse("a.example.com").unwrap()
    }

    #[test]
    fn the_specific_is_tried_first() {
        let routes = ["/ /", "/ /a", "p /a", "= /a", "/ /a/b", "~ /a/[0-9]+", "= /a/b", "~ /x.*"];
        let assembled = assemble(&host(), routes.iter().map(|text| route("x", 0, text)).collect(), &[]);
        let order: Vec<_> = assembled.host.routes.iter().map(|route| route.path.to_string()).collect();
        assert_eq!(order, ["= /a/b", "= /a", "~ /a/[0-9]+", "~ /x.*", "/a/b/…", "/a/…", "/a…", "/…"]);
        assert!(assembled.lost.is_empty());
    }

    #[test]
    fn the_older_wins_and_the_loser_is_told() {
        let routes = vec![route("young", 2, "= /a"), route("old", 1, "= /a"), route("b", 2, "= /a")];
        let assembled = assemble(&host(), routes.clone(), &[]);
        assert_eq!(assembled.host.routes[0].origin.object.name.as_ref(), "old");
        let told: Vec<_> = assembled.lost.iter().map(|verdict| (&*verdict.origin.object.name, verdict.code)).collect();
        assert_eq!(told, [("b", Code::RouteConflict), ("young", Code::RouteConflict)]);
        let mut other_order = routes;
        other_order.reverse();
        assert_eq!(assemble(&host(), other_order, &[]), assembled);
    }

    #[test]
    fn who_lost_is_told_by_object() {
        let paths = ["= /a", "= /b", "/ /c"];
        let routes = paths.iter().flat_map(|path| ["x", "y", "z"].map(|name| route(name, 1, path)));
        let lost = assemble(&host(), routes.collect(), &[]).lost;
        assert!(lost.len() == 6 && lost.is_sorted());
        let object = ObjectRef::new("Ingress", "ns", "y");
        let own = Verdict::about(&object, &lost);
        assert!(own.len() == 3 && own.iter().all(|verdict| verdict.origin.object == object));
        assert_eq!(Verdict::about(&ObjectRef::new("Ingress", "ns", "x"), &lost), []);
    }

    #[test]
    fn what_one_object_says_twice_is_a_warning() {
        let routes = vec![route("a", 1, "= /a"), route("a", 1, "= /a"), route("b", 2, "= /a")];
        let lost = assemble(&host(), routes, &[]).lost;
        let told: Vec<_> = lost.iter().map(|verdict| (&*verdict.origin.object.name, verdict.code)).collect();
        assert_eq!(told, [("a", Code::RouteShadowed), ("b", Code::RouteConflict)]);
    }

    #[test]
    fn what_is_implied_gives_way_in_silence() {
        let assembled = assemble(&host(), vec![route("implied", 1, "p /"), route("said", 2, "p /")], &[]);
        assert_eq!(assembled.host.routes[0].origin.object.name.as_ref(), "said");
        assert!(assembled.lost.is_empty());
    }

    #[test]
    fn names_deeper_than_a_wildcard_belong_to_everyone() {
        let catch_all = [route("catch_all", 1, "p /")];
        let wildcard = Host::parse("*.example.com").unwrap();
        assert_eq!(assemble(&wildcard, Vec::new(), &catch_all).host.catch_all, catch_all);
        assert!(assemble(&host(), Vec::new(), &catch_all).host.catch_all.is_empty());
    }

    #[test]
    fn a_long_catch_all_is_not_repeated_and_its_objects_are_told_once() {
        let many: Vec<_> = (0..=MOST_DEEPER).map(|at| route(["a", "b"][at % 2], 1, &format!("= /{at}"))).collect();
        let (fits, all) = (&many[1..], &many[..]);
        assert_eq!(catch_all(fits), fits);
        assert!(too_many_deeper(fits).is_empty());
        let instead = catch_all(all);
        let [only] = &instead[..] else { panic!("{} routes", instead.len()) };
        assert_eq!((only.path.to_string().as_str(), only.conditions.to_string().as_str()), ("/…", ""));
        assert!(matches!(&only.action, Action::DirectResponse(DirectResponse { status: 503, .. })));
        let told = too_many_deeper(all);
        assert_eq!(told.iter().map(|verdict| &*verdict.origin.object.name).collect::<Vec<_>>(), ["a", "b"]);
    }
}
