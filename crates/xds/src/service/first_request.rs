//! The first request of a stream: it is received whole, and kept until there is something to answer it with.
//!
//! In: pieces of a request. Out: its bytes, and its [`Charge`]: what it takes of [`Config::waiting_bytes`](crate::Config). It may list
//! every name there is, and thousands of clients may come back at once, so those that arrive or wait are bounded together. A client that
//! finds no room keeps what it has and comes again.
//!
//! The owner of the fleet of one object may not be the operator, so there are limits for each such fleet, for those of one namespace
//! together, and for those of all namespaces. What fleets share is not charged for as much as a client that has nothing sends, so nobody
//! can keep such a client of another fleet out.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{self, Instant};
use tonic::{Code, Status};

use super::Connection;
use super::end::End;
use super::grpc::Messages;
use crate::fleet::FleetRuntime;
use crate::identity::Identity;
use crate::server::Inner;
use crate::wire::request::Incoming;

/// How many bytes of a request that is still arriving are charged to its own fleet only, if that is the fleet of one object: clients that
/// have nothing send fewer, and find room however many clients of other fleets come back.
const UNCHARGED: usize = 64 << 10;
/// Up to so many bytes, what is kept of a waiting client is not charged, and it may wait as long as it likes. A client that has nothing
/// takes more for its stream.
const NEGLIGIBLE: usize = 512;

/// Receives the first request, from a client of this fleet if that is known yet; `None` if the client hung up. A large one may take its
/// time as long as more of it comes: a client that is cut off sends all of it again.
pub(super) async fn receive<B: Body<Data = Bytes, Error: Display> + Unpin>(
    connection: &Connection,
    fleet: Option<&FleetRuntime>,
    requests: &mut Messages<B>,
) -> Result<Option<(Bytes, Charge)>, End> {
    let (inner, limits) = (&connection.inner, &connection.inner.limits);
    let is_named = fleet.is_some_and(|fleet| fleet.waiting.is_some());
    let limit = if is_named { limits.named_first_request_timeout } else { limits.first_request_timeout };
    let pause = limits.client_timeout;
    let latest = Instant::now() + limit;
    let mut charge = Charge::new(inner, fleet);
    loop {
        if let Some(first) = requests.take().map_err(invalid)? {
            return Ok(Some((first, charge)));
        }
        let next = (Instant::now() + pause).min(latest);
        match time::timeout_at(next, requests.receive()).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Ok(None),
            Ok(Err(status)) if status.code() == Code::Cancelled => return Ok(None),
            Ok(Err(status)) => return Err(invalid(status)),
            Err(_) => {
                let text = match requests.buffered() {
                    0 => format!("received no request within {pause:?}"),
                    bytes if next < latest => {
                        format!("received {bytes} bytes of the first request, and then nothing for {pause:?}")
                    }
                    bytes => format!("received only {bytes} bytes of the first request within {limit:?}"),
                };
                inner.ended_early(connection.peer, "stalled", &text);
                return Err(End::new("stalled", Status::deadline_exceeded(text)));
            }
        }
        if !charge.receive(requests.buffered()) {
            inner.ended_early(connection.peer, "no_room", "too many bytes of first requests arrive or wait");
            let text = "too many clients send large first requests at once, keep what you have";
            return Err(End::new("no_room", Status::unavailable(text)));
        }
    }
}

fn invalid(status: Status) -> End {
    End::new("invalid_request", status)
}

/// About how many bytes are kept of a client while its first request waits.
pub(super) fn kept_bytes(identity: &Identity, request: &Incoming) -> usize {
    identity.node.len() + identity.version.len() + request.bytes()
}

/// The bytes that one first request takes up of [`Config::waiting_bytes`](crate::Config), and of the limits of its fleet. Dropping it
/// gives them back.
pub(super) struct Charge {
    /// Of the limits of the fleet, of its namespace and of the fleets of all objects; none for the shared fleet, and before the fleet is
    /// known.
    named: Option<[Share; 3]>,
    all: Share,
}

impl Charge {
    fn new(inner: &Inner, fleet: Option<&FleetRuntime>) -> Self {
        Self { named: fleet.and_then(Share::of_named), all: Share::of(&inner.waiting, UNCHARGED) }
    }

    /// Charges a request of which so much has arrived; `false` if there is no room.
    fn receive(&mut self, bytes: usize) -> bool {
        self.shares().all(|share| share.set(bytes.saturating_sub(share.uncharged)))
    }

    /// Charges a client that waits for the first snapshot of its fleet for what is kept of it; `false` if there is no room.
    pub fn wait(&mut self, fleet: &FleetRuntime, kept: usize) -> bool {
        if self.named.is_none() {
            self.named = Share::of_named(fleet);
        }
        let bytes = if kept > NEGLIGIBLE { kept } else { 0 };
        self.shares().all(|share| share.set(bytes))
    }

    /// Whether it takes nothing.
    pub fn is_free(&self) -> bool {
        self.all.bytes() == 0
    }

    /// Those of the fleet first: what is too much for it must not be missing elsewhere.
    fn shares(&mut self) -> impl Iterator<Item = &mut Share> {
        self.named.iter_mut().flatten().chain([&mut self.all])
    }
}

/// What one request takes of a room.
struct Share {
    room: Arc<Semaphore>,
    /// How many bytes of the request are not charged while it arrives.
    uncharged: usize,
    permits: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn of(room: &Arc<Semaphore>, uncharged: usize) -> Self {
        Self { room: room.clone(), uncharged, permits: None }
    }

    fn of_named(fleet: &FleetRuntime) -> Option<[Self; 3]> {
        let waiting = fleet.waiting.as_ref()?;
        let shared = |room| Self::of(room, UNCHARGED);
        Some([Self::of(&waiting.fleet, 0), shared(&waiting.namespace), shared(&waiting.all)])
    }

    fn bytes(&self) -> usize {
        self.permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn set(&mut self, bytes: usize) -> bool {
        let has = self.bytes();
        if bytes <= has {
            drop(self.permits.as_mut().and_then(|permits| permits.split(has - bytes)));
            return true;
        }
        let more = u32::try_from(bytes - has).unwrap_or(u32::MAX);
        let Ok(more) = self.room.clone().try_acquire_many_owned(more) else { return false };
        match &mut self.permits {
            Some(permits) => permits.merge(more),
            None => self.permits = Some(more),
        }
        true
    }
}

#[cfg(test)]
pub(super) mod tests;
