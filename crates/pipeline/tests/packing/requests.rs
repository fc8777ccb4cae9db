//! Every way to write a Host, with and without a wildcard neighbour and somebody who takes every host.

use super::world::{World, ingress, ingress_with, secret, service};
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca};

fn http() -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))
}

fn https(sni: &str, host: &str) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).host(host).https().sni(sni)
}

/// The status and the backend of an answer, as text.
async fn ask(client: &Client, path: &str) -> String {
    let answer = client.get(path).await.unwrap();
    format!("{} {}", answer.status.as_u16(), answer.backend().unwrap_or("-"))
}

/// The status and the backend of an answer to these bytes.
async fn raw(request: &str) -> String {
    let answer = http().raw(request).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).unwrap_or("none");
    let name = ["exact", "wild", "any"].into_iter().find(|name| text.contains(&format!("x-echo-name: {name}\r\n")));
    format!("{status} {}", name.unwrap_or("-"))
}

struct Backends([Backend; 3]);

impl Backends {
    async fn start() -> Backends {
        let [exact, wild, any] = ["exact", "wild", "any"].map(Backend::start);
        Backends([exact.await.unwrap(), wild.await.unwrap(), any.await.unwrap()])
    }

    fn services(&self) -> [kinds::Object; 3] {
        std::array::from_fn(|at| service(self.0[at].name(), self.0[at].ip()))
    }
}

/// The process has one port 8080.
pub static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn every_form_of_host(packing: Packing) {
    let _turn = TURN.lock().await;
    let backends = Backends::start().await;
    let sockets = json!({"projectcontour.io/websocket-routes": "/ws"});
    let retries = json!({"projectcontour.io/retry-on": "5xx", "projectcontour.io/num-retries": "2"});
    let mut world = World::start(packing, backends.services()).await;
    world.put([
        ingress("exact", "a.example.com", "/own", "exact"),
        ingress_with("exact-ws", "a.example.com", "/ws", "exact", &sockets, &[]),
        ingress_with("exact-again", "a.example.com", "/again", "exact", &retries, &[]),
        ingress("wild", "*.example.com", "/", "wild"),
        ingress_with("wild-ws", "*.example.com", "/ws", "wild", &sockets, &[]),
        ingress_with("wild-again", "*.example.com", "/again", "wild", &retries, &[]),
        ingress("any", "", "/", "any"),
    ]);
    world.publish().await;

    let clients: [fn(Client) -> Client; 3] = [Client::http1, Client::http2, Client::http10];
    for (number, with) in clients.into_iter().enumerate() {
        let table = [
            ("a.example.com", "/own", "200 exact"),
            ("A.Example.COM", "/own", "200 exact"),
            ("a.example.com:8080", "/own", "200 exact"),
            ("A.example.com:1", "/own", "200 exact"),
            ("a.example.com.", "/own", "200 exact"),
            ("A.example.com.", "/own", "200 exact"),
            // A path that the host lacks goes to no other host, however the host is written.
            ("a.example.com", "/other", "404 -"),
            ("A.example.com", "/other", "404 -"),
            ("a.example.com:99", "/", "404 -"),
            ("b.example.com", "/own", "200 wild"),
            ("B.EXAMPLE.com:8080", "/own", "200 wild"),
            ("b.example.com.", "/own", "200 wild"),
            ("deeper.b.example.com", "/own", "200 any"),
            ("example.com", "/own", "200 any"),
            ("unknown.org", "/own", "200 any"),
            ("192.0.2.7", "/own", "200 any"),
            ("[2001:db8::1]:80", "/own", "200 any"),
            ("_", "/own", "200 any"),
        ];
        for (host, path, answer) in table {
            let client = with(http().host(host));
            assert_eq!(ask(&client, path).await, answer, "{packing:?} {number} {host} {path}");
            let forged = client.header("x-sesame-host", "ingress_http|a.example.com");
            assert_eq!(ask(&forged, path).await, answer, "{packing:?} {number} {host} {path}, forged");
        }
    }
    let raws = [
        ("GET http://a.example.com/own HTTP/1.1\r\nhost: b.example.com\r\nconnection: close\r\n\r\n", "200 exact"),
        ("GET http://A.Example.com:80/own HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "200 exact"),
        ("GET http://b.example.com/own HTTP/1.1\r\nhost: a.example.com\r\nconnection: close\r\n\r\n", "200 wild"),
        ("GET http://a.example.com/other HTTP/1.1\r\nhost: b.example.com\r\nconnection: close\r\n\r\n", "404 -"),
        ("GET /own HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n", "200 any"),
        ("GET /own HTTP/1.1\r\nhost: *\r\nconnection: close\r\n\r\n", "200 any"),
        ("GET /own HTTP/1.1\r\nhost: a.example.com|\r\nconnection: close\r\n\r\n", "400 -"),
        ("GET /own HTTP/1.0\r\n\r\n", "200 any"),
        ("GET /own HTTP/1.0\r\nhost: A.example.com\r\n\r\n", "200 exact"),
        ("GET /own HTTP/1.1\r\nconnection: close\r\n\r\n", "400 -"),
        ("CONNECT a.example.com:443 HTTP/1.1\r\nhost: a.example.com:443\r\nconnection: close\r\n\r\n", "404 -"),
        ("CONNECT A.example.com:443 HTTP/1.1\r\nhost: A.example.com:443\r\nconnection: close\r\n\r\n", "404 -"),
        ("CONNECT b.example.com:443 HTTP/1.1\r\nhost: b.example.com:443\r\nconnection: close\r\n\r\n", "404 -"),
    ];
    for (request, answer) in raws {
        assert_eq!(raw(request).await, answer, "{packing:?} {request}");
    }
    // What finds the host is not for backends to see.
    for host in ["a.example.com", "A.example.com"] {
        let seen = http().host(host).get("/own").await.unwrap().echo();
        assert_eq!(seen.header("x-sesame-host"), None, "{packing:?} {host}");
    }
    let seen = http().host("b.example.com").get("/").await.unwrap().echo();
    assert_eq!(seen.header("x-sesame-host"), None, "{packing:?}");
    for (host, name) in [("a.example.com", "exact"), ("A.example.com", "exact"), ("b.example.com", "wild")] {
        let socket = http().host(host).websocket("/ws").await.unwrap();
        assert_eq!(socket.answer.backend(), Some(name), "{packing:?} {host}");
        let backend = backends.0.iter().find(|backend| backend.name() == name).unwrap();
        let before = backend.running().unwrap().requests();
        let answer = http().host(host).get("/again").header("x-echo-status", "503").await.unwrap();
        assert_eq!(answer.status, 503);
        assert_eq!(backend.running().unwrap().requests() - before, 3, "{packing:?} {host}: a try and two more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_host_in_tables() {
    every_form_of_host(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_host_in_scopes() {
    every_form_of_host(Packing::Scoped).await;
}

async fn a_connection_serves_its_own_hosts(packing: Packing) {
    let _turn = TURN.lock().await;
    let backends = Backends::start().await;
    let ca = Ca::new("packing");
    let none = json!({});
    let mut world = World::start(packing, backends.services()).await;
    world.put([
        secret(&ca, "own", "own.example.com"),
        secret(&ca, "wild", "*.example.com"),
        secret(&ca, "deep", "*.deep.example.com"),
        ingress_with("own", "own.example.com", "/", "exact", &none, &[("own.example.com", "own")]),
        ingress_with("wild", "*.example.com", "/", "wild", &none, &[("*.example.com", "wild")]),
        ingress_with("deep", "*.deep.example.com", "/", "any", &none, &[("*.deep.example.com", "deep")]),
        ingress("below", "below.example.com", "/", "exact"),
    ]);
    world.publish().await;
    let table = [
        ("own.example.com", "own.example.com", "200 exact"),
        ("own.example.com", "OWN.example.com:8443", "200 exact"),
        ("x.example.com", "x.example.com", "200 wild"),
        ("x.example.com", "y.example.com", "200 wild"),
        ("below.example.com", "below.example.com", "200 exact"),
        ("x.example.com", "Below.example.com", "200 exact"),
        ("x.deep.example.com", "x.deep.example.com", "200 any"),
        // A certificate that covers the name is not enough: the name is served elsewhere.
        ("x.example.com", "own.example.com", "421 -"),
        ("x.example.com", "OWN.example.com", "421 -"),
        ("x.example.com", "own.example.com:8443", "421 -"),
        ("x.example.com", "own.example.com.", "421 -"),
        ("x.example.com", "x.deep.example.com", "421 -"),
        ("x.example.com", "X.Deep.example.com", "421 -"),
        ("own.example.com", "x.example.com", "421 -"),
        ("own.example.com", "unknown.org", "404 -"),
        ("x.deep.example.com", "x.example.com", "421 -"),
        ("x.example.com", "unknown.org", "404 -"),
    ];
    for (sni, host, answer) in table {
        for client in [https(sni, host), https(sni, host).http2(), https(sni, host).http10()] {
            assert_eq!(ask(&client, "/").await, answer, "{packing:?} {sni} {host}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_serves_its_own_hosts_in_tables() {
    a_connection_serves_its_own_hosts(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_serves_its_own_hosts_in_scopes() {
    a_connection_serves_its_own_hosts(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_lose_no_request() {
    let _turn = TURN.lock().await;
    super::changes::run(Backends::start().await.0).await;
}
