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

    fn found(&mut self, secrets: &[ObjectRef]) {
        self.settle();
        secrets.iter().for_each(|id| self.answer(id, FetchResult::Found));
        self.settle();
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
    let has = |world: &World, name: &str| {
        let secret = |(kind, found): &(xds::Kind, xds::Name)| *kind == xds::Kind::Secret && found.contains(name);
        world.resources.keys().any(secret)
    };
    assert!(has(&world, "a/old") && has(&world, "b/far"));
    world.put(gateway(&listeners("new")));
    world.settle();
    assert!(has(&world, "a/old") && has(&world, "b/far"));
    world.remove(&grant.key());
    world.settle();
    assert!(has(&world, "a/old") && !has(&world, "b/far"));
    assert!(world.pipeline.is_pending(&ObjectRef::new(kind::GATEWAY, "a", "web")));
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(has(&world, "a/new") && !has(&world, "a/old"));
    assert_eq!(world.resources, world.rebuilt().resources);
}
