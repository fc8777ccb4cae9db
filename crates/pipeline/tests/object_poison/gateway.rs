//! Gateway API: classes, Gateways, ListenerSets, routes of every kind, grants and policies with arbitrary values in every field.
//!
//! All Gateways share one fleet, so that whatever one of them asks for stands beside the listeners of all others. The oldest is
//! good: it must be served whatever the others write. In one more batch each Gateway has a fleet of its own, and an Envoy is one of these
//! fleets after the other.

mod listeners;
mod policies;
mod routes;
mod sizes;

use crate::dice::{Dice, seed};
use kinds::Object;
use model::FleetId;
use pipeline::{
    FleetOutput, FleetSettings, Pipeline, Settings,
    settings::{Bind, Packing, PortShift},
};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{
    Client, Net,
    cases::{Backends, Proxy, object},
    certs::{Ca, KeyType, Mutations},
};

/// How many GatewayClasses a batch has.
const CLASSES: usize = 8;
/// How many Gateways a batch has.
const GATEWAYS: usize = 40;
/// How many ListenerSets.
const SETS: usize = 20;
/// How many routes of HTTP and of gRPC, each.
const ROUTES: usize = 160;
/// How many TLSRoutes, TCPRoutes and UDPRoutes, each.
const STREAMS: usize = 30;
/// How many Services, each with policies.
const SERVICES: usize = 24;
/// How many grants.
const GRANTS: usize = 10;
/// How many ports of TCP and of UDP, each, most streams attach to.
const OPEN_PORTS: usize = 12;
/// How many batches are loaded one after the other.
const BATCHES: u64 = 6;
/// How many fleets of arbitrary Gateways are loaded one after the other.
const FLEETS: usize = 12;
/// What is added to the ports of Gateways with fleets of their own: these bind every address, and backends have low ports.
const SHIFT: u16 = 10_000;

const GROUP: &str = "gateway.networking.k8s.io";

/// An object of the group in one of the namespaces that anything may stand in.
fn named(dice: &mut Dice, kind: &str, name: &str, spec: &Value) -> Value {
    let (day, namespace) = (1 + dice.roll(28), if dice.once_in(8) { "other" } else { "poison" });
    let created = format!("2026-01-{day:02}T00:00:00Z");
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "spec": spec,
        "metadata": { "name": name, "namespace": namespace, "creationTimestamp": created, "generation": 1 } })
}

/// Adds so much to the ports of an object's listeners, as far as that is a port.
fn shift_ports(object: &mut Value, by: u16) {
    let listeners = object.pointer_mut("/spec/listeners").and_then(Value::as_array_mut);
    for port in listeners.into_iter().flatten().filter_map(|listener| listener.get_mut("port")) {
        let shifted = port.as_u64().and_then(|port| u16::try_from(port).ok()?.checked_add(by));
        *port = shifted.map_or_else(|| port.take(), Value::from);
    }
}

fn batch(dice: &mut Dice, shift: u16) -> Vec<Object> {
    let mut all = Vec::new();
    let mut add = |dice: &mut Dice, kind: &str, count: usize, make: fn(&mut Dice, usize) -> Value| {
        for number in 0..count {
            let spec = make(dice, number);
            let mut made = named(dice, kind, &format!("{}{number}", kind.to_lowercase()), &spec);
            shift_ports(&mut made, shift);
            all.push(object(&made));
        }
    };
    add(dice, "Gateway", GATEWAYS, listeners::gateway);
    add(dice, "ListenerSet", SETS, listeners::set);
    add(dice, "HTTPRoute", ROUTES, routes::http);
    add(dice, "GRPCRoute", ROUTES, routes::grpc);
    add(dice, "TLSRoute", STREAMS, routes::tls);
    add(dice, "TCPRoute", STREAMS, routes::stream);
    add(dice, "UDPRoute", STREAMS, routes::stream);
    add(dice, "BackendTLSPolicy", 2 * SERVICES, policies::backend_tls);
    add(dice, "ReferenceGrant", GRANTS, policies::grant);
    for number in 0..CLASSES {
        let (meta, spec) = (json!({ "name": format!("class{number}") }), listeners::class(dice));
        let class =
            json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "GatewayClass", "metadata": meta, "spec": spec });
        all.push(object(&class));
    }
    all
}

/// An Envoy, what it serves in any case, and how the pipeline is set.
struct Bed {
    settings: Settings,
    proxy: Proxy,
    backends: Backends,
    ca: Ca,
    kept: Vec<Object>,
    address: Ipv4Addr,
    /// What is added to the ports of listeners.
    shift: u16,
}

async fn bed(name: &str, packing: Packing, shift: u16) -> Bed {
    let address = Net::here().unwrap().address();
    let bind = |port| Bind { address: address.into(), port };
    let mut settings =
        Settings { http: bind(80), https: bind(443), stats: bind(8002), admin_port: 0, packing, ..Settings::default() };
    settings.gateway.address = address.into();
    settings.gateway.ports = PortShift { by: 0, privileged_only: false };
    let (mut backends, ca) = (Backends::new(), Ca::new("poison"));
    let kept = good(&mut backends, &ca, shift).await;
    Bed { settings, proxy: Proxy::start(name).await.unwrap(), backends, ca, kept, address, shift }
}

impl Bed {
    fn client(&self, port: u16) -> Client {
        Client::new(SocketAddr::new(self.address.into(), port + self.shift))
    }

    /// What is good is served, whatever others write.
    async fn assert_good(&self) {
        for client in [self.client(80), self.client(443).https().trust(&self.ca), self.client(7000)] {
            let answer = client.clone().host("good.example.org").get("/").await.unwrap();
            assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some("good/good")), "{client:?}");
        }
    }

    /// A Service on the TLS port of a backend.
    async fn tls_service(&mut self, namespace: &str, name: &str) -> [Object; 2] {
        let address = self.backends.named(&format!("{namespace}/{name}")).await.unwrap();
        let meta = json!({ "namespace": namespace, "name": name, "labels": { "kubernetes.io/service-name": name } });
        [
            object(
                &json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": { "ports": [{ "port": 443 }] } }),
            ),
            object(&json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta,
                "addressType": "IPv4", "ports": [{ "port": 443 }], "endpoints": [{ "addresses": [address] }] })),
        ]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_gateway_api_envoy_refuses_nothing_in_scopes() {
    load("scopes", Packing::Scoped).await;
}

/// Here one host that Envoy does not take spoils all hosts of its port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_gateway_api_envoy_refuses_nothing_in_tables() {
    load("tables", Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_gateway_api_envoys_of_other_fleets_refuse_nothing_in_scopes() {
    load_fleets("fleets-in-scopes", Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_gateway_api_envoys_of_other_fleets_refuse_nothing_in_tables() {
    load_fleets("fleets-in-tables", Packing::Plain).await;
}

/// The Envoys of named fleets listen on all addresses.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn load_fleets(name: &str, packing: Packing) {
    let _turn = TURN.lock().await;
    let mut bed = bed(name, packing, SHIFT).await;
    bed.settings.gateway.own_fleets = true;
    let mut pipeline = Pipeline::new(&bed.settings);
    let arbitrary =
        (0..GATEWAYS).flat_map(|number| ["poison", "other"].map(|space| (space, format!("gateway{number}"))));
    for (namespace, name) in arbitrary.chain([("good", "good".to_owned()), ("poison", "open".to_owned())]) {
        pipeline.set_fleet(&FleetId::named(namespace, &name), Some(FleetSettings::default()));
    }
    for object in bed.kept.iter().cloned().chain(batch(&mut Dice::new(seed(), BATCHES), SHIFT)) {
        pipeline.put(&object.key(), Some(object));
    }
    let mut output = pipeline.settle();
    assert!(
        pipeline.engine().failed_rows().is_empty(),
        "a computation panicked: {:?}",
        pipeline.engine().failed_rows()
    );
    let [open, good] = [("poison", "open"), ("good", "good")]
        .map(|(namespace, name)| output.take_fleet(&FleetId::named(namespace, name)));
    let listens = |output: &FleetOutput| output.xds.upserts.iter().any(|it| it.kind == xds::Kind::Listener);
    let others: Vec<_> = output.fleets.into_iter().filter(|(_, output)| listens(output)).take(FLEETS).collect();
    println!("{} fleets with listeners", others.len());
    assert!(others.len() > FLEETS / 2, "the test shows little");
    for (fleet, output) in others {
        let taken = bed.proxy.replace(output.xds.upserts).await;
        taken.unwrap_or_else(|error| panic!("fleet {fleet}: {error}"));
    }
    for output in [open, good] {
        bed.proxy.replace(output.xds.upserts).await.unwrap();
    }
    bed.assert_good().await;
}

async fn load(name: &str, packing: Packing) {
    let mut bed = bed(name, packing, 0).await;
    for number in 0..BATCHES {
        let mut dice = Dice::new(seed(), number);
        let mut pipeline = Pipeline::new(&bed.settings);
        let arbitrary = batch(&mut dice, 0);
        let count = arbitrary.len();
        for object in bed.kept.iter().cloned().chain(arbitrary) {
            pipeline.put(&object.key(), Some(object));
        }
        let output = pipeline.settle();
        assert!(
            pipeline.engine().failed_rows().is_empty(),
            "a computation panicked: {:?}",
            pipeline.engine().failed_rows()
        );
        let fine = output.verdicts.iter().filter(|(_, said)| said.as_ref().is_some_and(|list| list.is_empty())).count();
        let hosts = pipeline.engine().rows::<pipeline::hosts::VirtualHosts>().count();
        println!("batch {number}: {fine} of {count} are fine as they are; {hosts} hosts");
        assert!(hosts > ROUTES, "{hosts} hosts: the test shows little");
        bed.proxy.replace(output.xds.upserts).await.unwrap();
        bed.assert_good().await;
    }
}

/// A Gateway that must be served whatever others write, and what they all refer to.
async fn good(backends: &mut Backends, ca: &Ca, shift: u16) -> Vec<Object> {
    let address = backends.named("good/good").await.unwrap();
    let meta = |namespace: &str, name: &str| json!({ "namespace": namespace, "name": name });
    let core = |kind: &str, namespace: &str, name: &str, spec: Value| json!({ "apiVersion": "v1", "kind": kind, "metadata": meta(namespace, name), "spec": spec });
    let own = |kind: &str, namespace: &str, name: &str, spec: Value| {
        let version = if kind == "ReferenceGrant" { "v1beta1" } else { "v1" };
        json!({ "apiVersion": format!("{GROUP}/{version}"), "kind": kind, "metadata": meta(namespace, name), "spec": spec })
    };
    let slice = json!({ "namespace": "good", "name": "good", "labels": { "kubernetes.io/service-name": "good" } });
    let listeners = json!([
        { "name": "http", "protocol": "HTTP", "port": 80, "hostname": "good.example.org" },
        { "name": "https", "protocol": "HTTPS", "port": 443, "hostname": "good.example.org",
          "tls": { "certificateRefs": [{ "name": "cert" }] } },
        { "name": "tcp", "protocol": "TCP", "port": 7000 },
    ]);
    // What most routes attach to, so that Envoy sees their rules.
    let certificate = json!({ "certificateRefs": [{ "name": "cert" }, { "name": "rsa" }] });
    let mut open = vec![
        json!({ "name": "http", "protocol": "HTTP", "port": 80, "hostname": "*.routes.example.com" }),
        json!({ "name": "https", "protocol": "HTTPS", "port": 443, "hostname": "*.routes.example.com", "tls": certificate }),
        json!({ "name": "passed", "protocol": "TLS", "port": 9444, "tls": { "mode": "Passthrough" } }),
        json!({ "name": "decrypted", "protocol": "TLS", "port": 9445, "tls": certificate }),
    ];
    for number in 0..OPEN_PORTS {
        open.push(json!({ "name": format!("tcp{number}"), "protocol": "TCP", "port": 7100 + number }));
        open.push(json!({ "name": format!("udp{number}"), "protocol": "UDP", "port": 5400 + number }));
    }
    open.iter_mut().for_each(|listener| listener["allowedRoutes"] = json!({ "namespaces": { "from": "All" } }));
    let parents = json!([{ "name": "good" }]);
    let rules = json!([{ "backendRefs": [{ "name": "good", "port": 80 }] }]);
    let class = json!({ "controllerName": dialect_gateway::CONTROLLER });
    let from: Vec<Value> = ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"]
        .iter()
        .map(|kind| json!({ "group": GROUP, "kind": kind, "namespace": "poison" }))
        .collect();
    let to = json!([{ "group": "", "kind": "Secret" }, { "group": "", "kind": "Service" }]);
    let mut objects = vec![
        core("Service", "good", "good", json!({ "ports": [{ "port": 80 }] })),
        json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice, "addressType": "IPv4",
            "ports": [{ "port": 80 }], "endpoints": [{ "addresses": [address] }] }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "poison", "labels": { "team": "a" } } }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other", "labels": { "team": "b" } } }),
        own("GatewayClass", "", "sesame", class),
        own("Gateway", "good", "good", json!({ "gatewayClassName": "sesame", "listeners": listeners })),
        own("Gateway", "poison", "open", json!({ "gatewayClassName": "sesame", "listeners": open })),
        own("HTTPRoute", "good", "good", json!({ "parentRefs": parents, "rules": rules })),
        own("TCPRoute", "good", "good", json!({ "parentRefs": parents, "rules": rules })),
        own("ReferenceGrant", "good", "good", json!({ "from": from, "to": to })),
    ];
    for number in 0..SERVICES {
        let protocols =
            [None, Some("http"), Some("https"), Some("kubernetes.io/h2c"), Some("kubernetes.io/ws"), Some("x")];
        let ports = json!([
            { "name": "web", "port": 80, "appProtocol": protocols[number % protocols.len()] },
            { "name": "dns", "port": 53, "protocol": "UDP" },
        ]);
        let mut spec = json!({ "ports": ports });
        if number % 8 == 7 {
            spec["clusterIP"] = "None".into();
        }
        objects.push(core("Service", "poison", &format!("service{number}"), spec));
    }
    objects.extend(certificates(ca).into_iter().flat_map(|(name, chain, key)| {
        ["good", "poison"].map(|namespace| {
            json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": meta(namespace, name),
                "stringData": { "tls.crt": chain, "tls.key": key, "ca.crt": chain } })
        })
    }));
    for (name, text) in [("ca", ca.pem().to_owned()), ("garbage", "nonsense".to_owned()), ("empty", String::new())] {
        for kind in ["ConfigMap", "Secret"] {
            let field = if kind == "Secret" { "stringData" } else { "data" };
            let name = if kind == "Secret" { format!("{name}-ca") } else { name.to_owned() };
            objects.push(json!({ "apiVersion": "v1", "kind": kind, "metadata": meta("poison", &name), field: { "ca.crt": text } }));
        }
    }
    objects.iter_mut().for_each(|value| shift_ports(value, shift));
    objects.iter().map(object).collect()
}

/// Certificates with their keys, by the name of the Secret.
fn certificates(ca: &Ca) -> Vec<(&'static str, String, String)> {
    let of = |key: KeyType| ca.leaf("good.example.org").dns("*.example.com").key(key).make();
    let (leaf, rsa, weak) = (of(KeyType::P256), of(KeyType::Rsa2048), of(KeyType::Ed25519));
    let mut mutations = Mutations::new(seed());
    vec![
        ("cert", leaf.chain_pem().to_owned(), leaf.key_pem().to_owned()),
        ("rsa", rsa.chain_pem().to_owned(), rsa.key_pem().to_owned()),
        ("weak", weak.chain_pem().to_owned(), weak.key_pem().to_owned()),
        ("wrong-key", leaf.chain_pem().to_owned(), leaf.wrong_key_pem()),
        ("truncated", leaf.truncated_pem(), leaf.key_pem().to_owned()),
        ("garbage", leaf.garbage_pem(), leaf.key_pem().to_owned()),
        ("empty", String::new(), String::new()),
        ("mutated", mutations.pem(leaf.chain_pem()), leaf.key_pem().to_owned()),
    ]
}
