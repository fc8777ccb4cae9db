//! Backends, their shares, and what is answered for those that cannot be used.

use super::world::{FINE, World, backend, backends, codes, forward, message, parents};
use kinds::kind;
use model::{
    Code, Translation,
    cluster::Protocol,
    route::{HostRewrite, PathRewrite, UnavailableAnswer},
};
use serde_json::{Value, json};

fn weighted(name: &str, weight: i64) -> Value {
    json!({ "name": name, "port": 80, "weight": weight })
}

fn http(references: Value) -> Translation {
    World::new().http(json!([{ "backendRefs": references }]))
}

fn shares(list: &[(&str, u32)]) -> Vec<(String, u32)> {
    list.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect()
}

#[test]
fn a_backend_that_cannot_be_used_keeps_its_share() {
    for (reference, reason, code) in [
        (json!({ "name": "gone", "port": 80, "weight": 30 }), "BackendNotFound", Code::ServiceNotFound),
        (json!({ "name": "app", "port": 8080, "weight": 30 }), "BackendNotFound", Code::ServicePortNotFound),
        (json!({ "name": "app", "weight": 30 }), "BackendNotFound", Code::GatewayRouteBackend),
        (json!({ "name": "app", "port": 53, "weight": 30 }), "UnsupportedProtocol", Code::ServicePortNotTcp),
        (json!({ "name": "app", "port": 80, "kind": "Pod", "weight": 30 }), "InvalidKind", Code::GatewayRouteBackend),
        (json!({ "name": "app", "port": 80, "group": "x.io", "weight": 30 }), "InvalidKind", Code::GatewayRouteBackend),
        (
            json!({ "name": "app", "port": 80, "namespace": "other", "weight": 30 }),
            "RefNotPermitted",
            Code::ReferenceNotPermitted,
        ),
    ] {
        let translation = http(json!([weighted("app", 70), reference]));
        let forward = forward(&translation);
        assert_eq!(backends(&forward), shares(&[("default/app/80", 70), ("-", 30)]), "{reference}");
        assert_eq!(forward.unavailable.unwrap().answer, UnavailableAnswer::InternalServerError);
        assert_eq!(parents(&translation), [[FINE[0], &format!("ResolvedRefs=False {reason}")]], "{reference}");
        assert_eq!(codes(&translation), [code], "{reference}");
        assert!(message(&translation, "ResolvedRefs").contains(": spec.rules[0].backendRefs[1]"), "{reference}");
        // Alone it has all requests.
        let alone = http(json!([reference]));
        assert_eq!(backends(&super::world::forward(&alone)), shares(&[("-", 30)]), "{reference}");
        assert_eq!(parents(&alone)[0][0], FINE[0], "{reference}");
    }
}

#[test]
fn permission_comes_before_existence() {
    let mut world = World::new();
    let rules = json!([{ "backendRefs": [{ "name": "app", "namespace": "other", "port": 80 }] }]);
    let reason = |world: &mut World| parents(&world.http(rules.clone()))[0][1].clone();
    assert_eq!(reason(&mut world), "ResolvedRefs=False RefNotPermitted");
    world.service("other", "app");
    assert_eq!(reason(&mut world), "ResolvedRefs=False RefNotPermitted");
    world.grant("other", kind::TCP_ROUTE);
    assert_eq!(reason(&mut world), "ResolvedRefs=False RefNotPermitted", "a grant for another kind");
    world.grant("other", kind::HTTP_ROUTE);
    assert_eq!(reason(&mut world), FINE[1]);
    assert_eq!(backends(&forward(&world.http(rules.clone()))), shares(&[("other/app/80", 1)]));
    let missing = json!([{ "backendRefs": [{ "name": "gone", "namespace": "other", "port": 80 }] }]);
    assert_eq!(parents(&world.http(missing))[0][1], "ResolvedRefs=False BackendNotFound");
}

#[test]
fn weights_are_shares_and_none_is_a_500() {
    let two = http(json!([weighted("app", 1_000_000), weighted("app", 0), weighted("gone", 0)]));
    assert_eq!(backends(&forward(&two)), shares(&[("default/app/80", 1_000_000)]));
    let many: Vec<Value> = (0..16).map(|_| weighted("app", 1_000_000)).collect();
    assert_eq!(forward(&http(json!(many))).clusters.len(), 16);
    for nothing in [json!([]), json!([weighted("app", 0)]), json!([weighted("app", 0), weighted("gone", 0)])] {
        let translation = http(nothing.clone());
        assert_eq!(backends(&forward(&translation)), shares(&[("-", 1)]), "{nothing}");
    }
    assert_eq!(parents(&http(json!([]))), [FINE], "no backends are no wrong reference");
    // One that is out of range costs its own share.
    for (wrong, share) in [(-1, 1), (1_000_001, 1_000_000)] {
        let beside = http(json!([weighted("app", 3), weighted("app", wrong)]));
        assert_eq!(backends(&forward(&beside)), shares(&[("default/app/80", 3), ("-", share)]), "{wrong}");
        let alone = http(json!([weighted("app", wrong)]));
        assert_eq!(backends(&forward(&alone)), shares(&[("-", share)]), "{wrong}");
        for translation in [beside, alone] {
            assert_eq!(codes(&translation), [Code::GatewayRouteBackend], "{wrong}");
            assert_eq!(
                parents(&translation),
                [[FINE[0], FINE[1], "PartiallyInvalid=True UnsupportedValue"]],
                "{wrong}"
            );
            assert!(message(&translation, "PartiallyInvalid").starts_with("Dropped Rule backendRef: "), "{wrong}");
        }
    }
    let broken = http(json!([7, weighted("app", 1)]));
    assert_eq!(backends(&forward(&broken)), shares(&[("default/app/80", 1), ("-", 1)]));
    assert_eq!(parents(&broken)[0][2], "PartiallyInvalid=True UnsupportedValue");
}

#[test]
fn grpc_clients_see_unavailable_and_backends_speak_http2() {
    let of =
        |references: Value| World::new().route(kind::GRPC_ROUTE, json!({ "rules": [{ "backendRefs": references }] }));
    let found = forward(&of(json!([backend("app", 80), backend("gone", 80)])));
    assert_eq!(found.unavailable.unwrap().answer, UnavailableAnswer::ServiceUnavailable);
    let protocol =
        |found: &model::route::Forward| found.clusters[0].cluster.overrides.as_ref().and_then(|it| it.protocol);
    assert_eq!(protocol(&found), Some(Protocol::H2c));
    assert_eq!(protocol(&forward(&of(json!([backend("app", 81)])))), None, "the Service says so already");
}

#[test]
fn an_http_backend_speaks_what_its_service_says_and_may_become_a_websocket() {
    let found = forward(&http(json!([backend("app", 81)])));
    assert_eq!((found.clusters[0].cluster.overrides.clone(), found.websocket), (None, true));
}

#[test]
fn filters_of_a_backend_are_its_own() {
    let modifier = json!({ "set": [{ "name": "x-a", "value": "1" }, { "name": "host", "value": "b.example.com" }], "add": [{ "name": "x-b", "value": "2" }] });
    let filters = json!([{ "type": "RequestHeaderModifier", "requestHeaderModifier": modifier }]);
    let own = json!({ "name": "app", "port": 80, "filters": filters });
    let found = forward(&http(json!([own, backend("app", 81)])));
    let [first, second] = &found.clusters[..] else { panic!("{found:?}") };
    assert_eq!((first.request_headers.set.len(), first.request_headers.add.len()), (1, 1));
    assert_eq!(first.host.as_ref().map(|host| host.as_str()), Some("b.example.com"));
    assert_eq!((second.request_headers.set.len(), &second.host), (0, &None));
    // The only backend of a rule may have what its route has.
    let rewrite = json!([{ "type": "URLRewrite", "urlRewrite": { "hostname": "c.example.com", "path": { "type": "ReplaceFullPath", "replaceFullPath": "/x" } } }]);
    let rewritten = json!({ "name": "app", "port": 80, "filters": rewrite });
    let only = forward(&http(json!([rewritten])));
    assert!(matches!(&only.rewrite, Some(PathRewrite::Whole(path)) if path.as_str() == "/x"), "{only:?}");
    assert!(matches!(&only.host, Some(HostRewrite::Literal(host)) if host.as_str() == "c.example.com"), "{only:?}");
    let beside = http(json!([rewritten, backend("app", 81)]));
    assert_eq!(backends(&forward(&beside)), shares(&[("default/app/81", 1), ("-", 1)]));
    assert_eq!(parents(&beside)[0][2], "PartiallyInvalid=True UnsupportedValue");
    let unknown =
        json!({ "name": "app", "port": 80, "filters": [{ "type": "CORS", "cors": { "allowOrigins": ["*"] } }] });
    assert_eq!(backends(&forward(&http(json!([unknown])))), shares(&[("-", 1)]));
}

#[test]
fn the_services_of_a_route_are_known_also_where_they_cannot_be_used() {
    let translation =
        http(json!([backend("app", 80), backend("gone", 80), { "name": "x", "namespace": "other", "port": 1 }]));
    let names: Vec<_> = translation.backend_objects.iter().map(|object| &*object.name).collect();
    assert_eq!(names, ["app", "gone"], "but for one that it may not refer to");
}
