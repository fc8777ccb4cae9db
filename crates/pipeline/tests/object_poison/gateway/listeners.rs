//! GatewayClasses, Gateways and ListenerSets.

use super::{CLASSES, GATEWAYS, GROUP};
use crate::dice::Dice;
use dialect_gateway::CONTROLLER;
use serde_json::{Value, json};

const PROTOCOLS: [&str; 8] = ["HTTP", "HTTP", "HTTPS", "TLS", "TCP", "UDP", "projectcontour.io/https", "SCTP"];
const CERTIFICATES: [&str; 10] =
    ["cert", "cert", "rsa", "weak", "wrong-key", "truncated", "garbage", "empty", "mutated", "missing"];

/// The specification of a GatewayClass, ours mostly.
pub fn class(dice: &mut Dice) -> Value {
    let mut spec =
        dice.map(3, &[("parametersRef", class_parameters), ("description", |dice| dice.any(&["Gateways of a team"]))]);
    spec["controllerName"] = dice.any(&[CONTROLLER, CONTROLLER, CONTROLLER, "example.com/controller"]);
    spec
}

fn class_parameters(dice: &mut Dice) -> Value {
    let mut parameters = dice.map(2, &[("namespace", |dice| dice.any(&["poison", "good"]))]);
    for (field, good) in [("group", "example.com"), ("kind", "Parameters"), ("name", "a")] {
        parameters[field] = dice.any(&[good]);
    }
    if dice.once_in(10) { dice.wrong() } else { parameters }
}

/// The specification of a Gateway.
pub fn gateway(dice: &mut Dice, number: usize) -> Value {
    let mut spec = dice.map(
        12,
        &[
            ("addresses", |dice| dice.list(2, address)),
            ("infrastructure", infrastructure),
            ("tls", frontend),
            ("defaultScope", |dice| dice.any(&["All", "None"])),
        ],
    );
    let other = format!("class{}", dice.roll(CLASSES));
    spec["gatewayClassName"] = if dice.once_in(8) { other.into() } else { dice.any(&["sesame"]) };
    spec["listeners"] = dice.list(6, |dice| listener(dice, number));
    if dice.once_in(2) {
        spec["allowedListeners"] = json!({ "namespaces": namespaces(dice) });
    }
    spec
}

/// The specification of a ListenerSet.
pub fn set(dice: &mut Dice, number: usize) -> Value {
    let mut parent = dice.map(
        8,
        &[
            ("group", |dice| dice.any(&[GROUP])),
            ("kind", |dice| dice.any(&["Gateway"])),
            ("namespace", |dice| dice.any(&["poison", "good", "other"])),
        ],
    );
    parent["name"] = if dice.once_in(20) { dice.any(&["nobody"]) } else { self::name(dice).into() };
    let parent = if dice.once_in(20) { dice.wrong() } else { parent };
    json!({ "parentRef": parent, "listeners": dice.list(6, |dice| listener(dice, GATEWAYS + number)) })
}

/// The name of a Gateway.
pub fn name(dice: &mut Dice) -> String {
    format!("gateway{}", dice.roll(GATEWAYS))
}

fn listener(dice: &mut Dice, number: usize) -> Value {
    let protocol = dice.any(&PROTOCOLS);
    let word = protocol.as_str().unwrap_or_default();
    let is_stream = matches!(word, "TCP" | "UDP");
    // Ports of another protocol now and then: a conflict with whoever has them.
    let ports: &[i64] = match if dice.once_in(16) { dice.of(&PROTOCOLS) } else { word } {
        "HTTPS" | "TLS" | "projectcontour.io/https" => &[443, 443, 8443, 9443],
        "TCP" => &[7000, 7001, 7002, 7003, 7004, 7005, 7006],
        "UDP" => &[53, 5300, 5301, 5302],
        _ => &[80, 80, 8080, 8002, 9000],
    };
    let mut listener =
        json!({ "name": dice.any(&["a", "b", "c", "d", "e", "f"]), "protocol": protocol, "port": dice.number(ports) });
    if dice.once_in(if is_stream { 20 } else { 2 }) {
        let (own, wide) = (format!("g{number}.example.com"), format!("*.g{number}.example.com"));
        listener["hostname"] = dice.any(&[&own, &wide, "*.example.com", "a.example.com", "*.b.example.com"]);
    }
    let has_tls = matches!(word, "HTTPS" | "TLS" | "projectcontour.io/https");
    if has_tls != dice.once_in(20) {
        listener["tls"] = if dice.once_in(40) { dice.wrong() } else { tls(dice, word) };
    }
    if dice.once_in(3) {
        listener["allowedRoutes"] =
            dice.map(2, &[("namespaces", namespaces), ("kinds", |dice| dice.list(2, group_kind))]);
    }
    if dice.once_in(24) {
        listener["filters"] = json!({ "requests": dice.list(2, filter) });
    }
    if dice.once_in(60) { dice.wrong() } else { listener }
}

fn tls(dice: &mut Dice, protocol: &str) -> Value {
    let references = dice.list(3, |dice| {
        let mut reference = dice.map(
            10,
            &[
                ("group", |dice| dice.any(&[""])),
                ("kind", |dice| dice.any(&["Secret", "ConfigMap", "ClusterTrustBundle"])),
                ("namespace", |dice| dice.any(&["good", "poison", "other"])),
            ],
        );
        reference["name"] = dice.any(&CERTIFICATES);
        reference
    });
    let mut tls = json!({ "certificateRefs": references });
    if protocol == "TLS" || dice.once_in(4) {
        tls["mode"] = dice.any(&["Terminate", "Passthrough"]);
    }
    if dice.once_in(20) {
        tls["options"] = json!({ "example.com/option": dice.any(&["a"]) });
    }
    tls
}

fn namespaces(dice: &mut Dice) -> Value {
    let mut namespaces = json!({ "from": dice.any(&["All", "All", "Same", "Selector", "None"]) });
    if dice.once_in(2) {
        let expressions = dice.list(2, |dice| {
            json!({ "key": dice.any(&["team"]), "operator": dice.any(&["In", "NotIn", "Exists", "DoesNotExist"]),
                "values": dice.list(2, |dice| dice.any(&["a", "b"])) })
        });
        namespaces["selector"] =
            json!({ "matchLabels": { "team": dice.any(&["a"]) }, "matchExpressions": expressions });
    }
    if dice.once_in(30) { dice.wrong() } else { namespaces }
}

fn group_kind(dice: &mut Dice) -> Value {
    let kinds = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "Ingress"];
    json!({ "group": dice.any(&[GROUP]), "kind": dice.any(&kinds) })
}

fn filter(dice: &mut Dice) -> Value {
    json!({ "type": dice.any(&["ExternalAuth", "ExtensionRef"]), "externalAuth": super::routes::external_auth(dice),
        "extensionRef": { "group": dice.any(&["example.com"]), "kind": dice.any(&["Filter"]), "name": dice.any(&["a"]) } })
}

fn address(dice: &mut Dice) -> Value {
    dice.map(
        2,
        &[
            ("type", |dice| dice.any(&["IPAddress", "Hostname", "NamedAddress"])),
            ("value", |dice| dice.any(&["192.0.2.1", "2001:db8::1", "a.example.com"])),
            ("routability", |dice| dice.any(&["Public", "Cluster"])),
        ],
    )
}

fn infrastructure(dice: &mut Dice) -> Value {
    let parameters =
        json!({ "group": dice.any(&["example.com"]), "kind": dice.any(&["Parameters"]), "name": dice.any(&["a"]) });
    json!({ "labels": { "a": dice.any(&["b"]) }, "annotations": { "example.com/a": dice.any(&["b"]) },
        "parametersRef": if dice.once_in(3) { parameters } else { Value::Null } })
}

fn frontend(dice: &mut Dice) -> Value {
    let validation = |dice: &mut Dice| {
        let references = dice.list(2, |dice| {
            json!({ "group": dice.any(&[""]), "kind": dice.any(&["ConfigMap", "Secret"]), "name": dice.any(&["ca", "garbage"]),
                "namespace": dice.any(&["poison", "good"]) })
        });
        json!({ "validation": { "caCertificateRefs": references, "mode": dice.any(&["AllowValidOnly", "AllowInsecureFallback"]) } })
    };
    let ports = dice.list(2, |dice| json!({ "port": dice.number(&[443, 8443]), "tls": validation(dice) }));
    let certificate = json!({ "group": "", "kind": dice.any(&["Secret"]), "name": dice.any(&CERTIFICATES),
        "namespace": dice.any(&["poison", "good"]) });
    json!({ "frontend": { "default": validation(dice), "perPort": ports }, "backend": { "clientCertificateRef": certificate } })
}
