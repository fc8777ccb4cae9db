//! The server: fleets, whoever connects, and the caller's side of it.
//!
//! In: batches of resources per fleet ([`Server::publish`]), a listening socket ([`Server::serve`]). Out: streams to
//! Envoys, [`Event`]s and the [`FleetAcks`]. See the crate's documentation for how it is used.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::fleet::{FleetAcks, FleetRuntime, NamedWaiting};
use crate::fleet_acks::Event;
use crate::identity::{Authenticator, Fleet, RequiredEnvoy};
use crate::kind::Kind;
use crate::limits::Limits;
use crate::metrics::{Metrics, Pending};
use crate::peer::Peer;
use crate::publish::Changes;
use crate::resolve::Resolver;
use crate::resource::Resource;
use crate::table::Snapshot;
use crate::tls::Tls;

mod accept;
mod handshakes;

use handshakes::Handshakes;

/// The fleet of one object may have this part of [`Config::waiting_bytes`], and all fleets of its namespace together as much.
const NAMED_FLEET: usize = 8;
/// The fleets of all objects may have this part of it together.
const NAMED_FLEETS: usize = 2;
/// How many events a slow listener may be behind before it misses some; the [`FleetAcks`] miss none.
const EVENTS: usize = 4096;

/// How a server is set up.
#[derive(Clone)]
pub struct Config {
    /// Which replica this is, for people who look at an Envoy.
    pub identifier: String,
    /// The bounds of one stream.
    pub limits: Limits,
    /// How many connections of clients there may be.
    pub connections: usize,
    /// How many connections there may be beside those, which are not authenticated yet, in all and from one address.
    /// The oldest makes room for a new one.
    pub handshakes: usize,
    /// See [`Config::handshakes`].
    pub handshakes_per_address: usize,
    /// How many streams there may be, and on one connection. A client that is not set up for ADS opens one per type,
    /// and one per cluster for endpoints.
    pub streams: usize,
    /// See [`Config::streams`].
    pub streams_per_connection: u32,
    /// Maximum total size of the first requests that are being received or wait for the first snapshot of their fleet, in bytes: each
    /// may list all that its client has. The first 64 KiB of a request count only once it waits, and not even then if at most 512 bytes
    /// are kept. The fleet of one object gets an eighth, of which every byte counts. All fleets of one namespace get an eighth together, and
    /// those of all namespaces half, so that some leave room for the others. Beyond it, clients get `UNAVAILABLE` and reconnect.
    pub waiting_bytes: usize,
    /// How large the resources of one type and fleet may be together: the first response to a client that asks for all of
    /// them carries all of them, and an Envoy reads no message of 2 GiB.
    pub table_bytes: usize,
    /// How often a silent connection is asked for a sign of life, and how long it may take.
    pub keepalive: (Duration, Duration),
    /// How long streams may take to end when the server stops.
    pub grace: Duration,
    /// Knows names that tables do not list.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// What an Envoy must be to be served. An older one is told why its stream ends, and goes on with what it has: it would
    /// refuse some of its resources, and serve a mixture of old and new ones.
    pub required_envoy: Option<RequiredEnvoy>,
    /// Knows the tokens of clients that have no certificate; the TLS must let them in ([`Tls::accepting_tokens`]).
    pub authenticator: Option<Arc<dyn Authenticator>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            identifier: "sesame".to_owned(),
            limits: Limits::default(),
            connections: 10_000,
            handshakes: 2048,
            handshakes_per_address: 256,
            streams: 200_000,
            streams_per_connection: 20_000,
            waiting_bytes: 256 << 20,
            table_bytes: 1 << 30,
            keepalive: (Duration::from_secs(30), Duration::from_secs(20)),
            grace: Duration::from_secs(5),
            resolver: None,
            required_envoy: None,
            authenticator: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("identifier", &self.identifier)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How connections are secured.
pub enum Security {
    /// TLS 1.3 with client certificates.
    Tls(Arc<Tls>),
    /// None at all, for development: whoever connects gets the configuration and keys of the fleet that it names.
    Insecure,
}

/// A batch of changes for one fleet.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The fleet.
    pub fleet: Fleet,
    /// What changes, all at once.
    pub changes: Changes,
}

/// What came of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// How many batches this process has published to the fleet.
    pub generation: u64,
}

/// Why clients were not told of a batch.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PublishError {
    /// The resources of one type are too large together. The batch was taken and is not lost: clients go on with what was
    /// published before, and are told of it with the next batch that makes the resources fit.
    #[error("the {kind} resources have {bytes} bytes together, more than {limit}")]
    TooLarge {
        /// Their type.
        kind: Kind,
        /// Their size.
        bytes: usize,
        /// The most that can be sent.
        limit: usize,
    },
}

pub(crate) struct Inner {
    pub config: Config,
    pub limits: Arc<Limits>,
    pub metrics: Metrics,
    pub events: broadcast::Sender<Event>,
    pub streams: Arc<Semaphore>,
    /// Bytes that first requests may still take: see [`Config::waiting_bytes`].
    pub waiting: Arc<Semaphore>,
    /// The same for those of all fleets of single objects.
    waiting_of_named: Arc<Semaphore>,
    pub next_id: AtomicU64,
    /// Where streams of other replicas go.
    pub peers: Mutex<Option<mpsc::Sender<Peer>>>,
    connections: Arc<Semaphore>,
    handshakes: Arc<Handshakes>,
    refused: Mutex<UnreportedByReason>,
    ended_early: Mutex<UnreportedByReason>,
    fleets: Mutex<Fleets>,
}

/// In the order of their namespaces.
type Fleets = BTreeMap<Fleet, Arc<FleetRuntime>>;

/// What clients caused since that was last reported. Anybody can cause it, and must not fill the log.
#[derive(Default)]
struct Unreported {
    reported: Option<Instant>,
    count: u64,
}

impl Unreported {
    /// One more; how many there were, if that is to be reported.
    fn happened(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        let is_due = self.reported.is_none_or(|at| now.saturating_duration_since(at) >= accept::REPORT);
        is_due.then(|| {
            self.reported = Some(now);
            std::mem::take(&mut self.count)
        })
    }
}

/// [`Unreported`], for each reason.
#[derive(Default)]
struct UnreportedByReason(BTreeMap<&'static str, Unreported>);

impl UnreportedByReason {
    /// One more with that reason; how many there were with it, if that is to be reported.
    fn happened(&mut self, reason: &'static str, now: Instant) -> Option<u64> {
        self.0.entry(reason).or_default().happened(now)
    }
}

impl Inner {
    /// The fleet of that name, made if it is not there: a client may come before its fleet's first publish.
    pub fn runtime(&self, fleet: &Fleet) -> Arc<FleetRuntime> {
        let mut fleets = self.fleets.lock();
        if let Some(runtime) = fleets.get(fleet) {
            return runtime.clone();
        }
        let waiting = self.named_waiting(fleet, &fleets);
        let runtime = Arc::new(FleetRuntime::new(fleet.clone(), self.config.identifier.clone(), waiting));
        fleets.insert(fleet.clone(), runtime.clone());
        runtime
    }

    /// The limits of first requests to a new fleet, if it is that of one object.
    fn named_waiting(&self, fleet: &Fleet, fleets: &Fleets) -> Option<NamedWaiting> {
        let Fleet::Named { namespace, .. } = fleet else { return None };
        let part = || room(self.config.waiting_bytes / NAMED_FLEET);
        Some(NamedWaiting {
            fleet: part(),
            namespace: namespace_waiting(fleets, namespace).unwrap_or_else(part),
            all: self.waiting_of_named.clone(),
        })
    }

    pub fn runtimes(&self) -> Vec<Arc<FleetRuntime>> {
        self.fleets.lock().values().cloned().collect()
    }

    /// Lets go of a fleet that was never published once nobody holds on to it. Handles are given out under the same
    /// lock, so nobody can be left waiting on one that is no longer published to.
    pub fn tidy(&self, fleet: &Fleet) {
        let mut fleets = self.fleets.lock();
        if fleets.get(fleet).is_some_and(|runtime| Arc::strong_count(runtime) == 1 && runtime.is_empty()) {
            fleets.remove(fleet);
        }
    }

    pub fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The limit that the fleets of a namespace share, if there is one of them.
fn namespace_waiting(fleets: &Fleets, namespace: &str) -> Option<Arc<Semaphore>> {
    let (fleet, runtime) = fleets.range(Fleet::named(namespace, "")..).next()?;
    let is_of_namespace = matches!(fleet, Fleet::Named { namespace: of, .. } if **of == *namespace);
    runtime.waiting.as_ref().filter(|_| is_of_namespace).map(|waiting| waiting.namespace.clone())
}

/// Room for so many bytes.
fn room(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)))
}

/// An xDS server. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct Server(pub(crate) Arc<Inner>);

impl Server {
    /// A server without fleets; clients that connect wait.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Inner {
            limits: Arc::new(config.limits.clone()),
            metrics: Metrics::new(),
            events: broadcast::Sender::new(EVENTS),
            streams: Arc::new(Semaphore::new(config.streams)),
            waiting: room(config.waiting_bytes),
            waiting_of_named: room(config.waiting_bytes / NAMED_FLEETS),
            connections: Arc::new(Semaphore::new(config.connections)),
            handshakes: Arc::new(Handshakes::new(config.handshakes, config.handshakes_per_address)),
            refused: Mutex::default(),
            ended_early: Mutex::default(),
            next_id: AtomicU64::new(1),
            peers: Mutex::default(),
            fleets: Mutex::default(),
            config,
        }))
    }

    /// Publishes a batch: all clients of the fleet see all of it or none. The first batch of a fleet must be complete,
    /// for it is what ends the wait of the clients that are there.
    ///
    /// # Errors
    /// That the resources of a type have become too large. The batch is kept; whoever publishes makes the resources fit,
    /// by withholding some, with the next one.
    pub fn publish(&self, batch: Batch) -> Result<Published, PublishError> {
        let snapshot = self.0.runtime(&batch.fleet).publish(batch.changes, self.0.config.table_bytes)?;
        Ok(Published { generation: snapshot.generation })
    }

    /// Takes what an earlier process published to a fleet. Until this one publishes, it is for streams of clients that have nothing;
    /// those that have something wait. It shows nowhere else.
    pub fn restore(&self, fleet: &Fleet, resources: Vec<Resource>) {
        self.0.runtime(fleet).restore(resources);
    }

    /// Forgets what earlier processes published and this one does not.
    pub fn forget_restored(&self) {
        for runtime in self.0.runtimes() {
            runtime.forget_restored();
            let fleet = runtime.fleet.clone();
            drop(runtime);
            self.0.tidy(&fleet);
        }
    }

    /// How many bytes more the resources of a type may have, as they are published.
    pub fn room(&self, fleet: &Fleet, kind: Kind) -> usize {
        let bytes =
            self.acks(fleet).and_then(|acks| acks.snapshot()).map_or(0, |snapshot| snapshot.table(kind).bytes());
        self.0.config.table_bytes.saturating_sub(bytes)
    }

    /// Ends a fleet: its streams end, its tables and its acks go.
    pub fn remove_fleet(&self, fleet: &Fleet) {
        if let Some(runtime) = self.0.fleets.lock().remove(fleet) {
            runtime.gone.cancel();
        }
    }

    /// Ends the streams of a fleet, whose clients must authenticate again: its tables and its acks stay.
    pub fn disconnect(&self, fleet: &Fleet) {
        if let Some(runtime) = self.0.fleets.lock().get(fleet) {
            runtime.disconnect();
        }
    }

    /// The acks of a fleet.
    pub fn acks(&self, fleet: &Fleet) -> Option<FleetAcks> {
        self.0.fleets.lock().get(fleet).cloned().map(FleetAcks)
    }

    /// What is published to a fleet, and when something else is.
    pub fn snapshots(&self, fleet: &Fleet) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.0.runtime(fleet).watch()
    }

    /// The acks of all fleets.
    pub fn all_acks(&self) -> Vec<(Fleet, FleetAcks)> {
        self.0.runtimes().into_iter().map(|runtime| (runtime.fleet.clone(), FleetAcks(runtime))).collect()
    }

    /// What happens to clients from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// The streams that other replicas open from now on; before this is called, and after the receiver is dropped, they are
    /// turned away. Whoever calls last gets them.
    pub fn peers(&self) -> mpsc::Receiver<Peer> {
        let (sender, receiver) = mpsc::channel(1);
        *self.0.peers.lock() = Some(sender);
        receiver
    }

    /// Adds what the server counts to a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
        registry.register_collector(Box::new(Pending(Arc::downgrade(&self.0))));
    }

    /// Serves until `shutdown` is done. Then clients are told to go elsewhere, and get some time to.
    pub async fn serve(
        &self,
        listener: TcpListener,
        security: Security,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let stop = CancellationToken::new();
        accept::run(self.0.clone(), listener, security, shutdown, stop).await
    }
}
