//! TCPMappings that share connections, through a real Envoy: weights are shares, an edit of one is no edit of a listener, and
//! connections that are idle are ended.

use super::requests::TURN;
use super::world::{World, object, service};
use kinds::{Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};
use testbed::{Backend, Client};
use tokio::{io::AsyncReadExt, net::TcpStream};

/// How many connections are counted.
const CONNECTIONS: u32 = 600;
const PORT: u16 = 9601;

fn mapping(name: &str, spec: &Value) -> Object {
    object(kind::TCP_MAPPING, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
}

async fn answers() -> BTreeMap<String, u32> {
    let mut answers = BTreeMap::new();
    for _ in 0..CONNECTIONS {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))).host("a.example.com");
        let answer = client.get("/").await.unwrap();
        *answers.entry(answer.backend().unwrap_or("none").to_owned()).or_default() += 1;
    }
    answers
}

/// Whether a backend got about so many in a hundred: five standard deviations at most away.
fn is_about(answers: &BTreeMap<String, u32>, backend: &str, percent: f64) {
    let found = f64::from(answers.get(backend).copied().unwrap_or_default()) * 100.0 / f64::from(CONNECTIONS);
    let deviation = (percent * (100.0 - percent) / f64::from(CONNECTIONS)).sqrt();
    assert!((found - percent).abs() < 5.0 * deviation, "{backend}: {found} %, not {percent} %: {answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_of_tcp_mappings_are_shares() {
    let _turn = TURN.lock().await;
    let backends =
        [Backend::start("a").await.unwrap(), Backend::start("b").await.unwrap(), Backend::start("c").await.unwrap()];
    let mut world = World::start(
        Packing::Scoped,
        [
            service("a", backends[0].ip()),
            service("b", backends[1].ip()),
            service("c", backends[2].ip()),
            mapping("ten", &json!({ "port": PORT, "service": "a", "weight": 10 })),
            mapping("forty", &json!({ "port": PORT, "service": "b", "weight": 40 })),
            mapping("rest", &json!({ "port": PORT, "service": "c" })),
        ],
    )
    .await;
    let found = answers().await;
    is_about(&found, "a", 10.0);
    is_about(&found, "b", 40.0);
    is_about(&found, "c", 50.0);

    // Other shares, and an idle timeout: where the port leads is all that changes.
    world.put([mapping("ten", &json!({ "port": PORT, "service": "a", "weight": 50, "idle_timeout_ms": "100" }))]);
    let (set, gone) = world.publish().await;
    assert_eq!((set.len(), &gone[..]), (1, &[][..]), "{set:?}");
    assert!(set[0].starts_with("ecds "), "{set:?}");
    is_about(&answers().await, "a", 50.0);
    let mut idle = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).await.unwrap();
    assert_eq!(idle.read(&mut [0; 8]).await.unwrap(), 0, "an idle connection is ended");
    world.pipeline.self_check().unwrap();
}
