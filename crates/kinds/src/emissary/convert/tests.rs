//! Every rule of the conversion, on objects of `v2`; `v1` has the same ones.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::{decode_json, kind};
use serde_json::{Value as Json, json};

/// A `spec` after conversion, as JSON.
fn converted(of: Kind, version: &str, spec: &Json) -> Json {
    let version = format!("getambassador.io/{version}");
    let object = json!({ "apiVersion": version, "metadata": { "name": "a" }, "spec": spec });
    let text = object.to_string();
    let node: Node<'_> = serde_json::from_str(&text).unwrap();
    let node = convert(of, &version, &node).unwrap();
    assert_eq!(node.get("apiVersion").and_then(Node::text), Some(VERSION));
    to_json(node.get("spec").unwrap())
}

fn to_json(node: &Node<'_>) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Map(entries) => entries.iter().map(|(key, node)| (key.text.to_string(), to_json(node))).collect(),
    }
}

#[track_caller]
fn check(of: Kind, spec: Json, expected: Json) {
    assert_eq!(converted(of, "v2", &spec), expected, "{spec}");
    assert_eq!(converted(of, "v1", &spec), expected, "{spec}");
    assert_eq!(converted(of, "v3alpha1", &expected), expected, "{expected} is v3alpha1");
}

#[test]
fn tls_is_in_the_scheme() {
    for (tls, service, expected_tls, expected_service) in [
        (json!(true), "a:80", json!(null), "https://a:80"),
        (json!(true), "http://a", json!(null), "https://a"),
        (json!(true), "HTTPS://a", json!(null), "HTTPS://a"),
        (json!(false), "http://a", json!(null), "http://a"),
        (json!(false), "https://a", json!(null), "https://a"),
        (json!(null), "a", json!(null), "a"),
        (json!(""), "a", json!(null), "a"),
        (json!("context"), "http://a", json!("context"), "http://a"),
    ] {
        let spec = |tls: Json, service: &str| match tls {
            Json::Null => json!({ "service": service }),
            tls => json!({ "tls": tls, "service": service }),
        };
        for kind in [kind::TCP_MAPPING, kind::RATE_LIMIT_SERVICE] {
            check(kind, json!({ "tls": tls, "service": service }), spec(expected_tls.clone(), expected_service));
        }
    }
    check(kind::AUTH_SERVICE, json!({ "tls": true, "auth_service": "a" }), json!({ "auth_service": "https://a" }));
}

#[test]
fn the_host_of_a_mapping_is_its_hostname() {
    let any = json!({ "hostname": "*" });
    check(kind::MAPPING, json!({}), any.clone());
    check(kind::MAPPING, json!({ "host": "" }), any.clone());
    check(kind::MAPPING, json!({ "host": null }), any);
    check(kind::MAPPING, json!({ "host": "*.a.test" }), json!({ "hostname": "*.a.test" }));
    check(kind::MAPPING, json!({ "host": "a", "host_regex": false }), json!({ "hostname": "a", "host_regex": false }));
    let regex = json!({ "host": "a.*", "host_regex": true });
    check(kind::MAPPING, regex.clone(), regex);
    check(kind::MAPPING, json!({ "host": "_skip_mapping_with_empty_host_" }), json!({}));
    // In `v3alpha1` there is a `host` as well, and no host is no host.
    assert_eq!(converted(kind::MAPPING, "v3alpha1", &json!({ "host": "a" })), json!({ "host": "a" }));
    assert_eq!(converted(kind::MAPPING, "v3alpha1", &json!({})), json!({}));
    // A glob cannot be meant as an exact name, and what has a mangled id was stored as `v2`.
    assert_eq!(converted(kind::MAPPING, "v3alpha1", &json!({ "host": "*" })), json!({ "hostname": "*" }));
    assert_eq!(
        converted(kind::MAPPING, "v3alpha1", &json!({ "ambassador_id": ["--apiVersion-v3alpha1-only--default"] })),
        json!({ "ambassador_id": ["default"], "hostname": "*" })
    );
}

#[test]
fn headers_that_must_only_be_there_are_regular_expressions() {
    check(
        kind::MAPPING,
        json!({
            "host": "a", "headers": { "x": true, "y": "1", "z": false, "w": null, "v": true }, "regex_headers": { "v": "1+" },
            "query_parameters": { "q": true },
        }),
        json!({
            "hostname": "a", "headers": { "y": "1" }, "regex_headers": { "v": "1+", "x": ".*" },
            "query_parameters": {}, "regex_query_parameters": { "q": ".*" },
        }),
    );
}

#[test]
fn single_values_are_lists_and_objects() {
    check(
        kind::MAPPING,
        json!({
            "host": "a", "ambassador_id": "blue", "remove_request_headers": "x", "remove_response_headers": ["y"],
            "add_request_headers": { "a": "1", "b": { "value": "2", "append": false }, "c": null },
            "cors": { "origins": "https://a.test, https://b.test", "methods": "GET, POST", "headers": ["x"], "max_age": "60" },
            "v3StatsName": "cart", "v3health_checks": [{ "health_check": { "grpc": { "upstream_name": "a" } } }],
        }),
        json!({
            "hostname": "a", "ambassador_id": ["blue"], "remove_request_headers": ["x"], "remove_response_headers": ["y"],
            "add_request_headers": { "a": { "value": "1" }, "b": { "value": "2", "append": false }, "c": {} },
            "cors": {
                "origins": ["https://a.test", "https://b.test"], "methods": ["GET, POST"], "headers": ["x"], "max_age": "60",
            },
            "stats_name": "cart", "health_checks": [{ "health_check": { "grpc": { "upstream_name": "a" } } }],
        }),
    );
}

#[test]
fn labels_say_what_they_are() {
    check(
        kind::MAPPING,
        json!({ "host": "a", "labels": { "ambassador": [{ "g": [
            "source_cluster", "destination_cluster", "remote_address", "cart", { "generic_key": "b", "v3Key": "k" },
            { "generic_key": "c" }, { "team": { "header": "x-team", "omit_if_not_present": true } },
        ] }] } }),
        json!({ "hostname": "a", "labels": { "ambassador": [{ "g": [
            { "source_cluster": { "key": "source_cluster" } }, { "destination_cluster": { "key": "destination_cluster" } },
            { "remote_address": { "key": "remote_address" } }, { "generic_key": { "value": "cart" } },
            { "generic_key": { "value": "b", "key": "k" } }, { "generic_key": { "value": "c" } },
            { "request_headers": { "header_name": "x-team", "omit_if_not_present": true, "key": "team" } },
        ] }] } }),
    );
}

#[test]
fn hosts_contexts_and_services() {
    check(
        kind::HOST,
        json!({
            "ambassador_id": "a", "ambassadorId": ["b", "--apiVersion-v3alpha1-only--c"],
            "selector": { "matchLabels": { "x": "y" } }, "tls": { "v3CRLSecret": "crl", "certRequired": true },
        }),
        json!({
            "ambassador_id": ["a", "b", "c"], "mappingSelector": { "matchLabels": { "x": "y" } },
            "tls": { "crl_secret": "crl", "cert_required": true },
        }),
    );
    check(kind::TLS_CONTEXT, json!({ "v3CRLSecret": "crl" }), json!({ "crl_secret": "crl" }));
    check(
        kind::AUTH_SERVICE,
        json!({ "v3CircuitBreakers": [{ "max_requests": 1 }], "v3StatsName": "auth" }),
        json!({ "circuit_breakers": [{ "max_requests": 1 }], "stats_name": "auth" }),
    );
    let grpc = json!({ "use_resource_exhausted_code": true });
    check(kind::RATE_LIMIT_SERVICE, json!({ "v3GRPC": grpc }), json!({ "grpc": grpc }));
    check(kind::LOG_SERVICE, json!({ "v3ProtocolVersion": "v3" }), json!({ "protocol_version": "v3" }));
    check(
        kind::TRACING_SERVICE,
        json!({ "tag_headers": ["x-a"], "config": { "v3PropagationModes": ["B3"] } }),
        json!({
            "custom_tags": [{ "tag": "x-a", "request_header": { "name": "x-a" } }], "config": { "propagation_modes": ["B3"] },
        }),
    );
    let tags = json!([{ "tag": "b", "literal": { "value": "1" } }]);
    check(
        kind::TRACING_SERVICE,
        json!({ "tag_headers": ["x-a"], "v3CustomTags": tags }),
        json!({ "tag_headers": ["x-a"], "custom_tags": tags }),
    );
}

#[test]
fn faults_name_the_field_as_it_is_written() {
    let object = json!({
        "apiVersion": "getambassador.io/v2", "metadata": { "name": "a" },
        "spec": { "host": 7, "v3StatsName": [], "headers": { "x": true }, "labels": { "d": [{ "g": [{ "t": { "header": 1 } }] }] } },
    });
    let decoded = decode_json(kind::MAPPING, object.to_string().as_bytes()).unwrap();
    let paths: Vec<_> = decoded.faults.iter().map(|fault| &*fault.path).collect();
    assert_eq!(paths, ["spec.host", "spec.labels[\"d\"][0][\"g\"][0].t.header", "spec.v3StatsName"]);
    assert_eq!(decoded.unknown, []);
}
