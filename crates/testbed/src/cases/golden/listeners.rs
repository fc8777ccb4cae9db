//! What is printed of listeners: which names lead to which filter chain, who gets traces and access logs, and what differs from a
//! connection manager about which nothing is said.
//!
//! In: listeners as JSON, by name. Out: the sections `chains of`, `telemetry` and `ports` of a case, each empty where there is nothing
//! to print.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use envoy::listener::connection::connection_manager;
use envoy::packing::Packing;
use envoy_api::json;
use model::listener::{ConnectionSettings, HttpSettings};
use model::{FleetId, Port, PortId, PortProtocol};
use serde_json::Value;

use super::{strip, text};

/// What only an object says about all requests of a port, and where it stands in a connection manager.
const OF_REQUESTS: [(&str, &str); 8] = [
    ("accept_http_10", "/http_protocol_options/accept_http_10"),
    ("allow_chunked_length", "/http_protocol_options/allow_chunked_length"),
    ("header_key_format", "/http_protocol_options/header_key_format"),
    ("idle_timeout", "/common_http_protocol_options/idle_timeout"),
    ("max_request_headers_kb", "/max_request_headers_kb"),
    ("preserve_external_request_id", "/preserve_external_request_id"),
    ("server_name", "/server_name"),
    ("xff_num_trusted_hops", "/xff_num_trusted_hops"),
];

/// How many requests a connection may have in flight, of HTTP/2 and of HTTP/3.
const STREAMS: [&str; 2] = [
    "/http2_protocol_options/max_concurrent_streams",
    "/http3_protocol_options/quic_protocol_options/max_concurrent_streams",
];

/// The filters that an object may ask for, or turn off.
const FILTERS: [&str; 4] = ["buffer", "compressor", "grpc_http1_bridge", "grpc_web"];

/// Under TLS, which names lead to which chain; a listener in the clear is always the same.
pub(super) fn chains(listeners: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    for (name, listener) in listeners {
        let matcher = &listener["filter_chain_matcher"];
        if matcher.is_null() {
            continue;
        }
        out.push_str(&format!("chains of {name}:\n"));
        let by_transport = &matcher["matcher_tree"]["exact_match_map"]["map"];
        for (transport, on_match) in by_transport.as_object().into_iter().flatten() {
            let mut chains = Vec::new();
            led_to(on_match, &mut chains);
            out.push_str(&format!("  {}: {transport}\n", chains.first().copied().unwrap_or("?")));
        }
        let matcher = if by_transport.is_null() { matcher } else { &matcher["on_no_match"]["matcher"] };
        let domains = &matcher["matcher_tree"]["custom_match"]["typed_config"]["domain_matchers"];
        for entry in domains.as_array().into_iter().flatten() {
            let on_match = &entry["on_match"];
            let mut chains = Vec::new();
            led_to(on_match, &mut chains);
            chains.retain(|chain| *chain != envoy::name::REFUSED_CHAIN);
            let chain = text::key(of_listener(name, chains.first().copied().unwrap_or("?")));
            out.push_str(&format!("  {chain}: {}\n", text::flow(&entry["domains"])));
            if !on_match["matcher"].is_null() {
                out.push_str(&format!("  clients of {chain}: {}\n", text::flow(&by_address(on_match))));
            }
        }
        let mut others = Vec::new();
        led_to(matcher, &mut others);
        led_to(&matcher["on_no_match"], &mut others);
        others.extend(listener["default_filter_chain"]["name"].as_str());
        if let Some(chain) = others.first() {
            out.push_str(&format!("  {}: every other name\n", text::key(of_listener(name, chain))));
        }
    }
    out
}

/// Who gets spans and entries of access logs from each listener, where that is anybody but a file, and of which methods of gRPC statistics
/// are kept.
pub(super) fn telemetry(listeners: &BTreeMap<String, Value>) -> String {
    let mut all = serde_json::Map::new();
    for (name, listener) in listeners {
        for manager in network_filters(listener).into_iter().map(|filter| filter["typed_config"].clone()) {
            let is_sent = |log: &Value| log["name"] != "envoy.access_loggers.file";
            let logs = items(&manager["access_log"]).into_iter().filter(is_sent);
            let logs: Vec<Value> = logs.map(|log| log["typed_config"].clone()).collect();
            let mut of = serde_json::Map::new();
            of.extend(manager.get("tracing").map(|tracing| ("tracing".to_owned(), tracing.clone())));
            of.extend((!logs.is_empty()).then(|| ("access_log".to_owned(), logs.into())));
            let is_counted = |filter: &Value| filter["name"] == "envoy.filters.http.grpc_stats";
            let counted =
                items(&manager["http_filters"]).into_iter().find(is_counted).map(|it| it["typed_config"].clone());
            let counts_methods = |stats: &Value| {
                ["stats_for_all_methods", "individual_method_stats_allowlist"]
                    .iter()
                    .any(|key| stats.get(key).is_some())
            };
            of.extend(counted.filter(counts_methods).map(|stats| ("grpc_stats".to_owned(), stats)));
            if !of.is_empty() {
                all.insert(name.clone(), of.into());
            }
        }
    }
    if all.is_empty() { String::new() } else { format!("telemetry:{}", text::below(&all.into(), 0)) }
}

fn items(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

/// What the connections of a listener go through, of all its chains.
fn network_filters(listener: &Value) -> Vec<Value> {
    let chains = items(&listener["filter_chains"]).into_iter().chain([listener["default_filter_chain"].clone()]);
    chains.flat_map(|chain| items(&chain["filters"])).collect()
}

/// What an object says about all connections and requests of a port.
pub(super) fn ports(listeners: &BTreeMap<String, Value>) -> String {
    let usual = usual_manager();
    let buffer = Value::from(ConnectionSettings::default().buffer);
    let mut out = String::new();
    for (name, listener) in listeners {
        let mut of = serde_json::Map::new();
        let field = "per_connection_buffer_limit_bytes";
        of.extend(listener.get(field).filter(|most| **most != buffer).map(|most| (field.to_owned(), most.clone())));
        // What has its routes in the listener are pages of Envoy's own.
        let is_http = |filter: &Value| {
            filter["name"] == "envoy.filters.network.http_connection_manager"
                && filter["typed_config"].get("route_config").is_none()
        };
        for manager in network_filters(listener).iter().filter(|filter| is_http(filter)).map(|it| &it["typed_config"]) {
            of.extend(differing(manager, &usual));
            let prefix = manager["stat_prefix"].as_str().unwrap_or_default();
            // Plaintext connections of a port for TLS have statistics of their own.
            let is_name = listener["name"] == *prefix.strip_suffix("-plaintext").unwrap_or(prefix);
            of.extend((!is_name).then(|| ("stat_prefix".to_owned(), prefix.into())));
        }
        if !of.is_empty() {
            out.push_str(if out.is_empty() { "ports:\n" } else { "" });
            out.push_str(&format!("  {}: {}\n", text::key(name), text::flow(&of.into())));
        }
    }
    out
}

/// The connection manager of a port about which nothing is said.
fn usual_manager() -> Value {
    let port = Port {
        id: PortId::new(FleetId::Shared, "any"),
        address: Ipv4Addr::LOCALHOST.into(),
        port: 80,
        protocol: PortProtocol::Http,
        connections: ConnectionSettings::default(),
        http: HttpSettings::default(),
        tracer: None,
    };
    json::to_json(&connection_manager(&port, None, Packing::Plain)).unwrap_or_default()
}

/// What a connection manager has and another does not. What is missing in protobuf's JSON is false, or not there.
fn differing(manager: &Value, usual: &Value) -> serde_json::Map<String, Value> {
    let mut all = serde_json::Map::new();
    let mut add = |name: &str, found: Option<&Value>, usual: Option<&Value>| {
        if found != usual {
            let none = if usual.is_some_and(Value::is_boolean) { Value::from(false) } else { Value::Null };
            all.insert(name.to_owned(), found.cloned().unwrap_or(none));
        }
    };
    for (name, path) in OF_REQUESTS {
        add(name, manager.pointer(path), usual.pointer(path));
    }
    let [http2, http3] = STREAMS;
    let streams = if manager.get("http3_protocol_options").is_some() { http3 } else { http2 };
    add("max_concurrent_streams", manager.pointer(streams), usual.pointer(http2));
    for name in FILTERS {
        let [mut found, usual] = [manager, usual].map(|manager| http_filter(manager, name));
        // Cases say which compression the operator has chosen.
        if name == "compressor" && found.as_ref().is_none_or(|it| it["compressor_library"]["name"] != "gzip") {
            found.clone_from(&usual);
        }
        add(name, found.as_ref(), usual.as_ref());
    }
    all
}

/// A filter of a connection manager, if it is there.
fn http_filter(manager: &Value, name: &str) -> Option<Value> {
    let name = format!("envoy.filters.http.{name}");
    let mut filter = items(&manager["http_filters"]).into_iter().find(|filter| filter["name"] == *name)?;
    let mut config = filter["typed_config"].take();
    strip(&mut config, &["@type"]);
    Some(config)
}

/// The name of a chain without that of its listener.
pub(super) fn of_listener<'v>(listener: &str, chain: &'v str) -> &'v str {
    chain.strip_prefix(listener).and_then(|rest| rest.strip_prefix('/')).unwrap_or(chain)
}

/// The chains that a part of a matcher ends with.
fn led_to<'v>(on_match: &'v Value, chains: &mut Vec<&'v str>) {
    chains.extend(on_match["action"]["typed_config"]["value"].as_str());
    let list = &on_match["matcher_list"]["matchers"];
    list.as_array().into_iter().flatten().for_each(|matcher| led_to(&matcher["on_match"], chains));
    let matcher = &on_match["matcher"];
    if matcher.is_null() {
        return;
    }
    led_to(matcher, chains);
    let ranges = &matcher["matcher_tree"]["custom_match"]["typed_config"]["range_matchers"];
    ranges.as_array().into_iter().flatten().for_each(|ranges| led_to(&ranges["on_match"], chains));
    led_to(&matcher["on_no_match"], chains);
}

/// Which clients take which chain: the address, its ranges, and what is for all others.
fn by_address(on_match: &Value) -> Value {
    let matcher = &on_match["matcher"];
    if matcher.is_null() {
        return on_match["action"]["typed_config"]["value"].clone();
    }
    let tree = &matcher["matcher_tree"];
    let input = tree["input"]["typed_config"]["@type"].as_str().unwrap_or("?").rsplit('.').next().unwrap_or("?");
    let text = |range: &Value| format!("{}/{}", range["address_prefix"].as_str().unwrap_or("?"), range["prefix_len"]);
    let ranges = tree["custom_match"]["typed_config"]["range_matchers"].as_array().into_iter().flatten();
    let ranges = ranges.map(|entry| {
        let list: Vec<String> = entry["ranges"].as_array().into_iter().flatten().map(text).collect();
        (list.join(" "), by_address(&entry["on_match"]))
    });
    let ranges: Value = ranges.collect::<serde_json::Map<_, _>>().into();
    serde_json::json!({ input: ranges, "others": by_address(&matcher["on_no_match"]) })
}
