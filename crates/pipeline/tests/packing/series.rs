//! How much an Envoy has to say about itself: the number of series that a scraper gets does not follow the number of hosts.

use super::requests::TURN;
use super::world::{World, ingress, object, service};
use kinds::{Kind, Object, kind};
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client};

const HOSTS: usize = 5_000;
/// The hosts that are asked for, each through a cluster of its own.
const BUSY: usize = 20;

async fn few_series_at_many_hosts(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, []).await;
    world.put((0..HOSTS).map(|n| ingress(&format!("h{n}"), &format!("h{n}.example.com"), "/", &format!("s{n}"))));
    world.put((0..HOSTS).map(|n| service(&format!("s{n}"), backend.ip())));
    world.publish().await;
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)));
    for number in 0..BUSY {
        let host = format!("h{number}.example.com");
        assert_eq!(client.clone().host(host).get("/").await.unwrap().status, 200);
    }
    let scraper = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8002)));
    let scraped = scraper.get("/stats/prometheus").await.unwrap();
    assert_eq!(scraped.status, 200);
    let text = scraped.text();
    let series = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
    println!("{packing:?}: {series} series at {HOSTS} hosts, {BUSY} of them busy");
    assert!((100..2_000).contains(&series), "{packing:?}: {series} series");
    assert!(text.contains("envoy_cluster_upstream_rq"), "those of a busy cluster are among them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_series_at_many_hosts_in_tables() {
    few_series_at_many_hosts(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_series_at_many_hosts_in_scopes() {
    few_series_at_many_hosts(Packing::Scoped).await;
}

/// The names that a Listener and the Module of Emissary ask for are those that a scraper gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_names_its_statistics_and_methods_of_grpc_have_their_own() {
    const PORT: u16 = 9553;
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let of = |kind: Kind, name: &str, spec: &Value| -> Object {
        object(kind, &json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec }))
    };
    let listener = json!({ "port": PORT, "protocol": "HTTP", "securityModel": "XFP", "statsPrefix": "edge-of.a",
        "hostBinding": { "namespace": { "from": "ALL" } } });
    let host = json!({ "hostname": "*", "requestPolicy": { "insecure": { "action": "Route" } } });
    let _world = World::start(
        Packing::Scoped,
        [
            of(kind::LISTENER, "own", &listener),
            of(kind::HOST, "any", &host),
            of(kind::MODULE, "ambassador", &json!({ "config": { "grpc_stats": { "all_methods": true } } })),
            of(
                kind::MAPPING,
                "grpc",
                &json!({ "hostname": "*", "prefix": "/", "rewrite": "", "service": "web", "grpc": true }),
            ),
            service("web", backend.ip()),
        ],
    )
    .await;
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))).host("a.example.com").http2();
    let call = client.post("/sesame.echo.v1.Echo/Say", "").header("content-type", "application/grpc");
    assert_eq!(call.await.unwrap().status, 200);
    let scraped = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8002))).get("/stats/prometheus").await.unwrap();
    let text = scraped.text();
    assert!(text.contains("envoy_http_conn_manager_prefix=\"edge_of_a\""), "no statistics of edge_of_a: {text}");
    assert!(text.contains("Echo_Say"), "no statistics of the method: {text}");
}
