//! The Module: keys that leave all Mappings open, and such as may close them.

use super::mapping::{added, texts};
use crate::dice::{Dice, Make};
use serde_json::{Value, json};

/// Keys that do not close Mappings: the good one is among them.
const MODULE: &[(&str, Make)] = &[
    ("cluster_request_timeout_ms", |dice| dice.number(&[0, 3000])),
    ("cluster_idle_timeout_ms", |dice| dice.number(&[0, 3000])),
    ("cluster_max_connection_lifetime_ms", |dice| dice.number(&[0, 3000])),
    ("retry_policy", |dice| json!({ "retry_on": dice.any(&["5xx"]), "num_retries": dice.number(&[1]) })),
    ("cors", |dice| json!({ "origins": dice.list(2, |dice| dice.any(&["*", "https://a.example.com"])) })),
    ("circuit_breakers", |dice| dice.list(2, |dice| json!({ "max_connections": dice.number(&[100]) }))),
    (
        "load_balancer",
        |dice| json!({ "policy": dice.any(&["ring_hash", "round_robin"]), "header": dice.any(&["x-a"]) }),
    ),
    ("keepalive", |dice| json!({ "time": dice.number(&[60]), "probes": dice.number(&[3]) })),
    (
        "defaults",
        |dice| json!({ "add_request_headers": added(dice), "stats_name": dice.any(&["a.b"]), "httpmapping": { "add_response_headers": added(dice) } }),
    ),
    // Both are there: with a resolver that is not, every Mapping is closed.
    ("resolver", |dice| dice.of(&["kubernetes-service", "kubernetes-endpoint"]).into()),
    ("enable_ipv4", |dice| (dice.roll(2) == 0).into()),
    ("enable_ipv6", |dice| (dice.roll(2) == 0).into()),
    ("add_linkerd_headers", |_| true.into()),
    ("server_name", |dice| dice.any(&["edge"])),
    ("merge_slashes", |dice| (dice.roll(2) == 0).into()),
    ("strip_matching_host_port", |dice| (dice.roll(2) == 0).into()),
    ("preserve_external_request_id", |dice| (dice.roll(2) == 0).into()),
    ("suppress_envoy_headers", |dice| (dice.roll(2) == 0).into()),
    ("allow_chunked_length", |dice| (dice.roll(2) == 0).into()),
    ("enable_http10", |dice| (dice.roll(2) == 0).into()),
    ("proper_case", |dice| (dice.roll(2) == 0).into()),
    ("enable_grpc_web", |dice| (dice.roll(2) == 0).into()),
    ("enable_grpc_http11_bridge", |dice| (dice.roll(2) == 0).into()),
    ("default_label_domain", |dice| dice.any(&["ambassador"])),
    (
        "default_labels",
        |dice| json!({ "ambassador": { "defaults": [{ "generic_key": { "value": dice.any(&["v"]) } }] } }),
    ),
    ("headers_with_underscores_action", |dice| dice.any(&["ALLOW", "REJECT_REQUEST", "DROP_HEADER"])),
    ("listener_idle_timeout_ms", |dice| dice.number(&[0, 3000])),
    ("max_request_headers_kb", |dice| dice.number(&[1, 60, 8192, 8193])),
    ("buffer_limit_bytes", |dice| dice.number(&[1, 32768])),
    ("buffer", |dice| json!({ "max_request_bytes": dice.number(&[1, 16384]) })),
    ("gzip", |dice| {
        json!({ "memory_level": dice.number(&[1, 9]), "window_bits": dice.number(&[9, 15]), "min_content_length": dice.number(&[30]),
            "compression_level": dice.any(&["BEST", "SPEED"]), "compression_strategy": dice.any(&["RLE", "HUFFMAN"]),
            "content_type": dice.list(2, |dice| dice.any(&["text/html"])) })
    }),
    ("forward_client_cert_details", |dice| {
        dice.any(&["SANITIZE_SET", "APPEND_FORWARD", "FORWARD_ONLY", "ALWAYS_FORWARD_ONLY"])
    }),
    ("set_current_client_cert_details", |_| json!({ "subject": true, "cert": true })),
    ("use_remote_address", |dice| (dice.roll(2) == 0).into()),
    (
        "grpc_stats",
        |dice| json!({ "all_methods": dice.roll(2) == 0, "services": dice.list(2, |dice| json!({ "name": dice.text(&["a.B"]), "method_names": [dice.text(&["C"])] })) }),
    ),
    ("envoy_log_type", |dice| dice.any(&["text", "json", "typed_json"])),
    ("envoy_log_path", |dice| dice.any(&["/dev/null", "/nowhere/at/all"])),
    ("envoy_log_format", |dice| match dice.roll(2) {
        0 => dice.any(&["%REQ(X-A)%", "%NOPE%", "100%"]),
        _ => texts(dice, &["field"]),
    }),
    (
        "runtime_flags",
        |dice| json!({ "http.max_requests_per_io_cycle": dice.number(&[1, 100]), "overload.premature_reset_total_stream_count": dice.number(&[500]) }),
    ),
    ("regex_max_size", |dice| dice.number(&[200])),
    ("admin_port", |dice| dice.number(&[8001])),
];

/// Keys that may close all Mappings, the good one among them.
const CLOSING: &[(&str, Make)] = &[
    ("ip_allow", addresses),
    ("ip_deny", addresses),
    ("reject_requests_with_escaped_slashes", |dice| dice.any(&["true"])),
    ("lua_scripts", |dice| dice.any(&["", "function envoy_on_request(handle) end"])),
];

fn addresses(dice: &mut Dice) -> Value {
    dice.list(3, |dice| {
        let range = dice.any(&["0.0.0.0/0", "::/0", "10.0.0.0/8"]);
        if dice.roll(2) == 0 { json!({ "remote": range }) } else { json!({ "peer": range }) }
    })
}

pub fn module(dice: &mut Dice, _: usize) -> Value {
    json!({ "config": dice.map(3, MODULE) })
}

pub fn closing_module(dice: &mut Dice, number: usize) -> Value {
    let mut module = module(dice, number);
    for (key, make) in CLOSING {
        if dice.roll(2) == 0 {
            module["config"][key] = make(dice);
        }
    }
    module
}
