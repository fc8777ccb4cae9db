use testbed::xds_client::Kind;

use crate::world::{World, cluster};

/// Thousands fit; a few hundred show it without making every test run wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_count_what_they_get_and_get_nothing_that_they_know() {
    const CLIENTS: usize = 400;
    let resources: Vec<_> = (0..100).flat_map(|n| cluster(&format!("c{n:03}"))).collect();
    let world = World::with(resources).await;
    let first = world.client().as_envoy().connect().await.unwrap();
    first.until("all clusters", |state| state.counts(Kind::Cluster).acked == 1).await.unwrap();
    let known = first.known();
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        let client = world.client().id(format!("envoy-{n}")).count_only().known(known.clone());
        clients.push(client.ask_all(Kind::Cluster).connect().await.unwrap());
    }
    world.publish(cluster("new"));
    for client in &clients {
        client.until("the new cluster", |state| state.counts(Kind::Cluster).resources == 1).await.unwrap();
        client.look(|state| assert!(state.responses.is_empty() && state.count(Kind::Cluster) == 0));
    }
}
