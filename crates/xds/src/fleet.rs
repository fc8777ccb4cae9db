//! One fleet at run time: its tables, its clients and what they refused.
//!
//! In: batches from the caller, streams from clients. Out: a snapshot that every stream of the fleet is told of at once,
//! and the acks. Nothing here is shared between fleets, so nothing can leak from one to another.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ack_counts::{FleetAckCounts, STUCK};
use crate::acks::Watches;
use crate::fleet_acks::{AckState, Refusal, Refusals, ResourceAcks};
use crate::identity::{Fleet, Identity};
use crate::kind::Kind;
use crate::publish::{Changes, Writer};
use crate::resource::Name;
use crate::server::PublishError;
use crate::session::Session;
use crate::table::Snapshot;
use crate::view::ClientView;
use crate::wire::response::ResponseCache;

/// One stream of one client.
pub(crate) struct Client {
    pub id: u64,
    pub identity: Arc<Identity>,
    pub stream: String,
    pub since: Instant,
    pub session: Mutex<Session>,
}

impl Client {
    /// Does something to the session; those who wait for what the client has are told where that may have changed.
    pub fn update<R>(&self, hub: &Hub, act: impl FnOnce(&mut Session) -> R) -> R {
        let mut session = self.session.lock();
        let result = act(&mut session);
        let touched = session.touched();
        drop(session);
        hub.watches.touched(self.id, touched);
        result
    }
}

/// One fleet.
pub(crate) struct Hub {
    pub fleet: Fleet,
    pub cache: ResponseCache,
    pub refusals: Refusals,
    /// Cancelled when the fleet goes.
    pub gone: CancellationToken,
    writer: Mutex<Writer>,
    snapshot: watch::Sender<Option<Arc<Snapshot>>>,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    pub watches: Watches,
    /// Counts answers, so that whoever waits for clients to have something knows when to look again.
    pub answers: watch::Sender<u64>,
}

impl Hub {
    pub fn new(fleet: Fleet, identifier: String) -> Self {
        Self {
            fleet,
            cache: ResponseCache::new(identifier),
            refusals: Refusals::default(),
            gone: CancellationToken::new(),
            writer: Mutex::default(),
            snapshot: watch::Sender::new(None),
            clients: Mutex::default(),
            watches: Watches::default(),
            answers: watch::Sender::new(0),
        }
    }

    /// Applies a batch and tells every stream, if no table has more than so many bytes by then.
    pub fn publish(&self, changes: Changes, limit: usize) -> Result<Arc<Snapshot>, PublishError> {
        // Held until the snapshot is out, so that snapshots come out in order.
        let mut writer = self.writer.lock();
        let snapshot = writer.apply(changes);
        let sizes = Kind::ALL.map(|kind| (kind, snapshot.table(kind).bytes()));
        if let Some((kind, bytes)) = sizes.into_iter().find(|(_, bytes)| *bytes > limit) {
            return Err(PublishError::TooLarge { kind, bytes, limit });
        }
        self.refusals.prune(&snapshot);
        self.snapshot.send_replace(Some(snapshot.clone()));
        Ok(snapshot)
    }

    pub fn watch(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.snapshot.subscribe()
    }

    pub fn current(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.borrow().clone()
    }

    pub fn join(&self, client: &Arc<Client>) {
        self.watches.joined(client.id, client, || _ = self.clients.lock().insert(client.id, client.clone()));
    }

    pub fn leave(&self, id: u64) {
        self.watches.left(id, || _ = self.clients.lock().remove(&id));
        self.answers.send_modify(|count| *count += 1);
    }

    pub fn clients_by_id(&self) -> Vec<(u64, Arc<Client>)> {
        self.clients.lock().iter().map(|(id, client)| (*id, client.clone())).collect()
    }

    pub fn clients(&self) -> Vec<Arc<Client>> {
        self.clients.lock().values().cloned().collect()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

/// The acks of one fleet: what its clients on this replica have.
#[derive(Clone, Debug)]
pub struct FleetAcks(pub(crate) Arc<Hub>);

impl FleetAcks {
    /// Who has that version of a resource, who is behind, who refused it. Clients that did not ask for the resource are
    /// not counted.
    pub fn holding(&self, kind: Kind, name: &str, version: u64) -> ResourceAcks {
        let mut holding = ResourceAcks::default();
        for client in self.0.clients() {
            let holds = client.session.lock().holds(kind, name, version);
            match holds {
                AckState::Yes => holding.have.push(client.identity.clone()),
                AckState::No(since) => holding.behind.push((client.identity.clone(), since)),
                AckState::Refused => holding.refused.push(client.identity.clone()),
                AckState::IdentityError => {}
            }
        }
        holding
    }

    /// How many clients of each version of Envoy stand how to that version of a resource, and when the next of those that
    /// are behind will count as stuck: not before they could have had it for [`STUCK`], which is since `expected`.
    pub fn ack_counts(
        &self,
        kind: Kind,
        name: &str,
        version: u64,
        expected: Instant,
    ) -> (FleetAckCounts, Option<Instant>) {
        let (mut tallies, mut next) = (FleetAckCounts::new(), None::<Instant>);
        let now = Instant::now();
        for client in self.0.clients() {
            let holds = client.session.lock().holds(kind, name, version);
            if holds == AckState::IdentityError {
                continue;
            }
            let ack_counts = tallies.entry(client.identity.version.clone()).or_default();
            match holds {
                AckState::Yes => ack_counts.have += 1,
                AckState::Refused => ack_counts.refused += 1,
                AckState::No(since) => {
                    let stuck = since.max(expected) + STUCK;
                    if stuck <= now {
                        ack_counts.stuck += 1;
                    } else {
                        ack_counts.behind += 1;
                        next = Some(next.map_or(stuck, |next| next.min(stuck)));
                    }
                }
                AckState::IdentityError => {}
            }
        }
        (tallies, next)
    }

    /// Who has not had everything that it should for longer than that, of which type, since when.
    pub fn stuck(&self, longer_than: Duration) -> Vec<(Arc<Identity>, Kind, Instant)> {
        let now = Instant::now();
        let mut stuck = Vec::new();
        for client in self.0.clients() {
            let session = client.session.lock();
            for kind in Kind::ALL {
                let since = session.behind_since(kind);
                if let Some(since) = since.filter(|since| now.saturating_duration_since(*since) >= longer_than) {
                    stuck.push((client.identity.clone(), kind, since));
                }
            }
        }
        stuck
    }

    /// Who refused a resource, in the version that is published.
    pub fn refusals_of(&self, kind: Kind, name: &Name) -> Vec<Refusal> {
        self.0.refusals.of_resource(kind, name)
    }

    /// Everything that is refused.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.0.refusals.all()
    }

    /// The clients that are connected, each with what it has.
    pub fn clients(&self) -> Vec<ClientView> {
        let now = Instant::now();
        let view = |client: Arc<Client>| ClientView {
            identity: client.identity.clone(),
            stream: client.stream.clone(),
            connected: now.saturating_duration_since(client.since).as_secs(),
            types: client.session.lock().view(now),
        };
        self.0.clients().into_iter().map(view).collect()
    }

    /// What is published.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.0.current()
    }

    /// Changes whenever a client has answered or left: the time to ask again.
    pub fn answers(&self) -> watch::Receiver<u64> {
        self.0.answers.subscribe()
    }
}
