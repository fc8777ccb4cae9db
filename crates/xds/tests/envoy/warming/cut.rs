//! A stream that is cut while a changed cluster warms: Envoy has the cluster, and its endpoints were on their way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use envoy_api::seconds;
use testbed::{Backend, Client, Net};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::warmed;
use crate::bed::{Replica, TIMEOUT, address, launch};
use crate::world::{cluster_with, hosts, serving};

/// A proxy between Envoy and its server that can cut a connection right after a response with clusters has passed.
struct Between {
    address: SocketAddr,
    server: watch::Sender<SocketAddr>,
    armed: Arc<AtomicBool>,
    cuts: mpsc::UnboundedReceiver<()>,
    task: AbortHandle,
}

impl Between {
    async fn start(server: SocketAddr) -> Between {
        let listener = TcpListener::bind(address()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (server, target) = watch::channel(server);
        let (cut, cuts) = mpsc::unbounded_channel();
        let armed = Arc::new(AtomicBool::new(false));
        let arm = armed.clone();
        let task = tokio::spawn(async move {
            loop {
                let (envoy, _) = listener.accept().await.unwrap();
                // Not there yet: closed at once, as by a machine without a server.
                let to = *target.borrow();
                let Ok(server) = TcpStream::connect(to).await else { continue };
                tokio::spawn(pass(envoy, server, arm.clone(), cut.clone()));
            }
        });
        Between { address, server, armed, cuts, task: task.abort_handle() }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes everything to the server, and whole HTTP/2 frames to Envoy; armed, the first frame with a cluster is the last.
async fn pass(envoy: TcpStream, server: TcpStream, armed: Arc<AtomicBool>, cut: mpsc::UnboundedSender<()>) {
    let (mut from_envoy, mut to_envoy) = envoy.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let upwards = tokio::spawn(async move { drop(tokio::io::copy(&mut from_envoy, &mut to_server).await) });
    let mut frame = Vec::new();
    loop {
        let mut head = [0; 9];
        if from_server.read_exact(&mut head).await.is_err() {
            break;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        frame.clear();
        frame.extend_from_slice(&head);
        frame.resize(9 + length, 0);
        if from_server.read_exact(&mut frame[9..]).await.is_err() || to_envoy.write_all(&frame).await.is_err() {
            break;
        }
        let is_cluster = frame.windows(CLUSTER.len()).any(|window| window == CLUSTER);
        if is_cluster && armed.swap(false, Ordering::SeqCst) {
            let _ = cut.send(());
            break;
        }
    }
    upwards.abort();
}

const CLUSTER: &[u8] = b"type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// Cuts the stream in the middle of warming, then lets Envoy reconnect to the replica that `next` gives.
async fn heals(next: impl FnOnce(Replica, &[xds::Resource]) -> Replica) {
    let backend = Backend::start("a").await.unwrap();
    let at = Net::here().unwrap().socket(80);
    let first = Replica::start(address(), None);
    let mut between = Between::start(first.address).await;
    let hosts = hosts(20);
    let mut world = serving(at, &hosts, backend.http());
    first.publish(world.clone());
    let envoy = launch(between.address, None, None).await;
    envoy.ready().await.unwrap();
    first.in_step().await;

    // Nobody answers after the cut until we say so.
    let nowhere = Net::here().unwrap().socket(1);
    between.server.send(nowhere).unwrap();
    between.armed.store(true, Ordering::SeqCst);
    let changed = cluster_with(&hosts[7], |cluster| cluster.connect_timeout = Some(seconds(3)));
    first.publish(vec![changed.clone()]);
    testbed::within("the cut", TIMEOUT, between.cuts.recv()).await.unwrap().unwrap();
    envoy.expect_stat("cluster_manager.warming_clusters", TIMEOUT, |count| count == 1).await.unwrap();
    assert_eq!(Client::new(at).host(&hosts[7]).get("/").await.unwrap().status, 200, "the old cluster serves meanwhile");

    world.push(changed);
    let next = next(first, &world);
    between.server.send(next.address).unwrap();
    let start = Instant::now();
    let acks = next.server.acks(&xds::Fleet::Shared).unwrap();
    let connected = async || if acks.clients().is_empty() { Err("no client") } else { Ok(()) };
    testbed::eventually("Envoy to reconnect", TIMEOUT, connected).await.unwrap();
    println!("reconnected after {:?}", start.elapsed());
    let took = warmed(&envoy).await;
    println!("warm {took:?} after that");
    assert!(took < Duration::from_secs(1), "warm only {took:?} after the reconnect");
    next.in_step().await;
    assert_eq!(Client::new(at).host(&hosts[7]).get("/").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_same_replica() {
    heals(|same, _| same).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_another_replica() {
    heals(|first, world| {
        first.kill();
        let other = Replica::start(address(), None);
        other.publish(world.to_vec());
        other
    })
    .await;
}
