//! Client validation while Secrets are not known: what protects a host stays in force, and never vanishes with a Secret.

use super::*;

/// A line of the CA that signed nothing.
const SIGNED_NOTHING: &str = "MIIBvDCCAWGgAwIBAgIUWLuyJqmY7n9MoMapvs2UnR";

fn validated(certificate: &str, ca: Option<&str>) -> Value {
    let mut host = json!({ "fqdn": "host.example.com", "tls": { "secretName": certificate } });
    if let Some(ca) = ca {
        host["tls"]["clientValidation"] = json!({ "caSecret": ca });
    }
    host
}

fn host(certificate: &str, ca: Option<&str>, path: &str) -> Object {
    proxy("a", "host", &json!({ "virtualhost": validated(certificate, ca), "routes": [route(path, None)] }))
}

#[test]
fn a_host_is_not_served_before_its_ca_is_known_and_keeps_what_it_had() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(host("cert", Some("ca"), "/"));
    world.settle();
    world.answer(&id("a", "cert"), FetchResult::Found);
    world.settle();
    assert_eq!(world.mentions("host.example.com"), 0, "the CA is not known yet");
    world.answer(&id("a", "ca"), FetchResult::Found);
    world.settle();
    assert_eq!((world.mentions("host.example.com") > 0, world.mentions(SIGNED_NOTHING)), (true, 0));
    let before = world.resources.clone();
    world.put(host("cert", Some("other"), "/edited"));
    world.settle();
    assert_eq!(world.resources, before, "nothing changed yet");
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "other"), FetchResult::Found);
    world.settle();
    assert!(world.mentions("/edited") > 0);
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_ca_that_goes_while_the_host_is_pending_accepts_nobody() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(host("cert", Some("ca"), "/"));
    world.settle();
    for name in ["cert", "ca"] {
        world.answer(&id("a", name), FetchResult::Found);
    }
    world.settle();
    let listeners = |world: &World| -> Vec<Vec<u8>> {
        let all = world.resources.iter().filter(|((kind, _), _)| *kind == xds::Kind::Listener);
        all.map(|(_, body)| body.clone()).collect()
    };
    let before = listeners(&world);
    world.put(host("new", Some("ca"), "/"));
    world.settle();
    world.answer(&id("a", "ca"), FetchResult::Absent);
    world.settle();
    assert_eq!(world.mentions(SIGNED_NOTHING), 1, "its chain is there, and nobody gets in");
    assert_eq!(listeners(&world), before);
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "ca"), FetchResult::Found);
    world.settle();
    assert_eq!(world.mentions(SIGNED_NOTHING), 0);
    world.answer(&id("a", "ca"), FetchResult::Absent);
    world.answer(&id("a", "new"), FetchResult::Found);
    world.settle();
    let verdicts = world.verdicts_of("a/host").unwrap();
    assert!(verdicts.len() == 1 && verdicts[0].contains("SES5100"), "{verdicts:?}");
    assert_eq!(world.mentions(SIGNED_NOTHING), 0, "the host has no chain any more");
    world.pipeline.self_check().unwrap();
}

/// The routes of an included object that were open over plaintext are not kept when its root comes to require certificates.
#[test]
fn a_pending_child_is_not_open_where_its_root_requires_certificates() {
    for ca in [None, Some("ca")] {
        let mut world = World::new();
        world.put(service("a", "web"));
        world.put(service("c", "behind"));
        // Keeps the CA known from the beginning.
        let other = json!({ "fqdn": "other.example.com", "tls": validated("cert", Some("ca"))["tls"] });
        world.put(proxy("a", "other", &json!({ "virtualhost": other, "routes": [route("/", None)] })));
        let root = |ca: Option<&str>| {
            let includes = json!([{ "namespace": "c", "name": "slow", "conditions": [{ "prefix": "/slow" }] }]);
            proxy("a", "host", &json!({ "virtualhost": validated("cert", ca), "includes": includes }))
        };
        let child = |path: &str, ca: Option<&str>| {
            let mut route = route(path, ca);
            route["services"][0]["name"] = "behind".into();
            route["permitInsecure"] = true.into();
            proxy("c", "slow", &json!({ "routes": [route] }))
        };
        world.put(root(None));
        world.put(child("/before", None));
        world.settle();
        for name in ["cert", "ca"] {
            world.answer(&id("a", name), FetchResult::Found);
        }
        world.settle();
        assert!(world.mentions("/slow/before") > 0);
        world.put(root(ca));
        world.put(child("/after", Some("ca")));
        world.settle();
        assert_eq!(world.mentions("/slow/before") > 0, ca.is_none());
        world.pipeline.self_check().unwrap();
    }
}
