//! Listeners that objects claim, through a real Envoy: plain TCP and UDP, and hosts with several certificates.

use super::claims::Claims;
use super::requests::TURN;
use super::world::{World, object, secret, service, settings};
use kinds::{Object, kind};
use model::{FleetId, PortProtocol};
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, certs::Ca, envoy::Config};
use tokio::{net::UdpSocket, task::JoinSet};

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A Service whose port 80 is another one of the backend.
fn stream_service(name: &str, to: SocketAddr) -> Object {
    let annotations = json!({"projectsesame.io/endpoints": to.to_string()});
    let meta = json!({"namespace": "default", "name": name, "annotations": annotations});
    object(kind::SERVICE, &json!({"metadata": meta, "spec": {"ports": [{"port": 80}]}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_tcp_listener_leads_to_its_backends_and_changes_without_the_listener() {
    let _turn = TURN.lock().await;
    let (one, two) = (Backend::start("one").await.unwrap(), Backend::start("two").await.unwrap());
    let objects = [service("one", one.ip()), service("two", two.ip())];
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("tcp"), objects).await;
    let claims = Claims::new("tcp", FleetId::Shared).listener("bytes", 9300, PortProtocol::Tcp, "*");
    claims.clone().put(&mut world.pipeline);
    world.publish().await;
    let client = Client::new(at(9300)).host("anything");
    assert!(client.get("/").await.is_err(), "it leads nowhere yet");
    claims.clone().stream("bytes", &[("one", 1)]).put(&mut world.pipeline);
    let (set, _) = world.publish().await;
    assert!(set.iter().all(|name| !name.starts_with("lds")), "{set:?}");
    assert_eq!(client.get("/").await.unwrap().backend(), Some("one"));
    claims.clone().stream("bytes", &[("two", 1)]).put(&mut world.pipeline);
    let (set, _) = world.publish().await;
    assert!(set.iter().all(|name| !name.starts_with("lds")), "{set:?}");
    assert_eq!(client.get("/").await.unwrap().backend(), Some("two"));
    // Backends that cannot be used end their share of the connections.
    claims.clone().stream_beside("bytes", &[("two", 1)], 1).put(&mut world.pipeline);
    world.publish().await;
    let mut ended = 0;
    for _ in 0..100 {
        match client.get("/").await {
            Ok(answer) => assert_eq!(answer.backend(), Some("two")),
            Err(_) => ended += 1,
        }
    }
    assert!((20..=80).contains(&ended), "half of them, not {ended} of 100");
    claims.remove(&mut world.pipeline);
    let (_, gone) = world.publish().await;
    assert!(gone.contains(&"lds tcp-9300".to_owned()), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_udp_listener_keeps_its_sessions_when_its_backends_change() {
    let _turn = TURN.lock().await;
    let (one, two) = (Backend::start("one").await.unwrap(), Backend::start("two").await.unwrap());
    let objects = [stream_service("one", one.udp()), stream_service("two", two.udp())];
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("udp"), objects).await;
    let claims = Claims::new("udp", FleetId::Shared).listener("datagrams", 5300, PortProtocol::Udp, "*");
    claims.clone().stream("datagrams", &[("one", 1)]).put(&mut world.pipeline);
    let (set, _) = world.publish().await;
    assert!(set.contains(&"lds udp-5300".to_owned()), "{set:?}");
    let ask = async |socket: &UdpSocket, text: &str| {
        socket.send(text.as_bytes()).await.unwrap();
        let mut answer = [0; 512];
        let read = tokio::time::timeout(std::time::Duration::from_secs(10), socket.recv(&mut answer)).await;
        answer[..read.expect("an answer").unwrap()].to_vec()
    };
    let session = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    session.connect(at(5300)).await.unwrap();
    let first = ask(&session, "first").await;
    assert!(!first.is_empty());
    // A backend more is an edit of endpoints: neither the listener nor the cluster changes, and the session goes on.
    claims.clone().stream("datagrams", &[("one", 70), ("two", 30)]).put(&mut world.pipeline);
    let (set, gone) = world.publish().await;
    assert!(set.iter().all(|name| name.starts_with("eds ") || name.starts_with("cds default/")), "{set:?}");
    assert!(gone.is_empty(), "{gone:?}");
    assert!(!ask(&session, "second").await.is_empty());
    // Backends that cannot be used lose their share of the sessions.
    claims.clone().stream_beside("datagrams", &[("one", 1)], 1).put(&mut world.pipeline);
    world.publish().await;
    let mut sessions = JoinSet::new();
    for _ in 0..40 {
        sessions.spawn(async {
            let session = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            session.connect(at(5300)).await.unwrap();
            session.send(b"new").await.unwrap();
            let mut answer = [0; 512];
            // Nobody is told of a datagram that is lost.
            let read = tokio::time::timeout(std::time::Duration::from_secs(2), session.recv(&mut answer)).await;
            matches!(read, Ok(Ok(_)))
        });
    }
    let lost = sessions.join_all().await.into_iter().filter(|answered| !answered).count();
    assert!((4..=36).contains(&lost), "half of them, not {lost} of 40");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_shows_the_certificate_that_fits_the_client() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("both"));
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("both"), []).await;
    let certificates = [secret(&ca, "a", "a.example.com"), secret(&ca, "b", "b.example.com")];
    world.put([service("web", backend.ip())]);
    world.put(certificates);
    let claims = Claims::new("both", FleetId::Shared)
        .listener("both", 10445, PortProtocol::Tls, "*")
        .tls("both", "*", &["a", "b"])
        .route("both", "*", "web");
    claims.put(&mut world.pipeline);
    let (set, _) = world.publish().await;
    for name in ["sds default/a", "sds default/b", "lds tcp-10445"] {
        assert!(set.iter().any(|set| set == name), "{name} in {set:?}");
    }
    // The client takes only a certificate that is valid for the name.
    for name in ["a.example.com", "b.example.com"] {
        let client = Client::new(at(10445)).https().sni(name).host(name).trust(&ca);
        assert_eq!(client.get("/").await.unwrap().status, 200, "{name}");
    }
    let other = Client::new(at(10445)).https().sni("c.example.com").host("c.example.com");
    assert!(other.clone().trust(&ca).get("/").await.is_err(), "no certificate is for it");
    assert_eq!(other.accept_any().get("/").await.unwrap().status, 200, "the first one is shown");
}
