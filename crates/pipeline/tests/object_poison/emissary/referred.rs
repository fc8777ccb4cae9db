//! What other objects refer to: TLSContexts, Secrets and resolvers, with arbitrary values where there may be some, and DevPortals, to which
//! nobody does.

use super::named;
use crate::dice::Dice;
use kinds::Object;
use serde_json::{Value, json};
use testbed::{cases::object, certs::Ca};

/// Secrets with a certificate, a CA and a list of revoked certificates that are what they should be, and one in which nothing is.
pub fn secrets(ca: &Ca) -> Vec<Object> {
    let leaf = ca.leaf("h1.example.com").dns("*.example.com").make();
    let of = |name: &str, kind: &str, data: Value| {
        object(&json!({ "apiVersion": "v1", "kind": "Secret", "type": kind, "stringData": data,
            "metadata": { "name": name, "namespace": "poison" } }))
    };
    let pair = json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() });
    vec![
        of("cert", "kubernetes.io/tls", pair),
        of("ca", "Opaque", json!({ "ca.crt": ca.pem() })),
        of("crl", "Opaque", json!({ "crl.pem": ca.crl([]).pem() })),
        of("bad", "Opaque", json!({ "tls.crt": "text", "tls.key": "text", "ca.crt": "text", "crl.pem": "text" })),
    ]
}

/// The TLSContext that others name: nothing is wrong with it.
pub fn context(dice: &mut Dice) -> Object {
    let mut spec =
        json!({ "secret": "cert", "min_tls_version": dice.of(&["v1.0", "v1.2"]), "sni": "inner.example.com" });
    for (field, secret) in [("ca_secret", "ca"), ("crl_secret", "crl")] {
        if dice.roll(2) == 0 {
            spec[field] = secret.into();
        }
    }
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": "TLSContext", "spec": spec,
        "metadata": { "name": "context", "namespace": "poison" } }))
}

pub fn tls_context(dice: &mut Dice, number: usize) -> Value {
    let own = format!("h{number}.example.com");
    let mut spec = dice.map(
        4,
        &[
            ("secret", |dice| dice.any(&["cert", "cert.poison", "bad", "none"])),
            ("cert_chain_file", |dice| dice.any(&["/etc/passwd"])),
            ("private_key_file", |dice| dice.any(&["/etc/passwd"])),
            ("ca_secret", |dice| dice.any(&["ca", "bad", "none"])),
            ("cacert_chain_file", |dice| dice.any(&["/etc/passwd"])),
            ("crl_secret", |dice| dice.any(&["crl", "bad", "none"])),
            ("alpn_protocols", |dice| dice.any(&["h2,http/1.1", "h2, http/1.1", "h2"])),
            ("cert_required", |dice| (dice.roll(2) == 0).into()),
            ("min_tls_version", |dice| dice.any(&["v1.0", "v1.2", "v1.3"])),
            ("max_tls_version", |dice| dice.any(&["v1.0", "v1.2", "v1.3"])),
            ("cipher_suites", |dice| dice.list(2, |dice| dice.any(&["ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"]))),
            ("ecdh_curves", |dice| dice.list(2, |dice| dice.any(&["X25519", "P-256"]))),
            ("secret_namespacing", |dice| (dice.roll(2) == 0).into()),
            ("redirect_cleartext_from", |dice| dice.number(&[8080])),
            ("sni", |dice| dice.any(&["inner.example.com"])),
        ],
    );
    spec["hosts"] = dice.list(2, |dice| dice.any(&[own.as_str(), "*", "*.example.com", "a.example.com"]));
    spec
}

/// One resolver of each kind, and one of a name that is built in.
pub fn resolvers(dice: &mut Dice, number: usize) -> Vec<Object> {
    let consul = json!({ "address": dice.any(&["consul.example.org:8500"]), "datacenter": dice.any(&["dc1"]) });
    let ids = json!({ "ambassador_id": dice.any(&["default"]) });
    let kinds =
        [("KubernetesServiceResolver", json!({})), ("KubernetesEndpointResolver", ids), ("ConsulResolver", consul)];
    kinds.iter().map(|(kind, spec)| named(dice, kind, number, spec)).collect()
}

pub fn dev_portal(dice: &mut Dice, _: usize) -> Value {
    dice.map(
        2,
        &[
            ("default", |dice| (dice.roll(2) == 0).into()),
            (
                "content",
                |dice| json!({ "url": dice.any(&["https://example.com/docs"]), "branch": dice.any(&["main"]), "dir": dice.any(&["/"]) }),
            ),
            (
                "docs",
                |dice| dice.list(2, |dice| json!({ "service": dice.any(&["good"]), "url": dice.any(&["https://a"]), "timeout_ms": dice.number(&[10]) })),
            ),
            ("selector", |dice| json!({ "matchNamespaces": dice.list(2, |dice| dice.any(&["a"])) })),
            ("naming_scheme", |dice| dice.any(&["namespace.prefix"])),
            ("search", |dice| json!({ "enabled": dice.roll(2) == 0, "type": dice.any(&["title-only"]) })),
            ("preserve_servers", |dice| (dice.roll(2) == 0).into()),
        ],
    )
}
