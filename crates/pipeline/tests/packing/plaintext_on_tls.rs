//! Plaintext on the port of a Listener for TLS: requests get what their Host does with insecure ones, whatever the security model, and
//! those over TLS are served as ever. A TLS port without such a Listener ends plaintext connections.

use super::requests::TURN;
use super::world::{World, ingress_with, object, secret, service};
use kinds::{Kind, Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use testbed::{Backend, Client, certs::Ca, eventually};

const XFP: u16 = 9543;
const BEHIND: u16 = 9544;
const SECURE: u16 = 9545;
/// The shared listener's.
const SHARED: u16 = 8443;

const ACTIONS: [(&str, &str); 3] = [("Route", "200"), ("Redirect", "301"), ("Reject", "404")];

fn of(kind: Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

fn listener(name: &str, port: u16, model: &str, depth: u32) -> Object {
    let binding = json!({ "namespace": { "from": "ALL" } });
    let spec =
        json!({ "port": port, "protocol": "HTTPS", "securityModel": model, "l7Depth": depth, "hostBinding": binding });
    of(kind::LISTENER, name, &spec)
}

fn hostname(action: &str) -> String {
    format!("{}.example.com", action.to_lowercase())
}

fn host(name: &str, action: &str) -> Object {
    let policy = json!({ "insecure": { "action": action } });
    let spec = json!({ "hostname": hostname(name), "tlsSecret": { "name": "tls" }, "requestPolicy": policy });
    of(kind::HOST, &name.to_lowercase(), &spec)
}

fn mapping() -> Object {
    of(kind::MAPPING, "web", &json!({ "hostname": "*", "prefix": "/", "service": "web" }))
}

fn at(port: u16, host: &str) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).host(host)
}

async fn status(client: Client) -> String {
    client.get("/").await.unwrap().status.as_u16().to_string()
}

async fn actions_are_obeyed(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("plaintext"));
    let listeners = [listener("xfp", XFP, "XFP", 0), listener("behind", BEHIND, "XFP", 1)];
    let others = [
        listener("secure", SECURE, "SECURE", 0),
        mapping(),
        secret(&ca, "tls", "*.example.com"),
        service("web", backend.ip()),
    ];
    let hosts = ACTIONS.map(|(action, _)| host(action, action));
    let mut world = World::start(packing, hosts.into_iter().chain(listeners).chain(others)).await;
    for (action, expected) in ACTIONS {
        let name = hostname(action);
        let encrypted = |port| at(port, &name).https().sni(&*name).trust(&ca);
        for port in [XFP, SECURE] {
            let plaintext = at(port, &name);
            // What a client says about itself counts for nothing.
            let forged = plaintext.clone().header("x-forwarded-proto", "https");
            for client in [plaintext.clone().http1(), plaintext.http2(), forged.clone().http1(), forged.http2()] {
                assert_eq!(status(client).await, expected, "{action} in plaintext on {port}");
            }
            for client in [encrypted(port), encrypted(port).header("x-forwarded-proto", "http")] {
                assert_eq!(status(client).await, "200", "{action} over TLS on {port}");
            }
        }
        // A proxy in front is believed, on either kind of connection.
        for client in [at(BEHIND, &name), encrypted(BEHIND)] {
            assert_eq!(status(client.clone().header("x-forwarded-proto", "https")).await, "200", "{action}");
            assert_eq!(status(client.header("x-forwarded-proto", "http")).await, expected, "{action}");
        }
    }
    let redirect = at(XFP, &hostname("Redirect")).get("/a?b=c").await.unwrap();
    assert_eq!(redirect.header("location"), Some("https://redirect.example.com/a?b=c"));
    assert_eq!(status(at(XFP, "unknown.example.org")).await, "404");

    // What a Host does with insecure requests is no matter of listeners.
    world.put([host("Route", "Reject")]);
    let (set, gone) = world.publish().await;
    assert!(!set.iter().chain(&gone).any(|name| name.starts_with("lds ")), "{set:?} {gone:?}");
    assert_eq!(status(at(XFP, &hostname("Route"))).await, "404");
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_are_obeyed_in_tables() {
    actions_are_obeyed(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_are_obeyed_in_scopes() {
    actions_are_obeyed(Packing::Scoped).await;
}

/// Hosts of the Listener alone, while it is there; connections of others go on whether it comes or goes.
async fn the_shared_port_has_plaintext_by_a_listener(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("shared"));
    let other = "ingress.example.com";
    let mut world = World::start(
        packing,
        [
            ingress_with("web", other, "/", "web", &json!({}), &[(other, "own")]),
            secret(&ca, "own", other),
            secret(&ca, "tls", "*.example.com"),
            service("web", backend.ip()),
            host("Route", "Route"),
            mapping(),
        ],
    )
    .await;
    let connection = at(SHARED, other).https().sni(other).trust(&ca).connect().await.unwrap();
    assert_eq!(connection.get("/").await.unwrap().status, 200);
    assert!(at(SHARED, other).get("/").await.is_err());

    let listener = listener("shared", SHARED, "SECURE", 0);
    world.put([listener.clone()]);
    world.publish().await;
    assert_eq!(status(at(SHARED, &hostname("Route"))).await, "200");
    assert_eq!(status(at(SHARED, other)).await, "404", "the Ingress has no plaintext on this port");
    assert_eq!(connection.get("/").await.unwrap().status, 200);

    world.remove(&listener);
    world.publish().await;
    let is_ended = async || match at(SHARED, &hostname("Route")).get("/").await {
        Ok(answer) => Err(answer.status),
        Err(_) => Ok(()),
    };
    eventually("plaintext to be ended", Duration::from_secs(20), is_ended).await.unwrap();
    assert_eq!(connection.get("/").await.unwrap().status, 200);
    assert!(connection.is_open() && connection.requests() == 3);
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shared_port_has_plaintext_by_a_listener_in_tables() {
    the_shared_port_has_plaintext_by_a_listener(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shared_port_has_plaintext_by_a_listener_in_scopes() {
    the_shared_port_has_plaintext_by_a_listener(Packing::Scoped).await;
}
