//! Whether this replica is the leader, as writers see it.

use parking_lot::Mutex;
use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedRwLockReadGuard, RwLock, watch};
use tracing::info;

/// How long a request may take where there is no lease that ends.
const NO_LEASE: Duration = Duration::from_secs(30);

/// Whether this replica may write. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Until when the lease is held; none while another replica holds it.
    until: Mutex<Option<Instant>>,
    leader: watch::Sender<bool>,
    /// Each request holds it for reading, so that a lease is not released under it.
    requests: Arc<RwLock<()>>,
    always: bool,
    gauge: Gauge,
}

impl Leadership {
    /// That of a single replica without an election: always the leader.
    pub fn always() -> Self {
        Self::new(true)
    }

    pub(super) fn contested() -> Self {
        Self::new(false)
    }

    fn new(always: bool) -> Self {
        let gauge = Gauge::default();
        gauge.set(always.into());
        let leader = watch::Sender::new(always);
        Self(Arc::new(Shared { until: Mutex::default(), leader, requests: Arc::default(), always, gauge }))
    }

    /// Whether this replica may write now.
    pub fn is_leader(&self) -> bool {
        self.until().is_some_and(|until| Instant::now() < until)
    }

    /// Changes when this replica becomes the leader and when it stops being it.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.0.leader.subscribe()
    }

    /// Permission for one request, which must be over by [`Permit::until`].
    pub fn permit(&self) -> Option<Permit> {
        // First the guard: releasing the lease first ends the leadership, and then waits for guards.
        let guard = self.0.requests.clone().try_read_owned().ok()?;
        let until = self.until().filter(|until| Instant::now() < *until)?;
        Some(Permit { until, _guard: guard })
    }

    /// Adds `sesame_leader` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("sesame_leader", "1 if this replica is the leader, else 0", self.0.gauge.clone());
    }

    /// Until when the lease is held.
    pub(super) fn until(&self) -> Option<Instant> {
        if self.0.always { Some(Instant::now() + NO_LEASE) } else { *self.0.until.lock() }
    }

    pub(super) fn hold(&self, until: Instant) {
        *self.0.until.lock() = Some(until);
        self.say(true);
    }

    pub(super) fn lose(&self) {
        *self.0.until.lock() = None;
        self.say(false);
    }

    /// Waits until no request with a permit is in flight.
    pub(super) async fn idle(&self) {
        drop(self.0.requests.write().await);
    }

    fn say(&self, leader: bool) {
        let changed = self.0.leader.send_if_modified(|was| std::mem::replace(was, leader) != leader);
        if changed {
            self.0.gauge.set(leader.into());
            info!(
                leader,
                "{}",
                if leader {
                    "became leader: writing status and events"
                } else {
                    "no longer leader: another replica writes status and events"
                }
            );
        }
    }
}

/// Permission for one request.
#[derive(Debug)]
pub struct Permit {
    until: Instant,
    _guard: OwnedRwLockReadGuard<()>,
}

impl Permit {
    /// When the request must end, answered or not: after that another replica may write.
    pub fn until(&self) -> Instant {
        self.until
    }
}
