//! Objects of Emissary as people write them, and as they should not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::{
    convert::convert,
    mapping::labels::{FixedKey, GenericKey, RequestHeader},
    *,
};
use crate::{Decoded, Kind, Node, Object, Typed, Value, decode_json, kind};
use proptest::prelude::*;
use serde_json::json;

fn decoded(kind: Kind, version: &str, name: &str, spec: &serde_json::Value) -> Decoded {
    let object = json!({
        "apiVersion": format!("getambassador.io/{version}"), "kind": kind.name(),
        "metadata": { "name": name, "namespace": "shop" }, "spec": spec,
    });
    decode_json(kind, object.to_string().as_bytes()).unwrap()
}

fn read<T: Typed>(version: &str, spec: serde_json::Value) -> (T, Vec<String>, Vec<String>) {
    named(version, "a", spec)
}

fn named<T: Typed>(version: &str, name: &str, spec: serde_json::Value) -> (T, Vec<String>, Vec<String>) {
    let decoded = decoded(T::KINDS[0], version, name, &spec);
    let object = T::clone(decoded.object.get::<T>().unwrap());
    let faults = decoded.faults.iter().map(|fault| fault.path.to_string()).collect();
    (object, faults, decoded.unknown.iter().map(|field| field.path.to_string()).collect())
}

/// An object in which everything is understood.
fn clean<T: Typed>(version: &str, spec: serde_json::Value) -> T {
    let (object, faults, unknown) = read(version, spec);
    assert_eq!((faults, unknown), (Vec::new(), Vec::new()));
    object
}

fn text(field: &Checked<Option<Box<str>>>) -> Option<&str> {
    field.get().unwrap().as_deref()
}

#[test]
fn a_mapping_and_its_parts() {
    let mapping: Mapping = clean(
        "v3alpha1",
        json!({
            "ambassador_id": ["blue", "green"], "prefix": "/cart/", "hostname": "*.example.com", "service": "https://cart:8443",
            "headers": { "x-team": "a" }, "regex_query_parameters": { "v": "[12]" }, "weight": 20, "timeout_ms": 0,
            "retry_policy": { "retry_on": "gateway-error", "num_retries": 2, "per_try_timeout": "0.5s" },
            "load_balancer": { "policy": "ring_hash", "cookie": { "name": "c", "ttl": "60s" } },
            "add_request_headers": { "x-a": { "value": "1", "append": false }, "x-b": { "value": "2" } },
            "labels": { "ambassador": [{ "limit": [
                { "remote_address": { "key": "remote_address" } },
                { "request_headers": { "key": "team", "header_name": "x-team", "omit_if_not_present": true } },
                { "generic_key": { "value": "cart" } },
            ] }] },
            "health_checks": [{ "health_check": { "http": { "path": "/", "expected_statuses": [{ "min": 200, "max": 204 }] } } }],
            "docs": { "path": "/openapi" }, "v2ExplicitTLS": { "tls": "bool:true" },
        }),
    );
    let spec = &mapping.spec;
    assert_eq!((text(&spec.hostname), text(&spec.service)), (Some("*.example.com"), Some("https://cart:8443")));
    assert_eq!((spec.weight.get().unwrap(), spec.timeout_ms.get().unwrap()), (&Some(20), &Some(0)));
    assert!(is_for(&spec.ambassador_id, "blue") && !is_for(&spec.ambassador_id, "default"));
    let headers = spec.add_request_headers.get().unwrap().as_ref().unwrap();
    assert_eq!((headers["x-a"].append, headers["x-b"].append), (Some(false), None));
    let limit = &spec.labels.get().unwrap()["ambassador"][0]["limit"];
    assert_eq!(limit[0].remote_address, Some(FixedKey { key: "remote_address".into() }));
    assert_eq!(limit[1].request_headers.as_ref().unwrap().omit_if_not_present, Some(true));
    assert_eq!(limit[2].generic_key, Some(GenericKey { key: None, value: "cart".into() }));
}

#[test]
fn a_bad_value_spoils_its_field_and_unknown_words_are_kept() {
    let (mapping, faults, unknown) = read::<Mapping>(
        "v3alpha1",
        json!({ "prefix": "/", "service": "a", "weight": "20", "headers": { "x": 1 }, "hostnam": "a", "retry_policy": { "retry_on": "reset" } }),
    );
    let spec = &mapping.spec;
    assert!(spec.weight.get().is_err() && spec.headers.get().is_err() && spec.prefix.get().is_ok());
    assert_eq!(spec.retry_policy.get().unwrap().as_ref().unwrap().retry_on.as_ref().unwrap().as_str(), "reset");
    assert_eq!(faults, ["spec.headers[\"x\"]", "spec.weight"]);
    assert_eq!(unknown, ["spec.hostnam"]);
}

#[test]
fn hosts_listeners_and_contexts() {
    let host: Host = clean(
        "v3alpha1",
        json!({
            "hostname": "a.example.com:8443", "mappingSelector": { "matchLabels": { "team": "a" } }, "tlsSecret": { "name": "cert" },
            "tls": { "minTlsVersion": "v1.2", "alpn_protocols": "h2,http/1.1" },
            "requestPolicy": { "insecure": { "action": "Route", "additionalPort": -1 } }, "acmeProvider": { "authority": "none" },
        }),
    );
    let tls = host.spec.tls.get().unwrap().as_ref().unwrap();
    assert_eq!(tls.min_tls_version, Some(tls_context::TlsVersion::V1_2));
    let policy = host.spec.request_policy.get().unwrap().as_ref().unwrap();
    assert_eq!(policy.insecure.as_ref().unwrap().action, Some(host::InsecureAction::Route));
    let listener: Listener = clean(
        "v3alpha1",
        json!({
            "port": 8443, "protocolStack": ["PROXY", "TLS", "HTTP", "TCP"], "securityModel": "XFP", "l7Depth": 1,
            "hostBinding": { "namespace": { "from": "ALL" } }, "statsPrefix": "in", "http2MaxConcurrentStreams": 100,
        }),
    );
    assert_eq!(listener.spec.protocol_stack.get().unwrap().as_ref().unwrap().len(), 4);
    let context: TlsContext =
        clean("v3alpha1", json!({ "hosts": ["a"], "secret": "cert", "min_tls_version": "v1.0", "crl_secret": "crl" }));
    assert_eq!(text(&context.spec.crl_secret), Some("crl"));
}

#[test]
fn a_module_is_read_by_its_name() {
    let (module, faults, unknown) = named::<Module>(
        "v3alpha1",
        "ambassador",
        json!({ "config": {
            "keepalive": { "time": 10, "interval": 5 }, "cors": { "origins": "https://a.test,https://b.test", "max_age": 60 },
            "default_labels": { "ambassador": { "defaults": ["remote_address", { "team": { "header": "x-team" } }] } },
            "defaults": { "httpmapping": { "add_request_headers": { "x-a": "1" }, "remove_response_headers": "server" } },
            "service_port": 8080, "xff_num_trusted_hops": 1, "enable_grpc_web": false, "gzip": { "min_content_length": "x" },
        } }),
    );
    assert_eq!((faults, unknown), (vec!["spec.config.gzip.min_content_length".to_owned()], Vec::new()));
    let settings = module.spec.config.get().unwrap().as_ref().unwrap();
    assert_eq!(settings.keepalive.get().unwrap().as_ref().unwrap().idle_time, Some(10));
    assert_eq!(settings.cors.get().unwrap().as_ref().unwrap().origins.len(), 2);
    assert_eq!(settings.enable_grpc_web.get().unwrap(), &Some(false));
    let labels = &settings.default_labels.get().unwrap()["ambassador"].defaults;
    let header = RequestHeader { key: "team".into(), header_name: "x-team".into(), omit_if_not_present: None };
    assert_eq!(labels[1].request_headers, Some(header));
    let dead: Vec<_> = settings.dead_keys().map(|(key, _)| key).collect();
    assert_eq!(dead, ["service_port", "xff_num_trusted_hops"]);

    let (module, faults, _) =
        named::<Module>("v2", "tls", json!({ "config": { "server": { "secret": "cert" }, "up": { "secret": 1 } } }));
    assert_eq!(faults, ["spec.config[\"up\"].secret"]);
    assert!(module.spec.tls_config.get().is_err());
    let (module, _, _) =
        named::<Module>("v2", "authentication", json!({ "config": { "auth_service": "auth", "tls": true } }));
    let auth = module.spec.authentication_config.get().unwrap().as_ref().unwrap();
    assert_eq!(text(&auth.auth_service), Some("https://auth"));
    let (module, faults, unknown) = named::<Module>("v2", "statsd", json!({ "config": { "a": 1 } }));
    assert!(module.spec.other_config.is_written() && faults.is_empty() && unknown.is_empty());
}

#[test]
fn ids_say_who_reads_an_object() {
    let reads = |version: &str, spec: serde_json::Value, id: &str| {
        let host: Host = read::<Host>(version, spec).0;
        is_for(host.ambassador_id(), id)
    };
    for (spec, id, expected) in [
        (json!({}), "default", true),
        (json!({}), "blue", false),
        (json!({ "ambassador_id": [] }), "default", true),
        (json!({ "ambassador_id": ["blue"] }), "blue", true),
        (json!({ "ambassador_id": ["blue"] }), "default", false),
        (json!({ "ambassador_id": "blue" }), "blue", true),
        (json!({ "ambassadorId": "blue" }), "blue", true),
        (json!({ "ambassadorId": ["blue"], "ambassador_id": "green" }), "green", true),
        (json!({ "ambassadorId": ["blue"], "ambassador_id": "green" }), "blue", true),
        (json!({ "ambassadorId": ["blue"], "ambassador_id": null }), "blue", true),
        (json!({ "ambassador_id": ["_automatic_"] }), "blue", true),
        (json!({ "ambassador_id": ["--apiVersion-v3alpha1-only--blue"] }), "blue", true),
        (json!({ "ambassador_id": 7 }), "default", false),
        (json!({ "ambassador_id": [7, "default"] }), "default", false),
    ] {
        for version in ["v2", "v3alpha1"] {
            assert_eq!(reads(version, spec.clone(), id), expected, "{version} {spec} for {id}");
        }
    }
}

/// Trees of the shape of a `spec`, with the words that the conversion looks for.
fn trees() -> impl Strategy<Value = Node<'static>> {
    let words = prop::sample::select(vec![
        "ambassador_id",
        "ambassadorId",
        "tls",
        "service",
        "auth_service",
        "host",
        "hostname",
        "host_regex",
        "headers",
        "regex_headers",
        "query_parameters",
        "regex_query_parameters",
        "add_request_headers",
        "remove_request_headers",
        "cors",
        "origins",
        "methods",
        "max_age",
        "labels",
        "generic_key",
        "v3Key",
        "header",
        "header_name",
        "selector",
        "mappingSelector",
        "minTlsVersion",
        "tag_headers",
        "custom_tags",
        "v3CustomTags",
        "v3StatsName",
        "config",
        "v3PropagationModes",
        "keepalive",
        "time",
        "defaults",
        "httpmapping",
        "default_labels",
        "ambassador",
        "x",
    ]);
    let texts = prop::sample::select(vec![
        "",
        "a",
        "https://é",
        "HTTP://",
        "http",
        "_skip_mapping_with_empty_host_",
        "a,b",
        "remote_address",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        texts.prop_map(|text| Value::Text(text.into())),
        words.clone().prop_map(|text| Value::Text(text.into())),
    ]
    .prop_map(Node::from);
    leaf.prop_recursive(5, 60, 5, move |inner| {
        let entry = (words.clone().prop_map(node::Key::from), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::List),
            prop::collection::vec(entry, 0..6).prop_map(Value::Map),
        ]
        .prop_map(Node::from)
    })
}

use crate::node;

proptest! {
    #[test]
    fn conversion_is_total_idempotent_and_the_same_for_v1_and_v2(
        spec in trees(), version in prop::sample::select(vec!["v1", "v2", "v3alpha1", "v9"]),
        name in prop::sample::select(vec!["ambassador", "tls", "authentication", "a"]),
    ) {
        let field = |name: &'static str, value: Node<'static>| (node::Key::from(name), value);
        let text = |text: String| Node::from(Value::Text(text.into()));
        let metadata = Value::Map(vec![field("name", text(name.to_owned()))]).into();
        let object = Node::from(Value::Map(vec![
            field("apiVersion", text(format!("getambassador.io/{version}"))), field("metadata", metadata), field("spec", spec),
        ]));
        for &kind in kind::ALL.iter().filter(|kind| kind.group() == GROUP) {
            let version = format!("getambassador.io/{version}");
            if let Some(once) = convert(kind, &version, &object) {
                let twice = convert(kind, "getambassador.io/v3alpha1", &once);
                prop_assert_eq!(twice.as_ref(), Some(&once));
            }
            // The two have the same fields.
            prop_assert_eq!(convert(kind, "getambassador.io/v1", &object), convert(kind, "getambassador.io/v2", &object));
            // Whatever stands there, it is an object or told why not.
            let decoded: Option<Object> = crate::decode(kind, &object).ok().map(|decoded| decoded.object);
            prop_assert!(decoded.is_none_or(|object| object.kind() == kind));
        }
    }
}
