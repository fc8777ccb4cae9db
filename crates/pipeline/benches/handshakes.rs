//! What a TLS connection costs Envoy when certificates are there from the start, with and without a session to resume, and
//! when they come on demand: `cargo bench -p pipeline --bench handshakes`.
//!
//! One host with an ECDSA certificate (P-256), TLS 1.3, one small request on each connection, answered by Envoy itself.
//! Figures are CPU time of Envoy's for each connection, in turns, the median of the rounds.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

#[allow(dead_code, reason = "another benchmark uses the rest of it")]
#[path = "measure/process.rs"]
mod process;
#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/packing/world.rs"]
mod world;

use pipeline::settings::{Bind, Certificates, Packing};
use process::{cpu, load};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use testbed::{Net, certs::Ca, envoy::Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use world::{World, ingress_with, secret, settings};

const ROUNDS: usize = 9;
const CONNECTIONS: usize = 200;
const HOST: &str = "a.example.com";

fn main() {
    println!("load {}", load());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

fn client(ca: &Ca, resumption: Resumption) -> TlsConnector {
    // A group that Envoy takes at once: a second hello would be measured, too.
    let kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::X25519];
    let provider =
        Arc::new(rustls::crypto::CryptoProvider { kx_groups, ..rustls::crypto::aws_lc_rs::default_provider() });
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let mut config = config.unwrap().with_root_certificates(ca.roots()).with_no_client_auth();
    config.resumption = resumption;
    TlsConnector::from(Arc::new(config))
}

/// Connects and asks for something; says how the session came about.
async fn connect(client: &TlsConnector, at: SocketAddr) -> HandshakeKind {
    let stream = TcpStream::connect(at).await.unwrap();
    let mut stream = client.connect(ServerName::try_from(HOST).unwrap(), stream).await.unwrap();
    stream.write_all(format!("GET / HTTP/1.1\r\nhost: {HOST}\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = [0; 512];
    let read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 503"), "no Service, so Envoy answers by itself");
    stream.get_ref().1.handshake_kind().unwrap()
}

async fn measure() {
    let ca = Ca::new("handshakes");
    let mut worlds = Vec::new();
    for certificates in [Certificates::PerChain, Certificates::OnDemand] {
        let address = Net::here().unwrap().address().into();
        let mut settings = settings(Packing::Scoped);
        settings.certificates = certificates;
        settings.http = Bind { address, port: 8080 };
        settings.https = Bind { address, port: 8443 };
        settings.stats = Bind { address, port: 8002 };
        settings.admin_port = 0;
        let host = ingress_with("a", HOST, "/", "nobody", &json!({}), &[(HOST, "a")]);
        let world = World::with(&settings, Config::new().name("bench"), [secret(&ca, "a", HOST), host]).await;
        worlds.push((world, SocketAddr::new(address, 8443)));
    }
    let [(there, there_at), (on_demand, on_demand_at)] = worlds.as_slice() else { panic!("two worlds") };
    let (there, on_demand) = (there.proxy.envoy().process().id(), on_demand.proxy.envoy().process().id());
    let ways = [
        ("from the start, full", there, *there_at, client(&ca, Resumption::disabled()), HandshakeKind::Full),
        ("from the start, resumed", there, *there_at, client(&ca, Resumption::default()), HandshakeKind::Resumed),
        ("on demand", on_demand, *on_demand_at, client(&ca, Resumption::default()), HandshakeKind::Full),
    ];
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        for ((what, envoy, at, client, kind), figures) in ways.iter().zip(&mut figures) {
            // A first one leaves a session behind.
            connect(client, *at).await;
            let before = cpu(*envoy);
            for _ in 0..CONNECTIONS {
                assert_eq!(connect(client, *at).await, *kind, "{what}");
            }
            if round > 0 {
                figures.push((cpu(*envoy) - before).as_secs_f64() * 1e6 / CONNECTIONS as f64);
            }
        }
    }
    for ((what, ..), mut figures) in ways.iter().zip(figures) {
        figures.sort_by(f64::total_cmp);
        println!("{what:>24}: {:.0} µs for each connection", figures[figures.len() / 2]);
    }
}
