//! BackendTLSPolicies and ReferenceGrants.

use super::{GROUP, SERVICES};
use crate::dice::Dice;
use serde_json::{Value, json};

/// The specification of a BackendTLSPolicy. Half of the Services have none, because one that is not valid closes its backends.
pub fn backend_tls(dice: &mut Dice, number: usize) -> Value {
    let targets = dice.list(3, |dice| {
        let own = format!("service{}", number % SERVICES / 2 * 2);
        let mut target = json!({ "group": dice.any(&[""]), "kind": dice.any(&["Service"]), "name": dice.any(&[&own]) });
        if dice.once_in(2) {
            target["sectionName"] = dice.any(&["web", "dns"]);
        }
        if dice.once_in(60) { dice.wrong() } else { target }
    });
    let mut validation = json!({ "hostname": dice.any(&["backend.example.com", "backend", "*.example.com"]) });
    if dice.once_in(3) {
        validation["wellKnownCACertificates"] = dice.any(&["System"]);
    } else {
        validation["caCertificateRefs"] = dice.list(2, |dice| {
            json!({ "group": dice.any(&[""]), "kind": dice.any(&["ConfigMap", "ConfigMap", "Secret", "ClusterTrustBundle"]),
                "name": dice.any(&["ca", "ca", "ca-ca", "garbage", "empty", "missing", "cert"]) })
        });
    }
    if dice.once_in(3) {
        validation["subjectAltNames"] = dice.list(3, |dice| {
            let kind = dice.any(&["Hostname", "URI"]);
            if kind == "URI" {
                json!({ "type": kind, "uri": dice.any(&["spiffe://example.com/a", "https://example.com"]) })
            } else {
                json!({ "type": kind, "hostname": dice.any(&["backend.example.com", "*.example.com"]) })
            }
        });
    }
    let mut spec =
        json!({ "targetRefs": targets, "validation": if dice.once_in(40) { dice.wrong() } else { validation } });
    if dice.once_in(20) {
        spec["options"] = json!({ "example.com/option": dice.any(&["a"]) });
    }
    spec
}

/// The specification of a ReferenceGrant.
pub fn grant(dice: &mut Dice, _: usize) -> Value {
    let kinds = ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
    let from = dice.list(4, |dice| {
        let from = json!({ "group": dice.any(&[GROUP]), "kind": dice.any(&kinds), "namespace": dice.any(&["poison", "other"]) });
        if dice.once_in(30) { dice.wrong() } else { from }
    });
    let to = dice.list(3, |dice| {
        let mut to = json!({ "group": dice.any(&[""]), "kind": dice.any(&["Secret", "Service"]) });
        if dice.once_in(2) {
            to["name"] = dice.any(&["cert", "service1"]);
        }
        to
    });
    json!({ "from": from, "to": to })
}
