//! BackendTLSPolicy: which one counts, what it asks for, and what is said about it.

use super::world::{FINE, World, backend, backends, codes, conditions, forward, parents};
use crate::tls_policy;
use kinds::kind;
use model::{
    Code, ObjectRef,
    cluster::{ClusterOverrides, Protocol, SubjectAltName, TrustedCa},
};
use resolve::Rejection;
use serde_json::{Value, json};
use std::sync::Arc;

fn ca(name: &str) -> ObjectRef {
    ObjectRef::new(kind::CONFIG_MAP, "default", name)
}

fn world() -> World {
    let mut world = World::new();
    world.cas.insert(ca("ca"), Ok("pem".into()));
    world.cas.insert(ca("bad"), Err(Rejection::new(Code::CaNotValid, "it holds nothing")));
    world.cas.insert(ca("later"), Err(Rejection::new(Code::SecretPending, "not yet")));
    world
}

/// A policy of that second for `app` or one of its ports.
fn put(world: &mut World, name: &str, created: u8, section: Option<&str>, validation: Value) {
    let meta = json!({ "name": name, "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z") });
    let target = json!({ "group": "", "kind": "Service", "name": "app", "sectionName": section });
    world.put(
        kind::BACKEND_TLS_POLICY,
        json!({ "metadata": meta, "spec": { "targetRefs": [target], "validation": validation } }),
    );
}

fn by(hostname: &str) -> Value {
    json!({ "hostname": hostname, "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": "ca" }] })
}

/// What is overridden for the first backend of an HTTPRoute to a port.
fn overrides(world: &mut World, port: u16) -> Option<Arc<ClusterOverrides>> {
    forward(&world.http(json!([{ "backendRefs": [backend("app", port)] }]))).clusters[0].cluster.overrides.clone()
}

fn server_name(world: &mut World, port: u16) -> Option<String> {
    overrides(world, port).and_then(|overrides| overrides.server_name.as_ref().map(ToString::to_string))
}

#[test]
fn the_backend_is_known_by_its_name_and_ca() {
    let mut world = world();
    assert_eq!(overrides(&mut world, 80), None);
    put(&mut world, "p", 0, None, by("abc.example.com"));
    let found = overrides(&mut world, 80).unwrap();
    assert_eq!((found.protocol, found.server_name.as_deref()), (Some(Protocol::Tls), Some("abc.example.com")));
    let validation = found.validation.clone().unwrap();
    assert_eq!(validation.ca, TrustedCa::Bundle(ca("ca").into()));
    assert_eq!(validation.names, [SubjectAltName::Dns("abc.example.com".into())]);
    assert_eq!(overrides(&mut world, 81).unwrap().protocol, Some(Protocol::H2), "HTTP/2 stays HTTP/2");
    let rules = json!({ "rules": [{ "backendRefs": [backend("app", 80)] }] });
    let grpc = forward(&world.route(kind::GRPC_ROUTE, rules));
    assert_eq!(grpc.clusters[0].cluster.overrides.as_ref().unwrap().protocol, Some(Protocol::H2));
    let names =
        json!([{ "type": "Hostname", "hostname": "other.example.com" }, { "type": "URI", "uri": "spiffe://a/b" }]);
    put(
        &mut world,
        "p",
        0,
        None,
        json!({ "hostname": "a.b", "wellKnownCACertificates": "System", "subjectAltNames": names }),
    );
    let validation = overrides(&mut world, 80).unwrap().validation.clone().unwrap();
    assert_eq!(validation.ca, TrustedCa::System);
    let listed = [SubjectAltName::Dns("other.example.com".into()), SubjectAltName::Uri("spiffe://a/b".into())];
    assert_eq!(validation.names, listed, "and by no other");
}

#[test]
fn a_policy_for_a_port_comes_before_one_for_the_service_and_then_the_older_one() {
    let mut world = world();
    put(&mut world, "young", 9, None, by("young.example.com"));
    put(&mut world, "old", 1, None, by("old.example.com"));
    assert_eq!(server_name(&mut world, 80).as_deref(), Some("old.example.com"));
    put(&mut world, "port", 30, Some("http"), by("port.example.com"));
    assert_eq!(server_name(&mut world, 80).as_deref(), Some("port.example.com"));
    assert_eq!(server_name(&mut world, 81).as_deref(), Some("old.example.com"));
    let accepted = |name: &str, world: &mut World| {
        conditions(world.translate(kind::BACKEND_TLS_POLICY, name).facts.as_ref().unwrap())[0][0].clone()
    };
    assert_eq!(accepted("old", &mut world), FINE[0]);
    assert_eq!(accepted("port", &mut world), FINE[0]);
    assert_eq!(accepted("young", &mut world), "Accepted=False Conflicted");
    put(&mut world, "also", 1, None, by("also.example.com"));
    assert_eq!(accepted("old", &mut world), "Accepted=False Conflicted", "of one age the first by name");
}

#[test]
fn a_policy_that_is_not_valid_closes_its_backends() {
    let reference = |kind: &str, name: &str| json!([{ "group": "", "kind": kind, "name": name }]);
    for (validation, accepted, resolved) in [
        (
            json!({ "hostname": "a.b", "caCertificateRefs": reference("ConfigMap", "gone") }),
            "NoValidCACertificate",
            "InvalidCACertificateRef",
        ),
        (
            json!({ "hostname": "a.b", "caCertificateRefs": reference("ConfigMap", "bad") }),
            "NoValidCACertificate",
            "InvalidCACertificateRef",
        ),
        (
            json!({ "hostname": "a.b", "caCertificateRefs": reference("Pod", "ca") }),
            "NoValidCACertificate",
            "InvalidKind",
        ),
        (json!({ "hostname": "a.b" }), "Invalid", ""),
        (json!({ "hostname": "a.b", "wellKnownCACertificates": "Other" }), "Invalid", ""),
        (
            json!({ "hostname": "a.b", "wellKnownCACertificates": "System", "caCertificateRefs": reference("ConfigMap", "ca") }),
            "Invalid",
            "",
        ),
        (json!({ "hostname": "a b", "wellKnownCACertificates": "System" }), "Invalid", ""),
        (json!({ "hostname": "10.0.0.1", "wellKnownCACertificates": "System" }), "Invalid", ""),
        (
            json!({ "hostname": "a.b", "wellKnownCACertificates": "System", "subjectAltNames": [{ "type": "Hostname" }] }),
            "Invalid",
            "",
        ),
        (
            json!({ "hostname": "a.b", "wellKnownCACertificates": "System", "subjectAltNames": [{ "type": "URI", "uri": "a b" }] }),
            "Invalid",
            "",
        ),
        (json!(7), "Invalid", ""),
    ] {
        let mut world = world();
        put(&mut world, "p", 0, None, validation.clone());
        let route = world.http(json!([{ "backendRefs": [backend("app", 80)] }]));
        assert_eq!(backends(&forward(&route)), [("-".to_owned(), 1)], "{validation}");
        assert_eq!(
            (parents(&route), codes(&route)),
            (vec![FINE.map(String::from).to_vec()], vec![Code::GatewayTlsPolicy])
        );
        let policy = world.translate(kind::BACKEND_TLS_POLICY, "p");
        let resolved = if resolved.is_empty() { FINE[1].to_owned() } else { format!("ResolvedRefs=False {resolved}") };
        let found = conditions(policy.facts.as_ref().unwrap());
        assert_eq!(found, [[format!("Accepted=False {accepted}"), resolved]], "{validation}");
    }
}

#[test]
fn all_that_is_wrong_with_a_policy_is_told_at_once() {
    let mut world = world();
    let names =
        json!([{ "type": "Hostname" }, { "type": "URI", "uri": "spiffe://a/b" }, { "type": "URI", "uri": "a b" }]);
    let reference = json!([{ "group": "", "kind": "ConfigMap", "name": "later" }]);
    put(
        &mut world,
        "p",
        0,
        None,
        json!({ "hostname": "a b", "caCertificateRefs": reference, "subjectAltNames": names }),
    );
    let policy = world.translate(kind::BACKEND_TLS_POLICY, "p");
    let told: Vec<_> = policy.verdicts.iter().map(|verdict| (verdict.code, verdict.origin.field.to_string())).collect();
    assert_eq!(
        told,
        [
            (Code::SecretPending, "spec.validation.caCertificateRefs".to_owned()),
            (Code::GatewayTlsPolicy, "spec.validation.hostname".to_owned()),
            (Code::GatewayTlsPolicy, "spec.validation.subjectAltNames[0]".to_owned()),
            (Code::GatewayTlsPolicy, "spec.validation.subjectAltNames[2]".to_owned()),
        ]
    );
    assert_eq!(conditions(policy.facts.as_ref().unwrap())[0][0], "Accepted=False Invalid");
    assert!(policy.pending.is_empty(), "what is wrong stays wrong whatever the bundle holds");
}

#[test]
fn a_bundle_that_has_not_been_read_yet_keeps_routes_and_policy_pending() {
    let mut world = world();
    let reference = json!([{ "group": "", "kind": "ConfigMap", "name": "later" }]);
    put(&mut world, "p", 0, None, json!({ "hostname": "a.b", "caCertificateRefs": reference }));
    assert_eq!(world.http(json!([{ "backendRefs": [backend("app", 80)] }])).pending.len(), 1);
    assert_eq!(world.translate(kind::BACKEND_TLS_POLICY, "p").pending.len(), 1);
}

#[test]
fn a_policy_is_told_for_each_gateway_whose_routes_use_its_service() {
    let mut world = world();
    put(&mut world, "p", 0, None, by("a.b"));
    let policy = world.translate(kind::BACKEND_TLS_POLICY, "p");
    let gateways = ["a", "b"].map(|name| ObjectRef::new(kind::GATEWAY, "default", name));
    let facts = tls_policy::complete(policy.facts.as_ref().unwrap(), gateways);
    assert_eq!(conditions(&facts), [FINE, FINE]);
    assert_eq!(
        facts.lists[0].1[0].identity.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["ancestorRef", "controllerName"]
    );
    assert!(conditions(&tls_policy::complete(policy.facts.as_ref().unwrap(), [])).is_empty());
}

#[test]
fn of_several_bundles_those_that_are_there_are_trusted() {
    let references = |names: &[(&str, &str)]| {
        let references: Vec<_> =
            names.iter().map(|(kind, name)| json!({ "group": "", "kind": kind, "name": name })).collect();
        json!({ "hostname": "a.b", "caCertificateRefs": references })
    };
    let map = |name| ("ConfigMap", name);
    let said = |names: &[(&str, &str)]| {
        let mut world = world();
        world.cas.insert(ca("more"), Ok("pem".into()));
        put(&mut world, "p", 0, None, references(names));
        let policy = world.translate(kind::BACKEND_TLS_POLICY, "p");
        let conditions = conditions(policy.facts.as_ref().unwrap()).remove(0).join(", ");
        let route = world.http(json!([{ "backendRefs": [backend("app", 80)] }]));
        let forward = forward(&route);
        let overrides = forward.clusters.first().and_then(|share| share.cluster.overrides.clone());
        let bundle = overrides.and_then(|it| it.validation.clone()?.ca.bundle().cloned());
        let trusted =
            bundle.into_iter().flat_map(|bundle| bundle.objects().map(|it| it.name.to_string()).collect::<Vec<_>>());
        (trusted.collect::<Vec<_>>(), conditions, codes(&policy))
    };
    let fine = FINE.join(", ");
    let unresolved = |reason: &str| format!("{}, ResolvedRefs=False {reason}", FINE[0]);
    let none = |reason: &str| format!("Accepted=False NoValidCACertificate, ResolvedRefs=False {reason}");
    let told = vec![Code::GatewayTlsPolicy];
    for (names, trusted, conditions, codes) in [
        (vec![map("more"), map("ca"), map("more")], vec!["ca", "more"], fine, vec![]),
        (vec![map("gone"), map("ca")], vec!["ca"], unresolved("InvalidCACertificateRef"), told.clone()),
        (vec![map("ca"), ("Pod", "ca")], vec!["ca"], unresolved("InvalidKind"), told.clone()),
        (vec![map("bad"), map("gone")], vec![], none("InvalidCACertificateRef"), told.clone()),
        (vec![map("ca"); 9], vec![], format!("Accepted=False Invalid, {}", FINE[1]), told.clone()),
    ] {
        let trusted = trusted.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(said(&names), (trusted, conditions, codes), "{names:?}");
    }
}

/// What cannot be read might protect a port, so that port is not used; ports with a policy of their own are.
#[test]
fn a_target_that_cannot_be_read_closes_the_ports_that_it_may_be_for() {
    let target = |more: Value| {
        let mut target = json!({ "group": "", "kind": "Service", "name": "app" });
        target.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        target
    };
    for wrong in [json!({ "sectionName": 8443 }), json!({ "kind": 7 }), json!({ "group": [] })] {
        let mut world = world();
        world.service("default", "other");
        let targets = json!([target(wrong.clone()), { "group": "", "kind": "Service", "name": "other" }]);
        let spec = json!({ "targetRefs": targets, "validation": by("broken.example.com") });
        world.put(kind::BACKEND_TLS_POLICY, json!({ "metadata": { "name": "broken" }, "spec": spec }));
        put(&mut world, "whole", 0, None, by("whole.example.com"));
        put(&mut world, "own", 0, Some("h2c"), by("own.example.com"));
        let route = world.http(json!([{ "backendRefs": [backend("app", 80)] }]));
        assert_eq!(backends(&forward(&route)), [("-".to_owned(), 1)], "{wrong}");
        assert_eq!(codes(&route), [Code::GatewayTlsPolicy], "{wrong}");
        assert_eq!(server_name(&mut world, 81).as_deref(), Some("own.example.com"), "{wrong}");
        let other = forward(&world.http(json!([{ "backendRefs": [backend("other", 80)] }])));
        let name = other.clusters[0].cluster.overrides.as_ref().unwrap().server_name.clone();
        assert_eq!(name.as_deref(), Some("broken.example.com"), "its other target is what it was");
        let policy = world.translate(kind::BACKEND_TLS_POLICY, "broken");
        assert_eq!(conditions(policy.facts.as_ref().unwrap())[0][0], "Accepted=False Invalid", "{wrong}");
        assert_eq!(codes(&policy), [Code::GatewayTlsPolicy], "{wrong}");
    }
}

/// A policy for a port that the Service does not have was written to protect one: ports without a policy are not used.
#[test]
fn a_port_that_the_service_does_not_have_is_no_target() {
    let mut world = world();
    put(&mut world, "p", 0, Some("htps"), by("a.example.com"));
    let route = world.http(json!([{ "backendRefs": [backend("app", 80)] }]));
    assert_eq!(backends(&forward(&route)), [("-".to_owned(), 1)]);
    assert_eq!(codes(&route), [Code::GatewayTlsPolicyTarget]);
    let policy = world.translate(kind::BACKEND_TLS_POLICY, "p");
    assert_eq!(conditions(policy.facts.as_ref().unwrap()), [["Accepted=False TargetNotFound", FINE[1]]]);
    assert_eq!(codes(&policy), [Code::GatewayTlsPolicyTarget]);
    put(&mut world, "own", 0, Some("http"), by("own.example.com"));
    assert_eq!(server_name(&mut world, 80).as_deref(), Some("own.example.com"), "it has a policy of its own");
    let route = world.http(json!([{ "backendRefs": [backend("app", 81)] }]));
    assert_eq!(codes(&route), [Code::GatewayTlsPolicyTarget], "the other one has none");
    put(&mut world, "whole", 0, None, by("whole.example.com"));
    assert_eq!(server_name(&mut world, 81).as_deref(), Some("whole.example.com"));
    let spec = json!({ "targetRefs": [{ "group": "", "kind": "Service", "name": "gone" }], "validation": by("a.b") });
    world.put(kind::BACKEND_TLS_POLICY, json!({ "metadata": { "name": "gone" }, "spec": spec }));
    let policy = world.translate(kind::BACKEND_TLS_POLICY, "gone");
    assert_eq!(conditions(policy.facts.as_ref().unwrap())[0][0], "Accepted=False TargetNotFound");
}
