//! Which listeners a route attaches to, and what each parent is told.

use super::world::{FINE, World, backend, codes, listener, message, names, parents};
use kinds::kind;
use model::{Code, Translation};
use serde_json::{Value, json};

fn rules() -> Value {
    json!([{ "backendRefs": [backend("app", 80)] }])
}

/// The listeners and hosts of the pieces, each with the widening.
fn pieces(translation: &Translation) -> Vec<(String, String, u16)> {
    let piece = |piece: &model::translation::RoutePiece| {
        let name = piece.listener.name().rsplit('/').next().unwrap_or_default().to_owned();
        (name, piece.host.to_string(), piece.route.precedence.widening)
    };
    translation.routes.iter().map(piece).collect()
}

#[test]
fn only_parents_that_are_ours_are_told() {
    let mut world = World::new();
    let theirs = json!({ "controllerName": "example.com/theirs" });
    world.put(kind::GATEWAY_CLASS, json!({ "metadata": { "name": "theirs" }, "spec": theirs }));
    let spec = json!({ "gatewayClassName": "theirs", "listeners": [listener("http", "HTTP", 80, json!({}))] });
    world.put(kind::GATEWAY, json!({ "metadata": { "name": "theirs" }, "spec": spec }));
    let references = json!([
        { "name": "web" }, { "name": "theirs" }, { "name": "missing" }, { "name": "web", "namespace": "other" },
        { "name": "app", "kind": "Service", "group": "" }, { "name": "web", "sectionName": "http" }, { "name": "web" },
    ]);
    let translation = world.route(kind::HTTP_ROUTE, json!({ "parentRefs": references, "rules": rules() }));
    assert_eq!(names(&translation), ["web", "web"], "what is declared twice is told once");
    assert_eq!(parents(&translation), [FINE, FINE]);
    assert_eq!(pieces(&translation), [("http".into(), "*".into(), 0)], "and served once");
    let sections: Vec<_> = translation.attached.iter().map(|section| &*section.name).collect();
    assert_eq!(sections, ["http"]);
    let nobody = world.route(kind::HTTP_ROUTE, json!({ "parentRefs": [{ "name": "theirs" }], "rules": [{}] }));
    assert!(parents(&nobody).is_empty() && nobody.routes.is_empty() && nobody.verdicts.is_empty());
}

#[test]
fn each_parent_is_told_why_a_route_does_not_attach() {
    let mut world = World::new();
    world.gateway(
        "web",
        json!([
            listener("http", "HTTP", 80, json!({ "hostname": "*.example.com" })),
            listener("tcp", "TCP", 9000, json!({})),
            listener("grpc", "HTTP", 81, json!({ "allowedRoutes": { "kinds": [{ "kind": "GRPCRoute" }] } })),
            listener(
                "other",
                "HTTP",
                82,
                json!({ "allowedRoutes": { "namespaces": { "from": "Selector",
                "selector": { "matchLabels": { "kubernetes.io/metadata.name": "other" } } } } })
            ),
        ]),
    );
    let section = |name: &str| json!({ "name": "web", "sectionName": name });
    for (reference, hostname, expected) in [
        (section("http"), "a.example.com", "Accepted=True Accepted"),
        (section("missing"), "a.example.com", "Accepted=False NoMatchingParent"),
        (json!({ "name": "web", "port": 8080 }), "a.example.com", "Accepted=False NoMatchingParent"),
        (json!({ "name": "web", "sectionName": "http", "port": 81 }), "a.b", "Accepted=False NoMatchingParent"),
        (json!({ "name": "web", "sectionName": "http", "port": 80 }), "a.example.com", "Accepted=True Accepted"),
        (section("tcp"), "a.example.com", "Accepted=False NotAllowedByListeners"),
        (section("grpc"), "a.example.com", "Accepted=False NotAllowedByListeners"),
        (section("other"), "a.example.com", "Accepted=False NotAllowedByListeners"),
        (section("http"), "a.example.org", "Accepted=False NoMatchingListenerHostname"),
        (section("http"), "example.com", "Accepted=False NoMatchingListenerHostname"),
        (json!({ "name": "web" }), "a.example.com", "Accepted=True Accepted"),
    ] {
        let spec = json!({ "parentRefs": [reference], "hostnames": [hostname], "rules": [{ "backendRefs": [{ "name": "gone", "port": 1 }] }] });
        let translation = world.route(kind::HTTP_ROUTE, spec);
        // References are judged whether the route is accepted or not.
        assert_eq!(parents(&translation), [[expected, "ResolvedRefs=False BackendNotFound"]], "{reference} {hostname}");
        assert_eq!(translation.routes.is_empty(), expected.contains("False"), "{reference} {hostname}");
        assert_eq!(translation.attached.is_empty(), expected.contains("False"), "{reference} {hostname}");
    }
}

#[test]
fn hosts_are_those_that_listener_and_route_have_in_common() {
    let mut world = World::new();
    world.gateway(
        "web",
        json!([
            listener("any", "HTTP", 80, json!({})),
            listener("wild", "HTTP", 80, json!({ "hostname": "*.example.com" })),
            listener("exact", "HTTP", 80, json!({ "hostname": "abc.example.com" })),
        ]),
    );
    let of = |hostnames: Value, world: &mut World| {
        pieces(&world.route(kind::HTTP_ROUTE, json!({ "hostnames": hostnames, "rules": rules() })))
    };
    let strings = |list: &[(&str, &str, u16)]| -> Vec<(String, String, u16)> {
        list.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), *c)).collect()
    };
    let all = of(json!([]), &mut world);
    assert_eq!(
        all,
        strings(&[("any", "*", 0), ("exact", "abc.example.com", u16::MAX), ("wild", "*.example.com", u16::MAX)])
    );
    let both = of(json!(["*.example.com", "abc.example.com"]), &mut world);
    let narrow = strings(&[
        ("any", "abc.example.com", 0),
        ("any", "*.example.com", 0),
        // Of two names that lead to one host the narrower one counts.
        ("exact", "abc.example.com", 0),
        ("wild", "abc.example.com", 0),
        ("wild", "*.example.com", 0),
    ]);
    assert_eq!(both, narrow);
    let wider = of(json!(["*.com"]), &mut world);
    let hosts: Vec<_> =
        wider.iter().map(|(name, host, widening)| (name.as_str(), host.as_str(), *widening > 0)).collect();
    assert_eq!(hosts, [("any", "*.com", false), ("exact", "abc.example.com", true), ("wild", "*.example.com", true)]);
}

#[test]
fn a_hostname_that_is_none_is_dropped_alone() {
    let mut world = World::new();
    let spec = json!({ "hostnames": ["a.example.com", "10.0.0.1", "a b", "*", 7], "rules": rules() });
    let translation = world.route(kind::HTTP_ROUTE, spec);
    assert_eq!(pieces(&translation), [("http".into(), "a.example.com".into(), 0)]);
    assert_eq!(parents(&translation)[0][2], "PartiallyInvalid=True UnsupportedValue");
    assert_eq!(codes(&translation), [Code::GatewayRouteHostname; 4]);
    let none = world.route(kind::HTTP_ROUTE, json!({ "hostnames": ["a b"], "rules": rules() }));
    assert_eq!(parents(&none)[0][0], "Accepted=False NoMatchingListenerHostname");
    assert!(none.routes.is_empty());
}

#[test]
fn a_listener_set_is_a_parent_of_its_own() {
    let mut world = World::new();
    let all = json!({ "namespaces": { "from": "All" } });
    let spec = json!({ "gatewayClassName": "sesame", "allowedListeners": all, "listeners": [listener("http", "HTTP", 80, json!({}))] });
    world.put(kind::GATEWAY, json!({ "metadata": { "name": "web" }, "spec": spec }));
    let listeners = json!([listener("more", "HTTP", 81, json!({}))]);
    let spec = json!({ "parentRef": { "name": "web" }, "listeners": listeners });
    world.put(kind::LISTENER_SET, json!({ "metadata": { "name": "set" }, "spec": spec }));
    let of = |reference: Value, world: &mut World| {
        world.route(kind::HTTP_ROUTE, json!({ "parentRefs": [reference], "rules": rules() }))
    };
    let names = |translation: &Translation| pieces(translation).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    assert_eq!(names(&of(json!({ "name": "set", "kind": "ListenerSet" }), &mut world)), ["more"]);
    assert_eq!(names(&of(json!({ "name": "web" }), &mut world)), ["http"], "a Gateway has no listeners of its sets");
    let section = of(json!({ "name": "web", "sectionName": "more" }), &mut world);
    assert_eq!(parents(&section)[0][0], "Accepted=False NoMatchingParent");
    assert!(message(&section, "Accepted").contains("no listener named more"), "{}", message(&section, "Accepted"));
}

#[test]
fn a_listener_that_is_not_served_counts_routes_and_serves_none() {
    let mut world = World::new();
    world.gateway("web", json!([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 80, json!({}))]));
    let translation = world.route(kind::HTTP_ROUTE, json!({ "rules": rules() }));
    assert_eq!(parents(&translation), [FINE]);
    assert_eq!((translation.attached.len(), translation.routes.len()), (2, 0));
}
