//! Whatever stands in a Secret, Envoy refuses nothing of what is made of it: mutated certificates, keys, CA bundles and CRLs.

use super::requests::TURN;
use super::world::{World, ingress_with, object, service, settings};
use kinds::{Object, Secret, kind};
use pipeline::Settings;
use pipeline::settings::{Certificates, Packing};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use testbed::certs::{Ca, KeyType, Leaf, Mutations};
use testbed::{Backend, Client, client::TlsVersion, envoy::Config};
use xds::{Changes, Event, Kind as Type};

/// How many pairs of certificate and key, unless `MUTATED_CERTIFICATES` says another number.
const PAIRS: usize = 400;
const BUNDLES: usize = 200;
const CRLS: usize = 400;

fn pairs_wanted() -> usize {
    std::env::var("MUTATED_CERTIFICATES").map_or(PAIRS, |number| number.parse().expect("a number of certificates"))
}

fn secret(name: &str, entries: &[(&str, String)]) -> Object {
    let meta = json!({"namespace": "default", "name": name});
    let empty = object(kind::SECRET, &json!({"metadata": meta, "type": "Opaque", "data": {}}));
    let empty = empty.get::<Secret>().unwrap();
    let entries: Vec<_> = entries.iter().map(|(name, text)| ((*name).into(), text.as_bytes().into())).collect();
    Object::new(kind::SECRET, Secret::clone(empty).with(entries))
}

/// Not only mutations: what certificates are allowed to be and Envoy does not serve.
fn odd_leaves(ca: &Ca, host: &str) -> Vec<(String, String)> {
    let leaf = |leaf: Leaf| (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned());
    vec![
        leaf(ca.leaf(host).must_staple().make()),
        leaf(ca.leaf(host).key_agreement_only().make()),
        leaf(ca.leaf(host).expired().make()),
        leaf(ca.leaf(host).key(KeyType::Ed25519).make()),
        leaf(ca.leaf(host).key(KeyType::Rsa2048).make()),
        leaf(ca.nameless_leaf("").make()),
    ]
}

fn https(host: &str) -> Client {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 8443));
    Client::new(at).host(host).https().sni(host).accept_any().timeout(Duration::from_secs(10))
}

/// Every kind of key that is accepted, with its two users: the holder that prefetches the secret, and the chain of the handshake.
/// Those that are generated nowhere else were made by OpenSSL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_pass_our_checks_are_shown_in_both_modes() {
    const FILES: [(&str, &str, &str); 7] = [
        ("rsa-2047", include_str!("keys/rsa-2047.pem"), ""),
        ("rsa-2049", include_str!("keys/rsa-2049.pem"), "1.2 1.3"),
        ("rsa-5120", include_str!("keys/rsa-5120.pem"), "1.2 1.3"),
        ("rsa-8192", include_str!("keys/rsa-8192.pem"), "1.2 1.3"),
        ("rsa-exponent-3", include_str!("keys/rsa-exponent-3.pem"), "1.2 1.3"),
        ("rsa-pss", include_str!("keys/rsa-pss.pem"), ""),
        ("secp256k1", include_str!("keys/secp256k1.pem"), ""),
    ];
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let ca = Ca::new("keys");
    let generated = KeyType::ALL.map(|key| {
        let name = format!("{key:?}").to_lowercase();
        let leaf = ca.leaf(&format!("{name}.example.com")).key(key).make();
        let versions = match key {
            KeyType::Ed25519 => "",
            // This client offers the curve with TLS 1.3 only.
            KeyType::P521 => "1.3",
            _ => "1.2 1.3",
        };
        (name, leaf.chain_pem().to_owned(), leaf.key_pem().to_owned(), versions)
    });
    let files = FILES.map(|(name, text, versions)| (name.to_owned(), text.to_owned(), text.to_owned(), versions));
    let keys: Vec<_> = generated.into_iter().chain(files).collect();
    for certificates in [Certificates::OnDemand, Certificates::PerChain] {
        let settings = Settings { certificates, ..settings(Packing::Scoped) };
        let mut world = World::with(&settings, Config::new().name("keys"), []).await;
        world.put([service("web", backend.ip())]);
        let mut events = world.proxy.server().events();
        for (name, chain, key, _) in &keys {
            let host = format!("{name}.example.com");
            world.put([
                secret(name, &[("tls.crt", chain.clone()), ("tls.key", key.clone())]),
                ingress_with(name, &host, "/", "web", &json!({}), &[(&host, name)]),
            ]);
        }
        world.publish().await;
        let mut seen = Vec::new();
        for (name, ..) in &keys {
            let client = https(&format!("{name}.example.com"));
            let mut versions = Vec::new();
            for (text, version) in [("1.2", TlsVersion::V1_2), ("1.3", TlsVersion::V1_3)] {
                if client.clone().tls_versions(version, version).get("/").await.is_ok_and(|answer| answer.status == 200)
                {
                    versions.push(text);
                }
            }
            seen.push((name.as_str(), versions.join(" ")));
        }
        let expected: Vec<_> =
            keys.iter().map(|(name, _, _, versions)| (name.as_str(), (*versions).to_owned())).collect();
        world.proxy.publish(Changes::default()).await.unwrap();
        while let Ok(event) = events.try_recv() {
            if let Event::Rejected(refusal) = event {
                panic!("{} {}: {}", refusal.kind, refusal.name, refusal.text);
            }
        }
        world.proxy.envoy().ready().await.unwrap();
        assert_eq!(seen, expected, "{certificates:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_passes_our_checks_is_never_refused() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let on_demand = Settings { certificates: Certificates::OnDemand, ..settings(Packing::Scoped) };
    let mut world = World::with(&on_demand, Config::new().name("mutated"), []).await;
    world.put([service("web", backend.ip())]);
    let mut events = world.proxy.server().events();
    let root = Ca::new("root");
    let ca = root.intermediate("between");
    let bases: Vec<Leaf> = KeyType::ALL
        .into_iter()
        .filter(|key| *key != KeyType::Ed25519)
        .map(|key| ca.leaf("x.example.com").key(key).make())
        .collect();
    let mut mutations = Mutations::new(13);
    let wanted = pairs_wanted();
    let mut pairs: Vec<(String, String)> = odd_leaves(&ca, "odd.example.com");
    for number in pairs.len()..wanted {
        let leaf = &bases[number % bases.len()];
        let (chain, key) = (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned());
        pairs.push(match number % 4 {
            0 => (chain, mutations.pem(&key)),
            _ => (mutations.pem(&chain), key),
        });
    }
    let mut hosts = Vec::new();
    for (number, (chain, key)) in pairs.into_iter().enumerate() {
        let (name, host) = (format!("m{number}"), format!("m{number}.example.com"));
        world.put([
            secret(&name, &[("tls.crt", chain), ("tls.key", key)]),
            ingress_with(&name, &host, "/", "web", &json!({}), &[(&host, &name)]),
        ]);
        hosts.push(host);
    }
    // Each CA bundle belongs to a cluster, which asks for it.
    for number in 0..BUNDLES {
        let (name, bundle) = (format!("ca{number}"), mutations.pem(root.pem()));
        let at = json!({"projectsesame.io/endpoints": format!("{}:443", backend.ip())});
        let validation = json!({"caSecret": name, "subjectName": "x"});
        world.put([
            secret(&name, &[("ca.crt", bundle)]),
            object(
                kind::SERVICE,
                &json!({"metadata": {"namespace": "default", "name": name, "annotations": at},
                    "spec": {"ports": [{"port": 443}]}}),
            ),
            object(
                kind::CONTOUR_HTTP_PROXY,
                &json!({"metadata": {"namespace": "default", "name": name}, "spec": {
                    "virtualhost": {"fqdn": format!("{name}.example.com")},
                    "routes": [{"services": [
                        {"name": name, "port": 443, "protocol": "tls", "validation": validation}]}]}}),
            ),
        ]);
    }
    world.publish().await;
    let snapshot = world.proxy.server().acks(&xds::Fleet::Shared).unwrap().snapshot().unwrap();
    let is_offered = |host: &&str| snapshot.get(Type::Secret, host).is_some();
    let offered: Vec<&str> = hosts.iter().map(String::as_str).filter(is_offered).collect();
    // Each has two users: the holder that prefetches it, and the listener of the first handshake.
    world.proxy.has_secrets(offered.iter().copied()).await.unwrap();
    let offered = offered.len();
    let bundles = (0..BUNDLES).filter(|n| snapshot.get(Type::Secret, &format!("ca/default/ca{n}")).is_some()).count();
    let mut shown = 0;
    for host in &hosts {
        shown += usize::from(https(host).connect().await.is_ok());
    }
    // Asks for all answers once more, and fails if one was a refusal.
    world.proxy.publish(Changes::default()).await.unwrap();
    while let Ok(event) = events.try_recv() {
        if let Event::Rejected(refusal) = event {
            panic!("{} {}: {}", refusal.kind, refusal.name, refusal.text);
        }
    }
    world.proxy.envoy().ready().await.unwrap();
    println!(
        "of {wanted} pairs {offered} were offered and {shown} shown; of {BUNDLES} CA bundles {bundles} were offered"
    );
    assert!(offered > wanted / 10 && offered < wanted, "{offered} of {wanted} pairs");
    assert!(bundles > BUNDLES / 10 && bundles < BUNDLES, "{bundles} of {BUNDLES} bundles");
    assert!(shown > 0);
}

/// Mutated CRLs, each of which belongs to a chain of its own, which asks for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crls_that_pass_our_checks_are_never_refused() {
    let _turn = TURN.lock().await;
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("mutated-crls"), []).await;
    let backend = Backend::start("web").await.unwrap();
    let ca = Ca::new("clients");
    let (server, client) = (ca.leaf("*.example.com").make(), ca.leaf("client").make());
    let crl = ca.crl([&client, &server]);
    world.put([
        service("web", backend.ip()),
        secret("cert", &[("tls.crt", server.chain_pem().to_owned()), ("tls.key", server.key_pem().to_owned())]),
        secret("ca", &[("ca.crt", ca.pem().to_owned())]),
    ]);
    let mut events = world.proxy.server().events();
    let mut mutations = Mutations::new(17);
    for number in 0..CRLS {
        let name = format!("c{number}");
        let text = if number == 0 { crl.pem().to_owned() } else { mutations.pem(crl.pem()) };
        let validation = json!({"caSecret": "ca", "crlSecret": name});
        let host = json!({"fqdn": format!("{name}.example.com"),
            "tls": {"secretName": "cert", "clientValidation": validation}});
        world.put([
            secret(&name, &[("crl.pem", text)]),
            object(
                kind::CONTOUR_HTTP_PROXY,
                &json!({"metadata": {"namespace": "default", "name": name},
                    "spec": {"virtualhost": host, "routes": [{"services": [{"name": "web", "port": 80}]}]}}),
            ),
        ]);
    }
    world.publish().await;
    let snapshot = world.proxy.server().acks(&xds::Fleet::Shared).unwrap().snapshot().unwrap();
    let names: Vec<String> = (0..CRLS)
        .map(|number| format!("clients:signed+secrets/default/ca+crl/default/c{number}"))
        .filter(|name| snapshot.get(Type::Secret, name).is_some())
        .collect();
    world.proxy.has_secrets(names.iter().map(String::as_str)).await.unwrap();
    world.proxy.publish(Changes::default()).await.unwrap();
    while let Ok(event) = events.try_recv() {
        if let Event::Rejected(refusal) = event {
            panic!("{} {}: {}", refusal.kind, refusal.name, refusal.text);
        }
    }
    world.proxy.envoy().ready().await.unwrap();
    println!("of {CRLS} CRLs {} were offered", names.len());
    assert!(names.len() > CRLS / 20 && names.len() < CRLS, "{} of {CRLS} CRLs", names.len());
}
