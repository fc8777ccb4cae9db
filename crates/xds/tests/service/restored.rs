//! What an earlier process published: for clients that have nothing, until this one publishes.

use std::time::{Duration, Instant};

use envoy_api::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tonic::Code;
use xds::{Config, Fleet, Kind, Limits, Resource, Security};

use crate::client::{DELTA_ADS, Delta, Running, SOTW_ADS, Sotw, names, node, resource, soon};

fn before() -> Vec<Resource> {
    vec![resource(Kind::Cluster, "one", "1"), resource(Kind::Cluster, "two", "2"), resource(Kind::Listener, "a", "a")]
}

/// The first request for a type by a client that has a resource of it.
fn returning(kind: Kind, held: &str) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(node("old", "shared")),
        type_url: kind.type_url().to_owned(),
        initial_resource_versions: [(held.to_owned(), "00000000000000ff".to_owned())].into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_client_that_has_nothing_starts_with_it_and_is_then_sent_what_differs() {
    let running = Running::insecure().await;
    let mut new = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    new.subscribe(Some(node("new", "shared")), Kind::Cluster, &[]).await;
    assert!(new.is_silent().await, "there is nothing yet");
    running.server.restore(&Fleet::Shared, before());
    let first = new.next().await;
    assert_eq!(names(&first), ["one", "two"]);
    new.ack(&first).await;
    let mut sotw = Sotw::open(running.channel().await, SOTW_ADS).await.unwrap();
    sotw.subscribe(Some(node("sotw", "shared")), Kind::Cluster, &[]).await;
    assert_eq!(sotw.next().await.resources.len(), 2);
    // Nobody else sees it.
    assert!(running.server.acks(&Fleet::Shared).unwrap().snapshot().is_none());

    let mut live = before();
    live[1] = resource(Kind::Cluster, "two", "2 changed");
    live.push(resource(Kind::Cluster, "three", "3"));
    live.remove(0);
    running.publish(live, &[]);
    let second = new.next().await;
    assert_eq!((names(&second), &*second.removed_resources), (vec!["three", "two"], &["one".to_owned()][..]));
    // It is too late for it now.
    running.server.restore(&Fleet::Shared, before());
    let mut late = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    late.subscribe(Some(node("late", "shared")), Kind::Cluster, &[]).await;
    assert_eq!(names(&late.next().await), ["three", "two"]);
}

/// What it has may be newer.
#[tokio::test]
async fn a_client_that_has_something_waits() {
    let running = Running::insecure().await;
    running.server.restore(&Fleet::Shared, before());
    let mut old = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    old.send(returning(Kind::Cluster, "newer")).await;
    assert!(old.is_silent().await);
    // It has no clusters, but listeners.
    let mut other = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    other.subscribe(Some(node("other", "shared")), Kind::Cluster, &[]).await;
    assert_eq!(names(&other.next().await), ["one", "two"]);
    other.send(returning(Kind::Listener, "newer")).await;
    assert_eq!(other.end().await.code(), Code::Unavailable);

    running.publish(before(), &[]);
    assert_eq!(names(&old.next().await), ["one", "two"]);
}

/// Each request that waits is kept, with all that its client has.
#[tokio::test]
async fn clients_that_have_something_wait_as_long_as_there_is_room_for_their_requests() {
    let config = Config { waiting_bytes: 1500, ..Config::default() };
    let running = Running::start(config, Security::Insecure).await;
    let held = "x".repeat(1000);
    let mut one = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    let mut two = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    one.send(returning(Kind::Cluster, &held)).await;
    two.send(returning(Kind::Cluster, &held)).await;
    let (end, mut waiting) = tokio::select! {
        end = one.end() => (end, two),
        end = two.end() => (end, one),
    };
    assert_eq!((end.code(), end.message()), (Code::Unavailable, "nothing is published yet, keep what you have"));
    // Who has nothing takes no room, whether there is something to start with or not.
    let mut new = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    new.subscribe(Some(node("new", "shared")), Kind::Cluster, &[]).await;
    assert!(new.is_silent().await);
    running.server.restore(&Fleet::Shared, before());
    assert_eq!(names(&new.next().await), ["one", "two"]);
    let mut named = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    named.subscribe(Some(node("named", "shared")), Kind::Cluster, &["one", &held]).await;
    assert_eq!(names(&named.next().await), ["one"]);

    running.publish(before(), &[]);
    assert_eq!(names(&waiting.next().await), ["one", "two"]);
    // Nothing waits any more.
    for _ in 0..2 {
        let mut late = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
        late.send(returning(Kind::Cluster, &held)).await;
        assert_eq!(names(&late.next().await), ["one", "two"]);
    }
}

/// A client of 200 KB takes room from when it is received on, and once.
#[tokio::test]
async fn a_large_request_that_waits_takes_as_much_room_as_it_has_bytes() {
    let running = Running::start(Config { waiting_bytes: 250_000, ..Config::default() }, Security::Insecure).await;
    let mut one = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    one.send(returning(Kind::Cluster, &"x".repeat(200_000))).await;
    assert!(one.is_silent().await, "there is room for it");
    let mut two = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    two.send(returning(Kind::Cluster, &"x".repeat(200_000))).await;
    let end = soon("one of them to end", async {
        tokio::select! {
            end = one.end() => end,
            end = two.end() => end,
        }
    })
    .await;
    assert_eq!(end.code(), Code::Unavailable);
}

#[tokio::test]
async fn clients_of_a_fleet_that_is_never_published_give_their_room_to_others() {
    let limits = Limits { first_snapshot_timeout: Duration::from_secs(1), ..Limits::default() };
    let config = Config { waiting_bytes: 1500, limits, ..Config::default() };
    let running = Running::start(config, Security::Insecure).await;
    let mut new = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    new.subscribe(Some(node("new", "shared")), Kind::Cluster, &[]).await;
    for _ in 0..2 {
        let mut old = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
        let begun = Instant::now();
        old.send(returning(Kind::Cluster, &"x".repeat(1000))).await;
        let end = old.end().await;
        assert_eq!((end.code(), end.message()), (Code::Unavailable, "nothing is published yet, keep what you have"));
        assert!(begun.elapsed() >= Duration::from_secs(1), "there was room");
    }
    running.publish(before(), &[]);
    assert_eq!(names(&new.next().await), ["one", "two"], "who takes no room waits");
}

/// Its id is kept, if nothing else is.
#[tokio::test]
async fn a_client_with_a_long_id_takes_room_and_gives_it_to_others() {
    let limits = Limits { first_snapshot_timeout: Duration::from_secs(1), ..Limits::default() };
    let config = Config { waiting_bytes: 100_000, limits, ..Config::default() };
    let running = Running::start(config, Security::Insecure).await;
    for _ in 0..2 {
        let mut client = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
        let begun = Instant::now();
        client.subscribe(Some(node(&"n".repeat(60_000), "shared")), Kind::Cluster, &[]).await;
        assert_eq!(client.end().await.code(), Code::Unavailable);
        assert!(begun.elapsed() >= Duration::from_secs(1), "there was room");
    }
}

#[tokio::test]
async fn clients_of_one_namespace_take_no_more_than_a_part_of_that_room() {
    let running = Running::start(Config { waiting_bytes: 12_000, ..Config::default() }, Security::Insecure).await;
    let held = "x".repeat(1000);
    let open = async |fleet: &str| {
        let client = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
        client.send(DeltaDiscoveryRequest { node: Some(node("old", fleet)), ..returning(Kind::Cluster, &held) }).await;
        client
    };
    let mut first = open("shop/edge").await;
    assert!(first.is_silent().await, "there is room");
    for fleet in ["shop/edge", "shop/other"] {
        assert_eq!(open(fleet).await.end().await.code(), Code::Unavailable, "{fleet}");
    }
    for fleet in ["bank/edge", "shared", "shared"] {
        assert!(open(fleet).await.is_silent().await, "{fleet}");
    }
}

#[tokio::test]
async fn a_fleet_that_is_no_more_is_forgotten() {
    let running = Running::insecure().await;
    let gone = Fleet::named("shop", "gone");
    running.server.restore(&gone, before());
    running.server.forget_restored();
    assert!(running.server.acks(&gone).is_none());
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shop/gone")), Kind::Cluster, &[]).await;
    assert!(stream.is_silent().await);
}
