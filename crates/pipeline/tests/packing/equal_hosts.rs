//! Hosts of Emissary with the same routes, through a real Envoy: they answer as if each had routes of its own, and a host that comes to have
//! one, or loses it, loses no request.

use super::requests::TURN;
use super::world::{World, object, service};
use kinds::{Kind, Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, Load};

const PORT: u16 = 9544;

fn of(kind: Kind, name: &str, spec: &Value) -> Object {
    object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

fn host(name: &str) -> Object {
    let policy = json!({ "insecure": { "action": "Route" } });
    of(kind::HOST, name, &json!({ "hostname": format!("{name}.example.com"), "requestPolicy": policy }))
}

fn mapping(name: &str, hostname: &str, prefix: &str) -> Object {
    of(kind::MAPPING, name, &json!({ "hostname": hostname, "prefix": prefix, "service": "web", "timeout_ms": 60_000 }))
}

async fn status(host: &str, path: &str) -> u16 {
    client(host).get(path).await.unwrap().status.as_u16()
}

fn client(host: &str) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))).host(host)
}

async fn answers(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let binding = json!({ "namespace": { "from": "ALL" } });
    let listener = json!({ "port": PORT, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    let objects = [
        of(kind::LISTENER, "http", &listener),
        host("a"),
        host("b"),
        mapping("all", "*", "/all/"),
        mapping("below", "*.example.com", "/below/"),
        service("web", backend.ip()),
    ];
    let mut world = World::start(packing, objects).await;
    for host in ["a.example.com", "b.example.com", "A.Example.COM", "b.example.com:9544"] {
        for (path, expected) in [("/all/", 200), ("/below/x", 200), ("/other/", 404)] {
            assert_eq!(status(host, path).await, expected, "{packing:?} {host}{path}");
        }
    }
    // Neither a name that nobody has nor that of the routes finds them.
    for host in ["c.example.com", "shared", "shared:1", "example.com"] {
        assert_eq!(status(host, "/all/").await, 404, "{packing:?} {host}");
    }

    world.put([mapping("all", "*", "/edited/")]);
    let (set, gone) = world.publish().await;
    assert_eq!((set.len(), gone.len()), (1, 0), "{packing:?} {set:?}");
    for host in ["a.example.com", "b.example.com"] {
        assert_eq!((status(host, "/edited/").await, status(host, "/all/").await), (200, 404), "{packing:?} {host}");
    }

    let loads =
        ["a.example.com", "b.example.com"].map(|host| Load::of(client(host).get("/below/")).per_second(20).start());
    for load in &loads {
        load.answered(5).await;
    }
    for _ in 0..3 {
        world.put([mapping("own", "a.example.com", "/own/")]);
        world.publish().await;
        assert_eq!((status("a.example.com", "/own/").await, status("b.example.com", "/own/").await), (200, 404));
        assert_eq!((status("a.example.com", "/edited/").await, status("b.example.com", "/edited/").await), (200, 200));
        world.remove(&mapping("own", "a.example.com", "/own/"));
        world.publish().await;
        assert_eq!((status("a.example.com", "/own/").await, status("a.example.com", "/edited/").await), (404, 200));
        // All of them change what they share.
        world.put([mapping("own", "b.example.com", "/own/"), mapping("all", "*", "/again/")]);
        world.publish().await;
        world.remove(&mapping("own", "b.example.com", "/own/"));
        world.put([mapping("all", "*", "/edited/")]);
        world.publish().await;
    }
    for load in loads {
        load.stop().await.assert_nothing_lost();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_scopes_they_answer_alike() {
    answers(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_tables_they_answer_alike() {
    answers(Packing::Plain).await;
}
