//! A route whose cluster is not there: Envoy takes it, answers 503 for it, and serves everybody else.

use super::requests::TURN;
use super::world::{World, ingress, service};
use pipeline::settings::Packing;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client};
use xds::Kind;

async fn an_absent_cluster_is_a_503(packing: Packing) {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let mut world = World::start(packing, [service("web", backend.ip()), service("lost", backend.ip())]).await;
    world.put([
        ingress("first", "first.example.com", "/", "web"),
        ingress("lost", "lost.example.com", "/", "lost"),
        ingress("wild-lost", "*.example.org", "/", "lost"),
        ingress("last", "last.example.com", "/", "web"),
    ]);
    let mut changes = world.pipeline.settle().xds;
    let before = changes.upserts.len();
    let is_cluster = |kind| matches!(kind, Kind::Cluster | Kind::Endpoints);
    changes.upserts.retain(|resource| !is_cluster(resource.kind) || !resource.name.contains("lost"));
    assert!(changes.upserts.len() < before, "a cluster is left out");
    // Fails if anything is refused.
    world.proxy.publish(changes).await.unwrap();
    for (host, status) in
        [("first.example.com", 200), ("lost.example.com", 503), ("x.example.org", 503), ("last.example.com", 200)]
    {
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host);
        assert_eq!(client.get("/").await.unwrap().status, status, "{packing:?} {host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_cluster_is_a_503_in_tables() {
    an_absent_cluster_is_a_503(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_cluster_is_a_503_in_scopes() {
    an_absent_cluster_is_a_503(Packing::Scoped).await;
}
