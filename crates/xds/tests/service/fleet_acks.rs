//! What the caller learns: events, the acks, metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::sync::broadcast;
use xds::{Event, Fleet, Kind, RejectionCause};

use crate::client::{DELTA_ADS, Delta, Running, names, node, resource, soon};

#[derive(Debug, PartialEq)]
struct Object(&'static str);

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

async fn rejection(events: &mut broadcast::Receiver<Event>) -> xds::Rejection {
    loop {
        if let Event::Rejected(rejection) = soon("an event", events.recv()).await.unwrap() {
            return rejection;
        }
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_its_origin_and_stops_nobody_else() {
    let running = Running::insecure().await;
    let mut events = running.server.events();
    let mut resources: Vec<_> = (0..1000).map(|at| resource(Kind::Listener, &format!("l-{at}"), "good")).collect();
    resources.push(resource(Kind::Listener, "l-bad", "bad").from_origin(Arc::new(Object("HTTPProxy shop/web"))));
    running.publish(resources, &[]);
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Listener, &[]).await;
    let first = stream.next().await;
    assert_eq!(first.resources.len(), 1001);
    stream.nack(&first, "Error adding/updating listener(s) l-bad: bad filter").await;
    let refused = rejection(&mut events).await;
    assert_eq!((&*refused.name, refused.cause), ("l-bad", RejectionCause::Resource));
    let origin: Arc<dyn std::any::Any + Send + Sync> = refused.origin.clone().unwrap();
    assert_eq!(*origin.downcast::<Object>().unwrap(), Object("HTTPProxy shop/web"));
    let second = stream.next().await;
    assert_eq!(second.resources.len(), 1000);
    stream.ack(&second).await;

    let acks = running.server.acks(&Fleet::Shared).unwrap();
    let version = |name: &str| acks.snapshot().unwrap().get(Kind::Listener, name).unwrap().version;
    let mut answers = acks.answers();
    soon("the answer", answers.wait_for(|count| *count >= 2)).await.unwrap();
    let good = acks.resource_acks(Kind::Listener, "l-7", version("l-7"));
    assert_eq!((good.have.len(), good.behind.len(), good.refused.len()), (1, 0, 0));
    let bad = acks.resource_acks(Kind::Listener, "l-bad", version("l-bad"));
    assert_eq!((bad.have.len(), bad.behind.len(), bad.refused.len()), (0, 0, 1));
    let rejections = acks.rejections_of(Kind::Listener, &"l-bad".into());
    assert_eq!(rejections.len(), 1);
    assert!(acks.stuck(Duration::ZERO).is_empty());
    running.publish(vec![resource(Kind::Listener, "l-bad", "mended")], &[]);
    assert!(acks.rejections().is_empty(), "a new version is a new chance");
    assert_eq!(names(&stream.next().await), ["l-bad"]);
    assert_eq!(acks.stuck(Duration::ZERO).len(), 1);
    let view = acks.clients();
    assert_eq!((view[0].types[0].kind, view[0].types[0].pending.len()), ("lds", 1));
}

#[tokio::test]
async fn a_port_that_is_taken_is_the_nodes_problem() {
    let running = Running::insecure().await;
    let mut events = running.server.events();
    running.publish(vec![resource(Kind::Listener, "l", "1")], &[]);
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shared")), Kind::Listener, &[]).await;
    let first = stream.next().await;
    stream.nack(&first, "Error adding/updating listener(s) l: cannot bind '0.0.0.0:80': Address already in use").await;
    let refused = rejection(&mut events).await;
    assert_eq!(refused.cause, RejectionCause::Node);
}

#[tokio::test]
async fn one_encoding_serves_all_clients() {
    let running = Running::insecure().await;
    let mut registry = Registry::default();
    running.server.register(&mut registry);
    running.publish(vec![resource(Kind::Cluster, "a", "1")], &[]);
    let channel = running.channel().await;
    let mut streams = Vec::new();
    for at in 0..20 {
        let mut stream = Delta::open(channel.clone(), DELTA_ADS).await.unwrap();
        stream.subscribe(Some(node(&format!("n{at}"), "shared")), Kind::Cluster, &[]).await;
        let first = stream.next().await;
        stream.ack(&first).await;
        streams.push(stream);
    }
    running.publish(vec![resource(Kind::Cluster, "a", "2")], &[]);
    for stream in &mut streams {
        let second = stream.next().await;
        stream.ack(&second).await;
    }
    let acks = running.server.acks(&Fleet::Shared).unwrap();
    soon("the answers", acks.answers().wait_for(|count| *count >= 40)).await.unwrap();
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        r#"sesame_xds_responses_total{type="cds"} 40"#,
        r#"sesame_xds_encodes_total{type="cds"} 2"#,
        r#"sesame_xds_ack_seconds_count{type="cds"} 40"#,
        r#"sesame_xds_pending{type="cds"} 0"#,
        r#"sesame_xds_streams{service="ads",variant="delta"} 20"#,
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}
