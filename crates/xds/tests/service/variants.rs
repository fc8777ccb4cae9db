//! Every service in every variant.

use envoy_api::envoy::service::discovery::v3::DiscoveryRequest;
use tonic::Code;
use xds::Kind;

use crate::client::{Delta, Running, SERVICES, SOTW_ADS, Sotw, bodies, fetch, names, node, resource};

#[tokio::test]
async fn state_of_the_world_over_one_stream() {
    let running = Running::insecure().await;
    let clusters = ["a", "b"].map(|name| resource(Kind::Cluster, name, name));
    running.publish(clusters.into_iter().chain([resource(Kind::Route, "r", "r")]).collect(), &[]);
    let mut stream = Sotw::open(running.channel().await, SOTW_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Cluster, &[]).await;
    let first = stream.next().await;
    assert_eq!(bodies(&first), ["a", "b"]);
    assert_eq!(first.resources[0].type_url, Kind::Cluster.type_url());
    stream.ack(&first, &[]).await;
    stream.subscribe(None, Kind::Route, &["r"]).await;
    assert_eq!(bodies(&stream.next().await), ["r"]);
    running.publish(vec![resource(Kind::Cluster, "b", "b changed")], &[]);
    let second = stream.next().await;
    assert_eq!(bodies(&second), ["a", "b changed"]);
    assert_ne!(first.version_info, second.version_info);
    drop(stream);
    let mut back = Sotw::open(running.channel().await, SOTW_ADS).await.unwrap();
    let request = DiscoveryRequest {
        node: Some(node("a", "shared")),
        type_url: second.type_url.clone(),
        version_info: second.version_info.clone(),
        ..Default::default()
    };
    back.send(request).await;
    assert!(back.is_silent().await, "what it has is not sent again");
}

#[tokio::test]
async fn every_type_has_its_service() {
    let running = Running::insecure().await;
    running.publish(Kind::ALL.into_iter().map(|kind| resource(kind, "x", kind.label())).collect(), &[]);
    let channel = running.channel().await;
    for (kind, service, noun) in SERVICES {
        let path = |verb: &str| format!("/envoy.service.{service}/{verb}{noun}");
        let mut delta = Delta::open(channel.clone(), &path("Delta")).await.unwrap();
        delta.subscribe(Some(node("a", "shared")), kind, &["x"]).await;
        assert_eq!(names(&delta.next().await), ["x"], "{kind}");
        let mut sotw = Sotw::open(channel.clone(), &path("Stream")).await.unwrap();
        sotw.subscribe(Some(node("a", "shared")), kind, &["x"]).await;
        assert_eq!(bodies(&sotw.next().await), [kind.label()]);
        let request = DiscoveryRequest { node: Some(node("a", "shared")), ..Default::default() };
        let all = fetch(channel.clone(), &path("Fetch"), request.clone()).await.unwrap();
        assert_eq!(bodies(&all), [kind.label()]);
        let named = DiscoveryRequest { resource_names: vec!["y".to_owned()], ..request };
        let none = fetch(channel.clone(), &path("Fetch"), named).await.unwrap();
        assert!(kind == Kind::Endpoints || none.resources.is_empty());
    }
}

#[tokio::test]
async fn a_service_of_one_type_is_for_that_type() {
    let running = Running::insecure().await;
    running.publish(vec![resource(Kind::Secret, "key", "secret")], &[]);
    let channel = running.channel().await;
    let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters";
    let mut delta = Delta::open(channel.clone(), path).await.unwrap();
    delta.subscribe(Some(node("a", "shared")), Kind::Secret, &[]).await;
    assert_eq!(delta.end().await.code(), Code::InvalidArgument);
    let refused = Delta::open(channel, "/envoy.service.nothing.v3.NothingService/DeltaNothing").await;
    assert_eq!(refused.err().unwrap().code(), Code::Unimplemented);
}
