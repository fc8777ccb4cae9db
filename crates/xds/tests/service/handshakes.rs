//! Whoever can reach the port and does not authenticate takes no place of those who can.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::{TcpSocket, TcpStream};
use xds::{Config, Kind, Security, Tls};

use crate::certificates::Authority;
use crate::client::{DELTA_ADS, Delta, Running, names, node, resource, soon};

const IDLE: usize = 2000;

/// A connection from this address.
async fn connect(running: &Running, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    soon("a connection", socket.connect(running.address)).await.unwrap()
}

pub fn metrics(running: &Running) -> String {
    let mut registry = Registry::default();
    running.server.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

/// A client that is let in and served.
async fn assert_served(running: &Running, authority: &Authority) -> Delta {
    let channel = running.secure_channel(authority.client(&["envoy"])).await.unwrap();
    let mut stream = Delta::open(channel, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("good", "shared")), Kind::Listener, &[]).await;
    let first = stream.next().await;
    assert_eq!(names(&first), ["a"]);
    stream.ack(&first).await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_displace_nobody() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let tls = Security::Tls(Arc::new(Tls::load(authority.write(folder.path())).unwrap()));
    let running = Running::start(Config { connections: 50, ..Config::default() }, tls).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let mut early = assert_served(&running, &authority).await;

    // From the address that clients come from, and from another one.
    let mut idle = Vec::with_capacity(IDLE);
    for number in 0..IDLE {
        let from = if number % 2 == 0 { [127, 0, 0, 1] } else { [127, 0, 0, 2] };
        idle.push(connect(&running, from).await);
    }
    let mut late = assert_served(&running, &authority).await;
    running.publish(vec![resource(Kind::Listener, "a", "2")], &[]);
    for stream in [&mut early, &mut late] {
        assert_eq!(names(&stream.next().await), ["a"], "who is there stays");
    }

    // They are closed: most at once to make room, the others when they have had their time.
    let closed = async {
        for stream in &idle {
            stream.readable().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), closed).await.expect("every idle connection is closed");
    // A client sees the end of its connection before the server has written it down.
    soon("the last handshake to be over", async {
        while !metrics(&running).contains("sesame_xds_handshakes 0") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let text = metrics(&running);
    assert!(text.contains("sesame_xds_refused_connections_total{reason=\"evicted\"}"), "{text}");
    assert!(text.contains("sesame_xds_connections 2"), "{text}");
    for certificate in ["ca", "server"] {
        let name = format!("sesame_xds_certificate_expiry_timestamp_seconds{{certificate=\"{certificate}\"}} ");
        let at: u64 = text.lines().find_map(|line| line.strip_prefix(&name)).expect(&name).parse().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(at > now, "{certificate} expires at {at}");
    }
}
