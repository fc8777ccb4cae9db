use std::sync::Arc;

use testbed::certs::Ca;
use testbed::xds_client::{FirstRequests, Kind, State};
use testbed::{Client, StateDir, XdsClient};
use xds::{Security, Tls, TlsFiles};

use crate::world::{World, cluster, listener, route};

#[tokio::test]
async fn what_it_has_is_not_sent_again() {
    let resources = [cluster("a"), listener("l")].concat();
    let (world, replica) = (World::with(resources.clone()).await, World::with(resources).await);
    let client = world.client().as_envoy().connect().await.unwrap();
    client.until("everything", |state| state.count(Kind::Route) == 1 && state.count(Kind::Secret) == 1).await.unwrap();
    client.until("all to be taken", |state| state.counts(Kind::Route).acked == 1).await.unwrap();
    let sent = client.look(|state| Kind::ALL.map(|kind| state.counts(kind).resources));
    let client = client.reconnect(Some(Client::new(replica.addr))).await.unwrap();
    // The change is sent after whatever else the new stream had to say.
    replica.publish(vec![route("l", true)]);
    client.until("the change", |state| state.counts(Kind::Route).resources > 1).await.unwrap();
    let mut expected = sent;
    expected[3] += 1;
    assert_eq!(client.look(|state| Kind::ALL.map(|kind| state.counts(kind).resources)), expected);
    assert_eq!(client.look(|state| state.asked(Kind::Secret).len()), 1);
}

#[tokio::test]
async fn only_a_certificate_of_the_fleet_gets_in() {
    let ca = Ca::new("ca");
    let server = ca.leaf("sesame").make();
    let state = StateDir::new("xds").unwrap();
    let files = TlsFiles {
        ca: state.write("ca.crt", ca.pem()).unwrap(),
        certificate: state.write("tls.crt", server.chain_pem()).unwrap(),
        key: state.write("tls.key", server.key_pem()).unwrap(),
    };
    let world = World::secured(Security::Tls(Arc::new(Tls::load(files).unwrap()))).await;
    world.publish(cluster("a"));
    let tls = Client::new(world.addr).host("sesame").trust(&ca);
    let envoy = ca.leaf("envoy").make();
    let client = XdsClient::to(tls.clone().identity(&envoy)).as_envoy().connect().await.unwrap();
    client.until("a cluster", |state| state.count(Kind::Cluster) == 1).await.unwrap();

    let fleet = ca.nameless_leaf("other").uri("spiffe://sesame/fleet/there/other").make();
    let liar = XdsClient::to(tls.clone().identity(&fleet)).metadata(xds::FLEET_METADATA, "shared").as_envoy();
    let end = liar.connect().await.unwrap().ended().await.unwrap();
    assert_eq!(end.status, Some(7), "{end:?}");

    // In TLS 1.3 the refusal comes after the handshake: with the connection, or with the first thing said on it.
    if let Ok(nobody) = XdsClient::to(tls).as_envoy().connect().await {
        assert_eq!(nobody.ended().await.unwrap().status, None);
    }
}

#[tokio::test]
async fn garbage_ends_a_stream_and_is_told() {
    let world = World::with(cluster("a")).await;
    let client = world.client().as_envoy().connect().await.unwrap();
    client.until("a cluster", |state| state.count(Kind::Cluster) == 1).await.unwrap();
    client.send_raw(Kind::Cluster, &b"\xff\xff\xff"[..]);
    let end = client.ended().await.unwrap();
    assert!(end.status.is_some_and(|status| status != 0), "{end:?}");
    let client = client.reconnect(None).await.unwrap();
    world.publish(cluster("b"));
    client.until("another", |state| state.count(Kind::Cluster) == 2).await.unwrap();
}

/// Without what the first one has, each is sent everything; with it, nothing but what changes.
#[tokio::test]
async fn many_send_the_first_requests_of_one() {
    let world = World::with([cluster("a"), listener("l")].concat()).await;
    let first = world.client().as_envoy().connect().await.unwrap();
    let has_all = |state: &State| state.counts(Kind::Route).acked == 1 && state.counts(Kind::Cluster).acked == 1;
    first.until("everything", has_all).await.unwrap();
    let asks = world.client().ask_all(Kind::Cluster).ask(Kind::Endpoints, ["a"]).ask(Kind::Route, ["l", "other"]);
    let (new, back) = (asks.prepare(), asks.known(first.known()).prepare());
    let connect = async |number: usize, first: &FirstRequests| {
        world.client().id(format!("envoy-{number}")).first_requests(first.clone()).connect().await.unwrap()
    };
    for number in 0..2 {
        let client = connect(number, &new).await;
        let all = [(Kind::Cluster, 1), (Kind::Endpoints, 1), (Kind::Route, 1)];
        let has_all = |state: &State| all.iter().all(|(kind, count)| state.counts(*kind).resources == *count);
        client.until("everything", has_all).await.unwrap();
    }
    let clients = [connect(2, &back).await, connect(3, &back).await];
    world.publish(vec![route("l", true)]);
    for client in &clients {
        client.until("the change", |state| state.counts(Kind::Route).resources == 1).await.unwrap();
        client.look(|state| assert_eq!(state.counts(Kind::Cluster).resources, 0));
    }
}

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
