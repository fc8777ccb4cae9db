//! Which resources carry an object: those that proxies must have before it is served as it is written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "packing/world.rs"]
#[allow(dead_code, reason = "shared with the tests of packings")]
mod world;

use model::ObjectRef;
use pipeline::{
    ObjectResource, Output, Pipeline, Settings,
    settings::{Certificates, Packing},
};
use serde_json::json;
use std::net::Ipv4Addr;
use testbed::certs::Ca;
use world::{http_scope, ingress, ingress_with, secret, service};

fn put(pipeline: &mut Pipeline, object: kinds::Object) -> Output {
    pipeline.put(&object.key(), Some(object));
    pipeline.settle()
}

/// What is said to carry the Ingress of that name; nothing if there is no news of it.
fn of(output: &Output, name: &str) -> Option<Vec<ObjectResource>> {
    let object = ObjectRef::new(kinds::kind::INGRESS, "default", name);
    let found = output.object_resources.iter().find(|(of, _)| *of == object);
    found.map(|(_, list)| list.as_ref().map(|list| list.to_vec()).unwrap_or_default())
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
