//! Gateways and routes of which a part depends on a Secret that is not known yet: that part is what it was, and a permission that is
//! taken away from another part is not waited for.

use super::{World, id, service};
use kinds::{Object, kind};
use model::ObjectRef;
use pipeline::FetchResult;
use serde_json::{Value, json};
use testbed::cases::object;

const GROUP: &str = "gateway.networking.k8s.io";

fn gateway_api(kind: &str, namespace: &str, name: &str, spec: &Value) -> Object {
    let metadata = json!({ "namespace": namespace, "name": name });
    object(&json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata, "spec": spec }))
}

fn gateway(listeners: &Value) -> Object {
    gateway_api("Gateway", "a", "web", &json!({ "gatewayClassName": "sesame", "listeners": listeners }))
}

/// Lets objects of a kind in namespace `a` refer to objects in `b`.
fn grant(from: &str, to: &str) -> Object {
    let from = json!([{ "group": GROUP, "kind": from, "namespace": "a" }]);
    gateway_api("ReferenceGrant", "b", "grant", &json!({ "from": from, "to": [{ "group": "", "kind": to }] }))
}

/// Backends of Service `a/web` prove their identity by this CA.
fn policy(ca: &str) -> Object {
    let target = json!([{ "group": "", "kind": "Service", "name": "web" }]);
    let references = json!([{ "group": "", "kind": "Secret", "name": ca }]);
    let validation = json!({ "hostname": "web.example.com", "caCertificateRefs": references });
    gateway_api("BackendTLSPolicy", "a", "tls", &json!({ "targetRefs": target, "validation": validation }))
}

fn route(rules: &Value) -> Object {
    let spec = json!({ "parentRefs": [{ "name": "web" }], "hostnames": ["h.example.com"], "rules": rules });
    gateway_api("HTTPRoute", "a", "r", &spec)
}

fn rule(path: &str, backend: &Value) -> Value {
    json!({ "matches": [{ "path": { "value": path } }], "backendRefs": [backend] })
}

impl World {
    fn with_class() -> World {
        let mut world = World::new();
        let spec = json!({ "controllerName": "projectsesame.io/gateway-controller" });
        world.put(gateway_api("GatewayClass", "", "sesame", &spec));
        world.put(service("a", "web"));
        world.put(service("b", "web"));
        world
    }
}

#[test]
fn a_grant_that_is_revoked_acts_at_once_on_a_route_whose_other_rule_is_pending() {
    let mut world = World::with_class();
    world.put(gateway(&json!([{ "name": "http", "protocol": "HTTP", "port": 80 }])));
    let far = json!({ "name": "web", "namespace": "b", "port": 443 });
    let own = json!({ "name": "web", "port": 443 });
    let object = route(&json!([rule("/own", &own), rule("/far", &far)]));
    world.put(object.clone());
    let grant = grant("HTTPRoute", "Service");
    world.put(grant.clone());
    world.put(policy("old"));
    world.found(&[id("a", "old")]);
    assert!(world.mentions("b/web/443") > 0 && world.mentions("ca/a/old") > 0);
    world.put(policy("new"));
    world.settle();
    assert!(world.pipeline.is_pending(&object.key()));
    assert!(world.mentions("b/web/443") > 0 && world.mentions("ca/a/old") > 0, "nothing else has changed");
    world.remove(&grant.key());
    world.settle();
    assert!(world.pipeline.is_pending(&object.key()));
    assert_eq!(world.mentions("b/web/443"), 0, "what is not permitted any more is not served");
    assert!(world.mentions("ca/a/old") > 0, "what is not known yet is what it was");
    world.pipeline.self_check().unwrap();
    // A rule that is new and depends on what is not known answers 503; it is not left to another route.
    world.put(route(&json!([rule("/own", &own), rule("/new", &own)])));
    world.settle();
    assert!(world.mentions("/new") > 0 && world.mentions("/far") == 0);
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.mentions("ca/a/new") > 0 && world.mentions("ca/a/old") == 0);
    assert!(!world.pipeline.is_pending(&object.key()));
    assert_eq!(world.resources, world.rebuilt().resources);
}

#[test]
fn a_listener_that_no_longer_allows_a_route_loses_it_though_the_route_is_pending() {
    let mut world = World::with_class();
    let listeners = |from: &str| {
        let allowed = json!({ "namespaces": { "from": from } });
        json!([
            { "name": "one", "protocol": "HTTP", "port": 80 },
            { "name": "two", "protocol": "HTTP", "port": 81, "allowedRoutes": allowed },
        ])
    };
    world.put(gateway(&listeners("Same")));
    world.put(route(&json!([rule("/own", &json!({ "name": "web", "port": 443 }))])));
    world.put(policy("old"));
    world.found(&[id("a", "old")]);
    let before = world.mentions("h.example.com");
    world.put(policy("new"));
    world.settle();
    assert_eq!(world.mentions("h.example.com"), before);
    world.put(gateway(&listeners("None")));
    world.settle();
    assert_eq!(world.mentions("h.example.com") * 2, before, "one of two listeners has it");
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_certificate_that_is_not_permitted_any_more_is_withdrawn_though_another_listener_is_pending() {
    let mut world = World::with_class();
    let listeners = |own: &str| {
        let listener = |name: &str, reference: Value| {
            let tls = json!({ "certificateRefs": [reference] });
            let hostname = format!("{name}.example.com");
            json!({ "name": name, "protocol": "HTTPS", "port": 443, "hostname": hostname, "tls": tls })
        };
        json!([listener("own", json!({ "name": own })), listener("far", json!({ "name": "far", "namespace": "b" }))])
    };
    let grant = grant("Gateway", "Secret");
    world.put(grant.clone());
    world.put(gateway(&listeners("old")));
    world.found(&[id("a", "old"), id("b", "far")]);
    assert!(world.has_secret("a/old") && world.has_secret("b/far"));
    world.put(gateway(&listeners("new")));
    world.settle();
    assert!(world.has_secret("a/old") && world.has_secret("b/far"));
    world.remove(&grant.key());
    world.settle();
    assert!(world.has_secret("a/old") && !world.has_secret("b/far"));
    assert!(world.pipeline.is_pending(&ObjectRef::new(kind::GATEWAY, "a", "web")));
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.has_secret("a/new") && !world.has_secret("a/old"));
    assert_eq!(world.resources, world.rebuilt().resources);
}

/// Not even one rule, or one listener, is kept as it was for the sake of one reference if another is not permitted any more.
#[test]
fn a_grant_that_is_revoked_acts_at_once_on_the_very_rule_that_is_pending() {
    let mut world = World::with_class();
    world.put(gateway(&json!([{ "name": "http", "protocol": "HTTP", "port": 80 }])));
    let backends = json!([{ "name": "web", "port": 443 }, { "name": "web", "namespace": "b", "port": 443 }]);
    let object = route(&json!([{ "backendRefs": backends }]));
    world.put(object.clone());
    let grant = grant("HTTPRoute", "Service");
    world.put(grant.clone());
    world.put(policy("old"));
    world.found(&[id("a", "old")]);
    world.put(policy("new"));
    world.settle();
    assert!(world.pipeline.is_pending(&object.key()));
    assert!(world.mentions("b/web/443") > 0 && world.mentions("ca/a/old") > 0);
    world.remove(&grant.key());
    world.settle();
    assert_eq!(world.mentions("b/web/443"), 0, "what is not permitted any more is not served");
    assert_eq!(world.mentions("ca/a/old"), 0, "the share of the other is answered until its CA is known");
    assert!(world.mentions("h.example.com") > 0);
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.mentions("ca/a/new") > 0 && world.mentions("b/web/443") == 0);
    assert_eq!(world.resources, world.rebuilt().resources);
}

#[test]
fn a_certificate_that_is_not_permitted_any_more_is_withdrawn_from_the_very_listener_that_is_pending() {
    let mut world = World::with_class();
    let listeners = |own: &str| {
        let references = json!([{ "name": "far", "namespace": "b" }, { "name": own }]);
        json!([{ "name": "https", "protocol": "HTTPS", "port": 443, "hostname": "h.example.com",
            "tls": { "certificateRefs": references } }])
    };
    let grant = grant("Gateway", "Secret");
    world.put(grant.clone());
    world.put(gateway(&listeners("old")));
    world.found(&[id("a", "old"), id("b", "far")]);
    world.put(gateway(&listeners("new")));
    world.settle();
    assert!(world.has_secret("a/old") && world.has_secret("b/far"));
    world.remove(&grant.key());
    world.settle();
    assert!(
        !world.has_secret("a/old") && !world.has_secret("b/far"),
        "connections are closed until the other is known"
    );
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.has_secret("a/new") && !world.has_secret("b/far"));
    assert_eq!(world.resources, world.rebuilt().resources);
}

fn gateway_with(tls: &Value) -> Object {
    let certificate = json!({ "certificateRefs": [{ "name": "cert" }] });
    let listeners = json!([
        { "name": "http", "protocol": "HTTP", "port": 80 },
        { "name": "https", "protocol": "HTTPS", "port": 443, "hostname": "h.example.com", "tls": certificate },
    ]);
    gateway_api("Gateway", "a", "web", &json!({ "gatewayClassName": "sesame", "listeners": listeners, "tls": tls }))
}

#[test]
fn the_client_certificate_of_a_gateway_is_what_it_was_until_another_is_known_and_ends_with_its_grant() {
    let mut world = World::with_class();
    let with = |name: &str, namespace: &str| {
        gateway_with(&json!({ "backend": { "clientCertificateRef": { "name": name, "namespace": namespace } } }))
    };
    world.put(with("old", "b"));
    world.put(route(&json!([rule("/", &json!({ "name": "web", "port": 443 }))])));
    world.put(policy("ca"));
    let grant = grant("Gateway", "Secret");
    world.put(grant.clone());
    world.found(&[id("a", "cert"), id("a", "ca"), id("b", "old")]);
    assert!(world.has_secret("b/old") && world.mentions("ca/a/ca") > 0);
    world.put(with("new", "a"));
    world.settle();
    assert!(world.has_secret("b/old"), "nothing else is known");
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.has_secret("a/new") && !world.has_secret("b/old"));
    assert_eq!(world.resources, world.rebuilt().resources);
    world.put(with("old", "b"));
    world.found(&[id("b", "old")]);
    assert!(world.has_secret("b/old"));
    // A CA of the same rule is not known when the grant is revoked.
    world.put(policy("later"));
    world.settle();
    assert!(world.has_secret("b/old"));
    world.remove(&grant.key());
    world.settle();
    assert!(!world.has_secret("b/old"));
    assert_eq!(world.mentions("ca/a/"), 0, "TLS backends are not used");
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_listener_is_closed_until_its_ca_is_known_and_accepts_nobody_once_its_grant_is_revoked() {
    let mut world = World::with_class();
    let with = |name: &str, namespace: &str| {
        let reference = json!({ "group": "", "kind": "Secret", "name": name, "namespace": namespace });
        gateway_with(&json!({ "frontend": { "default": { "validation": { "caCertificateRefs": [reference] } } } }))
    };
    let grant = grant("Gateway", "Secret");
    world.put(grant.clone());
    world.put(with("ca", "b"));
    world.found(&[id("a", "cert")]);
    assert!(!world.has_secret("a/cert") && !world.has_secret("b/ca"), "nobody is let in before the CA is known");
    world.found(&[id("b", "ca")]);
    assert!(world.has_secret("a/cert") && world.has_secret("b/ca"));
    world.put(with("new", "a"));
    world.settle();
    assert!(world.has_secret("a/cert") && world.has_secret("b/ca"), "what it was until the other is known");
    world.pipeline.self_check().unwrap();
    world.put(with("ca", "b"));
    world.settle();
    world.remove(&grant.key());
    world.settle();
    assert!(!world.has_secret("a/cert") && !world.has_secret("b/ca"));
    assert_eq!(world.resources, world.rebuilt().resources);
}
