//! Fetches of clients whose fleet changes while they are answered, or that go away.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, yield_now};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;

use super::*;
use crate::identity::{Credential, Fleet};
use crate::publish::Changes;
use crate::resource::Resource;
use crate::server::{Batch, Config, Server};
use crate::service::first_request::tests::connection_of;

/// A connection of a client of a fleet, and the server.
fn connected(fleet: &Fleet) -> (Server, Arc<Connection>) {
    let expires = SystemTime::now() + Duration::from_secs(3600);
    let connection = connection_of(Credential::Certificate { fleet: fleet.clone(), expires }, Config::default());
    (Server(connection.inner.clone()), connection)
}

fn publish(server: &Server, fleet: &Fleet) {
    let upserts = vec![Resource::new(Kind::Secret, "key", b"secret".to_vec())];
    server.publish(Batch { fleet: fleet.clone(), changes: Changes { upserts, removes: vec![] } }).unwrap();
}

/// A fetch of all secrets whose request is still being sent.
struct Fetch {
    sender: mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>,
    answer: JoinHandle<Result<Message, Status>>,
}

impl Fetch {
    async fn begin(connection: &Arc<Connection>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let body = StreamBody::new(UnboundedReceiverStream::new(receiver));
        let call = Call { only: Some(Kind::Secret), style: Style::Sotw, fetch: true };
        let fetch = Self { sender, answer: tokio::spawn(answer(connection.clone(), call, body)) };
        // All but the last byte of an empty request.
        fetch.send(&[0; 4]).await;
        fetch
    }

    /// Sends the rest of the request.
    async fn finish(&self) {
        self.send(&[0]).await;
    }

    /// Returns when it was received.
    async fn send(&self, bytes: &'static [u8]) {
        self.sender.send(Ok(Frame::data(Bytes::from_static(bytes)))).unwrap();
        for _ in 0..10 {
            yield_now().await;
        }
    }

    async fn refused(self) -> Code {
        self.answer.await.unwrap().unwrap_err().code()
    }
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_is_still_being_sent_ends_with_its_fleet_and_its_clients() {
    let fleet = Fleet::named("shop", "edge");
    for (is_removed, code) in [(true, Code::Unavailable), (false, Code::Unauthenticated)] {
        let (server, connection) = connected(&fleet);
        publish(&server, &fleet);
        let fetch = Fetch::begin(&connection).await;
        if is_removed {
            server.remove_fleet(&fleet);
        } else {
            server.disconnect(&fleet);
        }
        assert_eq!(fetch.refused().await, code);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_published_after_clients_must_authenticate_again_is_not_for_a_fetch_that_waits() {
    let fleet = Fleet::named("shop", "edge");
    let (server, connection) = connected(&fleet);
    let fetch = Fetch::begin(&connection).await;
    fetch.finish().await;
    assert!(!fetch.answer.is_finished(), "nothing is published yet");
    server.disconnect(&fleet);
    publish(&server, &fleet);
    assert_eq!(fetch.refused().await, Code::Unauthenticated);
    let again = Fetch::begin(&connection).await;
    again.finish().await;
    assert!(again.answer.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_fetch_whose_client_is_gone_leaves_no_fleet_behind() {
    let fleet = Fleet::named("shop", "edge");
    let (server, connection) = connected(&fleet);
    for is_sent in [false, true] {
        let fetch = Fetch::begin(&connection).await;
        if is_sent {
            fetch.finish().await;
        }
        assert!(server.acks(&fleet).is_some());
        fetch.answer.abort();
        assert!(fetch.answer.await.is_err());
        assert!(server.acks(&fleet).is_none());
    }
}
