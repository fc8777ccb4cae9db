use envoy_api::envoy::config::route::v3::RouteConfiguration;
use testbed::xds_client::Kind;

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
