//! What unfolds is bounded: within the limits all of it is served, past them each include its share, and who is cut is told.

use super::*;
use crate::budget::{CONDITIONS, ROUTES};
use model::verdict_list;

fn respond(path: &str) -> Value {
    json!({ "conditions": [{ "prefix": path }], "directResponsePolicy": { "statusCode": 200 } })
}

fn children(names: impl IntoIterator<Item = (String, String)>) -> Value {
    names.into_iter().map(|(name, prefix)| json!({ "name": name, "conditions": [{ "prefix": prefix }] })).collect()
}

/// Includes of one child, each under a prefix of its own.
fn times(number: usize, child: &str) -> Value {
    children((0..number).map(|n| (child.to_owned(), format!("/{n}"))))
}

fn numbered(number: usize) -> Value {
    (0..number).map(|n| respond(&format!("/r{n}"))).collect()
}

/// The verdicts about an object, as text.
fn reported(translation: &Translation, name: &str) -> Vec<String> {
    let about = translation.verdicts.iter().filter(|verdict| *verdict.origin.object.name == *name);
    about.map(|verdict| format!("{} {}: {}", verdict.code, verdict.origin.field, verdict.message)).collect()
}

/// How many routes an object has, without those that only stand in for what is left out.
fn served(translation: &Translation, name: &str) -> usize {
    let own = |piece: &&model::translation::RoutePiece| {
        *piece.route.origin.object.name == *name && !piece.route.precedence.implied
    };
    translation.routes.iter().filter(own).count()
}

#[test]
fn as_many_routes_as_a_root_may_have_are_all_served() {
    let mut world =
        World::default().with("root", root(times(100, "child"))).with("child", json!({ "routes": numbered(100) }));
    let translation = world.translation("root");
    assert_eq!((translation.routes.len(), translation.verdicts.len()), (ROUTES, 0));
}

#[test]
fn seven_hundred_includes_of_seven_hundred_routes_come_to_an_end() {
    let mut spec = root(times(700, "child"));
    spec["routes"] = json!([respond("/own")]);
    let mut world = World::default().with("root", spec).with("child", json!({ "routes": numbered(700) }));
    let translation = world.translation("root");
    assert_eq!((served(&translation, "root"), served(&translation, "child")), (1, 700 * ((ROUTES - 1) / 700)));
    // The rest of each include answers 503, and nobody else's wider route.
    let left_out = translation.routes.iter().filter(|piece| piece.route.precedence.implied).count();
    assert_eq!(left_out, 700);
    assert_eq!(
        reported(&translation, "root"),
        [
            "SES5080 spec: it expands into more than 10000 routes: 1 of the HTTPProxies that it includes are served in part, \
          each include with an equal share"
        ]
    );
    assert_eq!(
        reported(&translation, "child"),
        [
            "SES5080 spec.routes[14]: this and everything after it is omitted: HTTPProxy a/root with its includes has more than 10000 routes"
        ]
    );
}

#[test]
fn a_greedy_child_takes_nothing_from_its_siblings() {
    let includes = children([("greedy", "/a"), ("modest", "/b")].map(|(name, path)| (name.into(), path.into())));
    let mut world = World::default()
        .with("root", root(includes))
        .with("greedy", json!({ "includes": times(200, "more"), "routes": numbered(100) }))
        .with("more", json!({ "routes": numbered(100) }))
        .with("modest", json!({ "routes": numbered(40) }));
    let translation = world.translation("root");
    assert_eq!(served(&translation, "modest"), 40);
    assert!(reported(&translation, "modest").is_empty());
    assert!(served(&translation, "greedy") + served(&translation, "more") <= ROUTES / 2);
    assert_eq!(reported(&translation, "more").len(), 1);
}

#[test]
fn nobody_waits_for_the_secret_of_a_route_that_is_left_out() {
    let late = |at: usize| {
        let mut routes = numbered(ROUTES * 3 / 5);
        let validation = json!({ "caSecret": "ca", "subjectName": "x" });
        let service = json!({ "name": "web", "port": 80, "protocol": "tls", "validation": validation });
        routes[at] = json!({ "conditions": [{ "prefix": "/late" }], "services": [service] });
        json!({ "routes": routes })
    };
    let includes = children(["first", "second"].map(|name| (name.into(), format!("/{name}"))));
    let mut world = World { is_pending: true, ..World::default() }
        .with("root", root(includes))
        .with("second", json!({ "routes": numbered(ROUTES * 3 / 5) }));
    let first = ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "a", "first");
    world = world.with("first", late(ROUTES * 11 / 20));
    assert_eq!(world.translation("root").pending, [], "each has half of the routes");
    world = world.with("first", late(ROUTES * 9 / 20));
    assert_eq!(world.translation("root").pending, [first]);
}

#[test]
fn a_root_keeps_its_own_routes_and_the_first_of_them() {
    let mut spec = root(times(1, "child"));
    spec["routes"] = numbered(ROUTES + 5);
    let mut world = World::default().with("root", spec).with("child", json!({ "routes": numbered(3) }));
    let translation = world.translation("root");
    assert_eq!((served(&translation, "root"), served(&translation, "child")), (ROUTES, 0));
    assert!(reported(&translation, "root").iter().any(|text| text.starts_with("SES5080 spec.routes[10000]: ")));
    assert!(reported(&translation, "child")[0].starts_with("SES5080 spec.routes[0]: "));
}

#[test]
fn conditions_that_are_handed_down_are_counted_at_each_level() {
    let depth = 400;
    assert!(depth * depth / 2 > CONDITIONS);
    let mut world = World::default().with("root", root(json!([{ "name": "c0" }])));
    for n in 0..depth {
        let condition = json!({ "header": { "name": format!("x-{n}"), "present": true } });
        let next = json!([{ "name": format!("c{}", n + 1), "conditions": [condition] }]);
        world = world.with(&format!("c{n}"), json!({ "includes": next }));
    }
    let translation = world.with(&format!("c{depth}"), json!({ "routes": routes() })).translation("root");
    assert!(
        reported(&translation, "root")[0].contains("more than 50000 conditions"),
        "{:?}",
        reported(&translation, "root")
    );
    let conditions: usize = translation.routes.iter().map(|piece| piece.route.conditions.count()).sum();
    assert!(conditions <= CONDITIONS);
}

#[test]
fn what_every_route_inherits_from_the_host_is_counted_for_each() {
    let ranges: Vec<Value> =
        (0..5000).map(|n| json!({ "source": "Peer", "cidr": format!("10.{}.{}.0/24", n / 250, n % 250) })).collect();
    let mut world = World::default().with(
        "root",
        json!({ "virtualhost": { "fqdn": "a.example.com", "ipAllowPolicy": ranges }, "routes": numbered(1000) }),
    );
    let translation = world.translation("root");
    let (served, told) = (served(&translation, "root"), reported(&translation, "root"));
    assert!((50..200).contains(&served), "{served}");
    assert!(told.iter().any(|text| text.contains("bytes of text")), "{told:?}");
}

#[test]
fn an_object_that_is_read_again_and_again_is_counted_though_nothing_comes_of_it() {
    let mut set: Vec<Value> = (0..3000).map(|n| json!({ "name": format!("x-{n}"), "value": "v" })).collect();
    set.push(json!({ "name": "not a name", "value": "v" }));
    let route = json!({ "directResponsePolicy": { "statusCode": 200 }, "requestHeadersPolicy": { "set": set } });
    let mut world =
        World::default().with("root", root(times(2000, "child"))).with("child", json!({ "routes": [route] }));
    let translation = world.translation("root");
    assert!(served(&translation, "child") < 1000);
    assert!(
        reported(&translation, "root")[0].contains("included more than once"),
        "{:?}",
        reported(&translation, "root")
    );
}

#[test]
fn what_goes_wrong_at_every_turn_is_told_so_many_times() {
    let bad: Value = (0..1800)
        .map(|n| json!({ "conditions": [{ "prefix": format!("/{n}") }], "services": [{ "name": "web", "port": 0 }] }))
        .collect();
    let mut world = World::default().with("root", root(times(5, "child"))).with("child", json!({ "routes": bad }));
    let translation = world.translation("root");
    let told = reported(&translation, "child");
    assert_eq!(told.iter().filter(|text| text.starts_with("SES5050")).count(), verdict_list::MOST);
    assert_eq!(told.iter().filter(|text| text.starts_with("SES7010")).count(), 1);
    assert_eq!((told.len(), translation.verdicts.len()), (verdict_list::MOST + 1, verdict_list::MOST + 1));
}
