//! An AuthService of Emissary while connections are open: it protects the next request, an edit of it is no edit of Mappings, and one
//! that cannot be used closes them.

use super::requests::TURN;
use super::world::{World, http_port, object, service};
use envoy::{listener::slots::Slot, name};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, auth_server::AuthServer, certs::Ca};

fn of(kind: kinds::Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

fn auth_service(timeout: u32, service: &str) -> Object {
    let spec = json!({ "auth_service": service, "proto": "grpc", "timeout_ms": timeout });
    of(kind::AUTH_SERVICE, "auth", &spec)
}

async fn it_protects_open_connections(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("auth-service"));
    let server = AuthServer::start("auth", ca.leaf("auth").make().server_config()).await.unwrap();
    let binding = json!({ "namespace": { "from": "ALL" } });
    let route = json!({ "insecure": { "action": "Route" } });
    let mapping = |name: &str, bypasses: bool| {
        let spec = json!({ "hostname": "*", "prefix": format!("/{name}/"), "service": "web", "bypass_auth": bypasses });
        of(kind::MAPPING, name, &spec)
    };
    let objects = [
        of(
            kind::LISTENER,
            "http",
            &json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding }),
        ),
        of(kind::HOST, "one", &json!({ "hostname": "one.example.com", "requestPolicy": route })),
        mapping("guarded", false),
        mapping("open", true),
        service("web", backend.ip()),
        service("auth", server.ip()),
    ];
    let mut world = World::start(packing, objects).await;
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host("one.example.com").http2();
    let connection = client.connect().await.unwrap();
    let denied = async |path: &str| connection.get(path).header("x-auth", "deny").await.unwrap().status.as_u16();
    assert_eq!((denied("/guarded/").await, denied("/open/").await), (200, 200), "{packing:?}");

    world.put([auth_service(2000, "auth")]);
    world.publish().await;
    assert_eq!((denied("/guarded/").await, denied("/open/").await), (401, 200), "{packing:?}");
    assert_eq!(connection.get("/guarded/").await.unwrap().status, 200);

    // Another timeout is a matter of the slot alone.
    let slot = format!("ecds {}", name::slot(&http_port(), Slot::ExtAuthzOfFleet));
    world.put([auth_service(3000, "auth")]);
    assert_eq!(world.publish().await, (vec![slot.clone()], Vec::new()), "{packing:?}");
    assert_eq!(denied("/guarded/").await, 401, "{packing:?}");

    // A service that is not there closes what it is to protect, also for requests that it would let pass.
    world.put([auth_service(3000, "absent")]);
    let (set, _) = world.publish().await;
    assert!(set.contains(&slot), "{set:?}");
    assert_eq!((connection.get("/guarded/").await.unwrap().status.as_u16(), denied("/open/").await), (503, 200));

    world.remove(&auth_service(3000, "absent"));
    world.publish().await;
    assert_eq!((denied("/guarded/").await, denied("/open/").await), (200, 200), "{packing:?}");
    world.pipeline.self_check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auth_service_protects_open_connections_in_tables() {
    it_protects_open_connections(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auth_service_protects_open_connections_in_scopes() {
    it_protects_open_connections(Packing::Scoped).await;
}
