//! Services that proxies call: for authorization, rate limits, spans and logs.

use super::mapping::texts;
use crate::dice::Dice;
use serde_json::{Value, json};

pub fn auth_service(dice: &mut Dice, _: usize) -> Value {
    let mut spec = dice.map(
        10,
        &[
            ("path_prefix", |dice| dice.any(&["/check"])),
            ("tls", |dice| dice.any(&["context"])),
            ("proto", |dice| dice.any(&["http", "grpc"])),
            ("protocol_version", |dice| dice.any(&["v3"])),
            ("timeout_ms", |dice| dice.number(&[0, 100])),
            ("allowed_request_headers", |dice| dice.list(3, |dice| dice.any(&["x-a", "X-B"]))),
            ("allowed_authorization_headers", |dice| dice.list(3, |dice| dice.any(&["x-a", "X-B"]))),
            ("add_auth_headers", |dice| texts(dice, &["x-a", "host"])),
            ("allow_request_body", |dice| (dice.roll(2) == 0).into()),
            (
                "include_body",
                |dice| json!({ "max_bytes": dice.number(&[1, 4096]), "allow_partial": dice.roll(2) == 0 }),
            ),
            ("status_on_error", |dice| json!({ "code": dice.number(&[401, 503, 599]) })),
            ("failure_mode_allow", |dice| (dice.roll(2) == 0).into()),
            ("add_linkerd_headers", |_| true.into()),
            ("stats_name", |dice| dice.any(&["a.b"])),
            ("circuit_breakers", |dice| {
                dice.list(
                    2,
                    |dice| json!({ "priority": dice.any(&["default", "high"]), "max_requests": dice.number(&[1]) }),
                )
            }),
        ],
    );
    spec["auth_service"] = dice.any(&["good", "good.good", "https://good:80", "198.18.100.1:80", "auth.example.org"]);
    spec
}

/// One that lets requests pass if it does not answer.
pub fn rate_limit_service(dice: &mut Dice, _: usize) -> Value {
    let mut spec = dice.map(
        4,
        &[
            ("domain", |dice| dice.any(&["ambassador"])),
            ("tls", |dice| dice.any(&["context"])),
            ("protocol_version", |dice| dice.any(&["v3"])),
            ("timeout_ms", |dice| dice.number(&[0, 20])),
            ("grpc", |dice| json!({ "use_resource_exhausted_code": dice.roll(2) == 0 })),
            ("stats_name", |dice| dice.any(&["a.b"])),
        ],
    );
    spec["service"] = dice.any(&["good", "good.good", "198.18.100.1:80", "limits.example.org"]);
    spec
}

/// One that may deny them: those of every Mapping that has labels, be it by the Module.
pub fn closing_rate_limit_service(dice: &mut Dice, number: usize) -> Value {
    let mut spec = rate_limit_service(dice, number);
    spec["failure_mode_deny"] = dice.any(&["true"]);
    if dice.roll(2) == 0 {
        spec["failure_mode_deny"] = true.into();
    }
    spec
}

pub fn tracing_service(dice: &mut Dice, _: usize) -> Value {
    let mut spec = dice.map(
        4,
        &[
            (
                "sampling",
                |dice| json!({ "client": dice.number(&[50]), "random": dice.number(&[1]), "overall": dice.number(&[100]) }),
            ),
            ("custom_tags", |dice| {
                dice.list(3, |dice| match dice.roll(3) {
                    0 => json!({ "tag": dice.any(&["a"]), "literal": { "value": dice.any(&["x"]) } }),
                    1 => json!({ "tag": dice.any(&["b"]), "environment": { "name": dice.any(&["HOME"]), "default_value": dice.any(&["x"]) } }),
                    _ => json!({ "tag": dice.any(&["c"]), "request_header": { "name": dice.any(&["x-a", ":path"]), "default_value": dice.any(&["x"]) } }),
                })
            }),
            ("tag_headers", |dice| dice.list(2, |dice| dice.any(&["x-a"]))),
            ("config", |dice| {
                dice.map(
                    4,
                    &[
                        ("collector_endpoint", |dice| dice.any(&["/api/v2/spans"])),
                        ("collector_endpoint_version", |dice| dice.any(&["HTTP_JSON", "HTTP_PROTO", "HTTP_JSON_V1"])),
                        ("collector_hostname", |dice| dice.any(&["zipkin.example.com"])),
                        ("trace_id_128bit", |dice| (dice.roll(2) == 0).into()),
                        ("shared_span_context", |dice| (dice.roll(2) == 0).into()),
                        ("service_name", |dice| dice.any(&["shop"])),
                        ("propagation_modes", |dice| dice.list(2, |dice| dice.any(&["B3"]))),
                    ],
                )
            }),
            ("stats_name", |dice| dice.any(&["a.b"])),
        ],
    );
    spec["driver"] = dice.any(&["zipkin", "datadog", "opentelemetry", "zipkin"]);
    spec["service"] = dice.any(&["good", "good.good", "https://good:80", "198.18.100.1:80", "spans.example.org"]);
    spec
}

pub fn log_service(dice: &mut Dice, _: usize) -> Value {
    let mut spec = dice.map(
        4,
        &[
            ("driver_config", |dice| {
                let headers = dice.list(3, |dice| {
                    json!({ "header_name": dice.any(&["x-a", "cookie"]), "during_request": dice.roll(2) == 0, "during_response": dice.roll(2) == 0 })
                });
                json!({ "additional_log_headers": headers })
            }),
            ("flush_interval_time", |dice| dice.number(&[1, 5])),
            ("flush_interval_byte_size", |dice| dice.number(&[0, 16384])),
            ("grpc", |dice| (dice.roll(2) == 0).into()),
            ("protocol_version", |dice| dice.any(&["v3"])),
            ("stats_name", |dice| dice.any(&["a.b"])),
        ],
    );
    spec["driver"] = dice.any(&["http", "tcp"]);
    spec["service"] = dice.any(&["good", "good.good", "https://good:80", "198.18.100.1:80", "logs.example.org"]);
    spec
}
