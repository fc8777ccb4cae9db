//! Hosts of Emissary whose certificate is another one, which is not known yet: they keep the one that they had, and no other Host waits for
//! it.

use super::{World, id, service};
use kinds::{Object, kind};
use model::ObjectRef;
use pipeline::FetchResult;
use serde_json::{Value, json};
use testbed::cases::object;

fn emissary(kind: &str, name: &str, spec: &Value) -> Object {
    let metadata = json!({ "namespace": "a", "name": name });
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "metadata": metadata, "spec": spec }))
}

fn host(name: &str, hostname: &str, secret: &str) -> Object {
    emissary("Host", name, &json!({ "hostname": hostname, "tlsSecret": { "name": secret } }))
}

impl World {
    /// One with a Listener, and a Mapping for all Hosts.
    fn with_listener() -> World {
        let mut world = World::new();
        let binding = json!({ "namespace": { "from": "ALL" } });
        let listener = json!({ "port": 8443, "protocol": "HTTPS", "securityModel": "XFP", "hostBinding": binding });
        world.put(emissary("Listener", "https", &listener));
        world.put(service("a", "web"));
        world.put(emissary("Mapping", "all", &json!({ "hostname": "*", "prefix": "/", "service": "web:443" })));
        world
    }
}

#[test]
fn a_host_that_names_another_secret_keeps_its_certificate_until_that_is_known() {
    let mut world = World::with_listener();
    world.put(host("one", "one.example.com", "old"));
    world.put(host("two", "two.example.com", "other"));
    world.found(&[id("a", "old"), id("a", "other")]);
    assert!(world.has_secret("a/old") && world.has_secret("a/other"));
    assert_eq!((world.verdicts_of("a/one"), world.verdicts_of("a/two")), (Some(&[][..]), Some(&[][..])));
    let before = world.resources.clone();
    world.put(host("one", "one.example.com", "new"));
    world.settle();
    assert!(world.resources == before, "nothing changed yet");
    assert_eq!(world.verdicts_of("a/one"), Some(&[][..]));
    assert!(world.pipeline.is_pending(&ObjectRef::new(kind::HOST, "a", "one")));
    assert_eq!(world.wanted, ["new", "old", "other"].map(|name| id("a", name)).into());
    world.pipeline.self_check().unwrap();
    // Another Host is edited, and is served as it is now.
    let served = world.mentions("one.example.com");
    world.put(host("two", "moved.example.com", "other"));
    world.settle();
    assert_eq!((world.mentions("moved.example.com") > 0, world.mentions("two.example.com")), (true, 0));
    assert!(world.has_secret("a/old"));
    assert_eq!(world.mentions("one.example.com"), served);
    world.pipeline.self_check().unwrap();
    // The answer is no: the certificate goes, and connections for the name are closed.
    world.answer(&id("a", "new"), FetchResult::NotReadable("it is forbidden".into()));
    world.settle();
    let verdicts = world.verdicts_of("a/one").unwrap();
    assert!(verdicts.len() == 1 && verdicts[0].contains("Secret a/new: it is forbidden"), "{verdicts:?}");
    assert!(!world.has_secret("a/old") && !world.has_secret("a/new") && world.has_secret("a/other"));
    assert!(world.mentions("one.example.com") > 0);
    world.pipeline.self_check().unwrap();
    assert!(world.resources == world.rebuilt().resources);
    // It is asked again from time to time, and one day it works.
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    assert!(world.has_secret("a/new"));
    assert_eq!(world.verdicts_of("a/one"), Some(&[][..]));
    assert!(world.resources == world.rebuilt().resources);
}
