//! Random Listeners, Hosts, Mappings, TCPMappings, Modules, TLSContexts, AuthServices, RateLimitServices, TracingServices, LogServices,
//! resolvers, Secrets and Services, edited at random: after every batch, all tables equal a build
//! from nothing, and a build of the same objects in another order gives the same resources and the same status.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod script;

use kinds::{Kind, Object, ObjectRef, kind};
use pipeline::{Settings, settings::Packing};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use std::sync::OnceLock;
use testbed::certs::Ca;

const SPACES: [&str; 2] = ["a", "b"];

/// An object by its kind and a few numbers; the last says whether it is taken away.
type Edit = (u8, u8, u8, [u8; 6], bool);

fn edit() -> impl Strategy<Value = Edit> {
    (0..25_u8, 0..2_u8, 0..5_u8, prop::array::uniform6(0..24_u8), prop::bool::weighted(0.2))
}

fn leaf() -> &'static (String, String) {
    static LEAF: OnceLock<(String, String)> = OnceLock::new();
    LEAF.get_or_init(|| {
        let leaf = Ca::new("oracle").leaf("h0.example.com").make();
        (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned())
    })
}

fn pick<T: Clone>(of: &[T], n: u8) -> T {
    of[usize::from(n) % of.len()].clone()
}

const HOSTS: [&str; 10] = [
    "*",
    "h0.example.com",
    "*.example.com",
    "h1.example.com",
    "*.b.example.com",
    "h*",
    "h0.example.com:8080",
    "*1.example.com",
    "*.example.com:8443",
    "*com",
];

fn listener(n: [u8; 6]) -> Value {
    let binding = match n[3] % 4 {
        0 => json!({ "namespace": { "from": "SELF" } }),
        1 => json!({ "selector": { "matchLabels": { "edge": "x" } } }),
        _ => json!({ "namespace": { "from": "ALL" } }),
    };
    let mut spec = json!({
        "port": pick(&[8080, 8443, 9000, 9001], n[0]),
        "securityModel": pick(&["XFP", "SECURE", "INSECURE"], n[2]), "hostBinding": binding, "l7Depth": n[4] % 2,
    });
    match pick(&["HTTP", "HTTPS", "HTTP3", "HTTPPROXY", "TCP", "TLS"], n[1]) {
        "HTTP3" => spec["protocolStack"] = json!(["TLS", "HTTP", "UDP"]),
        protocol => spec["protocol"] = protocol.into(),
    }
    spec
}

fn host(n: [u8; 6]) -> Value {
    let mut spec = json!({ "hostname": pick(&HOSTS, n[0]) });
    if n[1].is_multiple_of(2) {
        spec["tlsSecret"] = json!({ "name": "t0" });
    }
    if n[1].is_multiple_of(6) {
        spec["tlsContext"] = json!({ "name": "context" });
    }
    if !n[2].is_multiple_of(3) {
        spec["mappingSelector"] = json!({ "matchLabels": { "app": pick(&["x", "y"], n[3]) } });
    }
    let action = pick(&["Route", "Redirect", "Reject"], n[4]);
    spec["requestPolicy"] = json!({ "insecure": { "action": action } });
    spec
}

fn mapping(n: [u8; 6]) -> Value {
    let mut spec = json!({
        "prefix": pick(&["/", "/a/", "/a/b", "/[a-z]+", "/.well-known/acme-challenge/"], n[0]), "service": pick(&["w0", "w1.b", "nowhere", "https://w0"], n[1]),
        "prefix_regex": n[0] % 5 == 3, "prefix_exact": n[2].is_multiple_of(4), "case_sensitive": !n[2].is_multiple_of(5),
    });
    if !n[3].is_multiple_of(4) {
        spec["hostname"] = pick(&HOSTS, n[3]).into();
    }
    if n[3].is_multiple_of(3) {
        spec["labels"] = json!({ pick(&["x", "y"], n[2]): [{ "group": [{ "generic_key": { "value": "v" } }] }] });
    }
    match n[4] % 6 {
        0 => spec["weight"] = (u32::from(n[5]) * 10).into(),
        1 => spec["weight"] = 30.into(),
        2 => spec["precedence"] = (i32::from(n[5]) % 3 - 1).into(),
        3 => spec["shadow"] = true.into(),
        _ => {}
    }
    match n[5] % 6 {
        0 => spec["headers"] = json!({ "x-a": "1" }),
        1 => spec["connect_timeout_ms"] = 500.into(),
        2 => spec["host_redirect"] = true.into(),
        4 => spec["bypass_auth"] = n[1].is_multiple_of(2).into(),
        3 => spec["resolver"] = "eds".into(),
        _ => {}
    }
    spec
}

/// Keys that reach Mappings, Hosts and Listeners, some of them closing.
fn module(n: [u8; 6]) -> Value {
    let mut config = json!({ "cluster_request_timeout_ms": u32::from(n[0]) * 1000 });
    match n[1] % 8 {
        0 => config["ip_deny"] = json!([{ "remote": pick(&["10.0.0.0/8", "::/0", "nonsense"], n[2]) }]),
        1 => config["lua_scripts"] = "x".into(),
        2 => config["reject_requests_with_escaped_slashes"] = n[2].is_multiple_of(2).into(),
        3 => config["resolver"] = pick(&["endpoint", "eds", "consul"], n[2]).into(),
        4 => config["retry_policy"] = json!({ "retry_on": pick(&["5xx", "sometimes"], n[2]) }),
        _ => {}
    }
    match n[3] % 6 {
        0 => config["server_name"] = pick(&["edge", "other"], n[4]).into(),
        1 => config["merge_slashes"] = n[4].is_multiple_of(2).into(),
        2 => config["gzip"] = json!({ "memory_level": n[4] }),
        3 => config["forward_client_cert_details"] = pick(&["SANITIZE_SET", "FORWARD_ONLY"], n[4]).into(),
        4 => {
            config["defaults"] =
                json!({ "tls_secret_namespacing": n[4].is_multiple_of(2), "add_request_headers": { "x-a": "1" } })
        }
        _ => {}
    }
    match n[5] % 5 {
        1 => config["default_label_domain"] = pick(&["x", "y"], n[4]).into(),
        2 => {
            let label = json!({ "generic_key": { "value": pick(&["a", ""], n[4]) } });
            config["default_labels"] = json!({ pick(&["x", "y"], n[2]): { "defaults": [label] } });
        }
        3 => config["enable_grpc_http11_bridge"] = n[4].is_multiple_of(2).into(),
        _ => {}
    }
    let is_list = n[5] == 0;
    json!({ "config": if is_list { json!([]) } else { config } })
}

fn tls_context(n: [u8; 6]) -> Value {
    json!({
        "secret": pick(&["t0", "t0.b", "none"], n[0]), "ca_secret": pick(&["t0", "t0.b", "none"], n[1]),
        "cert_required": n[2].is_multiple_of(2), "min_tls_version": pick(&["v1.2", "v1.3", "v1.1"], n[3]),
    })
}

fn auth_service(n: [u8; 6]) -> Value {
    json!({
        "auth_service": pick(&["w0", "w1.b", "nowhere", "https://w0", "auth.example.com", "w1"], n[0]), "proto": pick(&["http", "grpc", "http", "smoke"], n[1]),
        "tls": pick(&["", "", "context"], n[2]), "timeout_ms": pick(&[100, 100, 200], n[3]), "failure_mode_allow": n[4].is_multiple_of(3),
    })
}

fn tracing_service(n: [u8; 6]) -> Value {
    json!({
        "driver": pick(&["zipkin", "datadog", "opentelemetry", "lightstep"], n[0]), "service": pick(&["w0", "w1.b", "nowhere", "https://w0", "spans.example.com"], n[1]),
        "sampling": { "random": u32::from(n[2]) * 10 }, "custom_tags": [{ "tag": "a", "literal": { "value": pick(&["x", ""], n[3]) } }],
        "config": { "collector_endpoint": pick(&["/spans", "spans"], n[4]) },
    })
}

fn log_service(n: [u8; 6]) -> Value {
    let headers = json!([{ "header_name": pick(&["x-a", "x b"], n[4]), "during_response": n[4].is_multiple_of(2) }]);
    json!({
        "driver": pick(&["http", "tcp", "http", "udp"], n[0]), "service": pick(&["w0", "w1.b", "nowhere", "https://w0", "logs.example.com"], n[1]),
        "flush_interval_time": n[2] % 3, "driver_config": { "additional_log_headers": headers },
    })
}

fn tcp_mapping(n: [u8; 6]) -> Value {
    let mut spec =
        json!({ "port": pick(&[8443, 9000, 9001, 9002], n[0]), "service": pick(&["w0", "w1.b", "nowhere"], n[1]) });
    if n[2].is_multiple_of(2) {
        spec["host"] = pick(&["h0.example.com", "h1.example.com", "*", "x.b.example.com"], n[3]).into();
    }
    if n[4].is_multiple_of(2) {
        spec["weight"] = (u32::from(n[5]) * 10).into();
    }
    spec
}

/// The object that an edit puts, or the key that it takes away.
fn change((what, space, name, n, gone): &Edit) -> (ObjectRef, Option<Object>) {
    let (namespace, n) = (SPACES[usize::from(*space)], *n);
    let (kind, name, body): (Kind, String, Value) = match what {
        0..=2 => (kind::LISTENER, format!("l{}", name % 3), json!({ "spec": listener(n) })),
        3..=5 => (kind::HOST, format!("h{name}"), json!({ "spec": host(n) })),
        6..=11 => (kind::MAPPING, format!("m{name}"), json!({ "spec": mapping(n) })),
        12 => {
            let (chain, key) = leaf();
            let key = if n[0] == 0 { "nonsense" } else { key.as_str() };
            let body = json!({ "type": "kubernetes.io/tls", "stringData": { "tls.crt": chain, "tls.key": key } });
            (kind::SECRET, "t0".to_owned(), body)
        }
        13 => {
            let kind = pick(&[kind::KUBERNETES_ENDPOINT_RESOLVER, kind::CONSUL_RESOLVER], n[0]);
            (kind, "eds".to_owned(), json!({ "spec": {} }))
        }
        14 | 15 => (kind::MODULE, "ambassador".to_owned(), json!({ "spec": module(n) })),
        16 => (kind::TLS_CONTEXT, "context".to_owned(), json!({ "spec": tls_context(n) })),
        17 => (kind::AUTH_SERVICE, format!("s{}", name % 3), json!({ "spec": auth_service(n) })),
        18 => {
            let spec = json!({
                "service": pick(&["w0", "w1.b", "nowhere"], n[0]), "domain": pick(&["x", "y", ""], n[1]), "failure_mode_deny": n[2].is_multiple_of(2),
            });
            (kind::RATE_LIMIT_SERVICE, format!("s{}", name % 2), json!({ "spec": spec }))
        }
        22 => (kind::TRACING_SERVICE, format!("s{}", name % 2), json!({ "spec": tracing_service(n) })),
        23 | 24 => (kind::LOG_SERVICE, format!("s{}", name % 3), json!({ "spec": log_service(n) })),
        19 => (kind::TCP_MAPPING, format!("c{name}"), json!({ "spec": tcp_mapping(n) })),
        _ => (
            kind::SERVICE,
            format!("w{}", name % 2),
            json!({ "spec": { "ports": [{ "port": 80 }, { "name": "tls", "port": 443 }] } }),
        ),
    };
    let key = ObjectRef::new(kind, namespace, name.as_str());
    if *gone {
        return (key, None);
    }
    let mut object = body;
    object["metadata"] = json!({
        "name": name, "namespace": namespace, "creationTimestamp": format!("2024-01-0{}T00:00:00Z", n[5] % 3 + 1),
        "labels": { "app": pick(&["x", "y"], n[1]), "edge": pick(&["x", "y"], n[2]) },
    });
    let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
    (key, Some(decoded.object))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_of_edits_ends_where_a_build_from_nothing_does(
        batches in vec(vec(edit(), 1..10), 1..12),
        scoped in any::<bool>(),
    ) {
        let packing = if scoped { Packing::Scoped } else { Packing::Plain };
        let settings = Settings { packing, ..Settings::default() };
        script::run(&batches, &settings, |_, _| (), |edit| Some(change(edit)))?;
    }
}
