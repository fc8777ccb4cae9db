//! A Listener for HTTP/3: its Hosts are served over QUIC as over TCP, protected alike, and TCP tells clients about it.
//!
//! The client is another Envoy. It verifies the certificate that it is shown, so whoever gets an answer was shown that of the name.

use super::requests::TURN;
use super::world::{World, object, secret, service};
use kinds::{Kind, Object, Secret, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use testbed::{
    Backend, Client, Http3,
    certs::{Ca, Leaf},
    eventually,
};

/// The port of both Listeners.
const PORT: u16 = 9643;
/// That of another.
const OTHER: u16 = 9644;

const ALTERNATIVE: &str = r#"h3=":443"; ma=86400, h3-29=":443"; ma=86400"#;

const ONE: &str = "one.example.com";
const TWO: &str = "two.example.com";
const THREE: &str = "three.example.com";
/// Below a wildcard that asks for less.
const BELOW: &str = "below.wild.example.com";
const STRICT: &str = "strict.wild.example.com";
const OLD: &str = "old.wild.example.com";
const CURVES: &str = "curves.wild.example.com";

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn of(kind: Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

fn listener(name: &str, port: u16, stack: &[&str]) -> Object {
    let binding = json!({ "namespace": { "from": "ALL" } });
    let spec = json!({ "port": port, "protocolStack": stack, "securityModel": "XFP", "hostBinding": binding });
    of(kind::LISTENER, name, &spec)
}

fn https(port: u16) -> Object {
    listener(&format!("https-{port}"), port, &["TLS", "HTTP", "TCP"])
}

fn http3(port: u16) -> Object {
    listener(&format!("http3-{port}"), port, &["TLS", "HTTP", "UDP"])
}

/// A Host that redirects what is not secure.
fn host(name: &str, hostname: &str, tls: &Value) -> Object {
    of(kind::HOST, name, &json!({ "hostname": hostname, "tlsSecret": { "name": name }, "tls": tls }))
}

fn plain_host(name: &str, hostname: &str) -> Object {
    of(kind::HOST, name, &json!({ "hostname": hostname, "tlsSecret": { "name": name } }))
}

fn mapping() -> Object {
    of(kind::MAPPING, "web", &json!({ "hostname": "*", "prefix": "/", "service": "web" }))
}

fn client_ca(ca: &Ca) -> Object {
    let meta = json!({ "namespace": "default", "name": "ca" });
    let empty = object(kind::SECRET, &json!({ "metadata": meta, "type": "Opaque", "data": {} }));
    let empty = empty.get::<Secret>().unwrap();
    Object::new(kind::SECRET, Secret::clone(empty).with([("ca.crt".into(), ca.pem().as_bytes().into())]))
}

/// Hosts of which three ask for what cannot be kept over QUIC, below one that asks for nothing.
fn objects(ca: &Ca, backend: &Backend) -> Vec<Object> {
    let with_certificate = |name: &str, hostname: &str, tls: Option<Value>| {
        let host = tls.map_or_else(|| plain_host(name, hostname), |tls| host(name, hostname, &tls));
        [host, secret(ca, name, hostname)]
    };
    let hosts = [
        with_certificate("one", ONE, None),
        with_certificate("two", TWO, None),
        with_certificate("wild", "*.wild.example.com", None),
        with_certificate("strict", STRICT, Some(json!({ "ca_secret": "ca", "cert_required": true }))),
        with_certificate("old", OLD, Some(json!({ "max_tls_version": "v1.2" }))),
        with_certificate("curves", CURVES, Some(json!({ "ecdh_curves": ["P-384"] }))),
    ];
    let others = [mapping(), client_ca(ca), service("web", backend.ip()), https(PORT), http3(PORT)];
    hosts.into_iter().flatten().chain(others).collect()
}

async fn quic(port: u16, ca: &Ca, own: Option<&Leaf>) -> Http3 {
    Http3::start(at(port), ca, &[ONE, TWO, THREE, BELOW, STRICT, OLD, CURVES], own).await.unwrap()
}

fn tcp(ca: &Ca, name: &str) -> Client {
    Client::new(at(PORT)).host(name).https().sni(name).trust(ca)
}

async fn status(client: Client) -> u16 {
    client.get("/").await.unwrap().status.as_u16()
}

async fn http3_is_served_as_tcp_is(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("http3"));
    let mut world = World::start(packing, objects(&ca, &backend)).await;
    let own = ca.leaf("client").make();
    let (h3, with_own) = (quic(PORT, &ca, None).await, quic(PORT, &ca, Some(&own)).await);

    for name in [ONE, TWO, BELOW] {
        let answer = h3.client(name).get("/").await.unwrap();
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(answer.header("alt-svc"), None, "{name}");
        let seen = answer.echo();
        assert_eq!(seen.header("x-forwarded-proto"), Some("https"), "{name}");
        assert!(seen.headers.iter().all(|(header, _)| !header.starts_with("x-sesame-")), "{seen:?}");
        // TCP says where else there is.
        let answer = tcp(&ca, name).get("/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("alt-svc")), (200, Some(ALTERNATIVE)), "{name}");
    }
    assert_eq!(h3.connections(ONE).await.unwrap(), (1, 0));
    // Plaintext on the port does not: its clients are sent to TLS first.
    let plaintext = Client::new(at(PORT)).host(ONE).get("/").await.unwrap();
    assert_eq!((plaintext.status.as_u16(), plaintext.header("alt-svc")), (301, None));

    // A connection serves the hosts of its certificate, whatever the client says about it.
    for (name, asked, expected) in
        [(ONE, TWO, 421), (TWO, ONE, 421), (BELOW, ONE, 421), (BELOW, STRICT, 421), (ONE, STRICT, 421), (ONE, OLD, 421)]
    {
        let client = h3.client(name).host(asked);
        assert_eq!(status(client.clone()).await, expected, "{asked} on a connection for {name}");
        assert_eq!(status(tcp(&ca, name).host(asked)).await, expected, "{asked} on a TLS connection for {name}");
        let chain = "listener/default/http3-9643/default/two/tls1.2-1.3";
        for header in ["x-sesame-chain", "x-sesame-server-name"] {
            assert_eq!(status(client.clone().header(header, chain)).await, expected, "{asked} forged on {name}");
        }
    }
    assert_eq!(status(h3.client(BELOW).host("another.wild.example.com")).await, 200);
    assert_eq!(status(h3.client(ONE).host("nobody.example.org")).await, 404);
    assert_eq!(status(h3.client(ONE).host("ONE.example.com:9643")).await, 200);

    // What QUIC cannot keep is closed there, is none of the wildcard's, and TCP says nothing about QUIC.
    for name in [STRICT, OLD, CURVES] {
        for client in [&h3, &with_own] {
            let answer = client.client(name).get("/").await.unwrap();
            assert_eq!(answer.status, 503, "{name}");
            assert!(answer.text().contains("connection failure"), "{name}: {}", answer.text());
        }
        let client = if name == STRICT { tcp(&ca, name).identity(&own) } else { tcp(&ca, name) };
        let answer = client.get("/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("alt-svc")), (200, None), "{name}");
    }
    assert!(tcp(&ca, STRICT).get("/").await.is_err());

    // What protects requests protects them here. Connections that are open are protected as well.
    let auth = of(kind::AUTH_SERVICE, "auth", &json!({ "auth_service": "nowhere", "protocol_version": "v3" }));
    world.put([auth.clone()]);
    world.publish().await;
    for name in [ONE, BELOW] {
        assert_eq!(status(h3.client(name)).await, status(tcp(&ca, name)).await, "{name}");
        assert!(status(h3.client(name)).await >= 400, "{name}");
    }
    world.remove(&auth);
    let from_nobody = |rule| of(kind::MODULE, "ambassador", &json!({ "config": { "ip_allow": [rule] } }));
    world.put([from_nobody(json!({ "peer": "192.0.2.1" }))]);
    world.publish().await;
    for name in [ONE, BELOW] {
        assert_eq!(status(h3.client(name)).await, 403, "{name}");
        assert_eq!(status(tcp(&ca, name)).await, 403, "{name}");
    }
    world.put([from_nobody(json!({ "peer": "127.0.0.0/8" }))]);
    world.publish().await;
    assert_eq!(status(h3.client(ONE)).await, 200);
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_is_served_as_tcp_is_in_tables() {
    http3_is_served_as_tcp_is(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_is_served_as_tcp_is_in_scopes() {
    http3_is_served_as_tcp_is(Packing::Scoped).await;
}

/// Hosts and Listeners come and go beside open connections of others, over QUIC and over TCP.
async fn what_comes_and_goes_cuts_no_other(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("http3"));
    let mut world = World::start(packing, objects(&ca, &backend)).await;
    let (h3, other) = (quic(PORT, &ca, None).await, quic(OTHER, &ca, None).await);
    let open = tcp(&ca, ONE).connect().await.unwrap();
    assert_eq!(open.get("/").await.unwrap().status, 200);
    assert_eq!(status(h3.client(ONE)).await, 200);

    // A Host with a certificate of its own.
    world.put([plain_host("three", THREE), secret(&ca, "three", THREE)]);
    world.publish().await;
    let is_served = async || match status(h3.client(THREE)).await {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the new Host to be served", Duration::from_secs(20), is_served).await.unwrap();
    assert_eq!(status(h3.client(ONE)).await, 200);
    assert_eq!(h3.connections(ONE).await.unwrap(), (1, 0));

    // Another Listener, without one for TCP beside it.
    let second = http3(OTHER);
    world.put([second.clone()]);
    world.publish().await;
    assert_eq!(status(other.client(ONE)).await, 200);
    world.remove(&second);
    world.publish().await;
    let is_gone = async |client: &Http3| match status(client.client(ONE)).await {
        503 => Ok(()),
        other => Err(other),
    };
    eventually("the second Listener to be gone", Duration::from_secs(20), async || is_gone(&other).await)
        .await
        .unwrap();
    assert_eq!(status(h3.client(ONE)).await, 200);
    assert_eq!(h3.connections(ONE).await.unwrap(), (1, 0));

    // The Listener itself: clients of TCP stay, and hear no more of it.
    assert_eq!(open.get("/").await.unwrap().header("alt-svc"), Some(ALTERNATIVE));
    let first = http3(PORT);
    world.remove(&first);
    let (set, gone) = world.publish().await;
    assert!(!set.iter().any(|name| name.starts_with("lds ")), "{set:?} {gone:?}");
    let answer = open.get("/").await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("alt-svc")), (200, None));
    eventually("the Listener to be gone", Duration::from_secs(20), async || is_gone(&h3).await).await.unwrap();

    world.put([first]);
    world.publish().await;
    assert_eq!(open.get("/").await.unwrap().header("alt-svc"), Some(ALTERNATIVE));
    assert!(open.is_open() && open.requests() == 4);
    let is_back = async || match status(h3.client(ONE)).await {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the Listener to be back", Duration::from_secs(20), is_back).await.unwrap();
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_and_goes_cuts_no_other_in_tables() {
    what_comes_and_goes_cuts_no_other(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_and_goes_cuts_no_other_in_scopes() {
    what_comes_and_goes_cuts_no_other(Packing::Scoped).await;
}
