//! The first request of a stream: it is received whole, and kept until there is something to answer it with.
//!
//! In: pieces of a request. Out: its bytes, and its [`Charge`]: what it takes of [`Config::waiting_bytes`](crate::Config). It may list
//! every name there is, and thousands of clients may come back at once, so those that arrive or wait are bounded together. A client that
//! finds no room keeps what it has and comes again.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{self, Instant};
use tonic::{Code, Status};

use super::Connection;
use super::grpc::Messages;
use super::stream::End;
use crate::fleet::FleetRuntime;
use crate::identity::Fleet;
use crate::server::Inner;

/// How many bytes of a request that is still arriving are not charged to all clients together, nor to those of the shared fleet: clients
/// that have nothing send fewer, and find room however many others come back. Those of the fleet of one object, whose owner may not be
/// the operator, are charged for every byte to the part of their fleet.
const UNCHARGED: usize = 64 << 10;

/// Receives the first request, from a client of this fleet if that is known yet; `None` if the client hung up. A large one may take its
/// time as long as more of it comes: a client that is cut off sends all of it again.
pub(super) async fn receive<B: Body<Data = Bytes, Error: Display> + Unpin>(
    connection: &Connection,
    fleet: Option<&FleetRuntime>,
    requests: &mut Messages<B>,
) -> Result<Option<(Bytes, Charge)>, End> {
    let inner = &connection.inner;
    let (pause, limit) = (inner.limits.client_timeout, inner.limits.first_request_timeout);
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

/// What a first request takes of the room for all of them, and of those for its fleet's, in bytes. It is free again when this is dropped.
pub(super) struct Charge {
    all: Share,
    fleet: Vec<Share>,
    /// The fleet is that of one object.
    is_named: bool,
}

impl Charge {
    fn new(inner: &Inner, fleet: Option<&FleetRuntime>) -> Self {
        let is_named = fleet.is_some_and(|fleet| matches!(fleet.fleet, Fleet::Named { .. }));
        Self { all: Share::of(&inner.waiting), fleet: fleet.map(Share::of_fleet).unwrap_or_default(), is_named }
    }

    /// Charges a request of which so much has arrived; `false` if there is no room.
    fn receive(&mut self, bytes: usize) -> bool {
        let charged = bytes.saturating_sub(UNCHARGED);
        self.set(if self.is_named { bytes } else { charged }, charged)
    }

    /// Charges a request that waits for the first snapshot of its fleet as large as it is now; `false` if there is no room.
    pub fn wait(&mut self, fleet: &FleetRuntime, bytes: usize) -> bool {
        if self.fleet.is_empty() {
            self.fleet = Share::of_fleet(fleet);
        }
        self.set(bytes, bytes)
    }

    /// Whether it takes nothing.
    pub fn is_free(&self) -> bool {
        self.all.bytes() == 0
    }

    /// Takes so many bytes of the fleet's room and of that for all from now on; `false` if there are not so many.
    fn set(&mut self, of_fleet: usize, of_all: usize) -> bool {
        // The fleet first: what is too much for it must not be missing elsewhere.
        self.fleet.iter_mut().all(|share| share.set(of_fleet)) && self.all.set(of_all)
    }
}

/// What one request takes of a room.
struct Share {
    room: Arc<Semaphore>,
    permits: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn of(room: &Arc<Semaphore>) -> Self {
        Self { room: room.clone(), permits: None }
    }

    fn of_fleet(fleet: &FleetRuntime) -> Vec<Self> {
        fleet.waiting.iter().map(Self::of).collect()
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
mod tests;
