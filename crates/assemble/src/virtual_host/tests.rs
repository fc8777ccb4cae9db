//! The order of routes and who wins, with routes as small as they can be.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use model::{
    ObjectRef, Regex,
    route::{Action, Depth, Dialect, Path, PathMatch, Rank, Respond},
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
        action: Action::Respond(Respond::unavailable()),
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
fn what_is_implied_gives_way_in_silence() {
    let assembled = assemble(&host(), vec![route("implied", 1, "p /"), route("said", 2, "p /")], &[]);
    assert_eq!(assembled.host.routes[0].origin.object.name.as_ref(), "said");
    assert!(assembled.lost.is_empty());
}

#[test]
fn names_deeper_than_a_wildcard_belong_to_everyone() {
    let everyone = [route("everyone", 1, "p /")];
    let wildcard = Host::parse("*.example.com").unwrap();
    assert_eq!(assemble(&wildcard, Vec::new(), &everyone).host.deeper, everyone);
    assert!(assemble(&host(), Vec::new(), &everyone).host.deeper.is_empty());
}
