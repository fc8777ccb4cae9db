//! Server name × Host × version of HTTP × packing: what a TLS port answers, with a listener for every name and without one.

use super::claims::Claims;
use super::requests::TURN;
use super::world::{World, secret, service, settings};
use kinds::{Object, Secret, kind};
use model::{
    FleetId,
    PortProtocol::{Http, Tls},
};
use pipeline::settings::Packing;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{
    Backend, Client,
    certs::{Ca, KeyType},
    client::{Answer, Signatures, TlsVersion},
    envoy::Config,
};

const PORT: u16 = 10443;
const OTHER: u16 = 10444;
const PLAINTEXT: u16 = 10080;

/// The listener that a name belongs to: the narrowest.
fn owner(name: &str, catch_all: bool) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let name = name.split(':').next().unwrap().trim_end_matches('.');
    match name {
        "own.example.com" => Some("own"),
        "twin.example.com" => Some("twin"),
        "both.example.com" => Some("both"),
        "passed.example.com" => Some("passed"),
        "b.partly.example.com" => Some("partly"),
        // The listeners of these have no route, or no certificate, for them: they are no wider one's.
        name if name.ends_with(".partly.example.com") => Some("nobody"),
        "bare.example.com" => Some("nobody"),
        name if name.ends_with(".example.com") => Some("wild"),
        _ => catch_all.then_some("any"),
    }
}

/// What is answered for a Host on a connection for a server name; nothing where there is no connection.
fn expected(sni: Option<&str>, host: &str, catch_all: bool) -> Option<String> {
    let chain = match sni {
        Some(sni) => owner(sni, catch_all),
        None => catch_all.then_some("any"),
    };
    let chain = chain.filter(|chain| !["passed", "nobody"].contains(chain))?;
    Some(match owner(host, catch_all) {
        Some(own) if own == chain => format!("200 {own}"),
        Some(_) => "421 -".to_owned(),
        None => "404 -".to_owned(),
    })
}

/// What is answered on the second port, which has the names of the first and other listeners for them: one for a single name, and
/// one for every other, with routes for `*.example.com`.
fn expected_on_other(sni: Option<&str>, host: &str) -> String {
    let listener = |name: &str| if owner(name, false) == Some("own") { "other-own" } else { "other" };
    let chain = sni.map_or("other", listener);
    match (listener(host), owner(host, false)) {
        (own, _) if own != chain => "421 -".to_owned(),
        (own, Some(_)) => format!("200 {own}"),
        (_, None) => "404 -".to_owned(),
    }
}

/// A Secret with a certificate for a host, with a type of key that its subject tells.
fn secret_of(ca: &Ca, name: &str, host: &str, key: KeyType) -> Object {
    let leaf = ca.leaf(host).organisation(&format!("{key:?}")).key(key).make();
    let secret = secret(ca, name, host);
    let entries = [("tls.crt", leaf.chain_pem()), ("tls.key", leaf.key_pem())];
    let entries = entries.map(|(name, pem)| (name.into(), pem.as_bytes().into()));
    Object::new(kind::SECRET, Secret::clone(secret.get::<Secret>().unwrap()).with(entries))
}

/// A client for a server name, or for none.
fn client(port: u16, sni: Option<&str>) -> Client {
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).https().accept_any();
    match sni {
        Some(sni) => client.sni(sni),
        None => client.no_sni(),
    }
}

/// The status and the backend of an answer.
fn seen(answer: &Answer) -> String {
    format!("{} {}", answer.status.as_u16(), answer.backend().unwrap_or("-"))
}

/// Clients that verify one type of key only are shown that one, and are told of other hosts like everybody.
async fn both_types_of_keys(packing: Packing) {
    for (signatures, key) in [(Signatures::Rsa, KeyType::Rsa2048), (Signatures::Ecdsa, KeyType::P256)] {
        for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
            let client = client(PORT, Some("both.example.com")).signatures(signatures).tls_versions(version, version);
            for client in [client.clone().http1(), client.http2()] {
                let connection = client.connect().await.unwrap();
                let how = format!("{packing:?} {signatures:?} {version:?}");
                let subject = &connection.tls().unwrap().peer[0].subject;
                assert!(subject.contains(&format!("{key:?}")), "{how}: {subject}");
                for host in ["both.example.com", "own.example.com", "x.example.com", "unknown.org"] {
                    let answer = connection.get("/").host(host).await.unwrap();
                    assert_eq!(Some(seen(&answer)), expected(Some("both.example.com"), host, true), "{how} {host}");
                }
            }
        }
    }
}

async fn matrix(packing: Packing) {
    let _turn = TURN.lock().await;
    let ca = Ca::new("matrix");
    let mut backends = Vec::new();
    for name in ["own", "twin", "both", "partly", "wild", "any", "other", "other-own"] {
        backends.push(Backend::start(name).await.unwrap());
    }
    let services = backends.iter().map(|backend| service(backend.name(), backend.ip()));
    let mut world = World::with(&settings(packing), Config::new().name("matrix"), services).await;
    world.put([
        secret(&ca, "own", "own.example.com"),
        secret(&ca, "wild", "*.example.com"),
        secret(&ca, "any", "any.example.org"),
        secret_of(&ca, "both-ecdsa", "both.example.com", KeyType::P256),
        secret_of(&ca, "both-rsa", "both.example.com", KeyType::Rsa2048),
    ]);
    // Two listeners with the same certificate are two all the same; one passes its connections through.
    let claims = Claims::new("gateway", FleetId::Shared)
        .listener("own", PORT, Tls, "own.example.com")
        .tls("own", "own.example.com", &["own"])
        .route("own", "own.example.com", "own")
        .listener("twin", PORT, Tls, "twin.example.com")
        .tls("twin", "twin.example.com", &["own"])
        .route("twin", "twin.example.com", "twin")
        .listener("both", PORT, Tls, "both.example.com")
        .tls("both", "both.example.com", &["both-ecdsa", "both-rsa"])
        .route("both", "both.example.com", "both")
        .listener("wild", PORT, Tls, "*.example.com")
        .tls("wild", "*.example.com", &["wild"])
        .route("wild", "*.example.com", "wild")
        .listener("passed", PORT, Tls, "passed.example.com")
        .passthrough("passed", "passed.example.com", "own")
        // A listener has its names to itself, be it that only one of them has a certificate and a route, or none has.
        .listener("partly", PORT, Tls, "*.partly.example.com")
        .tls("partly", "b.partly.example.com", &["own"])
        .route("partly", "b.partly.example.com", "partly")
        .listener("bare", PORT, Tls, "bare.example.com")
        .route("bare", "bare.example.com", "own");
    let every_name = claims
        .clone()
        .listener("any", PORT, Tls, "*")
        .tls("any", "*", &["any"])
        .route("any", "*", "any")
        // The same names on another port are others.
        .listener("other", OTHER, Tls, "*")
        .tls("other", "*", &["any"])
        .route("other", "*.example.com", "other")
        .listener("other-own", OTHER, Tls, "own.example.com")
        .tls("other-own", "own.example.com", &["own"])
        .route("other-own", "own.example.com", "other-own")
        .listener("plain", PLAINTEXT, Http, "*")
        .route("plain", "*", "any")
        .listener("plain-wild", PLAINTEXT, Http, "*.example.com")
        .route("plain-wild", "b.example.com", "own")
        .listener("plain-bare", PLAINTEXT, Http, "bare.example.org");
    let names = [
        Some("own.example.com"),
        Some("OWN.example.com"),
        Some("twin.example.com"),
        Some("both.example.com"),
        Some("x.example.com"),
        Some("deep.x.example.com"),
        Some("b.partly.example.com"),
        Some("c.partly.example.com"),
        Some("bare.example.com"),
        Some("unknown.org"),
        None,
    ];
    let hosts = [
        "own.example.com",
        "Own.Example.com",
        "own.example.com:10443",
        "own.example.com.",
        "twin.example.com",
        "both.example.com",
        "passed.example.com",
        "x.example.com",
        "X.EXAMPLE.com:1",
        "deep.x.example.com",
        "b.partly.example.com",
        "c.partly.example.com",
        "bare.example.com",
        "example.com",
        "unknown.org",
        "192.0.2.7",
    ];
    let mut answers = 0;
    for catch_all in [false, true] {
        let claims = if catch_all { every_name.clone() } else { claims.clone() };
        claims.put(&mut world.pipeline);
        world.publish().await;
        for sni in names {
            let client = client(PORT, sni);
            for host in hosts {
                let expected = expected(sni, host, catch_all);
                let client = client.clone().host(host);
                let plain = [client.clone().http1(), client.clone().http2()];
                // Whatever a client writes into headers of ours is worth nothing.
                let forged = |client: Client| {
                    let chain = "own/default/own/tls1.2-1.3";
                    let client = client.header("x-sesame-chain", chain).header("x-sesame-server-name", host);
                    client.header("x-sesame-host", &format!("tcp-{PORT}|{host}"))
                };
                for client in plain.clone().into_iter().chain(plain.map(forged)) {
                    let how = format!("{packing:?} {catch_all} {sni:?} {host}");
                    match (&expected, client.get("/").await) {
                        (None, answer) => assert!(answer.is_err(), "{how}: there is a connection"),
                        (Some(expected), answer) => {
                            let answer = answer.unwrap_or_else(|failure| panic!("{how}: {failure}"));
                            assert_eq!(seen(&answer), *expected, "{how}");
                            if answer.status == 200 {
                                let echo = answer.echo();
                                let ours = ["x-sesame-chain", "x-sesame-server-name", "x-sesame-host"];
                                assert!(ours.iter().all(|name| echo.header(name).is_none()), "{how}");
                            }
                        }
                    }
                    answers += 1;
                }
            }
        }
    }
    assert_eq!(answers, 2 * names.len() * hosts.len() * 4);
    // Many Hosts on one connection: each is answered as if it were alone.
    let connection = client(PORT, Some("x.example.com")).http2().connect().await.unwrap();
    for host in hosts {
        let answer = connection.get("/").host(host).await.unwrap();
        let expected = expected(Some("x.example.com"), host, true);
        assert_eq!(Some(seen(&answer)), expected, "{packing:?} {host} on one connection");
    }
    both_types_of_keys(packing).await;
    for sni in names {
        for client in [client(OTHER, sni).http1(), client(OTHER, sni).http2()] {
            let connection = client.connect().await.unwrap();
            for host in hosts {
                let answer = connection.get("/").host(host).await.unwrap();
                assert_eq!(seen(&answer), expected_on_other(sni, host), "{packing:?} port {OTHER}: {sni:?} {host}");
            }
        }
    }
    // The same without TLS.
    for (host, expected) in [
        ("b.example.com", "200 own"),
        ("B.EXAMPLE.com:1", "200 own"),
        ("c.example.com", "404 -"),
        ("deep.c.example.com", "404 -"),
        ("bare.example.org", "404 -"),
        ("x.example.org", "200 any"),
        ("example.com", "200 any"),
    ] {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PLAINTEXT)));
        let answer = client.host(host).get("/").await.unwrap();
        assert_eq!(seen(&answer), expected, "{packing:?} {host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_name_and_host_in_tables() {
    matrix(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_name_and_host_in_scopes() {
    matrix(Packing::Scoped).await;
}
