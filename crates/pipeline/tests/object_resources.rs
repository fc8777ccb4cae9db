//! Which resources carry an object: those that proxies must have before it is served as it is written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "packing/world.rs"]
#[allow(dead_code, reason = "shared with the tests of packings")]
mod world;

use kinds::{Kind, kind};
use model::ObjectRef;
use pipeline::{
    ObjectResource, Output, Pipeline, Settings,
    settings::{Certificates, Packing},
};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use testbed::certs::Ca;
use world::{http_scope, ingress, ingress_with, object, secret, service, settings};

fn put(pipeline: &mut Pipeline, object: kinds::Object) -> Output {
    pipeline.put(&object.key(), Some(object));
    pipeline.settle()
}

/// What is said to carry the Ingress of that name; nothing if there is no news of it.
fn of(output: &Output, name: &str) -> Option<Vec<ObjectResource>> {
    of_kind(output, kind::INGRESS, name)
}

/// The same of an object of any kind.
fn of_kind(output: &Output, kind: Kind, name: &str) -> Option<Vec<ObjectResource>> {
    let object = ObjectRef::new(kind, "default", name);
    let found = output.object_resources.iter().find(|(of, _)| *of == object);
    found.map(|(_, served)| served.as_ref().map(|served| served.resources.clone()).unwrap_or_default())
}

fn names(object_resources: &[ObjectResource]) -> Vec<String> {
    object_resources.iter().map(|resource| format!("{} {}", resource.kind, resource.name)).collect()
}

#[test]
fn a_host_in_a_scope_is_carried_by_one_version_of_it() {
    let mut pipeline = Pipeline::new(&Settings { packing: Packing::Scoped, ..Settings::default() });
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    put(&mut pipeline, ingress("other", "b.example.com", "/", "web"));
    let output = put(&mut pipeline, ingress("shop", "a.example.com", "/", "web"));
    let before = of(&output, "shop").unwrap();
    assert_eq!(names(&before), [format!("srds {}", http_scope("a.example.com"))]);
    let published = output.xds.upserts.iter().find(|resource| resource.name == before[0].name).unwrap();
    assert_eq!(before[0].hash, Some(xds::content_version(&published.body)));
    let output = put(&mut pipeline, ingress("shop", "a.example.com", "/new", "web"));
    assert_ne!(of(&output, "shop").unwrap()[0].hash, before[0].hash);
    assert_eq!(of(&output, "other"), None, "others are not looked at");
}

#[test]
fn a_table_is_named_and_its_version_is_whatever_is_published() {
    let mut pipeline = Pipeline::new(&Settings { packing: Packing::Plain, ..Settings::default() });
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    let output = put(&mut pipeline, ingress("shop", "a.example.com", "/", "web"));
    let resource = ObjectResource {
        fleet: model::FleetId::Shared,
        kind: xds::Kind::Route,
        name: "ingress_http".into(),
        hash: None,
    };
    assert_eq!(of(&output, "shop"), Some(vec![resource]));
    let output = put(&mut pipeline, ingress("other", "b.example.com", "/", "web"));
    assert_eq!(of(&output, "shop"), None, "others are not looked at");
}

/// Of a wildcard, or of every host, all resources are shared in both packings: the row of an edited object is output nevertheless.
#[test]
fn an_edit_is_output_in_both_packings_for_every_sort_of_host() {
    for packing in [Packing::Plain, Packing::Scoped] {
        for host in ["a.example.com", "*.example.com", ""] {
            let mut pipeline = Pipeline::new(&Settings { packing, ..Settings::default() });
            put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
            put(&mut pipeline, ingress("other", "*.other.com", "/", "web"));
            put(&mut pipeline, ingress("shop", host, "/", "web"));
            let output = put(&mut pipeline, ingress("shop", host, "/new", "web"));
            assert_eq!(of(&output, "shop").unwrap().len(), 1, "{packing:?} `{host}`");
            assert_eq!(of(&output, "other"), None, "{packing:?} `{host}`: others are not looked at");
            let output = put(&mut pipeline, ingress("shop", host, "/new", "web"));
            assert_eq!(of(&output, "shop"), None, "{packing:?} `{host}`: nothing has changed");
        }
    }
}

fn gateway_api(kind: Kind, name: &str, spec: &Value) -> kinds::Object {
    let metadata = json!({ "name": name, "namespace": if kind == kind::GATEWAY_CLASS { "" } else { "default" } });
    object(kind, &json!({ "metadata": metadata, "spec": spec }))
}

fn route(name: &str, host: &str, path: &str) -> kinds::Object {
    let rules = json!([{
        "matches": [{ "path": { "value": path } }], "backendRefs": [{ "name": "web", "port": 80 }],
    }]);
    let spec = json!({ "parentRefs": [{ "name": "web" }], "hostnames": [host], "rules": rules });
    gateway_api(kind::HTTP_ROUTE, name, &spec)
}

fn gateway(hostname: &str) -> kinds::Object {
    let listeners = json!([{ "name": "http", "protocol": "HTTP", "port": 80, "hostname": hostname }]);
    gateway_api(kind::GATEWAY, "web", &json!({ "gatewayClassName": "sesame", "listeners": listeners }))
}

fn policy(hostname: &str) -> kinds::Object {
    let validation = json!({ "hostname": hostname, "wellKnownCACertificates": "System" });
    let targets = json!([{ "group": "", "kind": "Service", "name": "web" }]);
    let spec = json!({ "targetRefs": targets, "validation": validation });
    gateway_api(kind::BACKEND_TLS_POLICY, "tls", &spec)
}

fn with_gateway(packing: Packing) -> Pipeline {
    let mut pipeline = Pipeline::new(&settings(packing));
    let class = json!({ "controllerName": dialect_gateway::CONTROLLER });
    put(&mut pipeline, gateway_api(kind::GATEWAY_CLASS, "sesame", &class));
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    put(&mut pipeline, gateway("*.com"));
    pipeline
}

#[test]
fn edits_of_a_gateway_and_of_a_route_are_output_each_by_itself() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut pipeline = with_gateway(packing);
        put(&mut pipeline, route("shop", "*.example.com", "/"));
        put(&mut pipeline, route("other", "*.other.com", "/"));
        let output = put(&mut pipeline, route("shop", "*.example.com", "/new"));
        assert_eq!(output.object_resources.len(), 1, "{packing:?}: {:?}", output.object_resources);
        assert_eq!(of_kind(&output, kind::HTTP_ROUTE, "shop").unwrap().len(), 1, "{packing:?}");
        let output = put(&mut pipeline, gateway("*.example.com"));
        let of_gateway = names(&of_kind(&output, kind::GATEWAY, "web").unwrap());
        assert!(of_gateway.contains(&"lds ingress_http".to_owned()), "{packing:?}: {of_gateway:?}");
    }
}

/// A policy has no routes of its own: it is served as it is written when proxies have the routes to its Service.
#[test]
fn a_policy_is_carried_by_the_routes_to_its_service() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut pipeline = with_gateway(packing);
        let output = put(&mut pipeline, policy("a.example.com"));
        assert_eq!(of_kind(&output, kind::BACKEND_TLS_POLICY, "tls"), Some(vec![]), "{packing:?}: nothing uses it");
        let output = put(&mut pipeline, route("shop", "shop.example.com", "/"));
        let of_policy = of_kind(&output, kind::BACKEND_TLS_POLICY, "tls").unwrap();
        assert_eq!(of_policy.len(), 1, "{packing:?}");
        assert_eq!(of_kind(&output, kind::HTTP_ROUTE, "shop").unwrap(), of_policy, "{packing:?}");
        let output = put(&mut pipeline, policy("b.example.com"));
        assert!(of_kind(&output, kind::BACKEND_TLS_POLICY, "tls").is_some(), "{packing:?}: its edit is output");
        for number in 0..40 {
            put(&mut pipeline, route(&format!("r{number}"), &format!("r{number}.example.com"), &format!("/{number}")));
        }
        let output = put(&mut pipeline, policy("c.example.com"));
        let of_policy = of_kind(&output, kind::BACKEND_TLS_POLICY, "tls").unwrap();
        assert!(of_policy.len() <= 16, "{packing:?}: {}", of_policy.len());
    }
}

#[test]
fn tls_is_carried_by_its_listener_and_its_certificate() {
    let ca = Ca::new("ca");
    for (certificates, secret_name) in
        [(Certificates::PerChain, "sds default/cert"), (Certificates::Auto, "sds a.example.com")]
    {
        let packing = Packing::Plain;
        let mut pipeline = Pipeline::new(&Settings { packing, certificates, ..Settings::default() });
        put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
        put(&mut pipeline, secret(&ca, "cert", "a.example.com"));
        let object = ingress_with("shop", "a.example.com", "/", "web", &json!({}), &[("a.example.com", "cert")]);
        let output = put(&mut pipeline, object.clone());
        let expected = [secret_name, "rds ingress_http", "rds ingress_https", "lds ingress_https"];
        assert_eq!(names(&of(&output, "shop").unwrap()), expected);
        pipeline.put(&object.key(), None);
        assert_eq!(of(&pipeline.settle(), "shop"), Some(vec![]));
    }
}
