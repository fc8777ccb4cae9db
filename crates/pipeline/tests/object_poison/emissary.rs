//! Emissary: Listeners, Hosts, Mappings, the Module and services that proxies call, with arbitrary values in every field.
//!
//! One Host is good and takes its own Mapping by a label: it must be served whatever the others write.

mod referred;

use crate::dice::{Dice, Make, seed};
use kinds::Object;
use model::{Code, Verdict};
use pipeline::{
    Pipeline, Settings,
    settings::{Bind, Packing},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};
use testbed::{
    Client, Net,
    cases::{Backends, Proxy, object},
    certs::Ca,
};

/// How many Mappings a batch has.
const MAPPINGS: usize = 300;
/// How many Hosts.
const HOSTS: usize = 60;
/// How many Listeners.
const LISTENERS: usize = 12;
/// How many AuthServices: the oldest is in effect.
const AUTH_SERVICES: usize = 3;
/// How many LogServices: all of them are in effect.
const LOG_SERVICES: usize = 4;
/// How many TCPMappings.
const TCP_MAPPINGS: usize = 24;
/// How many TLSContexts, besides the one that others name.
const TLS_CONTEXTS: usize = 12;
/// How many resolvers of each kind, and DevPortals.
const FEW: usize = 3;
/// How many batches are loaded one after the other.
const BATCHES: u64 = 4;

const MAPPING: &[(&str, Make)] = &[
    ("prefix_regex", |dice| (dice.roll(2) == 0).into()),
    ("prefix_exact", |dice| (dice.roll(2) == 0).into()),
    ("case_sensitive", |dice| (dice.roll(2) == 0).into()),
    ("host", |dice| dice.any(&["a.example.com", "*.example.com", "[a-z.]+"])),
    ("host_regex", |dice| (dice.roll(2) == 0).into()),
    ("method", |dice| dice.any(&["GET", "PUT|POST"])),
    ("method_regex", |dice| (dice.roll(2) == 0).into()),
    ("headers", |dice| texts(dice, &["x-a", ":authority", ":path"])),
    ("regex_headers", |dice| texts(dice, &["x-a", ":authority"])),
    ("query_parameters", |dice| texts(dice, &["q"])),
    ("regex_query_parameters", |dice| texts(dice, &["q"])),
    ("precedence", |dice| dice.number(&[-1, 0, 1])),
    ("weight", |dice| dice.number(&[0, 10, 50, 100])),
    ("tls", |dice| dice.any(&["context"])),
    ("resolver", |dice| dice.any(&["kubernetes-service", "endpoint", "consul", "kubernetesendpointresolver0"])),
    ("rewrite", |dice| dice.any(&["", "/", "/v1/"])),
    ("regex_rewrite", rewrite),
    ("host_rewrite", |dice| dice.any(&["inner.example.com"])),
    ("auto_host_rewrite", |_| true.into()),
    ("host_redirect", |dice| (dice.roll(4) == 0).into()),
    ("path_redirect", |dice| dice.any(&["/new"])),
    ("prefix_redirect", |dice| dice.any(&["/new/"])),
    ("regex_redirect", rewrite),
    ("redirect_response_code", |dice| dice.number(&[301, 308])),
    ("shadow", |dice| (dice.roll(4) == 0).into()),
    ("timeout_ms", |dice| dice.number(&[0, 3000])),
    ("idle_timeout_ms", |dice| dice.number(&[0, 3000])),
    ("connect_timeout_ms", |dice| dice.number(&[500])),
    ("cluster_idle_timeout_ms", |dice| dice.number(&[500])),
    ("cluster_max_connection_lifetime_ms", |dice| dice.number(&[500])),
    (
        "retry_policy",
        |dice| json!({ "retry_on": dice.any(&["5xx", "gateway-error"]), "num_retries": dice.number(&[1, 3]), "per_try_timeout": dice.duration() }),
    ),
    ("circuit_breakers", |dice| {
        dice.list(2, |dice| {
            json!({ "priority": dice.any(&["default", "high"]), "max_connections": dice.number(&[1, 100]), "max_retries": dice.number(&[3]) })
        })
    }),
    ("load_balancer", |dice| {
        let cookie = json!({ "name": dice.any(&["sticky"]), "path": dice.any(&["/"]), "ttl": dice.duration() });
        match dice.roll(3) {
            0 => json!({ "policy": dice.any(&["ring_hash", "maglev"]), "cookie": cookie }),
            1 => json!({ "policy": dice.any(&["ring_hash", "maglev"]), "header": dice.any(&["x-a"]) }),
            _ => json!({ "policy": dice.any(&["round_robin", "least_request"]) }),
        }
    }),
    (
        "keepalive",
        |dice| json!({ "probes": dice.number(&[3]), "idle_time": dice.number(&[60]), "interval": dice.number(&[10]) }),
    ),
    ("cors", |dice| {
        json!({ "origins": dice.list(2, |dice| dice.any(&["*", "https://a.example.com"])), "methods": dice.list(2, |dice| dice.any(&["GET"])),
            "headers": dice.list(2, |dice| dice.any(&["x-a"])), "max_age": dice.any(&["60"]) })
    }),
    ("add_request_headers", added),
    ("add_response_headers", added),
    ("remove_request_headers", |dice| dice.list(2, |dice| dice.any(&["x-c"]))),
    ("remove_response_headers", |dice| dice.list(2, |dice| dice.any(&["x-c"]))),
    ("add_linkerd_headers", |_| true.into()),
    ("grpc", |_| true.into()),
    ("allow_upgrade", |dice| dice.list(2, |dice| dice.any(&["websocket", "spdy/3.1", "CONNECT"]))),
    ("bypass_auth", |dice| (dice.roll(2) == 0).into()),
    ("auth_context_extensions", |dice| texts(dice, &["team"])),
    ("health_checks", |dice| {
        dice.list(2, |dice| {
            let statuses = dice.list(2, |dice| json!({ "min": dice.number(&[200]), "max": dice.number(&[299]) }));
            let http = json!({ "path": dice.any(&["/healthz"]), "hostname": dice.any(&["h"]), "expected_statuses": statuses });
            let grpc = json!({ "upstream_name": dice.any(&["web"]), "authority": dice.any(&["h"]) });
            let request = if dice.roll(2) == 0 { json!({ "http": http }) } else { json!({ "grpc": grpc }) };
            json!({ "interval": dice.duration(), "timeout": dice.duration(), "healthy_threshold": dice.number(&[1]), "health_check": request })
        })
    }),
    ("dns_type", |dice| dice.any(&["strict_dns", "logical_dns"])),
    ("respect_dns_ttl", |_| true.into()),
    ("enable_ipv4", |dice| (dice.roll(2) == 0).into()),
    ("enable_ipv6", |dice| (dice.roll(2) == 0).into()),
    ("cluster_tag", |dice| dice.any(&["blue"])),
    ("stats_name", |dice| dice.any(&["a.b"])),
    ("priority", |dice| dice.any(&["default", "high"])),
    ("labels", |dice| {
        let parts = dice.list(3, |dice| match dice.roll(5) {
            0 => json!({ "remote_address": { "key": "remote_address" } }),
            1 => json!({ "destination_cluster": { "key": "x" } }),
            2 => json!({ "source_cluster": { "key": "x" } }),
            3 => json!({ "request_headers": { "key": dice.any(&["k"]), "header_name": dice.any(&["x-a"]), "omit_if_not_present": dice.roll(2) == 0 } }),
            _ => json!({ "generic_key": { "key": dice.any(&["k"]), "value": dice.any(&["v"]) } }),
        });
        json!({ "ambassador": [{ "group": parts }] })
    }),
];

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

/// Whether the Module of a batch has keys that may close all Mappings.
fn may_close(batch: u64) -> bool {
    batch % 4 == 2
}

fn module(dice: &mut Dice, _: usize) -> Value {
    json!({ "config": dice.map(3, MODULE) })
}

fn closing_module(dice: &mut Dice, number: usize) -> Value {
    let mut module = module(dice, number);
    for (key, make) in CLOSING {
        if dice.roll(2) == 0 {
            module["config"][key] = make(dice);
        }
    }
    module
}

fn texts(dice: &mut Dice, names: &[&str]) -> Value {
    let mut map = serde_json::Map::new();
    if let (Value::String(name), value) = (dice.text(names), dice.any(&["a", "a.*", ".*", "b.example.com"])) {
        map.insert(name, value);
    }
    map.into()
}

fn added(dice: &mut Dice) -> Value {
    let mut map = serde_json::Map::new();
    if let Value::String(name) = dice.text(&["x-a", "x-b", "host"]) {
        map.insert(
            name,
            json!({ "value": dice.any(&["a", "100%", "%REQ(x)%", "%HOSTNAME%"]), "append": dice.roll(2) == 0 }),
        );
    }
    map.into()
}

fn rewrite(dice: &mut Dice) -> Value {
    json!({ "pattern": dice.any(&["/a", "/(a)/(b)", ".*"]), "substitution": dice.any(&["/x", "/\\1", "/\\2\\1"]) })
}

fn mapping(dice: &mut Dice, number: usize) -> Value {
    let mut spec = dice.map(32, MAPPING);
    let own = format!("/{number}/");
    spec["prefix"] = dice.any(&["/a/", own.as_str(), own.as_str(), own.as_str(), own.as_str(), own.as_str()]);
    spec["service"] =
        dice.any(&["good", "good.poison", "http://good:80", "https://api.example.org", "198.18.100.1:80", "nowhere"]);
    if !dice.once_in(12) {
        spec["hostname"] =
            dice.any(&["*", "*", "*.example.com", "*-x.example.com", "h1.example.com", "foo.*", "b.example.com:80"]);
    }
    spec
}

fn host(dice: &mut Dice, number: usize) -> Value {
    let own = format!("h{number}.example.com");
    let mut spec = dice.map(
        3,
        &[
            (
                "tlsSecret",
                |dice| json!({ "name": dice.any(&["cert", "none"]), "namespace": dice.any(&["poison", "other"]) }),
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

fn listener(dice: &mut Dice, number: usize) -> Value {
    let port = 9000 + i64::try_from(number).unwrap_or_default();
    let mut spec = dice.map(
        4,
        &[
            ("l7Depth", |dice| dice.number(&[0, 1])),
            ("http2MaxConcurrentStreams", |dice| dice.number(&[1, 100])),
            ("statsPrefix", |dice| dice.any(&["x"])),
        ],
    );
    spec["port"] = dice.number(&[port, port, port, 8080, 443]);
    spec["protocol"] = dice.any(&["HTTP", "HTTPS", "HTTPPROXY", "HTTPSPROXY", "TCP", "TLS", "UDP"]);
    spec["securityModel"] = dice.any(&["XFP", "SECURE", "INSECURE"]);
    spec["hostBinding"] = json!({ "namespace": { "from": dice.any(&["ALL", "SELF"]) } });
    spec
}

fn auth_service(dice: &mut Dice, _: usize) -> Value {
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

fn rate_limit_service(dice: &mut Dice, _: usize) -> Value {
    let mut spec = dice.map(
        4,
        &[
            ("domain", |dice| dice.any(&["ambassador"])),
            ("tls", |dice| dice.any(&["context"])),
            ("protocol_version", |dice| dice.any(&["v3"])),
            ("timeout_ms", |dice| dice.number(&[0, 20])),
            ("failure_mode_deny", |dice| (dice.roll(2) == 0).into()),
            ("grpc", |dice| json!({ "use_resource_exhausted_code": dice.roll(2) == 0 })),
            ("stats_name", |dice| dice.any(&["a.b"])),
        ],
    );
    spec["service"] = dice.any(&["good", "good.good", "198.18.100.1:80", "limits.example.org"]);
    spec
}

fn tracing_service(dice: &mut Dice, _: usize) -> Value {
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

fn log_service(dice: &mut Dice, _: usize) -> Value {
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

fn tcp_mapping(dice: &mut Dice, number: usize) -> Value {
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

fn named(dice: &mut Dice, kind: &str, number: usize, spec: &Value) -> Object {
    let created = format!("2026-01-{:02}T00:00:00Z", 2 + dice.roll(27));
    let name = if kind == "Module" { "ambassador".to_owned() } else { format!("{}{number}", kind.to_lowercase()) };
    let labels = json!({ "app": dice.of(&["a", "b"]) });
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "spec": spec,
        "metadata": { "name": name, "namespace": "poison", "creationTimestamp": created, "labels": labels } }))
}

/// What makes the specification of an object.
type MakeSpec = fn(&mut Dice, usize) -> Value;

/// The objects of a batch. An AuthService that cannot be used closes all Mappings that do not bypass it, so every other batch has none.
fn batch(dice: &mut Dice, number: u64) -> Vec<Object> {
    let auth_services = if number.is_multiple_of(2) { AUTH_SERVICES } else { 0 };
    let mut all = Vec::new();
    let module: MakeSpec = if may_close(number) { closing_module } else { module };
    let kinds: [(&str, usize, MakeSpec); 11] = [
        ("Mapping", MAPPINGS, mapping),
        ("Host", HOSTS, host),
        ("Listener", LISTENERS, listener),
        ("Module", 1, module),
        ("AuthService", auth_services, auth_service),
        ("RateLimitService", 1, rate_limit_service),
        ("TracingService", 1, tracing_service),
        ("LogService", LOG_SERVICES, log_service),
        ("TCPMapping", TCP_MAPPINGS, tcp_mapping),
        ("TLSContext", TLS_CONTEXTS, referred::tls_context),
        ("DevPortal", FEW, referred::dev_portal),
    ];
    for (kind, count, make) in kinds {
        for number in 0..count {
            let spec = make(dice, number);
            all.push(named(dice, kind, number, &spec));
        }
    }
    all.push(referred::context(dice));
    all.extend((0..FEW).flat_map(|number| referred::resolvers(dice, number)));
    all
}

/// A Listener, a Host and a Mapping that must be served whatever others write.
async fn good(backends: &mut Backends) -> Vec<Object> {
    let address = backends.named("good/good").await.unwrap();
    let created = "2026-01-01T00:00:00Z";
    let own = |kind: &str, spec: Value| {
        json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "spec": spec,
            "metadata": { "name": "good", "namespace": "good", "creationTimestamp": created, "labels": { "team": "good" } } })
    };
    let binding = json!({ "namespace": { "from": "ALL" } });
    let select = json!({ "matchLabels": { "team": "good" } });
    let mut objects = vec![
        own("Listener", json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding })),
        own(
            "Host",
            json!({ "hostname": "good.example.org", "mappingSelector": select, "requestPolicy": { "insecure": { "action": "Route" } } }),
        ),
        own(
            "Mapping",
            json!({ "hostname": "good.example.org", "prefix": "/", "service": "good", "bypass_auth": true }),
        ),
    ];
    for namespace in ["good", "poison"] {
        let meta = json!({ "namespace": namespace, "name": "good" });
        let slice =
            json!({ "namespace": namespace, "name": "good", "labels": { "kubernetes.io/service-name": "good" } });
        objects.push(
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": { "ports": [{ "port": 80 }] } }),
        );
        objects.push(json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice, "addressType": "IPv4",
            "ports": [{ "port": 80 }], "endpoints": [{ "addresses": [address] }] }));
    }
    objects.iter().map(object).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_emissary_envoy_refuses_nothing_in_scopes() {
    load("emissary-scopes", Packing::Scoped).await;
}

/// Here one host that Envoy does not take spoils all hosts of its port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_emissary_envoy_refuses_nothing_in_tables() {
    load("emissary-tables", Packing::Plain).await;
}

async fn load(name: &str, packing: Packing) {
    let address = Net::here().unwrap().address();
    let bind = |port| Bind { address: address.into(), port };
    let mut settings = Settings {
        http: bind(8080),
        https: bind(8443),
        stats: bind(8002),
        admin_port: 0,
        packing,
        ..Settings::default()
    };
    settings.emissary.address = address.into();
    let mut backends = Backends::new();
    let mut kept = good(&mut backends).await;
    kept.extend(referred::secrets(&Ca::new("poison")));
    let mut proxy = Proxy::start(name).await.unwrap();
    let mut open = 0;
    for number in 0..BATCHES {
        let mut dice = Dice::new(seed(), number);
        let mut pipeline = Pipeline::new(&settings);
        for object in kept.iter().cloned().chain(batch(&mut dice, number)) {
            pipeline.put(&object.key(), Some(object));
        }
        let output = pipeline.settle();
        assert!(pipeline.engine().held().is_empty(), "a computation panicked: {:?}", pipeline.engine().held());
        // A Mapping that an AuthService closes is fine as it is.
        let is_fine = |list: &Arc<Vec<Verdict>>| list.iter().all(|verdict| verdict.code == Code::MappingClosed);
        let fine = output.verdicts.iter().filter(|(_, said)| said.as_ref().is_some_and(is_fine)).count();
        let hosts = pipeline.engine().rows::<pipeline::hosts::VirtualHosts>().count()
            + pipeline.engine().rows::<pipeline::hosts::conditional::ConditionalHosts>().count();
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for verdict in output.verdicts.iter().filter_map(|(_, said)| said.as_ref()).flat_map(|list| list.iter()) {
            *told.entry(verdict.code.to_string()).or_default() += 1;
        }
        println!("batch {number}: {fine} are fine as they are; {hosts} hosts; {told:?}");
        let is_closed =
            ["SES9202", "SES9101"].iter().any(|code| told.get(*code).is_some_and(|closed| *closed > MAPPINGS / 2));
        open += u64::from(!is_closed);
        let is_telling = hosts > HOSTS / 2 && (is_closed || fine > MAPPINGS / 10);
        assert!(is_telling, "{hosts} hosts, {fine} fine: the test shows little");
        proxy.replace(output.xds.upserts).await.unwrap();
        let answer =
            Client::new(SocketAddr::new(address.into(), 8080)).host("good.example.org").get("/").await.unwrap();
        let found = (answer.status.as_u16(), answer.backend());
        if !may_close(number) {
            assert_eq!(found, (200, Some("good/good")));
        }
        println!("batch {number}: the good Mapping answers {found:?}");
    }
    assert!(open >= BATCHES / 2, "only {open} batches are open: the test shows little");
}
