//! What connections come to: Listeners with whatever stack of protocols, Hosts and TCPMappings.

use super::mapping::texts;
use crate::dice::Dice;
use serde_json::{Value, json};

pub fn host(dice: &mut Dice, number: usize) -> Value {
    let own = format!("h{number}.example.com");
    let mut spec = dice.map(
        3,
        &[
            (
                "tlsSecret",
                |dice| json!({ "name": dice.any(&["cert", "bad", "none"]), "namespace": dice.any(&["poison", "other"]) }),
            ),
            ("tls", |dice| json!({ "min_tls_version": dice.any(&["v1.2"]) })),
            ("tlsContext", |dice| json!({ "name": dice.any(&["context"]) })),
            ("mappingSelector", |dice| json!({ "matchLabels": texts(dice, &["app"]) })),
            ("acmeProvider", |dice| json!({ "authority": dice.any(&["none", "https://acme.example.com"]) })),
        ],
    );
    let port = format!("{own}:9000");
    spec["hostname"] = dice.any(&[
        own.as_str(),
        own.as_str(),
        port.as_str(),
        "*",
        "*.example.com",
        "*x.example.com",
        "a.example.com",
        "a.example.com:8443",
        "*:9000",
        "*org",
        "goo*",
    ]);
    spec["requestPolicy"] = json!({ "insecure": { "action": dice.any(&["Route", "Redirect", "Reject"]) } });
    spec
}

pub fn listener(dice: &mut Dice, number: usize) -> Value {
    let port = 9000 + i64::try_from(number).unwrap_or_default();
    let mut spec = dice.map(
        4,
        &[
            ("l7Depth", |dice| dice.number(&[0, 1])),
            ("http2MaxConcurrentStreams", |dice| dice.number(&[1, 100])),
            ("statsPrefix", |dice| dice.any(&["x"])),
        ],
    );
    // A port of TCP and one of UDP may have one number: that of the Listener before, or that of the shared listener.
    spec["port"] = dice.number(&[port, port, port, port - 1, 8080, 8443, 443]);
    match dice.roll(3) {
        0 => spec["protocolStack"] = stack(dice),
        1 => spec["protocolStack"] = json!(["TLS", "HTTP", "UDP"]),
        _ => spec["protocol"] = dice.any(&["HTTP", "HTTPS", "HTTPPROXY", "HTTPSPROXY", "TCP", "TLS", "UDP"]),
    }
    if dice.once_in(20) {
        // Both of them are not allowed.
        spec["protocol"] = "HTTPS".into();
    }
    spec["securityModel"] = dice.any(&["XFP", "SECURE", "INSECURE"]);
    spec["hostBinding"] = json!({ "namespace": { "from": dice.any(&["ALL", "SELF"]) } });
    spec
}

/// A stack that may be, mostly, or words in any order.
fn stack(dice: &mut Dice) -> Value {
    const STACKS: [&[&str]; 12] = [
        &["HTTP", "TCP"],
        &["TLS", "HTTP", "TCP"],
        &["PROXY", "HTTP", "TCP"],
        &["PROXY", "TLS", "HTTP", "TCP"],
        &["TLS", "PROXY", "HTTP", "TCP"],
        &["TCP"],
        &["TLS", "TCP"],
        &["PROXY", "TLS", "TCP"],
        // HTTP/3 without TLS, with a PROXY header, and datagrams alone: none of them is served.
        &["HTTP", "UDP"],
        &["PROXY", "TLS", "HTTP", "UDP"],
        &["TLS", "UDP"],
        &["UDP"],
    ];
    match dice.roll(6) {
        0 => dice.list(5, |dice| dice.any(&["TLS", "HTTP", "PROXY", "TCP", "UDP"])),
        1 => dice.any(&["TLS,HTTP,UDP"]),
        _ => json!(dice.of(&STACKS)),
    }
}

pub fn tcp_mapping(dice: &mut Dice, number: usize) -> Value {
    let mut spec = dice.map(
        5,
        &[
            ("host", |dice| dice.any(&["h1.example.com", "*.example.com", "*"])),
            // One that overlaps with no address of the batch before, whose listeners are removed last.
            ("address", |dice| dice.any(&["198.18.9.9"])),
            ("tls", |dice| dice.any(&["context"])),
            ("resolver", |dice| dice.any(&["endpoint"])),
            ("weight", |dice| dice.number(&[0, 10, 100])),
            ("idle_timeout_ms", |dice| dice.any(&["0", "1000"])),
            ("cluster_tag", |dice| dice.any(&["blue"])),
            ("stats_name", |dice| dice.any(&["a.b"])),
            ("enable_ipv4", |dice| (dice.roll(2) == 0).into()),
            ("enable_ipv6", |dice| (dice.roll(2) == 0).into()),
            ("circuit_breakers", |dice| {
                dice.list(
                    2,
                    |dice| json!({ "priority": dice.any(&["default", "high"]), "max_connections": dice.number(&[1]) }),
                )
            }),
        ],
    );
    let port = 9000 + i64::try_from(number).unwrap_or_default();
    spec["port"] = dice.number(&[port, port, port + 8, 8443, 8080]);
    spec["service"] = dice.any(&["good", "good.good", "https://good:80", "198.18.100.1:80", "tcp.example.org"]);
    spec
}
