use testbed::xds_client::{Kind, Reply};
use xds::{Event, Fleet};

use crate::world::{World, cluster, listener, route};

#[tokio::test]
async fn a_refusal_reaches_the_server_and_keeps_what_was_there() {
    let world = World::with(vec![route("a", false)]).await;
    for (n, manner) in [world.client(), world.client().sotw()].into_iter().enumerate() {
        world.publish(vec![route("a", false)]);
        let client = manner.id(format!("envoy-{n}")).ask(Kind::Route, ["a"]).connect().await.unwrap();
        client.until("a to be taken", |state| state.counts(Kind::Route).acked == 1).await.unwrap();
        let first = client.look(|state| state.held(Kind::Route, "a").cloned());
        client.reply_with(|_| Reply::Nack("route a: not today".into()));
        let mut events = world.server.events();
        world.publish(vec![route("a", true)]);
        let refusal = loop {
            if let Event::Refused(refusal) = events.recv().await.unwrap() {
                break refusal;
            }
        };
        assert_eq!((&*refusal.name, &*refusal.text), ("a", "route a: not today"));
        client.look(|state| {
            assert_eq!(state.counts(Kind::Route).nacked, 1);
            assert_eq!(state.held(Kind::Route, "a").cloned(), first);
        });
    }
}

#[tokio::test]
async fn an_answer_can_be_held_back() {
    let world = World::with(vec![route("a", false)]).await;
    let client = world.client().ask(Kind::Route, ["a"]).replies(|_| Reply::Hold).connect().await.unwrap();
    client.until("a response", |state| state.on_hold(Kind::Route) == 1).await.unwrap();
    let version = world.server.book(&Fleet::Shared).unwrap();
    let entry = |name: &str| version.snapshot().unwrap().table(xds::Kind::Route).get(name).unwrap().version;
    let holding = || version.holding(xds::Kind::Route, "a", entry("a"));
    assert_eq!((holding().have.len(), holding().behind.len()), (0, 1));
    let mut answers = version.answers();
    client.answer(Kind::Route, Reply::Ack);
    while holding().have.is_empty() {
        answers.changed().await.unwrap();
    }
    client.look(|state| assert_eq!(state.names(Kind::Route), ["a"]));
}

#[tokio::test]
async fn clusters_are_taken_when_their_endpoints_are_there() {
    let world = World::with(cluster("a")).await;
    let hold_endpoints = |response: &testbed::xds_client::Response| match response.kind {
        Kind::Endpoints => Reply::Hold,
        _ => Reply::Ack,
    };
    let client = world.client().as_envoy().replies(hold_endpoints).connect().await.unwrap();
    client.until("endpoints", |state| state.on_hold(Kind::Endpoints) == 1).await.unwrap();
    client.look(|state| assert_eq!(state.counts(Kind::Cluster).acked, 0));
    client.answer(Kind::Endpoints, Reply::Ack);
    client.until("the cluster to be taken", |state| state.counts(Kind::Cluster).acked == 1).await.unwrap();

    let hasty = world.client().as_envoy().without_warming().replies(hold_endpoints).connect().await.unwrap();
    hasty.until("the cluster to be taken", |state| state.counts(Kind::Cluster).acked == 1).await.unwrap();
}

#[tokio::test]
async fn a_paused_client_reads_nothing() {
    let world = World::with(listener("l")).await;
    let client = world.client().as_envoy().connect().await.unwrap();
    client.until("routes", |state| state.count(Kind::Route) == 1).await.unwrap();
    client.pause();
    let other = world.client().as_envoy().connect().await.unwrap();
    other.until("routes", |state| state.count(Kind::Route) == 1).await.unwrap();
    world.publish(vec![route("l", true)]);
    other.until("new routes", |state| state.counts(Kind::Route).responses == 2).await.unwrap();
    client.look(|state| assert_eq!(state.counts(Kind::Route).responses, 1));
    client.resume();
    client.until("new routes", |state| state.counts(Kind::Route).responses == 2).await.unwrap();
}
