//! Server name × Host × version of HTTP × packing × mode of certificates, on the TLS listener of the settings: certificates on demand, one
//! that two hosts share, a wildcard of one label, and the fallback certificate.

use super::requests::TURN;
use super::world::{World, object, secret, service, settings};
use kinds::{Object, Secret, kind};
use model::ObjectRef;
use pipeline::Settings;
use pipeline::settings::{Certificates, Packing};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca, envoy::Config};

/// The hosts, each with the Secret that it shows. `asks` has the fallback certificate, too, where there is one.
const HOSTS: [(&str, &str, &str); 5] = [
    ("a", "a.example.com", "a"),
    ("asks", "asks.example.com", "asks"),
    ("c", "c.example.com", "pair"),
    ("d", "d.example.com", "pair"),
    ("wild", "*.wild.org", "wild"),
];

/// The host that a name belongs to.
fn owner(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let name = name.split(':').next().unwrap().trim_end_matches('.');
    let exact = HOSTS.iter().find(|(_, host, _)| *host == name).map(|(owner, ..)| *owner);
    exact.or_else(|| name.ends_with(".wild.org").then_some("wild"))
}

/// The chain that a host is served under: where certificates are on demand, each host is alone with its own.
fn chain_of(owner: &'static str, certificates: Certificates) -> &'static str {
    match owner {
        "c" | "d" if certificates != Certificates::OnDemand => "pair",
        owner => owner,
    }
}

/// What is answered for a Host on a connection for a server name; nothing where there is no connection.
fn expected(sni: Option<&str>, host: &str, certificates: Certificates, fallback: bool) -> Option<String> {
    let by_name = sni.and_then(owner).map(|owner| chain_of(owner, certificates));
    let chain = by_name.or(fallback.then_some("fallback"))?;
    let Some(own) = owner(host) else {
        return Some("404 -".to_owned());
    };
    let is_theirs = chain == chain_of(own, certificates) || chain == "fallback" && own == "asks";
    // A wildcard is one label deep.
    let is_deep = own == "wild" && host.matches('.').count() > 2;
    Some(match (is_theirs, is_deep) {
        (true, false) => format!("200 {own}"),
        (true, true) => "404 -".to_owned(),
        (false, _) => "421 -".to_owned(),
    })
}

fn proxy(name: &str, host: &str, secret: &str, fallback: bool) -> Object {
    let tls = json!({"secretName": secret, "enableFallbackCertificate": fallback});
    object(
        kind::CONTOUR_HTTP_PROXY,
        &json!({"metadata": {"namespace": "default", "name": name}, "spec": {
            "virtualhost": {"fqdn": host, "tls": tls}, "routes": [{"services": [{"name": name, "port": 80}]}]}}),
    )
}

/// A Secret with a certificate for two hosts.
fn pair(ca: &Ca) -> Object {
    let leaf = ca.leaf("c.example.com").dns("c.example.com").dns("d.example.com").make();
    let entries = [("tls.crt", leaf.chain_pem()), ("tls.key", leaf.key_pem())];
    let entries = entries.map(|(name, pem)| (name.into(), pem.as_bytes().into()));
    let secret = secret(ca, "pair", "c.example.com");
    Object::new(kind::SECRET, Secret::clone(secret.get::<Secret>().unwrap()).with(entries))
}

fn client(sni: Option<&str>) -> Client {
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).https().accept_any();
    match sni {
        Some(sni) => client.sni(sni),
        None => client.no_sni(),
    }
}

async fn modes(packing: Packing) {
    let _turn = TURN.lock().await;
    let ca = Ca::new("modes");
    let mut backends = Vec::new();
    for (name, ..) in HOSTS {
        backends.push(Backend::start(name).await.unwrap());
    }
    let names = [
        Some("a.example.com"),
        Some("A.Example.com"),
        Some("asks.example.com"),
        Some("c.example.com"),
        Some("d.example.com"),
        Some("x.wild.org"),
        Some("deep.x.wild.org"),
        Some("wild.org"),
        Some("unknown.org"),
        None,
    ];
    let hosts = [
        "a.example.com",
        "A.Example.com:8443",
        "a.example.com.",
        "asks.example.com",
        "c.example.com",
        "d.example.com",
        "x.wild.org",
        "deep.x.wild.org",
        "wild.org",
        "unknown.org",
        "192.0.2.7",
    ];
    let mut answers = 0;
    for certificates in [Certificates::Auto, Certificates::OnDemand, Certificates::PerChain] {
        for fallback in [false, true] {
            let mut settings = Settings { certificates, ..settings(packing) };
            if fallback {
                let secret = ObjectRef::new(kind::SECRET, "default", "fallback");
                settings.http_proxy.fallback_certificate = Some(secret);
            }
            let services = backends.iter().map(|backend| service(backend.name(), backend.ip()));
            let mut world = World::with(&settings, Config::new().name("modes"), services).await;
            world.put([pair(&ca), secret(&ca, "fallback", "fallback.example.com")]);
            world.put(["a", "asks"].map(|name| secret(&ca, name, &format!("{name}.example.com"))));
            world.put([secret(&ca, "wild", "*.wild.org")]);
            world.put(HOSTS.map(|(name, host, secret)| proxy(name, host, secret, fallback && name == "asks")));
            world.publish().await;
            for sni in names {
                for client in [client(sni).http1(), client(sni).http2()] {
                    let how = format!("{packing:?} {certificates:?} fallback {fallback} {sni:?}");
                    let connection = client.connect().await;
                    for host in hosts {
                        answers += 1;
                        let expected = expected(sni, host, certificates, fallback);
                        let Some(expected) = expected else {
                            assert!(connection.is_err(), "{how}: there is a connection");
                            continue;
                        };
                        let connection = connection.as_ref().unwrap_or_else(|failure| panic!("{how}: {failure}"));
                        let answer = connection.get("/").host(host).await.unwrap();
                        let seen = format!("{} {}", answer.status.as_u16(), answer.backend().unwrap_or("-"));
                        assert_eq!(seen, expected, "{how} {host}");
                    }
                }
            }
        }
    }
    assert_eq!(answers, 6 * names.len() * hosts.len() * 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mode_answers_alike_in_tables() {
    modes(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mode_answers_alike_in_scopes() {
    modes(Packing::Scoped).await;
}
