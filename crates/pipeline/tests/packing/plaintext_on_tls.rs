//! Plaintext on the port of a Listener for TLS: the connection is ended, whatever the Host says about insecure requests.

use super::requests::TURN;
use super::world::{World, object, secret, service};
use kinds::{Kind, Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca};

const PORT: u16 = 9543;

fn of(kind: Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_ended() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("plaintext"));
    let route = json!({ "insecure": { "action": "Route" } });
    let binding = json!({ "namespace": { "from": "ALL" } });
    let _world = World::start(
        Packing::Scoped,
        [
            of(
                kind::LISTENER,
                "https",
                &json!({ "port": PORT, "protocol": "HTTPS", "securityModel": "SECURE", "hostBinding": binding }),
            ),
            of(
                kind::HOST,
                "a",
                &json!({ "hostname": "a.example.com", "tlsSecret": { "name": "tls" }, "requestPolicy": route }),
            ),
            of(kind::MAPPING, "web", &json!({ "hostname": "*", "prefix": "/", "service": "web" })),
            secret(&ca, "tls", "a.example.com"),
            service("web", backend.ip()),
        ],
    )
    .await;
    let client = || Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))).host("a.example.com");
    let encrypted = client().https().sni("a.example.com").trust(&ca);
    assert_eq!(encrypted.get("/").await.unwrap().status, 200);
    assert!(client().get("/").await.is_err());
}
