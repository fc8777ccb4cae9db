//! HTTPProxies that are pending and lose the delegation of a Secret: what an owner no longer permits ends at once, whatever else is
//! not known.

use super::{World, id, proxy, root, route, service};
use kinds::Object;
use pipeline::FetchResult;
use serde_json::json;
use testbed::cases::object;

fn delegation() -> Object {
    let delegations = json!([{ "secretName": "cert", "targetNamespaces": ["a"] }]);
    let metadata = json!({ "namespace": "b", "name": "delegation" });
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "TLSCertificateDelegation", "metadata": metadata,
        "spec": { "delegations": delegations } }))
}

/// What an owner no longer permits ends at once, whatever else is not known; what was never permitted changes nothing.
#[test]
fn a_delegation_that_is_revoked_acts_at_once_on_a_root_that_is_pending() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(delegation());
    world.put(root("a", "host", Some("b/cert"), &[], &[route("/", Some("old"))]));
    world.put(root("a", "other", Some("own"), &[], &[route("/", Some("b/never"))]));
    world.settle();
    ["old", "own"].iter().for_each(|name| world.answer(&id("a", name), FetchResult::Found));
    world.answer(&id("b", "cert"), FetchResult::Found);
    world.settle();
    let shows = |world: &World| world.resources.keys().any(|(_, name)| name.contains("b/cert"));
    assert!(shows(&world));
    world.put(root("a", "host", Some("b/cert"), &[], &[route("/", Some("new"))]));
    world.put(root("a", "other", Some("newer"), &[], &[route("/", Some("b/never"))]));
    world.settle();
    assert!(shows(&world) && world.mentions("other.example.com") > 0);
    world.remove(&delegation().key());
    world.settle();
    assert!(!shows(&world), "its Secret is not used any more");
    assert!(world.mentions("other.example.com") > 0, "what it has was never not permitted");
    world.pipeline.self_check().unwrap();
    ["new", "newer"].iter().for_each(|name| world.answer(&id("a", name), FetchResult::Found));
    world.settle();
    assert!(!shows(&world));
    assert_eq!(world.resources, world.rebuilt().resources);
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_delegation_that_is_revoked_acts_at_once_on_an_included_object_that_is_pending() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(delegation());
    world.put(root("a", "host", None, &[("a", "child")], &[]));
    let child =
        |ca: &str| proxy("a", "child", &json!({ "routes": [route("/x", Some("b/cert")), route("/y", Some(ca))] }));
    world.put(child("old"));
    world.settle();
    world.answer(&id("a", "old"), FetchResult::Found);
    world.answer(&id("b", "cert"), FetchResult::Found);
    world.settle();
    assert!(world.mentions("ca/b/cert") > 0);
    world.put(child("new"));
    world.settle();
    assert!(world.mentions("ca/b/cert") > 0);
    world.remove(&delegation().key());
    world.settle();
    assert_eq!((world.mentions("ca/b/cert"), world.mentions("ca/a/old")), (0, 0));
    assert!(world.mentions("host.example.com") > 0);
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.mentions("ca/a/new") > 0);
    assert_eq!(world.resources, world.rebuilt().resources);
}
