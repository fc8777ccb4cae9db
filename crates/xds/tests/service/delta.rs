//! Delta ADS from the first request to the last.

use envoy_api::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tonic::Code;
use xds::Kind;

use crate::client::{DELTA_ADS, Delta, Running, names, node, resource};

#[tokio::test]
async fn a_client_gets_what_is_published_and_then_only_what_changes() {
    let running = Running::insecure().await;
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Cluster, &[]).await;
    assert!(stream.is_silent().await, "nothing before everything");
    running.publish(vec![resource(Kind::Cluster, "one", "1"), resource(Kind::Cluster, "two", "2")], &[]);
    let first = stream.next().await;
    assert_eq!(names(&first), ["one", "two"]);
    assert_eq!(first.type_url, Kind::Cluster.type_url());
    assert_eq!(first.control_plane.as_ref().unwrap().identifier, "sesame");
    let any = first.resources[0].resource.as_ref().unwrap();
    assert_eq!((any.type_url.as_str(), &any.value[..]), (Kind::Cluster.type_url(), &b"1"[..]));
    stream.ack(&first).await;
    running.publish(vec![resource(Kind::Cluster, "two", "2 changed")], &[(Kind::Cluster, "one")]);
    let second = stream.next().await;
    assert_eq!(names(&second), ["two"]);
    assert_eq!(second.removed_resources, ["one"]);
}

#[tokio::test]
async fn a_client_that_comes_back_is_sent_nothing_it_has_by_any_replica() {
    let published = || vec![resource(Kind::Listener, "one", "1"), resource(Kind::Listener, "two", "2")];
    let (first, second) = (Running::insecure().await, Running::insecure().await);
    first.publish(published(), &[]);
    let mut stream = Delta::open(first.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Listener, &[]).await;
    let response = stream.next().await;
    let held = response.resources.iter().map(|resource| (resource.name.clone(), resource.version.clone())).collect();
    first.stop().await;
    assert_eq!(stream.end().await.code(), Code::Unavailable, "it is told to go elsewhere");
    second.publish(published(), &[]);
    let mut stream = Delta::open(second.channel().await, DELTA_ADS).await.unwrap();
    let request = DeltaDiscoveryRequest {
        node: Some(node("a", "shared")),
        type_url: Kind::Listener.type_url().to_owned(),
        initial_resource_versions: held,
        ..Default::default()
    };
    stream.send(request).await;
    assert!(stream.is_silent().await);
    second.publish(vec![resource(Kind::Listener, "two", "3")], &[]);
    assert_eq!(names(&stream.next().await), ["two"]);
}

#[tokio::test]
async fn a_type_that_is_not_known_is_answered_with_nothing() {
    let running = Running::insecure().await;
    running.publish(vec![], &[]);
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    let request = DeltaDiscoveryRequest {
        node: Some(node("a", "shared")),
        type_url: "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint".to_owned(),
        resource_names_subscribe: vec!["x".to_owned()],
        ..Default::default()
    };
    stream.send(request).await;
    let response = stream.next().await;
    assert_eq!(response.removed_resources, ["x"]);
    stream.subscribe(None, Kind::Listener, &[]).await;
    assert_eq!(stream.next().await.type_url, Kind::Listener.type_url(), "and the stream goes on");
}
