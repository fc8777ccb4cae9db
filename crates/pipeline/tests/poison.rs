//! Nothing that people write makes Envoy refuse anything: what Envoy would not take is told on the field that holds it,
//! and everybody else is served.
//!
//! Arbitrary values go into every field of an Ingress and of what it refers to; what comes out is loaded into a real
//! Envoy, thousands of objects at a time. Scopes are the packing, because a refusal then names the host that is to blame.
//! The values are the same in every run unless `POISON_SEED` says otherwise.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use kinds::Object;
use pipeline::{
    Pipeline, Settings,
    settings::{Bind, Packing},
};
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::SocketAddr, sync::LazyLock};
use testbed::{
    Client, Net,
    cases::{Backends, Proxy, object},
    certs::{Ca, KeyType},
    texts::HOSTILE,
};

/// How many objects of each sort a batch has.
const BATCH: usize = 400;
/// How many batches are loaded one after the other.
const BATCHES: u64 = 4;
/// How many Ingresses beside them must be served.
const GOOD: usize = 20;

const DURATIONS: [&str; 18] = [
    "0",
    "0s",
    "1ns",
    "999us",
    "1ms",
    "1s",
    "15s",
    "-1s",
    "1.5h",
    "1h1m1s",
    "infinity",
    "infinite",
    "8760h",
    "8761h",
    "99999999h",
    "1e3s",
    "5",
    "s",
];

static PAIRS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let ca = Ca::new("poison");
    let pair = |key: KeyType| {
        let leaf = ca.leaf("a.example.com").key(key).make();
        (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned())
    };
    let (good, other) = (pair(KeyType::P256), pair(KeyType::P384));
    let broken = [(good.0.clone(), other.1.clone()), (good.1.clone(), good.0.clone()), (String::new(), good.1.clone())];
    [good.clone(), other, pair(KeyType::Rsa2048), pair(KeyType::Ed25519), (format!("{0}{0}", good.0), good.1)]
        .into_iter()
        .chain(broken)
        .collect()
});

fn text() -> BoxedStrategy<String> {
    let long = (select(vec!["a", "/a", "é", "a.", "%41"]), 1..20_000usize).prop_map(|(part, times)| part.repeat(times));
    prop_oneof![
        4 => select(HOSTILE).prop_map(str::to_owned),
        4 => "[ -~]{0,12}",
        2 => any::<String>(),
        1 => long,
    ]
    .boxed()
}

/// A good value mostly, or anything.
fn or_text(good: Vec<&'static str>) -> BoxedStrategy<String> {
    prop_oneof![3 => select(good).prop_map(str::to_owned), 2 => text()].boxed()
}

fn pattern() -> BoxedStrategy<String> {
    let pieces = vec![
        "a",
        "/",
        ".",
        "*",
        "+",
        "?",
        "|",
        "^",
        "$",
        "(",
        ")",
        "(?:",
        "(?i)",
        "(?P<n>",
        "(?<m>",
        "(?-s:",
        "(?U)",
        "[",
        "]",
        "[^",
        "-",
        "a-z",
        "[[:alpha:]]",
        "[[:^word:]]",
        "\\d",
        "\\W",
        "\\s",
        "\\b",
        "\\B",
        "\\A",
        "\\z",
        "\\pL",
        "\\p{Lu}",
        "\\P{Nd}",
        "\\p{L}",
        "\\x41",
        "\\x{10FFFF}",
        "\\.",
        "\\-",
        "\\_",
        "\\/",
        "\\%",
        "\\e",
        "\\Q",
        "\\E",
        "\\C",
        "{2}",
        "{2,}",
        "{2,5}",
        "{0}",
        "{1000}",
        "{40}",
        "{,3}",
        "é",
        "💥",
        "%",
        "&&",
        "~~",
        "--",
        "\\n",
        "\\t",
        "\\a",
        "\\v",
        "\\f",
        "\\0",
        "\\12",
    ];
    let made = proptest::collection::vec(select(pieces), 1..9).prop_map(|pieces| format!("/{}*", pieces.concat()));
    prop_oneof![6 => made, 1 => "/[ -~]{0,10}\\*", 1 => text()].boxed()
}

fn path() -> BoxedStrategy<Value> {
    let kinds = or_text(vec!["Exact", "Prefix", "ImplementationSpecific"]);
    let paths =
        prop_oneof![or_text(vec!["/", "/a", "/a/", "/a/b"]), text().prop_map(|text| format!("/{text}")), pattern()];
    let port = prop_oneof![
        3 => Just(json!({ "number": 80 })),
        1 => any::<i32>().prop_map(|number| json!({ "number": number })),
        1 => text().prop_map(|name| json!({ "name": name })),
    ];
    (kinds, paths, or_text(vec!["web"]), port)
        .prop_map(|(kind, path, name, port)| {
            json!({ "path": path, "pathType": kind, "backend": { "service": { "name": name, "port": port } } })
        })
        .boxed()
}

fn annotations() -> BoxedStrategy<Value> {
    let duration = || or_text(DURATIONS.to_vec());
    let number = || prop_oneof![any::<i64>().prop_map(|n| n.to_string()), text()].boxed();
    let retry = or_text(vec!["5xx", "gateway-error,reset", "retriable-status-codes", "5xx,5xx", "unavailable"]);
    let version = || or_text(vec!["1.2", "1.3", "1.1"]);
    let flag = || or_text(vec!["true", "false"]);
    let values: Vec<(&str, BoxedStrategy<String>)> = vec![
        ("projectcontour.io/response-timeout", duration()),
        ("projectcontour.io/request-timeout", duration()),
        ("projectcontour.io/per-try-timeout", duration()),
        ("projectcontour.io/retry-on", retry),
        ("projectcontour.io/num-retries", number()),
        ("projectcontour.io/tls-minimum-protocol-version", version()),
        ("projectcontour.io/tls-maximum-protocol-version", version()),
        ("projectcontour.io/tls-cert-namespace", or_text(vec!["default"])),
        ("projectcontour.io/websocket-routes", or_text(vec!["/", "/a,/b"])),
        ("ingress.kubernetes.io/force-ssl-redirect", flag()),
        ("kubernetes.io/ingress.allow-http", flag()),
    ];
    let each: Vec<_> = values
        .into_iter()
        .map(|(name, values)| proptest::option::weighted(0.25, values).prop_map(move |value| (name.to_owned(), value)))
        .collect();
    each.prop_map(|list| {
        list.into_iter()
            .filter_map(|(name, value)| Some((name, Value::from(value?))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    })
    .boxed()
}

/// An Ingress of which everything but its kind may be anything; the number keeps hosts apart, so that each is a resource
/// of its own.
fn ingress(number: usize) -> BoxedStrategy<Value> {
    let host = prop_oneof![
        4 => Just(format!("h{number}.example.com")),
        1 => Just(format!("*.h{number}.example.com")),
        1 => text().prop_map(move |text| format!("{text}h{number}.example.com")),
        1 => text(),
    ];
    let tls = (proptest::collection::vec(host.clone(), 0..3), or_text(vec!["cert-0", "cert-1", "cert-2", "cert-3"]));
    let name = prop_oneof![3 => Just(format!("ingress-{number}")), 1 => text().prop_map(move |text| format!("{text}{number}"))];
    let namespace = or_text(vec!["default", "default", "other"]);
    let rules = proptest::collection::vec((host, proptest::collection::vec(path(), 1..4)), 1..3);
    ((namespace, name), annotations(), rules, proptest::option::weighted(0.5, tls))
        .prop_map(|((namespace, name), annotations, rules, tls)| {
            let rules: Vec<_> =
                rules.into_iter().map(|(host, paths)| json!({ "host": host, "http": { "paths": paths } })).collect();
            let tls: Vec<_> =
                tls.into_iter().map(|(hosts, name)| json!({ "hosts": hosts, "secretName": name })).collect();
            json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                "metadata": { "namespace": namespace, "name": name, "annotations": annotations },
                "spec": { "rules": rules, "tls": tls } })
        })
        .boxed()
}

fn service(number: usize) -> BoxedStrategy<Value> {
    let name = prop_oneof![1 => Just("web".to_owned()), 3 => text().prop_map(move |text| format!("{text}{number}"))];
    let limit = || prop_oneof![any::<u32>().prop_map(|n| n.to_string()), text()].boxed();
    let port = (any::<i32>(), or_text(vec!["http"]), or_text(vec!["http", "https", "kubernetes.io/h2c"]));
    let kind = (or_text(vec!["ClusterIP", "ExternalName"]), or_text(vec!["198.18.100.1", "elsewhere.example.com"]));
    ((or_text(vec!["default"]), name), proptest::collection::vec(port, 0..3), kind, (limit(), limit(), limit(), text()))
        .prop_map(|((namespace, name), ports, (kind, external), (first, second, third, listed))| {
            let mut ports: Vec<_> = ports
                .into_iter()
                .map(|(port, name, app)| json!({ "port": port, "name": name, "appProtocol": app }))
                .collect();
            ports.push(json!({ "port": 80 }));
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": namespace, "name": name, "annotations": {
                    "projectcontour.io/max-connections": first, "projectcontour.io/max-requests": second,
                    "projectcontour.io/per-host-max-connections": third, "projectcontour.io/upstream-protocol.tls": listed,
                } }, "spec": { "type": kind, "externalName": external, "ports": ports } })
        })
        .boxed()
}

fn slice(number: usize) -> BoxedStrategy<Value> {
    let addresses = or_text(vec![
        "198.18.100.1",
        "fd00::1",
        "0.0.0.0",
        "::",
        "255.255.255.255",
        "224.0.0.1",
        "fe80::1",
        "::ffff:1.2.3.4",
    ]);
    let endpoint = (proptest::collection::vec(addresses, 0..3), text());
    let endpoints = proptest::collection::vec(endpoint, 0..4);
    (or_text(vec!["web"]), endpoints, proptest::option::of(any::<i32>()), or_text(vec![""]))
        .prop_map(move |(service, endpoints, port, name)| {
            let endpoints: Vec<_> = endpoints
                .into_iter()
                .map(|(addresses, zone)| json!({ "addresses": addresses, "zone": zone }))
                .collect();
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": { "name": format!("slice-{number}"), "labels": { "kubernetes.io/service-name": service } },
                "addressType": "IPv4", "ports": [{ "name": name, "port": port }], "endpoints": endpoints })
        })
        .boxed()
}

fn secret(number: usize) -> BoxedStrategy<Value> {
    let name = prop_oneof![3 => Just(format!("cert-{}", number % 4)), 1 => text().prop_map(move |text| format!("{text}{number}"))];
    (or_text(vec!["default", "other"]), name, 0..PAIRS.len(), or_text(vec!["kubernetes.io/tls", "Opaque"]))
        .prop_map(|(namespace, name, pair, kind)| {
            let (chain, key) = &PAIRS[pair];
            json!({ "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": { "namespace": namespace, "name": name },
                "stringData": { "tls.crt": chain, "tls.key": key } })
        })
        .boxed()
}

fn sample<T: std::fmt::Debug>(runner: &mut TestRunner, strategy: &BoxedStrategy<T>) -> T {
    strategy.new_tree(runner).unwrap().current()
}

fn runner(batch: u64) -> TestRunner {
    let seed: u64 = std::env::var("POISON_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&batch.to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// An Envoy with listeners of its own, and a client for each.
struct Bed {
    settings: Settings,
    proxy: Proxy,
    http: Client,
}

impl Bed {
    async fn start(name: &str) -> Self {
        let address = Net::here().unwrap().address();
        let bind = |port| Bind { address: address.into(), port };
        let (http, https, stats) = (bind(8080), bind(8443), bind(8002));
        let packing = Packing::Scoped;
        let mut settings = Settings { http, https, stats, admin_port: 0, packing, ..Settings::default() };
        settings.resolve.external_names = true;
        settings.resolve.listed_endpoints = true;
        let http = Client::new(SocketAddr::new(address.into(), 8080));
        Self { settings, proxy: Proxy::start(name).await.unwrap(), http }
    }

    /// Builds these objects, loads them, and gives the verdicts by object.
    async fn load(&mut self, objects: &[Object]) -> BTreeMap<String, Vec<model::Verdict>> {
        let mut pipeline = Pipeline::new(&self.settings);
        for object in objects {
            pipeline.put(&object.key(), Some(object.clone()));
        }
        let output = pipeline.settle();
        assert!(
            pipeline.engine().failed_rows().is_empty(),
            "a computation panicked: {:?}",
            pipeline.engine().failed_rows()
        );
        self.proxy.replace(output.xds.upserts).await.unwrap();
        let verdicts = output.verdicts.into_iter().filter_map(|(object, list)| Some((object.to_string(), list?)));
        verdicts.map(|(object, list)| (object, list.to_vec())).collect()
    }

    async fn assert_served(&self, hosts: impl Iterator<Item = String>, backend: &str) {
        for host in hosts {
            let answer = self.http.clone().host(&host).get("/").await.unwrap();
            assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some(backend)), "{host}");
        }
    }
}

fn good(number: usize) -> Object {
    let backend = json!({ "service": { "name": "good", "port": { "number": 80 } } });
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "namespace": "good", "name": format!("good-{number}") },
        "spec": { "rules": [{ "host": format!("good-{number}.example.org"),
            "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } }] },
    }))
}

/// The Service behind the good ones, with its endpoint.
async fn good_backend(backends: &mut Backends) -> [Object; 2] {
    let address = backends.named("good/good").await.unwrap();
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "good", "name": "good" },
        "spec": { "ports": [{ "port": 80 }] } });
    let slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": { "namespace": "good", "name": "good",
        "labels": { "kubernetes.io/service-name": "good" } }, "addressType": "IPv4", "ports": [{ "port": 80 }],
        "endpoints": [{ "addresses": [address] }] });
    [object(&service), object(&slice)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_a_field_envoy_refuses_nothing() {
    let mut bed = Bed::start("fields").await;
    let mut backends = Backends::new();
    let mut kept: Vec<Object> = good_backend(&mut backends).await.into();
    kept.extend((0..GOOD).map(good));
    for batch in 0..BATCHES {
        let mut runner = runner(batch);
        let mut objects = kept.clone();
        for number in 0..BATCH {
            let made = [ingress(number), service(number), slice(number), secret(number)];
            let values = made.into_iter().map(|strategy| sample(&mut runner, &strategy));
            // An object whose name is missing or too long is told by its source and comes no further.
            let fits = |value: &Value, field: &str, most: usize| {
                value["metadata"][field].as_str().is_none_or(|text| text.len() <= most)
            };
            let named = values
                .filter(|value| value["metadata"]["name"] != "" && value["metadata"]["namespace"] != "good")
                .filter(|value| fits(value, "name", 253) && fits(value, "namespace", 63));
            objects.extend(named.map(|value| object(&value)));
        }
        bed.load(&objects).await;
        bed.assert_served((0..GOOD).map(|number| format!("good-{number}.example.org")), "good/good").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pattern_that_is_taken_compiles_in_envoy() {
    let mut bed = Bed::start("patterns").await;
    let mut runner = runner(u64::MAX);
    let strategy = pattern();
    let patterns: Vec<String> = (0..6000).map(|_| sample(&mut runner, &strategy)).collect();
    let taken: Vec<&String> = patterns.iter().filter(|pattern| model::Regex::parse(pattern).is_ok()).collect();
    assert!(taken.len() > 500, "only {} of the patterns are taken: the test shows little", taken.len());
    for batch in taken.chunks(1000) {
        let objects: Vec<Object> = batch
            .iter()
            .enumerate()
            .map(|(number, pattern)| {
                let path = json!({ "path": pattern, "pathType": "ImplementationSpecific", "backend": {} });
                object(&json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": format!("p-{number}") },
                    "spec": { "rules": [{ "host": format!("p-{number}.example.com"), "http": { "paths": [path] } }] } }))
            })
            .collect();
        let mut pipeline = Pipeline::new(&bed.settings);
        for object in &objects {
            pipeline.put(&object.key(), Some(object.clone()));
        }
        if let Err(error) = bed.proxy.replace(pipeline.settle().xds.upserts).await {
            let blamed =
                batch.iter().enumerate().filter(|(number, _)| format!("{error}").contains(&format!("|p-{number}.")));
            let blamed: Vec<_> = blamed.map(|(_, pattern)| pattern).collect();
            panic!("{error}\nthe patterns: {blamed:#?}");
        }
    }
}

/// What people get wrong, each with the code that it must be told by.
fn broken(kind: usize, number: usize) -> (Value, model::Code) {
    use model::Code;
    let host = format!("broken-{number}.example.com");
    let backend = |name: &str, port: Value| json!({ "service": { "name": name, "port": port } });
    let web = || backend("web", json!({ "number": 80 }));
    let path = |path: Value, kind: Value, backend: Value| json!({ "path": path, "pathType": kind, "backend": backend });
    let plain = || path("/".into(), "Prefix".into(), web());
    let spec = |host: &str, path: Value| json!({ "rules": [{ "host": host, "http": { "paths": [path] } }] });
    let with_path = |path: Value| (json!({}), spec(&host, path));
    let with_host = |host: String| (json!({}), spec(&host, plain()));
    let with_tls = |entry: Value| {
        let mut spec = spec(&host, plain());
        spec["tls"] = json!([entry]);
        (json!({}), spec)
    };
    let with_annotation = |name: &str, value: &str| (json!({ name: value }), spec(&host, plain()));
    let secret = |name: &str| with_tls(json!({ "hosts": [host], "secretName": name }));
    let regex = |pattern: &str| with_path(path(pattern.into(), "ImplementationSpecific".into(), web()));
    let ((annotations, spec), code) = match kind {
        0 => (
            with_path(path("/".into(), "Prefix".into(), backend("missing", json!({ "number": 80 })))),
            Code::ServiceNotFound,
        ),
        1 => (
            with_path(path("/".into(), "Prefix".into(), backend("web", json!({ "number": 81 })))),
            Code::ServicePortNotFound,
        ),
        2 => (
            with_path(path("/".into(), "Prefix".into(), backend("web", json!({ "name": "no" })))),
            Code::ServicePortNotFound,
        ),
        3 => (with_path(path("/".into(), "Prefix".into(), backend("web", json!({})))), Code::ServicePortNotFound),
        4 => (
            with_path(path("/".into(), "Prefix".into(), backend("web", json!({ "number": 70000 })))),
            Code::ServicePortNotFound,
        ),
        5 => (
            with_path(path("/".into(), "Prefix".into(), backend("udp", json!({ "number": 53 })))),
            Code::ServicePortNotTcp,
        ),
        6 => (with_path(path("/".into(), "Prefix".into(), json!({}))), Code::IngressBackendMissing),
        7 => {
            let bucket = json!({ "resource": { "apiGroup": "x.io", "kind": "Bucket", "name": "b" } });
            (with_path(path("/".into(), "Prefix".into(), bucket)), Code::ResourceBackend)
        }
        8 => (with_path(path("relative".into(), "Prefix".into(), web())), Code::IngressPath),
        9 => (with_path(path("/a\nb".into(), "Exact".into(), web())), Code::IngressPath),
        10 => (with_path(path("/a?b".into(), "Prefix".into(), web())), Code::IngressPath),
        11 => (with_path(path(format!("/{}", "a".repeat(5000)).into(), "Prefix".into(), web())), Code::IngressPath),
        12 => (with_path(path("/".into(), "Glob".into(), web())), Code::PathType),
        13 => (regex("/a[b"), Code::IngressRegex),
        14 => (regex("/a**"), Code::IngressRegex),
        15 => (regex("/((a{100}){100}){100}"), Code::IngressRegex),
        16 => (with_host(format!("Upper-{number}.example.com")), Code::IngressHost),
        17 => (with_host(format!("a.*.{number}.example.com")), Code::IngressHost),
        18 => (with_host("192.0.2.1".to_owned()), Code::IngressHost),
        19 => (with_host(format!("{}{number}.example.com", "a".repeat(64))), Code::IngressHost),
        20 => (secret("missing"), Code::SecretNotFound),
        21 => (secret("wrong-key"), Code::KeyMismatch),
        22 => (secret("swapped"), Code::PrivateKeyNotPem),
        23 => (secret("weak"), Code::KeyTooWeak),
        24 => (with_tls(json!({ "secretName": "good" })), Code::TlsWithoutHost),
        25 => (with_annotation("projectcontour.io/response-timeout", "-1s"), Code::AnnotationValue),
        26 => (with_annotation("projectcontour.io/retry-on", "sometimes"), Code::AnnotationValue),
        27 => (with_annotation("ingress.kubernetes.io/force-ssl-redirect", "perhaps"), Code::AnnotationValue),
        28 => (with_annotation("projectcontour.io/respons-timeout", "1s"), Code::AnnotationUnknown),
        29 => {
            let versions = json!({ "projectcontour.io/tls-minimum-protocol-version": "1.3",
                "projectcontour.io/tls-maximum-protocol-version": "1.2" });
            ((versions, spec(&host, plain())), Code::TlsVersions)
        }
        other => panic!("there is no kind {other}"),
    };
    let metadata = json!({ "name": format!("broken-{number}"), "annotations": annotations });
    (json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec }), code)
}

/// How many kinds of mistakes there are.
const KINDS: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_broken_ones_hurt_only_themselves() {
    let mut bed = Bed::start("broken").await;
    let mut backends = Backends::new();
    let mut objects: Vec<Object> = good_backend(&mut backends).await.into();
    objects.extend((0..100).map(good));
    let ca = Ca::new("broken");
    let (leaf, weak) = (ca.leaf("a.example.com").make(), ca.leaf("a.example.com").key(KeyType::Ed25519).make());
    let pairs = [
        ("good", leaf.chain_pem().to_owned(), leaf.key_pem().to_owned()),
        ("wrong-key", leaf.chain_pem().to_owned(), leaf.wrong_key_pem()),
        ("swapped", leaf.key_pem().to_owned(), leaf.chain_pem().to_owned()),
        ("weak", weak.chain_pem().to_owned(), weak.key_pem().to_owned()),
    ];
    objects.extend(pairs.map(|(name, chain, key)| {
        object(
            &json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": name },
            "stringData": { "tls.crt": chain, "tls.key": key } }),
        )
    }));
    for (name, port) in [("web", json!({ "port": 80 })), ("udp", json!({ "port": 53, "protocol": "UDP" }))] {
        objects.push(object(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "ports": [port] } })));
    }
    let all: Vec<(Value, model::Code)> = (0..1000).map(|number| broken(number % KINDS, number)).collect();
    objects.extend(all.iter().map(|(value, _)| object(value)));
    let verdicts = bed.load(&objects).await;
    for (number, (value, code)) in all.iter().enumerate() {
        let told = verdicts.get(&format!("Ingress default/broken-{number}")).map(Vec::as_slice).unwrap_or_default();
        assert!(told.iter().any(|verdict| verdict.code == *code), "{code:?} is not among {told:?} about {value}");
    }
    for number in 0..100 {
        let told = &verdicts[&format!("Ingress good/good-{number}")];
        assert!(told.is_empty(), "a good one is told {told:?}");
    }
    bed.assert_served((0..100).map(|number| format!("good-{number}.example.org")), "good/good").await;
}
