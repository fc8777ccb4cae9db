use envoy_api::envoy::config::route::v3::RouteConfiguration;
use testbed::xds_client::{Kind, Reply};
use xds::{Event, Fleet};

use crate::world::{World, cluster, listener, route};

#[tokio::test]
async fn as_envoy_it_asks_for_whatever_is_pointed_at() {
    let world = World::with([cluster("a"), cluster("b"), listener("l")].concat()).await;
    let manners = [
        world.client(),
        world.client().sotw(),
        world.client().per_kind(),
        world.client().sotw().per_kind(),
        world.client().explicit_all(),
    ];
    for (n, manner) in manners.into_iter().enumerate() {
        let client = manner.as_envoy().id(format!("envoy-{n}")).connect().await.unwrap();
        let all = [(Kind::Cluster, 2), (Kind::Endpoints, 2), (Kind::Listener, 1), (Kind::Route, 1), (Kind::Secret, 1)];
        client.until("everything", |state| all.iter().all(|(kind, n)| state.count(*kind) == *n)).await.unwrap();
        client.look(|state| {
            assert_eq!(state.names(Kind::Endpoints), ["a", "b"]);
            assert_eq!(state.get::<RouteConfiguration>("l").unwrap().name, "l");
            let bytes: usize = state.responses.iter().filter(|r| r.kind == Kind::Cluster).map(|r| r.bytes).sum();
            assert_eq!(state.counts(Kind::Cluster).bytes, bytes as u64);
        });
        client.until("all to be taken", |state| state.counts(Kind::Cluster).acked == 1).await.unwrap();
    }
}

#[tokio::test]
async fn what_nothing_points_at_is_asked_for_no_longer() {
    let world = World::with([cluster("a"), cluster("b")].concat()).await;
    let client = world.client().as_envoy().connect().await.unwrap();
    client.until("endpoints", |state| state.count(Kind::Endpoints) == 2).await.unwrap();
    world.remove(xds::Kind::Cluster, "b");
    client.until("one cluster", |state| state.names(Kind::Cluster) == ["a"]).await.unwrap();
    client.look(|state| {
        assert_eq!(state.asked(Kind::Endpoints), ["a"]);
        assert_eq!(state.names(Kind::Endpoints), ["a"]);
    });
}

#[tokio::test]
async fn names_come_and_go() {
    let world = World::with(vec![route("a", false), route("b", false), route("c", false)]).await;
    for manner in [world.client(), world.client().sotw()] {
        let delta = !format!("{manner:?}").contains("delta: false");
        let client = manner.ask(Kind::Route, ["a"]).connect().await.unwrap();
        client.until("a", |state| state.names(Kind::Route) == ["a"]).await.unwrap();
        client.subscribe(Kind::Route, ["b", "not there"]);
        client.until("a and b", |state| state.names(Kind::Route) == ["a", "b"]).await.unwrap();
        if delta {
            client.until("the gap", |state| state.is_gone(Kind::Route, "not there")).await.unwrap();
        }
        client.unsubscribe(Kind::Route, ["a"]);
        // Its answer shows that the server has heard what was said before.
        client.subscribe(Kind::Route, ["c"]);
        client.until("b and c", |state| state.names(Kind::Route) == ["b", "c"]).await.unwrap();
        let before = client.look(|state| state.counts(Kind::Route).responses);
        world.publish(vec![route("a", true), route("b", true)]);
        client.until("a new b", |state| state.counts(Kind::Route).responses > before).await.unwrap();
        client.look(|state| assert_eq!(state.responses.last().unwrap().names(), ["b"]));
        world.publish(vec![route("a", false), route("b", false)]);
        client.until("b again", |state| state.counts(Kind::Route).responses > before + 1).await.unwrap();
    }
}

#[tokio::test]
async fn one_exchange_fetches() {
    let world = World::with(vec![route("a", false), route("b", false)]).await;
    let fetched = world.client().fetch(Kind::Route, ["b"]).await.unwrap();
    assert_eq!(fetched.status, Some(0), "{fetched:?}");
    let [response] = &fetched.replies[..] else { panic!("{fetched:?}") };
    let routes: Vec<RouteConfiguration> =
        response.resources.iter().map(|any| envoy_api::unpack(any).unwrap()).collect();
    assert_eq!(routes.iter().map(|route| route.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

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
            if let Event::Rejected(refusal) = events.recv().await.unwrap() {
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
    let version = world.server.acks(&Fleet::Shared).unwrap();
    let entry = |name: &str| version.snapshot().unwrap().table(xds::Kind::Route).get(name).unwrap().version;
    let holding = || version.resource_acks(xds::Kind::Route, "a", entry("a"));
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
