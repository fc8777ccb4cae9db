//! One fleet at run time: its tables, its clients and what they refused.
//!
//! In: batches from the caller, streams from clients. Out: a snapshot that every stream of the fleet is told of at once,
//! and the acks. Nothing here is shared between fleets, so nothing can leak from one to another.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::acks::Watches;
use crate::fleet_acks::{AckState, Rejection, Rejections, ResourceAcks};
use crate::identity::{Fleet, Identity};
use crate::kind::Kind;
use crate::publish::{Changes, Writer};
use crate::resource::{Name, Resource, weight};
use crate::server::PublishError;
use crate::session::{Answer, LimitExceeded, Request, ResendMarkers, Session};
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
    pub fn update<R>(&self, runtime: &FleetRuntime, act: impl FnOnce(&mut Session) -> R) -> R {
        let mut session = self.session.lock();
        let result = act(&mut session);
        let touched = session.touched();
        drop(session);
        runtime.watches.touched(self.id, touched);
        result
    }

    /// Takes a request; gives what it means, and the rejections that it brought. They are noted while the session is locked, so
    /// that whoever counts one finds its reason.
    pub fn on_request(
        &self,
        runtime: &FleetRuntime,
        request: Request,
        now: Instant,
    ) -> Result<(Answer, Vec<Rejection>), LimitExceeded> {
        self.update(runtime, |session| {
            let answer = session.on_request(request, now)?;
            let rejections = answer.rejected.iter().map(|rejected| {
                let mut rejection = Rejection::new(self.identity.clone(), rejected);
                runtime.note(&mut rejection);
                rejection
            });
            let rejections = rejections.collect();
            Ok((answer, rejections))
        })
    }
}

/// How many more bytes first requests to the fleet of one object may take up: see [`Config::waiting_bytes`](crate::Config).
pub(crate) struct NamedWaiting {
    /// To this fleet.
    pub fleet: Arc<Semaphore>,
    /// To all fleets of its namespace.
    pub namespace: Arc<Semaphore>,
    /// To the fleets of all objects.
    pub all: Arc<Semaphore>,
}

/// One fleet.
pub(crate) struct FleetRuntime {
    pub fleet: Fleet,
    /// The limits of first requests to the fleet of one object. The shared fleet has none but that of all first requests.
    pub waiting: Option<NamedWaiting>,
    pub cache: ResponseCache,
    pub rejections: Rejections,
    /// Cancelled when the fleet goes.
    pub gone: CancellationToken,
    /// Cancelled when the clients of now must authenticate again.
    clients_end: Mutex<CancellationToken>,
    writer: Mutex<Writer>,
    snapshot: watch::Sender<Option<Arc<Snapshot>>>,
    /// What an earlier process published, until this one publishes: for clients that have nothing.
    restored: watch::Sender<Option<Arc<Snapshot>>>,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    pub watches: Watches,
    /// What [`ResendMarkers::returning`] is made from: unique to this process, and how often a client left with scopes that it
    /// may have rejected.
    resend_seed: u64,
    unsure_leaves: AtomicU64,
    /// Counts answers, so that whoever waits for clients to have something knows when to look again.
    pub answers: watch::Sender<u64>,
}

impl FleetRuntime {
    pub fn new(fleet: Fleet, identifier: String, waiting: Option<NamedWaiting>) -> Self {
        Self {
            fleet,
            waiting,
            cache: ResponseCache::new(identifier),
            rejections: Rejections::default(),
            gone: CancellationToken::new(),
            clients_end: Mutex::default(),
            writer: Mutex::default(),
            snapshot: watch::Sender::new(None),
            restored: watch::Sender::new(None),
            clients: Mutex::default(),
            watches: Watches::default(),
            resend_seed: RandomState::new().hash_one(0),
            unsure_leaves: AtomicU64::new(0),
            answers: watch::Sender::new(0),
        }
    }

    /// Applies a batch and tells every stream, if no table has more than so many bytes by then.
    pub fn publish(&self, changes: Changes, limit: usize) -> Result<Arc<Snapshot>, PublishError> {
        // Held until the snapshot is out, so that snapshots come out in order.
        let mut writer = self.writer.lock();
        // Nobody is woken by the removal of what is not there, unless what came before it was too large to be published.
        if writer.has_none_of(&changes)
            && let Some(current) = self.current()
            && current.generation == writer.generation()
        {
            return Ok(current);
        }
        let snapshot = writer.apply(changes);
        let sizes = Kind::ALL.map(|kind| (kind, snapshot.table(kind).bytes()));
        if let Some((kind, bytes)) = sizes.into_iter().find(|(_, bytes)| *bytes > limit) {
            return Err(PublishError::TooLarge { kind, bytes, limit });
        }
        let older = self.snapshot.send_replace(Some(snapshot.clone()));
        self.restored.send_replace(None);
        if let Some(older) = older {
            self.rejections.prune(&older, &snapshot);
        }
        Ok(snapshot)
    }

    /// Takes what an earlier process published, unless this one has published already.
    pub fn restore(&self, upserts: Vec<Resource>) {
        let restored = Writer::default().apply(Changes { upserts, removes: Vec::new() });
        // Whoever publishes holds this, too.
        let _writer = self.writer.lock();
        if self.current().is_none() {
            self.restored.send_replace(Some(restored));
        }
    }

    /// What an earlier process published, while there is nothing newer.
    pub fn restored(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.restored.subscribe()
    }

    /// Forgets what an earlier process published.
    pub fn forget_restored(&self) {
        self.restored.send_replace(None);
    }

    /// Whether there is nothing for any client.
    pub fn is_empty(&self) -> bool {
        self.snapshot.borrow().is_none() && self.restored.borrow().is_none()
    }

    fn note(&self, rejection: &mut Rejection) {
        let (kind, name, version) = (rejection.kind, rejection.name.clone(), rejection.version);
        let published = || self.current().and_then(|snapshot| Some(snapshot.get(kind, &name)?.version));
        self.rejections.note(rejection, || published() == Some(version));
    }

    /// Cancelled when a stream that begins now must end.
    pub fn clients_end(&self) -> CancellationToken {
        self.clients_end.lock().clone()
    }

    /// Ends all streams.
    pub fn disconnect(&self) {
        std::mem::take(&mut *self.clients_end.lock()).cancel();
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
        let mut client = None;
        self.watches.left(id, || client = self.clients.lock().remove(&id));
        if client.is_some_and(|client| client.session.lock().has_unsure_scopes()) {
            self.unsure_leaves.fetch_add(1, Ordering::Relaxed);
        }
        self.answers.send_modify(|count| *count += 1);
    }

    /// How scopes are marked on a new stream.
    pub fn resend_markers(&self, stream: u64) -> ResendMarkers {
        let returning = weight("returning", self.resend_seed ^ self.unsure_leaves.load(Ordering::Relaxed));
        ResendMarkers { returning, stream: weight("stream", self.resend_seed ^ stream) }
    }

    pub fn clients_by_id(&self) -> Vec<(u64, Arc<Client>)> {
        self.clients.lock().iter().map(|(id, client)| (*id, client.clone())).collect()
    }

    pub fn clients(&self) -> Vec<Arc<Client>> {
        self.clients.lock().values().cloned().collect()
    }
}

impl fmt::Debug for FleetRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetRuntime").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

/// The acks of one fleet: what its clients on this replica have.
#[derive(Clone, Debug)]
pub struct FleetAcks(pub(crate) Arc<FleetRuntime>);

impl FleetAcks {
    /// Who has that version of a resource, who is behind, who refused it. Clients that did not ask for the resource are
    /// not counted.
    pub fn resource_acks(&self, kind: Kind, name: &str, version: u64) -> ResourceAcks {
        let mut holding = ResourceAcks::default();
        for client in self.0.clients() {
            let state = client.session.lock().ack_state(kind, name, version);
            match state {
                AckState::Acked => holding.have.push(client.identity.clone()),
                AckState::Pending(since) => holding.behind.push((client.identity.clone(), since)),
                AckState::Rejected => holding.refused.push(client.identity.clone()),
                AckState::NotSubscribed => {}
            }
        }
        holding
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
    pub fn rejections_of(&self, kind: Kind, name: &Name) -> Vec<Rejection> {
        self.0.rejections.of_resource(kind, name)
    }

    /// Everything that is refused.
    pub fn rejections(&self) -> Vec<Rejection> {
        self.0.rejections.all()
    }

    /// The nodes that are connected; one that has several streams comes several times.
    pub fn nodes(&self) -> Vec<Arc<str>> {
        self.0.clients().iter().map(|client| client.identity.node.clone()).collect()
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
