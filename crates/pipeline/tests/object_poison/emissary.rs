//! Emissary: Listeners, Hosts, Mappings, the Module and services that proxies call, with arbitrary values in every field.
//!
//! One Host is good and takes its own Mapping by a label: it must be served whatever the others write.

mod listeners;
mod mapping;
mod module;
mod referred;
mod services;

use crate::dice::{Dice, seed};
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
/// How many Mappings stand in the annotation of a Service.
const ANNOTATED: usize = 12;
/// How many batches are loaded one after the other.
const BATCHES: u64 = 4;

/// Whether the Module of a batch has keys that may close all Mappings, and the RateLimitService may deny requests.
fn may_close(batch: u64) -> bool {
    batch % 4 == 2
}

fn named(dice: &mut Dice, kind: &str, number: usize, spec: &Value) -> Object {
    let created = format!("2026-01-{:02}T00:00:00Z", 2 + dice.roll(27));
    let name = if kind == "Module" { "ambassador".to_owned() } else { format!("{}{number}", kind.to_lowercase()) };
    let labels = json!({ "app": dice.of(&["a", "b"]) });
    let version = match (kind, dice.roll(8)) {
        ("Listener", _) | (_, 2..) => "v3alpha1",
        ("Host", _) | (_, 1) => "v2",
        _ => "v1",
    };
    object(&json!({ "apiVersion": format!("getambassador.io/{version}"), "kind": kind, "spec": spec,
        "metadata": { "name": name, "namespace": "poison", "creationTimestamp": created, "labels": labels } }))
}

/// A Service in whose annotation Mappings stand.
fn annotated(dice: &mut Dice) -> Object {
    let mut documents = String::new();
    for number in 0..ANNOTATED {
        let mapping = json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": "Mapping",
            "metadata": { "name": format!("annotated{number}") }, "spec": mapping::mapping(dice, number) });
        documents += &format!("---\n{mapping}\n");
    }
    object(&json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": [{ "port": 80 }] },
        "metadata": { "name": "annotated", "namespace": "poison", "annotations": { "getambassador.io/config": documents } } }))
}

/// What makes the specification of an object.
type MakeSpec = fn(&mut Dice, usize) -> Value;

/// The objects of a batch. An AuthService that cannot be used closes all Mappings that do not bypass it, so every other batch has none.
fn batch(dice: &mut Dice, number: u64) -> Vec<Object> {
    let auth_services = if number.is_multiple_of(2) { AUTH_SERVICES } else { 0 };
    let mut all = Vec::new();
    let (module, rate_limit_service): (MakeSpec, MakeSpec) = if may_close(number) {
        (module::closing_module, services::closing_rate_limit_service)
    } else {
        (module::module, services::rate_limit_service)
    };
    let kinds: [(&str, usize, MakeSpec); 11] = [
        ("Mapping", MAPPINGS, mapping::mapping),
        ("Host", HOSTS, listeners::host),
        ("Listener", LISTENERS, listeners::listener),
        ("Module", 1, module),
        ("AuthService", auth_services, services::auth_service),
        ("RateLimitService", 1, rate_limit_service),
        ("TracingService", 1, services::tracing_service),
        ("LogService", LOG_SERVICES, services::log_service),
        ("TCPMapping", TCP_MAPPINGS, listeners::tcp_mapping),
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
    all.push(annotated(dice));
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
    let (mut open, mut quic) = (0, 0);
    for number in 0..BATCHES {
        let mut dice = Dice::new(seed(), number);
        let mut pipeline = Pipeline::new(&settings);
        for object in kept.iter().cloned().chain(batch(&mut dice, number)) {
            pipeline.put(&object.key(), Some(object));
        }
        let output = pipeline.settle();
        assert!(
            pipeline.engine().failed_rows().is_empty(),
            "a computation panicked: {:?}",
            pipeline.engine().failed_rows()
        );
        // A Mapping that an AuthService closes is fine as it is.
        let is_fine =
            |list: &Arc<Vec<Verdict>>| list.iter().all(|verdict| verdict.code == Code::MappingAuthServiceUnavailable);
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
        let is_quic =
            |resource: &&xds::Resource| resource.kind == xds::Kind::Listener && resource.name.starts_with("udp-");
        quic += output.xds.upserts.iter().filter(is_quic).count();
        proxy.replace(output.xds.upserts).await.unwrap();
        let answer =
            Client::new(SocketAddr::new(address.into(), 8080)).host("good.example.org").get("/").await.unwrap();
        let found = (answer.status.as_u16(), answer.backend());
        if !may_close(number) {
            assert_eq!(found, (200, Some("good/good")), "batch {number} of seed {}: {}", seed(), answer.text());
        }
        println!("batch {number}: the good Mapping answers {found:?}");
    }
    assert!(quic > 0, "no Listener is for HTTP/3: the test shows little");
    assert!(open >= BATCHES / 2, "only {open} batches are open: the test shows little");
}
