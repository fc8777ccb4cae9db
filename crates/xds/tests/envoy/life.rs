//! An Envoy's life with its server: before it is there, while it serves, and when it goes and comes back.

use std::time::{Duration, Instant};

use testbed::{Backend, Client, Load, Net, eventually};

use crate::bed::{Replica, Secrets, TIMEOUT, address, launch};
use crate::world::{cluster, endpoints, hosts, listener, routes, serving};

#[tokio::test(flavor = "multi_thread")]
async fn it_boots_serves_and_takes_changes() {
    let (a, b) = (Backend::start("a").await.unwrap(), Backend::start("b").await.unwrap());
    let secrets = Secrets::new();
    let replica = Replica::start(address(), Some(secrets.server_files()));
    let at = Net::here().unwrap().socket(80);
    let hosts = hosts(10);
    replica.publish(serving(at, &hosts, a.http()));
    let envoy = launch(replica.address, Some(secrets.envoy_files()), None).await;
    envoy.ready().await.unwrap();
    for host in &hosts {
        assert_eq!(Client::new(at).host(host).get("/").await.unwrap().echo().name, "a");
    }
    replica.publish(vec![endpoints(&hosts[3], b.http())]);
    let moved = async || match Client::new(at).host(&hosts[3]).get("/").await.unwrap().echo().name.as_str() {
        "b" => Ok(()),
        other => Err(other.to_owned()),
    };
    eventually("the host to move", TIMEOUT, moved).await.unwrap();
    assert_eq!(Client::new(at).host(&hosts[4]).get("/").await.unwrap().echo().name, "a");
}

/// Under load the server goes, by `end`, and comes back with the same world: nothing is sent again, and nothing is lost.
async fn survives(end: impl AsyncFnOnce(Replica)) {
    let backend = Backend::start("a").await.unwrap();
    let secrets = Secrets::new();
    let first = Replica::start(address(), Some(secrets.server_files()));
    let at = Net::here().unwrap().socket(80);
    let mut hosts = hosts(100);
    let world = serving(at, &hosts, backend.http());
    first.publish(world.clone());
    let envoy = launch(first.address, Some(secrets.envoy_files()), None).await;
    envoy.ready().await.unwrap();
    first.in_step().await;
    let sent = first.sent();
    assert!(sent["cds"] > 0 && sent["eds"] > 0 && sent["rds"] > 0 && sent["lds"] > 0, "{sent:?}");

    let names = hosts.clone();
    let load = Load::of(Client::new(at).get("/"))
        .vary(move |number, request| request.header("host", &names[number as usize % names.len()]))
        .per_second(200)
        .start();
    load.answered(50).await;
    let address = first.address;
    end(first).await;
    load.answered(50).await;

    let second = Replica::start(address, Some(secrets.server_files()));
    second.publish(world);
    let back = Instant::now();
    second.in_step().await;
    println!("in step {:?} after the server was back", back.elapsed());
    load.answered(100).await;
    let resent = second.sent();
    let types = ["cds", "eds", "sds", "rds", "lds"];
    let bytes: u64 = types.iter().filter_map(|name| resent.get(*name)).sum();
    assert_eq!(bytes, 0, "what Envoy had was sent again: {resent:?}");

    // And the new one is listened to.
    hosts.push("new.example.com".to_owned());
    let added = vec![
        cluster("new.example.com"),
        endpoints("new.example.com", backend.http()),
        routes(hosts.iter().map(String::as_str)),
    ];
    second.publish(added);
    let served = async || match Client::new(at).host("new.example.com").get("/").await.unwrap().status.as_u16() {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the new host to be served", TIMEOUT, served).await.unwrap();
    let report = load.stop().await;
    println!("{report}");
    report.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_of_the_server_costs_nothing() {
    survives(async |replica| replica.stop().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_server_costs_nothing() {
    survives(async |replica| replica.kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_that_is_there_first_waits_for_its_server() {
    let backend = Backend::start("a").await.unwrap();
    let secrets = Secrets::new();
    let server = address();
    let at = Net::here().unwrap().socket(80);
    let envoy = launch(server, Some(secrets.envoy_files()), None).await;
    envoy.expect_stat("cluster.sesame.upstream_cx_connect_fail", TIMEOUT, |failed| failed >= 4).await.unwrap();
    let ready = envoy.admin().get("/ready").await.unwrap_err().to_string();
    assert!(ready.contains("INITIALIZING"), "{ready}");

    // The server is there, but does not know its world yet.
    let replica = Replica::start(server, Some(secrets.server_files()));
    let start = Instant::now();
    envoy.expect_stat("control_plane.connected_state", TIMEOUT, |state| state == 1).await.unwrap();
    println!("connected {:?} after the server was there", start.elapsed());
    assert!(envoy.admin().get("/ready").await.is_err(), "an Envoy without its configuration must not be ready");

    replica.publish(serving(at, &hosts(3), backend.http()));
    let start = Instant::now();
    envoy.ready().await.unwrap();
    println!("ready {:?} after the world was published", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(Client::new(at).host("h1.example.com").get("/").await.unwrap().status, 200);
}

/// The answer "there is no such runtime layer" is one, too: nothing that the bootstrap asks for keeps Envoy waiting.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_world_makes_an_envoy_ready() {
    let replica = Replica::start(address(), None);
    replica.publish(Vec::new());
    let start = Instant::now();
    let envoy = launch(replica.address, None, None).await;
    envoy.ready().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "ready only after {:?}", start.elapsed());
    let at = Net::here().unwrap().socket(80);
    let backend = Backend::start("a").await.unwrap();
    replica.publish(vec![cluster("a"), endpoints("a", backend.http()), routes(["a"]), listener(at)]);
    let served = async || Client::new(at).host("a").get("/").await.map_err(|failure| failure.to_string());
    eventually("the first listener", TIMEOUT, served).await.unwrap();
}
