#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, yield_now};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::identity::Credential;
use crate::limits::Limits;
use crate::server::{Config, Server};

const KIB: usize = 1 << 10;

fn connection(limits: Limits, waiting_bytes: usize) -> Arc<Connection> {
    let inner = Server::new(Config { limits, waiting_bytes, ..Config::default() }).0;
    let (stop, authenticated) = (CancellationToken::new(), CancellationToken::new());
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Arc::new(Connection { inner, peer, credential: Credential::Insecure, stop, authenticated })
}

/// What a client sends of its first request, and what comes of it.
struct Client {
    sender: mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>,
    received: JoinHandle<Result<Option<(Bytes, Charge)>, End>>,
}

impl Client {
    fn of(connection: &Arc<Connection>, fleet: Option<Arc<FleetRuntime>>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let connection = connection.clone();
        let received = tokio::spawn(async move {
            let body = StreamBody::new(UnboundedReceiverStream::new(receiver));
            let mut requests = Messages::new(body, connection.inner.limits.request_bytes);
            receive(&connection, fleet.as_deref(), &mut requests).await
        });
        Self { sender, received }
    }

    /// Sends so many bytes of a request of that length; returns when they were received.
    async fn send(&self, bytes: usize) {
        self.sender.send(Ok(Frame::data(vec![0; bytes].into()))).unwrap();
        for _ in 0..10 {
            yield_now().await;
        }
    }

    async fn announce(&self, length: usize) {
        let head = [&[0][..], &u32::try_from(length).unwrap().to_be_bytes()].concat();
        self.sender.send(Ok(Frame::data(head.into()))).unwrap();
    }

    /// A client that has sent so many bytes of a large request.
    async fn that_sent(connection: &Arc<Connection>, fleet: Option<Arc<FleetRuntime>>, bytes: usize) -> Self {
        let client = Self::of(connection, fleet);
        client.announce(10 << 20).await;
        client.send(bytes - 5).await;
        client
    }

    async fn end(self) -> (&'static str, Code) {
        match self.received.await.unwrap() {
            Ok(_) => panic!("it was received"),
            Err(End { reason, status }) => (reason, status.code()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_pause_is_counted_from_the_last_byte() {
    let connection = connection(Limits::default(), 1 << 20);
    let Limits { client_timeout, .. } = Limits::default();
    let client = Client::of(&connection, None);
    client.announce(1000).await;
    let begun = Instant::now();
    for _ in 0..3 {
        time::sleep(client_timeout - Duration::from_secs(1)).await;
        client.send(1).await;
    }
    let last = begun.elapsed();
    assert_eq!(client.end().await, ("stalled", Code::DeadlineExceeded));
    assert_eq!((begun.elapsed() - last).as_secs(), client_timeout.as_secs());
}

#[tokio::test(start_paused = true)]
async fn frames_without_data_do_not_prolong_it() {
    let connection = connection(Limits::default(), 1 << 20);
    let client = Client::of(&connection, None);
    let pause = Limits::default().client_timeout * 2 / 3;
    for _ in 0..2 {
        assert!(!client.received.is_finished());
        client.send(0).await;
        time::sleep(pause).await;
    }
    assert!(client.received.is_finished());
    assert_eq!(client.end().await, ("stalled", Code::DeadlineExceeded));
}

#[tokio::test(start_paused = true)]
async fn requests_that_still_arrive_are_bounded_together() {
    let connection = connection(Limits::default(), 300 * KIB);
    let first = Client::that_sent(&connection, None, 264 * KIB).await;
    assert_eq!(connection.inner.waiting.available_permits(), 100 * KIB, "all but the first 64 KiB");
    let second = Client::that_sent(&connection, None, 165 * KIB).await;
    assert_eq!(second.end().await, ("no_room", Code::Unavailable));
    let small = Client::that_sent(&connection, None, 64 * KIB).await;
    assert!(!small.received.is_finished(), "what takes no room is received");
    assert_eq!(connection.inner.waiting.available_permits(), 100 * KIB);
    // The client hangs up.
    first.received.abort();
    assert!(first.received.await.is_err());
    assert_eq!(connection.inner.waiting.available_permits(), 300 * KIB);
}

#[tokio::test(start_paused = true)]
async fn those_of_the_fleet_of_one_object_get_a_part_of_the_room() {
    let connection = connection(Limits::default(), 800 * KIB);
    let fleet = connection.inner.runtime(&Fleet::named("shop", "edge"));
    let own = Client::that_sent(&connection, Some(fleet.clone()), 101 * KIB).await;
    assert_eq!(own.end().await, ("no_room", Code::Unavailable));
    let small = Client::that_sent(&connection, Some(fleet.clone()), 50 * KIB).await;
    assert_eq!(fleet.waiting[0].available_permits(), 50 * KIB, "every byte is charged to the fleet");
    assert_eq!(connection.inner.waiting.available_permits(), 800 * KIB, "and not all to everybody");
    let own = Client::that_sent(&connection, Some(fleet), 50 * KIB).await;
    assert!(!small.received.is_finished());
    let other = Client::that_sent(&connection, None, 700 * KIB).await;
    assert!(!own.received.is_finished() && !other.received.is_finished());
}

#[tokio::test(start_paused = true)]
async fn the_fleets_of_all_objects_together_leave_half_of_the_room() {
    let connection = connection(Limits::default(), 1600 * KIB);
    let fleet = |at: usize| Some(connection.inner.runtime(&Fleet::named("shop", &format!("edge-{at}"))));
    let mut clients = Vec::new();
    for at in 0..5 {
        clients.push(Client::that_sent(&connection, fleet(at), 200 * KIB).await);
    }
    let received: Vec<_> = clients.iter().map(|client| client.received.is_finished()).collect();
    assert_eq!(received, [false, false, false, false, true]);
    assert_eq!(clients.remove(4).end().await, ("no_room", Code::Unavailable));
    let shared = Client::that_sent(&connection, Some(connection.inner.runtime(&Fleet::Shared)), 800 * KIB).await;
    assert!(!shared.received.is_finished(), "the shared fleet has its half");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_received_and_waits_is_charged_once() {
    let connection = connection(Limits::default(), 300 * KIB);
    let fleet = connection.inner.runtime(&Fleet::Shared);
    let client = Client::of(&connection, None);
    client.announce(200 * KIB).await;
    client.send(100 * KIB).await;
    client.send(100 * KIB).await;
    let (request, mut charge) = client.received.await.unwrap().ok().unwrap().unwrap();
    assert_eq!(request.len(), 200 * KIB);
    let waiting = || (connection.inner.waiting.available_permits(), fleet.waiting[0].available_permits());
    assert!(charge.wait(&fleet, request.len()));
    assert_eq!(waiting(), (100 * KIB, 100 * KIB));
    assert!(!charge.wait(&fleet, 301 * KIB), "there is not so much");
    // It is smaller once it is read.
    assert!(charge.wait(&fleet, 50 * KIB));
    assert_eq!(waiting(), (250 * KIB, 250 * KIB));
    drop(charge);
    assert_eq!(waiting(), (300 * KIB, 300 * KIB));
}
