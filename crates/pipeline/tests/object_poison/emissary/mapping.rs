//! Mappings: every field, and the values that the Module has in common with them.

use crate::dice::{Dice, Make};
use serde_json::{Value, json};

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
            json!({ "priority": dice.any(&["default", "high"]), "max_connections": dice.number(&[1, 100]),
                "max_pending_requests": dice.number(&[1, 100]), "max_retries": dice.number(&[3]) })
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
    ("use_websocket", |dice| (dice.roll(2) == 0).into()),
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

pub fn mapping(dice: &mut Dice, number: usize) -> Value {
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

fn rewrite(dice: &mut Dice) -> Value {
    json!({ "pattern": dice.any(&["/a", "/(a)/(b)", ".*"]), "substitution": dice.any(&["/x", "/\\1", "/\\2\\1"]) })
}

pub fn texts(dice: &mut Dice, names: &[&str]) -> Value {
    let mut map = serde_json::Map::new();
    if let (Value::String(name), value) = (dice.text(names), dice.any(&["a", "a.*", ".*", "b.example.com"])) {
        map.insert(name, value);
    }
    map.into()
}

pub fn added(dice: &mut Dice) -> Value {
    let mut map = serde_json::Map::new();
    if let Value::String(name) = dice.text(&["x-a", "x-b", "host"]) {
        map.insert(
            name,
            json!({ "value": dice.any(&["a", "100%", "%REQ(x)%", "%HOSTNAME%"]), "append": dice.roll(2) == 0 }),
        );
    }
    map.into()
}
