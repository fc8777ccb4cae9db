//! Client certificates: those that a Gateway asks its clients for, and the one that it presents to backends.

use super::{
    status::{conditions, facts, of_listener},
    world::{World, listener},
};
use kinds::kind;
use model::{
    Code, ObjectRef,
    tls::{TlsMode, client_validation::ClientTrust},
};
use resolve::Rejection;
use serde_json::{Value, json};

fn ca(kind: &str, name: &str) -> Value {
    json!({ "group": "", "kind": kind, "name": name })
}

/// HTTPS listeners `a` and `b` on ports 444 and 445, and `c` for plaintext.
fn gateway(world: &mut World, frontend: Value) {
    let tls = json!({ "tls": { "certificateRefs": [{ "name": "cert" }] } });
    let listeners = json!([
        listener("a", "HTTPS", 444, tls.clone()),
        listener("b", "HTTPS", 445, tls),
        listener("c", "HTTP", 80, json!({})),
    ]);
    world.gateway("web", listeners, json!({ "tls": { "frontend": frontend } }));
}

fn world() -> World {
    let mut world = World::default();
    world.secret("cert", &["a.example.com"]);
    for id in [ObjectRef::new(kind::CONFIG_MAP, "default", "ca"), ObjectRef::new(kind::SECRET, "default", "ca")] {
        world.cas.insert(id, Ok("pem".into()));
    }
    world.cas.insert(ObjectRef::new(kind::CONFIG_MAP, "other", "ca"), Ok("pem".into()));
    let pending = Rejection::new(Code::SecretPending, "has not been read yet");
    world.cas.insert(ObjectRef::new(kind::SECRET, "default", "pending"), Err(pending));
    world
}

/// For each HTTPS listener: the trust by name and whether a certificate is required, `open`, or `closed`.
fn asked(world: &mut World) -> Vec<String> {
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let mode = |mode: &TlsMode| match mode {
        TlsMode::Http(termination) => termination.clients.as_ref().map_or("open".to_owned(), |it| it.to_string()),
        TlsMode::Tcp(_) => "closed".to_owned(),
    };
    translation.tls.iter().map(|piece| mode(&piece.mode)).collect()
}

#[test]
fn a_port_has_settings_of_its_own_or_those_for_all() {
    let mut world = world();
    let required = json!({ "validation": { "caCertificateRefs": [ca("ConfigMap", "ca")] } });
    let fallback =
        json!({ "validation": { "caCertificateRefs": [ca("Secret", "ca")], "mode": "AllowInsecureFallback" } });
    gateway(&mut world, json!({ "default": required, "perPort": [{ "port": 445, "tls": fallback }] }));
    assert_eq!(asked(&mut world), ["required+signed+configmaps/default/ca", "optional+unverified+secrets/default/ca"]);
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    assert!(conditions(&said.object).contains("InsecureFrontendValidationMode=True/ConfigurationChanged"));
    let codes: Vec<_> = world.translate(kind::GATEWAY, "web").unwrap().verdicts.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::GatewayInsecureClients]);
    gateway(&mut world, json!({ "default": required, "perPort": [{ "port": 445, "tls": {} }] }));
    assert_eq!(asked(&mut world), ["required+signed+configmaps/default/ca", "open"]);
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    assert!(!conditions(&said.object).contains("InsecureFrontendValidationMode"));
    assert!(world.translate(kind::GATEWAY, "web").unwrap().verdicts.is_empty());
}

#[test]
fn without_a_ca_a_listener_accepts_no_connections() {
    let mut world = world();
    let far = json!({ "group": "", "kind": "ConfigMap", "name": "ca", "namespace": "other" });
    for (reference, reason, code) in [
        (ca("ConfigMap", "nowhere"), "InvalidCACertificateRef", Code::GatewayClientCa),
        (ca("Service", "ca"), "InvalidCACertificateKind", Code::GatewayClientCa),
        (json!({ "name": "ca" }), "InvalidCACertificateKind", Code::GatewayClientCa),
        (
            json!({ "group": "example.com", "kind": "ConfigMap", "name": "ca" }),
            "InvalidCACertificateKind",
            Code::GatewayClientCa,
        ),
        (far.clone(), "RefNotPermitted", Code::ReferenceNotPermitted),
        (json!(7), "InvalidCACertificateRef", Code::GatewayClientCa),
    ] {
        let validation = json!({ "validation": { "caCertificateRefs": [reference] } });
        gateway(&mut world, json!({ "perPort": [{ "port": 444, "tls": validation }] }));
        assert_eq!(asked(&mut world), ["closed", "open"], "{reference}");
        let said = facts(&mut world, kind::GATEWAY, "web", true);
        let expected = format!(
            "Accepted=False/NoValidCACertificate ResolvedRefs=False/{reason} Conflicted=False/NoConflicts Programmed=False/Invalid"
        );
        assert_eq!(of_listener(&said, 0), expected);
        assert!(of_listener(&said, 1).starts_with("Accepted=True/Accepted ResolvedRefs=True"));
        assert!(
            conditions(&said.object)
                .starts_with("Accepted=True/ListenersNotValid ResolvedRefs=False/ListenersNotResolved")
        );
        let told = world.translate(kind::GATEWAY, "web").unwrap().verdicts;
        let [only] = &told[..] else { panic!("{told:?}") };
        let field = "spec.tls.frontend.perPort[0].tls.validation.caCertificateRefs[0]";
        assert_eq!((only.code, only.origin.field.to_string().as_str()), (code, field));
    }
    // One that can be used will do, and the others are told.
    let validation = json!({ "validation": { "caCertificateRefs": [far, ca("ConfigMap", "ca")] } });
    gateway(&mut world, json!({ "default": validation }));
    assert_eq!(asked(&mut world), ["required+signed+configmaps/default/ca"; 2]);
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    assert!(of_listener(&said, 0).starts_with("Accepted=True/Accepted ResolvedRefs=False/RefNotPermitted"));
    assert_eq!(world.translate(kind::GATEWAY, "web").unwrap().verdicts.len(), 1, "told once for both listeners");
}

/// Nor is one kept for the sake of a CA that has not been read yet if another reference is not permitted any more.
#[test]
fn a_listener_waits_for_its_ca_unless_another_is_not_permitted() {
    let mut world = world();
    let far = json!({ "group": "", "kind": "ConfigMap", "name": "ca", "namespace": "other" });
    for (references, is_kept) in [
        (json!([ca("Secret", "pending")]), true),
        (json!([ca("Secret", "pending"), ca("ConfigMap", "ca")]), true),
        (json!([ca("Secret", "pending"), far]), false),
    ] {
        gateway(&mut world, json!({ "default": { "validation": { "caCertificateRefs": references } } }));
        assert_eq!(asked(&mut world), ["closed", "closed"]);
        let parts = world.translate(kind::GATEWAY, "web").unwrap().pending_parts;
        assert_eq!(parts.len(), if is_kept { 2 } else { 0 }, "{references}");
    }
}

/// The references are the Gateway's, also for listeners of a ListenerSet.
#[test]
fn a_set_asks_for_what_its_gateway_does() {
    let mut world = world();
    let far = json!({ "group": "", "kind": "ConfigMap", "name": "ca", "namespace": "other" });
    let validation = json!({ "validation": { "caCertificateRefs": [far] } });
    let more = json!({ "tls": { "frontend": { "default": validation } },
        "allowedListeners": { "namespaces": { "from": "All" } } });
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), more);
    world.secret("shop/cert", &["a.com"]);
    let tls = json!({ "tls": { "certificateRefs": [{ "name": "cert" }] }, "hostname": "a.com" });
    world.set("shop", "set", 1, json!([listener("a", "HTTPS", 443, tls)]));
    let set = world.translate(kind::LISTENER_SET, "shop/set").unwrap();
    assert!(matches!(&set.tls[0].mode, TlsMode::Tcp(_)));
    let told: Vec<_> = set.verdicts.iter().map(|it| (it.code, it.origin.to_string())).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, Code::ReferenceNotPermitted);
    assert!(told[0].1.starts_with("ListenerSet shop/set spec.listeners[0].tls"), "{told:?}");
    assert!(world.translate(kind::GATEWAY, "web").unwrap().verdicts.is_empty());
    let to = json!([{ "group": "", "kind": "ConfigMap" }]);
    let from = json!([{ "group": crate::GROUP, "kind": "Gateway", "namespace": "default" }]);
    let meta = json!({ "name": "grant", "namespace": "other" });
    world.put(kind::REFERENCE_GRANT, json!({ "metadata": meta, "spec": { "from": from, "to": to } }));
    let set = world.translate(kind::LISTENER_SET, "shop/set").unwrap();
    let TlsMode::Http(termination) = &set.tls[0].mode else { panic!("{set:?}") };
    let clients = termination.clients.as_ref().unwrap();
    assert!(clients.is_required && matches!(&clients.trust, ClientTrust::Signed { crl: None, .. }));
}

#[test]
fn a_client_certificate_for_backends_that_cannot_be_used_is_told_on_the_gateway() {
    let mut world = world();
    world.secret("client", &[]);
    world.secret("other/client", &[]);
    world.bad_secret("bad", Code::SecretNotFound);
    let accepted = "Accepted=True/Accepted ResolvedRefs=";
    for (reference, reason, code) in [
        (json!({ "name": "client" }), "True/ResolvedRefs", None),
        (json!({ "name": "nowhere" }), "False/InvalidClientCertificateRef", Some(Code::GatewayClientCertificate)),
        (json!({ "name": "bad" }), "False/InvalidClientCertificateRef", Some(Code::GatewayClientCertificate)),
        (
            json!({ "kind": "ConfigMap", "name": "client" }),
            "False/InvalidClientCertificateRef",
            Some(Code::GatewayClientCertificate),
        ),
        (json!({ "name": "client", "namespace": "other" }), "False/RefNotPermitted", Some(Code::ReferenceNotPermitted)),
        (
            json!({ "name": "nowhere", "namespace": "other" }),
            "False/RefNotPermitted",
            Some(Code::ReferenceNotPermitted),
        ),
        (json!(7), "False/InvalidClientCertificateRef", Some(Code::GatewayClientCertificate)),
    ] {
        let tls = json!({ "tls": { "backend": { "clientCertificateRef": reference } } });
        world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), tls);
        let said = facts(&mut world, kind::GATEWAY, "web", true);
        assert_eq!(conditions(&said.object), format!("{accepted}{reason} Programmed=True/Programmed"), "{reference}");
        let codes: Vec<_> = world.translate(kind::GATEWAY, "web").unwrap().verdicts.iter().map(|it| it.code).collect();
        assert_eq!(codes, code.into_iter().collect::<Vec<_>>(), "{reference}");
    }
}
