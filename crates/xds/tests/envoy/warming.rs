//! Clusters that take long to warm, or never do: nobody else waits for them, and a cut in the middle heals at once.

use std::time::{Duration, Instant};

use envoy_api::envoy::config::core::v3::HealthCheck;
use envoy_api::envoy::config::core::v3::health_check::{HealthChecker, TcpHealthCheck};
use envoy_api::seconds;
use testbed::{Backend, Client, Envoy, Net, eventually};
use xds::Resource;

use crate::bed::{Replica, TIMEOUT, address, launch};
use crate::world::{cluster, cluster_with, endpoints, hosts, routes, serving};

mod cut;

/// A cluster with a health check that never gets an answer.
fn never_healthy(name: &str) -> Resource {
    let check = HealthCheck {
        timeout: Some(seconds(60)),
        interval: Some(seconds(60)),
        healthy_threshold: Some(1.into()),
        unhealthy_threshold: Some(1.into()),
        health_checker: Some(HealthChecker::TcpHealthCheck(TcpHealthCheck::default())),
        ..Default::default()
    };
    cluster_with(name, |cluster| cluster.health_checks = vec![check]).warming()
}

/// Publishes a new host and measures how long it takes to be served.
async fn serve_another(replica: &Replica, at: std::net::SocketAddr, hosts: &mut Vec<String>, backend: &Backend) {
    let host = format!("new{}.example.com", hosts.len());
    hosts.push(host.clone());
    let start = Instant::now();
    replica.publish(vec![cluster(&host), endpoints(&host, backend.http()), routes(hosts.iter().map(String::as_str))]);
    let served = async || match Client::new(at).host(&host).get("/").await.unwrap().status.as_u16() {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the new host to be served", TIMEOUT, served).await.unwrap();
    let took = start.elapsed();
    println!("{host} served after {took:?}");
    assert!(took < Duration::from_secs(1), "served only after {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_cluster_that_never_becomes_healthy() {
    let backend = Backend::start("a").await.unwrap();
    let at = Net::here().unwrap().socket(80);
    // Takes connections into its queue and never answers a check.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind(Net::here().unwrap().socket(80)).unwrap();
    let replica = Replica::start(address(), None);
    let mut hosts = hosts(3);
    replica.publish(serving(at, &hosts, backend.http()));
    let envoy = launch(replica.address, None, None).await;
    envoy.ready().await.unwrap();
    replica.in_step().await;

    let silent = blackhole(silent).await;
    replica.publish(vec![never_healthy("sick"), endpoints("sick", silent.address)]);
    envoy.expect_stat("cluster_manager.warming_clusters", TIMEOUT, |count| count == 1).await.unwrap();
    for _ in 0..3 {
        serve_another(&replica, at, &mut hosts, &backend).await;
    }
    // The same for one that becomes sick while it serves, and for a whole fleet of them.
    replica.publish(vec![never_healthy(&hosts[0])]);
    for number in 0..20 {
        let name = format!("sick{number}");
        replica.publish(vec![never_healthy(&name), endpoints(&name, silent.address)]);
    }
    serve_another(&replica, at, &mut hosts, &backend).await;
    assert!(envoy.stat("cluster_manager.warming_clusters").await.unwrap() >= Some(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_endpoints_that_never_come() {
    let backend = Backend::start("a").await.unwrap();
    let at = Net::here().unwrap().socket(80);
    let replica = Replica::start(address(), None);
    let mut hosts = hosts(3);
    replica.publish(serving(at, &hosts, backend.http()));
    let envoy = launch(replica.address, None, None).await;
    envoy.ready().await.unwrap();
    replica.in_step().await;

    replica.publish(vec![cluster("lonely")]);
    serve_another(&replica, at, &mut hosts, &backend).await;
    envoy.expect_stat("cluster_manager.warming_clusters", Duration::from_secs(2), |count| count == 0).await.unwrap();

    // One that is there from the start does not keep a new Envoy from being ready, either.
    let start = Instant::now();
    let second = launch(replica.address, None, None).await;
    second.ready().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "ready only after {:?}", start.elapsed());
}

/// A port whose queue is full: connections to it hang, as to a machine that is gone.
struct Blackhole {
    address: std::net::SocketAddr,
    _listener: tokio::net::TcpListener,
    _waiting: Vec<tokio::net::TcpStream>,
}

async fn blackhole(socket: tokio::net::TcpSocket) -> Blackhole {
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    // The kernel takes a few more than it was told to; when it takes no more, the queue is full.
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(address)).await
    {
        waiting.push(stream);
    }
    Blackhole { address, _listener: listener, _waiting: waiting }
}

/// Waits until no cluster warms any more, and says how long that took.
async fn warmed(envoy: &Envoy) -> Duration {
    let start = Instant::now();
    let none = async || {
        let warming = envoy.resources("dynamic_warming_clusters").await.map_err(|error| error.to_string())?;
        if warming.is_empty() { Ok(()) } else { Err(format!("{} clusters warm", warming.len())) }
    };
    eventually("no cluster to warm", TIMEOUT, none).await.unwrap();
    start.elapsed()
}
