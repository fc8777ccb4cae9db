//! One resource that Envoy refuses, among a thousand that it takes.

use std::net::SocketAddr;
use std::time::Instant;

use envoy_api::Message;
use envoy_api::envoy::config::cluster::v3::cluster::LbPolicy;
use envoy_api::envoy::config::listener::v3::Listener;
use envoy_api::google::protobuf;
use testbed::{Backend, Client, Envoy, Net};
use xds::{Event, Kind, Rejection, Resource};

use crate::bed::{Replica, TIMEOUT, address, launch};
use crate::world::{cluster, cluster_with, endpoints, hosts, listener, routes, serving, socket};

const MANY: usize = 1000;
/// The clusters of as many hosts and the two of the bootstrap.
const ALL: u64 = MANY as u64 + 2;

/// An Envoy that has the listener and nothing else, and its server.
async fn bed(at: SocketAddr) -> (Replica, Envoy) {
    let replica = Replica::start(address(), None);
    replica.publish(vec![listener(at), routes([])]);
    let envoy = launch(replica.address, None, None).await;
    envoy.ready().await.unwrap();
    replica.in_step().await;
    (replica, envoy)
}

/// Publishes a world with one bad resource in it, and gives what the server says about that one.
async fn publish_with(bad: Vec<Resource>) -> (Rejection, Replica, Envoy, SocketAddr) {
    let at = Net::here().unwrap().socket(80);
    let backend = Backend::start("a").await.unwrap();
    let (replica, envoy) = bed(at).await;
    let mut events = replica.server.events();
    let hosts = hosts(MANY);
    let mut world = serving(at, &hosts, backend.http());
    world.splice(MANY..MANY, bad);
    let start = Instant::now();
    replica.publish(world);
    let refused = async {
        loop {
            if let Event::Rejected(rejection) = events.recv().await.unwrap() {
                return rejection;
            }
        }
    };
    let rejection = testbed::within("the rejection", TIMEOUT, refused).await.unwrap();
    println!("refused after {:?}: {}", start.elapsed(), rejection.text);

    for host in &hosts {
        let served = async || match Client::new(at).host(host).get("/").await.unwrap().status.as_u16() {
            200 => Ok(()),
            other => Err(other),
        };
        testbed::eventually(format!("{host} to be served"), TIMEOUT, served).await.unwrap();
    }
    println!("all {MANY} served after {:?}", start.elapsed());

    // It ends there: the same is not tried over and over.
    let tries = rejected(&envoy, rejection.kind).await;
    assert!(tries <= 12, "{tries} responses were refused: more than a search by halves takes");
    replica.publish(vec![cluster("later"), endpoints("later", backend.http())]);
    envoy.expect_stat("cluster_manager.active_clusters", TIMEOUT, |count| count == ALL + 1).await.unwrap();
    assert_eq!(rejected(&envoy, rejection.kind).await, tries, "what was refused was sent again");
    (rejection, replica, envoy, at)
}

async fn rejected(envoy: &Envoy, kind: Kind) -> u64 {
    let stat = match kind {
        Kind::Cluster => "cluster_manager.cds.update_rejected",
        _ => "listener_manager.lds.update_rejected",
    };
    envoy.stat(stat).await.unwrap().unwrap_or(0)
}

fn broken_cluster() -> Resource {
    // A policy that only clusters of another type may have: found when the cluster is made.
    cluster_with("bad", |cluster| cluster.lb_policy = LbPolicy::ClusterProvided.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_made_hurts_only_itself() {
    let at = Net::here().unwrap().socket(80);
    let (rejection, replica, envoy, _) = publish_with(vec![broken_cluster(), endpoints("bad", at)]).await;
    assert_eq!((rejection.kind, &*rejection.name), (Kind::Cluster, "bad"));
    assert_eq!(&*rejection.client.version, "1.40.0");

    // Mended, it is taken.
    replica.publish(vec![cluster("bad")]);
    envoy.expect_stat("cluster_manager.active_clusters", TIMEOUT, |count| count == ALL + 2).await.unwrap();
    replica.in_step().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_a_field_out_of_range_hurts_only_itself() {
    let bad = cluster_with("bad", |cluster| {
        cluster.connect_timeout = Some(protobuf::Duration { seconds: -1, nanos: 0 });
    });
    let (rejection, ..) = publish_with(vec![bad]).await;
    assert_eq!((rejection.kind, &*rejection.name), (Kind::Cluster, "bad"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_cannot_be_made_hurts_only_itself() {
    let message = Listener {
        name: "bad".to_owned(),
        address: Some(socket(Net::here().unwrap().socket(81))),
        ..Default::default()
    };
    let (rejection, ..) = publish_with(vec![Resource::new(Kind::Listener, "bad", message.encode_to_vec())]).await;
    assert_eq!((rejection.kind, &*rejection.name), (Kind::Listener, "bad"));
}
