//! Delta ADS, end to end.

use xds::Kind;

use crate::client::{Delta, Running, names, node, resource};

#[tokio::test]
async fn a_client_gets_what_is_published_and_then_only_what_changes() {
    let running = Running::insecure().await;
    let mut stream = Delta::open(running.channel().await).await;
    stream.subscribe(Some(node("a", "shared")), Kind::Cluster, &[]).await;
    running.publish(vec![resource(Kind::Cluster, "one", "1"), resource(Kind::Cluster, "two", "2")], &[]);
    let first = stream.next().await;
    assert_eq!(names(&first), ["one", "two"]);
    assert_eq!(first.type_url, Kind::Cluster.type_url());
    assert_eq!(first.resources[0].resource.as_ref().unwrap().value, "1".as_bytes());
    stream.ack(&first).await;
    running.publish(vec![resource(Kind::Cluster, "two", "2 changed")], &[(Kind::Cluster, "one")]);
    let second = stream.next().await;
    assert_eq!(names(&second), ["two"]);
    assert_eq!(second.removed_resources, ["one"]);
    running.stop().await;
    assert_eq!(stream.end().await.code(), tonic::Code::Unavailable);
}
