//! A pipeline, the Envoy that it feeds, clients, and the objects that all dialects need.

use kinds::Object;
use pipeline::{Pipeline, Settings, settings::Bind};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{
    Client, Envoy, Load, Net,
    cases::{Backends, Proxy, object},
    certs::{Ca, Leaf},
    load::Failed,
};
use tokio::sync::{Mutex, MutexGuard};

/// Requests per second, of all loads of a test together.
const RATE: u32 = 200;

static TURN: Mutex<()> = Mutex::const_new(());

pub struct Bed {
    pub backends: Backends,
    pub http: Client,
    pub https: Client,
    pipeline: Pipeline,
    proxy: Proxy,
    others: Vec<Proxy>,
    _turn: MutexGuard<'static, ()>,
}

impl Bed {
    pub async fn start(name: &str) -> Self {
        Self::with(name, |_| {}).await
    }

    /// One with other settings.
    pub async fn with(name: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let turn = TURN.lock().await;
        let address = Net::here().unwrap().address();
        let bind = |port| Bind { address: address.into(), port };
        let mut settings =
            Settings { http: bind(8080), https: bind(8443), stats: bind(8002), admin_port: 0, ..Settings::default() };
        settings.gateway.address = address.into();
        change(&mut settings);
        let client = |port| Client::new(SocketAddr::new(address.into(), port));
        Self {
            pipeline: Pipeline::new(&settings),
            proxy: Proxy::start(name).await.unwrap(),
            others: Vec::new(),
            backends: Backends::new(),
            http: client(8080),
            https: client(8443).https(),
            _turn: turn,
        }
    }

    /// Puts objects, and waits until Envoy has what they come to.
    pub async fn apply(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.pipeline.put(&object.key(), Some(object));
        }
        self.publish().await;
    }

    /// Takes objects away, and waits for the same.
    pub async fn remove(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.pipeline.put(&object.key(), None);
        }
        self.publish().await;
    }

    /// The pipeline, for what is no object.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// Waits until Envoy has what has changed.
    pub async fn publish(&mut self) {
        let output = self.pipeline.settle();
        for other in &mut self.others {
            other.publish(output.xds.clone()).await.unwrap();
        }
        self.proxy.publish(output.xds).await.unwrap();
    }

    /// A second Envoy that is given the same, and listens on the same addresses: each connection is taken by one of them.
    pub async fn add_proxy(&mut self, name: &str) {
        self.others.push(Proxy::start(name).await.unwrap());
    }

    pub fn envoys(&self) -> impl Iterator<Item = &Envoy> {
        [&self.proxy].into_iter().chain(&self.others).map(Proxy::envoy)
    }

    /// A Service with a backend that calls itself by its name.
    pub async fn service(&mut self, namespace: &str, name: &str) -> Vec<Object> {
        let address = self.backends.named(name).await.unwrap();
        vec![service(namespace, name), slice(namespace, name, &[address])]
    }

    /// Every way to one host: over HTTP/1.1 and HTTP/2, in plaintext and over TLS, where its certificate is of this CA.
    pub fn ways(&self, ca: &Ca, host: &str) -> [Client; 4] {
        let clear = self.http.clone().host(host);
        let secure = self.https.clone().trust(ca).sni(host.to_lowercase()).host(host);
        [clear.clone(), clear.http2(), secure.clone(), secure.http2()]
    }

    /// One of this many loads.
    pub fn load(&self, client: &Client, host: &str, path: &str, of: u32) -> testbed::load::Plan {
        Load::of(client.clone().host(host).get(path)).per_second(RATE / of)
    }
}

pub fn service(namespace: &str, name: &str) -> Object {
    object(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": namespace },
        "spec": { "ports": [{ "port": 80 }] } }))
}

pub fn slice(namespace: &str, service: &str, addresses: &[Ipv4Addr]) -> Object {
    slice_of(namespace, service, addresses, 80)
}

/// A slice whose endpoints listen on this port.
pub fn slice_of(namespace: &str, service: &str, addresses: &[Ipv4Addr], port: u16) -> Object {
    let endpoints: Vec<Value> = addresses.iter().map(|address| json!({ "addresses": [address] })).collect();
    let labels = json!({ "kubernetes.io/service-name": service });
    object(&json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": service, "namespace": namespace, "labels": labels },
        "addressType": "IPv4", "ports": [{ "port": port }], "endpoints": endpoints }))
}

pub fn secret(namespace: &str, name: &str, leaf: &Leaf) -> Object {
    object(&json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": name, "namespace": namespace },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } }))
}

/// Ends loads of which no request failed, and no connection was closed on the way.
pub async fn undisturbed(loads: impl IntoIterator<Item = Load>) {
    for load in loads {
        let report = load.stop().await;
        report.assert_nothing_lost();
        assert_eq!(report.retried, 0, "a connection was closed: {report}");
    }
}

/// Ends loads of which every request was refused on its connection: none had an answer, and none waited in vain.
pub async fn refused(loads: impl IntoIterator<Item = Load>) {
    for load in loads {
        let report = load.stop().await;
        assert_eq!(report.failed.len() as u64, report.sent, "a request was answered: {report}");
        let is_refused = |failed: &Failed| {
            failed.status.is_none() && !["waited", "cannot connect"].iter().any(|word| failed.what.starts_with(word))
        };
        let other = report.failed.iter().find(|failed| !is_refused(failed));
        assert!(report.sent > 0 && other.is_none(), "{:?} in {report}", other.map(|failed| &failed.what));
    }
}
