//! How much an Envoy has to say about itself: the number of series that a scraper gets does not follow the number of hosts.

use super::requests::TURN;
use super::world::{World, ingress, service};
use pipeline::settings::Packing;
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
