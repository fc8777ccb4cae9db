//! Listeners of Emissary behind a load balancer that says who the client is, in plaintext, before TLS, in plaintext on a port for TLS, and
//! for TCPMappings: through a real Envoy.

use super::requests::TURN;
use super::world::{World, object, secret, service};
use kinds::{Kind, Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca};

const PLAINTEXT: u16 = 9547;
const TLS: u16 = 9548;
/// PROXY after TLS in the stack means the same.
const AFTER_TLS: u16 = 9554;
/// The protocols HTTPPROXY and HTTPSPROXY.
const HTTP_PROXY: u16 = 9555;
const HTTPS_PROXY: u16 = 9556;
/// For TCPMappings: all connections, and those of a name under TLS.
const TCP: u16 = 9557;
const TLS_TCP: u16 = 9558;
const NAME: &str = "a.example.com";
const PREAMBLE: &str = "PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\r\n";

fn of(kind: Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

fn listener(name: &str, port: u16, field: &str, value: Value) -> Object {
    let binding = json!({ "namespace": { "from": "ALL" } });
    let mut spec = json!({ "port": port, "securityModel": "XFP", "hostBinding": binding });
    spec[field] = value;
    of(kind::LISTENER, name, &spec)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preamble_is_read_before_http_and_before_tls() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("preamble"));
    let policy = json!({ "insecure": { "action": "Route" } });
    let host = json!({ "hostname": NAME, "tlsSecret": { "name": "tls" }, "requestPolicy": policy });
    let _world = World::start(
        Packing::Scoped,
        [
            listener("plaintext", PLAINTEXT, "protocolStack", json!(["PROXY", "HTTP", "TCP"])),
            listener("tls", TLS, "protocolStack", json!(["PROXY", "TLS", "HTTP", "TCP"])),
            listener("after-tls", AFTER_TLS, "protocolStack", json!(["TLS", "PROXY", "HTTP", "TCP"])),
            listener("http-proxy", HTTP_PROXY, "protocol", json!("HTTPPROXY")),
            listener("https-proxy", HTTPS_PROXY, "protocol", json!("HTTPSPROXY")),
            listener("tcp", TCP, "protocolStack", json!(["PROXY", "TCP"])),
            listener("tls-tcp", TLS_TCP, "protocolStack", json!(["PROXY", "TLS", "TCP"])),
            of(kind::HOST, "a", &host),
            of(kind::TCP_MAPPING, "raw", &json!({ "port": TCP, "service": "web" })),
            of(kind::TCP_MAPPING, "named", &json!({ "port": TLS_TCP, "host": NAME, "service": "web" })),
            of(kind::MAPPING, "web", &json!({ "hostname": "*", "prefix": "/", "service": "web" })),
            secret(&ca, "tls", NAME),
            service("web", backend.ip()),
        ],
    )
    .await;
    let at = |port| Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).host(NAME);
    let tls = |port| at(port).https().sni(NAME).trust(&ca);
    for client in [at(PLAINTEXT), at(HTTP_PROXY), tls(TLS), at(TLS), tls(AFTER_TLS), tls(HTTPS_PROXY)] {
        let answer = client.clone().preamble(PREAMBLE).get("/").await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("10.1.2.3"), "the backend is told who the client is: {}", answer.text());
        // A connection that does not begin with one is nobody's.
        assert!(client.get("/").await.is_err());
    }
    // The service of a TCPMapping gets what follows the preamble, and nothing else tells it who the client is.
    for client in [at(TCP), tls(TLS_TCP)] {
        let answer = client.clone().preamble(PREAMBLE).get("/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some("web")));
        assert!(client.get("/").await.is_err(), "a connection without a preamble is closed");
    }
    let nobodys = tls(TLS_TCP).sni("b.example.com").preamble(PREAMBLE).get("/").await;
    assert!(nobodys.is_err(), "the name is read behind the preamble: {nobodys:?}");
}
