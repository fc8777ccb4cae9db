//! Whose requests are served under a wildcard's certificate.
//!
//! An owner in one namespace serves a wildcard with its certificate; a guest has a host below it and no certificate that can be
//! used. The guest is served over HTTPS only if the wildcard's Secret may be used from its namespace. Otherwise HTTPS for the
//! name stays with the owner, whatever the dialects, whoever was first, however deep the host lies.

use super::requests::TURN;
use super::world::{World, object, settings};
use kinds::{Object, Secret, kind};
use pipeline::Settings;
use pipeline::settings::{Certificates, Packing};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca, envoy::Config};

const OWNER: &str = "ta";
const OTHER: &str = "tb";

/// What a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guest {
    /// An Ingress that says nothing about TLS.
    Ingress,
    /// An Ingress whose Secret is not there.
    IngressWithoutSecret,
    /// A root whose Secret is not there: it answers 503.
    RootWithoutSecret,
}

/// The Secrets of wildcards, by the namespaces that they are delegated to.
const SECRETS: [(&str, &[&str]); 4] =
    [("private", &[]), ("delegated", &[OTHER]), ("public", &["*"]), ("elsewhere", &["tc"])];

/// One wildcard and one guest.
#[derive(Clone, Copy, Debug)]
struct Zone {
    number: usize,
    /// Whether the owner is a root; else it is an Ingress.
    root: bool,
    guest: Guest,
    namespace: &'static str,
    secret: &'static str,
    /// How many labels the guest's host has below the wildcard's name.
    labels: usize,
    /// Whether the guest is the older object.
    older: bool,
}

impl Zone {
    fn all() -> Vec<Zone> {
        let mut zones = Vec::new();
        for root in [false, true] {
            for guest in [Guest::Ingress, Guest::IngressWithoutSecret, Guest::RootWithoutSecret] {
                for namespace in [OWNER, OTHER] {
                    for (secret, _) in SECRETS {
                        for labels in [1, 2] {
                            for older in [false, true] {
                                let number = zones.len();
                                zones.push(Zone { number, root, guest, namespace, secret, labels, older });
                            }
                        }
                    }
                }
            }
        }
        zones
    }

    fn wildcard(&self) -> String {
        format!("*.z{}.example.com", self.number)
    }

    fn host(&self) -> String {
        let label = if self.labels == 1 { "login" } else { "a.login" };
        format!("{label}.z{}.example.com", self.number)
    }

    fn owner_object(&self) -> Object {
        let name = format!("owner-{}", self.number);
        let tls = Some(self.secret);
        match self.root {
            true => root(OWNER, &name, &self.wildcard(), "owner", tls, false),
            false => ingress(OWNER, &name, &self.wildcard(), "owner", tls, false),
        }
    }

    fn guest_object(&self) -> Object {
        let name = format!("guest-{}", self.number);
        let (namespace, host) = (self.namespace, self.host());
        match self.guest {
            Guest::Ingress => ingress(namespace, &name, &host, "guest", None, self.older),
            Guest::IngressWithoutSecret => ingress(namespace, &name, &host, "guest", Some("nobody"), self.older),
            Guest::RootWithoutSecret => root(namespace, &name, &host, "guest", Some("nobody"), self.older),
        }
    }

    /// What is answered over HTTPS, where these Secrets may be used by everybody.
    fn expected(&self, usable: &[&str]) -> &'static str {
        let joins = self.namespace == OWNER || usable.contains(&self.secret);
        match (self.labels, joins, self.guest) {
            // A wildcard is one label deep.
            (2, ..) => "404 -",
            (_, false, _) => "200 owner",
            (_, true, Guest::RootWithoutSecret) => "503 -",
            (_, true, _) => "200 guest",
        }
    }
}

fn meta(namespace: &str, name: &str, older: bool) -> Value {
    let created = if older { "2020-01-01T00:00:00Z" } else { "2022-01-01T00:00:00Z" };
    let created = if name.starts_with("owner") { "2021-01-01T00:00:00Z" } else { created };
    json!({"namespace": namespace, "name": name, "creationTimestamp": created})
}

fn ingress(namespace: &str, name: &str, host: &str, service: &str, secret: Option<&str>, older: bool) -> Object {
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    let tls: Vec<Value> = secret.iter().map(|secret| json!({"hosts": [host], "secretName": secret})).collect();
    let spec = json!({"rules": [{"host": host, "http": {"paths": paths}}], "tls": tls});
    object(kind::INGRESS, &json!({"metadata": meta(namespace, name, older), "spec": spec}))
}

fn root(namespace: &str, name: &str, host: &str, service: &str, secret: Option<&str>, older: bool) -> Object {
    let host = json!({"fqdn": host, "tls": {"secretName": secret}});
    let spec = json!({"virtualhost": host, "routes": [{"services": [{"name": service, "port": 80}]}]});
    object(kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta(namespace, name, older), "spec": spec}))
}

fn service(namespace: &str, name: &str, at: Ipv4Addr) -> Object {
    let annotations = json!({"projectsesame.io/endpoints": format!("{at}:80")});
    let meta = json!({"namespace": namespace, "name": name, "annotations": annotations});
    object(kind::SERVICE, &json!({"metadata": meta, "spec": {"ports": [{"port": 80}]}}))
}

fn secret(ca: &Ca, namespace: &str, name: &str) -> Object {
    let mut secret = Secret::clone(super::world::secret(ca, name, "*.example.com").get::<Secret>().unwrap());
    secret.meta.namespace = namespace.into();
    Object::new(kind::SECRET, secret)
}

fn delegation(secret: &str, to: &[&str]) -> Object {
    let spec = json!({"delegations": [{"secretName": secret, "targetNamespaces": to}]});
    let meta = json!({"namespace": OWNER, "name": secret});
    object(kind::CONTOUR_TLS_CERTIFICATE_DELEGATION, &json!({"metadata": meta, "spec": spec}))
}

/// The answer to a request, and who gave it.
async fn ask(host: &str, sni: &str) -> String {
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).https().sni(sni).host(host);
    match client.get("/").await {
        Ok(answer) => format!("{} {}", answer.status.as_u16(), answer.backend().unwrap_or("-")),
        Err(_) => "refused".to_owned(),
    }
}

async fn check(zones: &[Zone], usable: &[&str], when: &str) {
    let mut wrong = Vec::new();
    for zone in zones {
        let (host, wildcard) = (zone.host(), format!("any.z{}.example.com", zone.number));
        let (found, expected) = (ask(&host, &host).await, zone.expected(usable));
        if found != expected {
            wrong.push(format!("{found}, not {expected}: {zone:?}"));
        }
        let others = ask(&wildcard, &wildcard).await;
        if others != "200 owner" {
            wrong.push(format!("{others} for the wildcard itself: {zone:?}"));
        }
    }
    assert!(wrong.is_empty(), "{when}: {} of {}\n{}", wrong.len(), zones.len(), wrong.join("\n"));
}

/// Who is there first.
#[derive(Clone, Copy, Debug)]
enum First {
    Owners,
    Guests,
}

async fn only_by_right(packing: Packing, certificates: Certificates, first: First) {
    let _turn = TURN.lock().await;
    let (owner, guest) = (Backend::start("owner").await.unwrap(), Backend::start("guest").await.unwrap());
    let ca = Ca::new("wildcard certificate");
    let settings = Settings { certificates, ..settings(packing) };
    let mut world = World::with(&settings, Config::new().name("wildcard"), []).await;
    world.put([
        service(OWNER, "owner", owner.ip()),
        service(OWNER, "guest", guest.ip()),
        service(OTHER, "owner", owner.ip()),
        service(OTHER, "guest", guest.ip()),
    ]);
    let zones = Zone::all();
    let owners = |world: &mut World| {
        world.put(SECRETS.iter().map(|(name, _)| secret(&ca, OWNER, name)));
        let delegated = SECRETS.iter().filter(|(_, to)| !to.is_empty());
        world.put(delegated.map(|(name, to)| delegation(name, to)));
        world.put(zones.iter().map(Zone::owner_object));
    };
    let guests = |world: &mut World| world.put(zones.iter().map(Zone::guest_object));
    match first {
        First::Owners => {
            owners(&mut world);
            world.publish().await;
            guests(&mut world);
        }
        First::Guests => {
            guests(&mut world);
            world.publish().await;
            owners(&mut world);
        }
    }
    world.publish().await;
    let how = format!("{packing:?} {certificates:?} {first:?} first");
    check(&zones, &["delegated", "public"], &how).await;

    // The wildcard that is nearest decides: who may use a wider one's certificate takes nothing from it.
    world.put([
        secret(&ca, OTHER, "own"),
        ingress(OTHER, "wide", "*.nested.example.com", "guest", Some("own"), false),
        ingress(OWNER, "owner-near", "*.a.nested.example.com", "owner", Some("private"), false),
        ingress(OTHER, "below", "login.a.nested.example.com", "guest", None, false),
    ]);
    world.publish().await;
    let (login, wide) = ("login.a.nested.example.com", "b.nested.example.com");
    assert_eq!(ask(login, login).await, "200 owner", "{how}");
    assert_eq!(ask(wide, wide).await, "200 guest", "{how}");
    assert_eq!(ask(login, wide).await, "421 -", "{how}");

    // Rights come and go while the hosts stand.
    let private: Vec<Zone> = zones.iter().copied().filter(|zone| zone.secret == "private").collect();
    let right = delegation("private", &[OTHER]);
    world.put([right.clone()]);
    world.publish().await;
    check(&private, &["private"], &format!("{how}, delegated")).await;
    world.put([delegation("private", &["tc"])]);
    world.publish().await;
    check(&private, &[], &format!("{how}, delegated to somebody else")).await;
    world.put([delegation("private", &["*"])]);
    world.publish().await;
    check(&private, &["private"], &format!("{how}, delegated to everybody")).await;
    world.remove(&right);
    world.publish().await;
    check(&private, &[], &format!("{how}, no longer delegated")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_certificate_serves_others_only_by_right_in_tables() {
    only_by_right(Packing::Plain, Certificates::PerChain, First::Guests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_certificate_serves_others_only_by_right_in_scopes() {
    only_by_right(Packing::Scoped, Certificates::PerChain, First::Owners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_certificate_on_demand_serves_others_only_by_right_in_tables() {
    only_by_right(Packing::Plain, Certificates::OnDemand, First::Owners).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_certificate_on_demand_serves_others_only_by_right_in_scopes() {
    only_by_right(Packing::Scoped, Certificates::OnDemand, First::Guests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcards_certificate_serves_others_only_by_right_as_installed() {
    only_by_right(Packing::Scoped, Certificates::Auto, First::Owners).await;
}
