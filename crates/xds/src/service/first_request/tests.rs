#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use envoy_api::Message;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_api::google::rpc;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, yield_now};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::identity::{Credential, Fleet};
use crate::kind::Kind;
use crate::limits::Limits;
use crate::server::{Config, Server};
use crate::service::Call;
use crate::service::stream::greet;
use crate::session::Style;

const KIB: usize = 1 << 10;

fn connection(limits: Limits, waiting_bytes: usize) -> Arc<Connection> {
    connection_of(Credential::Insecure, Config { limits, waiting_bytes, ..Config::default() })
}

/// A connection with that credential, to a server of its own.
pub(in crate::service) fn connection_of(credential: Credential, config: Config) -> Arc<Connection> {
    let inner = Server::new(config).0;
    let (stop, authenticated) = (CancellationToken::new(), CancellationToken::new());
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Arc::new(Connection { inner, peer, credential, stop, authenticated })
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
    let of_fleet = fleet.waiting.as_ref().unwrap().fleet.available_permits();
    assert_eq!(of_fleet, 50 * KIB, "every byte is charged to the fleet");
    assert_eq!(connection.inner.waiting.available_permits(), 800 * KIB, "and not all to everybody");
    let own = Client::that_sent(&connection, Some(fleet), 50 * KIB).await;
    assert!(!small.received.is_finished());
    let other = Client::that_sent(&connection, None, 700 * KIB).await;
    assert!(!own.received.is_finished() && !other.received.is_finished());
}

/// Clients with large requests, of as many fleets; whether each of them finds no room.
async fn with_large_requests(connection: &Arc<Connection>, fleets: &[Fleet]) -> (Vec<Client>, Vec<bool>) {
    let mut clients = Vec::new();
    for fleet in fleets {
        clients.push(Client::that_sent(connection, Some(connection.inner.runtime(fleet)), 200 * KIB).await);
    }
    let refused = clients.iter().map(|client| client.received.is_finished()).collect();
    (clients, refused)
}

#[tokio::test(start_paused = true)]
async fn the_fleets_of_one_namespace_keep_no_other_namespace_out() {
    let connection = connection(Limits::default(), 1600 * KIB);
    let fleets = [1, 2, 3, 4].map(|at| Fleet::named("shop", &format!("edge-{at}")));
    let (clients, refused) = with_large_requests(&connection, &fleets).await;
    assert_eq!(refused, [false, true, true, true], "together they get as much as one");
    // As much as each may send, until there is no more room for the fleets of the namespace.
    let mut more = Vec::new();
    for fleet in &fleets {
        more.push(Client::that_sent(&connection, Some(connection.inner.runtime(fleet)), 64 * KIB).await);
        more.push(Client::that_sent(&connection, Some(connection.inner.runtime(fleet)), 80 * KIB).await);
    }
    let has_room = async |fleet: Fleet, bytes: usize| {
        let client = Client::that_sent(&connection, Some(connection.inner.runtime(&fleet)), bytes).await;
        !client.received.is_finished()
    };
    assert!(has_room(Fleet::named("bank", "edge"), 64 * KIB).await, "a small request");
    assert!(has_room(Fleet::named("bank", "other"), 200 * KIB).await, "a large one");
    assert!(has_room(Fleet::named("shop", "new"), 64 * KIB).await, "a small one of the same namespace");
    drop((clients, more));
}

#[tokio::test(start_paused = true)]
async fn the_fleets_of_all_objects_together_leave_half_of_the_room() {
    let connection = connection(Limits::default(), 1600 * KIB);
    let fleets = [1, 2, 3, 4, 5, 6].map(|at| Fleet::named(&format!("shop-{at}"), "edge"));
    let (mut clients, refused) = with_large_requests(&connection, &fleets).await;
    assert_eq!(refused, [false, false, false, false, false, true]);
    assert_eq!(clients.remove(5).end().await, ("no_room", Code::Unavailable));
    let shared = Client::that_sent(&connection, Some(connection.inner.runtime(&Fleet::Shared)), 800 * KIB).await;
    assert!(!shared.received.is_finished(), "the shared fleet has its half");
}

#[tokio::test(start_paused = true)]
async fn the_request_of_a_client_of_one_object_must_arrive_sooner() {
    let connection = connection(Limits::default(), 1 << 20);
    let Limits { first_request_timeout, named_first_request_timeout, .. } = Limits::default();
    let named = connection.inner.runtime(&Fleet::named("shop", "edge"));
    for (fleet, limit) in [(None, first_request_timeout), (Some(named), named_first_request_timeout)] {
        let begun = Instant::now();
        let client = Client::of(&connection, fleet);
        client.announce(1000).await;
        let sender = client.sender.clone();
        tokio::spawn(async move {
            while sender.send(Ok(Frame::data(Bytes::from_static(&[0])))).is_ok() {
                time::sleep(Duration::from_secs(7)).await;
            }
        });
        assert_eq!(client.end().await, ("stalled", Code::DeadlineExceeded));
        assert_eq!(begun.elapsed().as_secs(), limit.as_secs());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_received_and_waits_is_charged_once() {
    let connection = connection(Limits::default(), 2400 * KIB);
    let fleet = connection.inner.runtime(&Fleet::named("shop", "edge"));
    let of_fleet = fleet.waiting.as_ref().unwrap();
    let client = Client::of(&connection, None);
    client.announce(200 * KIB).await;
    client.send(100 * KIB).await;
    client.send(100 * KIB).await;
    let (request, mut charge) = client.received.await.unwrap().ok().unwrap().unwrap();
    assert_eq!(request.len(), 200 * KIB);
    let left = || {
        let rooms = [&connection.inner.waiting, &of_fleet.all, &of_fleet.namespace, &of_fleet.fleet];
        rooms.map(|room| room.available_permits())
    };
    assert!(charge.wait(&fleet, request.len()));
    assert_eq!(left(), [2200 * KIB, 1000 * KIB, 100 * KIB, 100 * KIB]);
    assert!(!charge.wait(&fleet, 301 * KIB), "there is not so much");
    // It is smaller once it is read.
    assert!(charge.wait(&fleet, 50 * KIB));
    assert_eq!(left(), [2350 * KIB, 1150 * KIB, 250 * KIB, 250 * KIB]);
    assert!(charge.wait(&fleet, NEGLIGIBLE) && charge.is_free());
    assert!(charge.wait(&fleet, NEGLIGIBLE + 1) && !charge.is_free());
    drop(charge);
    assert_eq!(left(), [2400 * KIB, 1200 * KIB, 300 * KIB, 300 * KIB]);
}

/// How many bytes are kept of a first request.
fn kept(request: &DeltaDiscoveryRequest) -> usize {
    let connection = connection(Limits::default(), 1 << 20);
    let call = Call { only: None, style: Style::Delta, fetch: false };
    let (identity, request) = greet(&connection, call, &request.encode_to_vec().into()).ok().unwrap();
    kept_bytes(&identity, &request)
}

#[test]
fn of_a_first_request_everything_that_is_kept_counts_and_no_error_is_kept() {
    let name = "n".repeat(60_000);
    let node = |id: &str| Some(Node { id: id.to_owned(), ..Node::default() });
    assert!(kept(&DeltaDiscoveryRequest { node: node(&name), ..Default::default() }) >= 60_000);
    let resource_names_subscribe = vec![name];
    assert!(kept(&DeltaDiscoveryRequest { resource_names_subscribe, ..Default::default() }) >= 60_000);
    let error_detail = Some(rpc::Status { code: 3, message: "x".repeat(10 << 20), ..Default::default() });
    // Also where it has the nonce of another stream.
    for response_nonce in ["", "1"].map(str::to_owned) {
        let type_url = Kind::Listener.type_url().to_owned();
        let node = node("shop/edge-7c6b8d9f4-x2x9p");
        let error_detail = error_detail.clone();
        let bytes = kept(&DeltaDiscoveryRequest { node, type_url, error_detail, response_nonce, ..Default::default() });
        assert!(bytes <= NEGLIGIBLE, "{bytes} bytes are kept of a client that has nothing");
    }
}
