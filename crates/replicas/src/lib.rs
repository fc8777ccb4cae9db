//! Talk between replicas: what each one's proxies have and refused, with the holder of the lease in the middle.
//!
//! Proxies may be connected to any replica. Each replica that does not hold the lease keeps one stream to the one that does,
//! on the xDS port and under the same certificates ([`xds::peer`]). Up go the holds of its own pipeline and the answers to
//! the holder's questions; down come everybody else's holds, and the questions: changes only, in pages. Counts are per version
//! of a resource, which is the hash of its content, so they can be added up. A replica without a stream goes on by itself, with its own holds and
//! its own counts; nothing here ever stops serving.
//!
//! ```no_run
//! # use replicas::{Role, Replicas};
//! # use xds::{Fleet, Kind, Server, TlsFiles, Version};
//! # async fn example(server: Server, files: TlsFiles, stop: impl Future<Output = ()> + Send + 'static) {
//! let replicas = Replicas::new(server, Some(files));
//! tokio::spawn(replicas.clone().run(stop));
//! replicas.take(Role::Follower("10.0.0.7:8001".into())); // as the lease says; `Role::Holder` when it is ours
//!
//! // The control loop: these instead of an `xds::AckMonitor`'s, and what others hold.
//! let mut outcomes = replicas.outcomes(Fleet::Shared);
//! let mut others = replicas.others();
//! tokio::select! {
//!     outcome = outcomes.next() => { /* pipeline.on_outcome(&outcome), then work and publish, then: */ }
//!     _ = others.changed() => { /* pipeline.withhold(others.borrow_and_update().of(&Fleet::Shared)) */ }
//! }
//! outcomes.expect(vec![/* output.probes */]);
//! replicas.report(&Fleet::Shared, vec![/* output.holds, if there are some */]);
//!
//! // Status, on the holder.
//! let mut ack_reports = replicas.ack_reports(Fleet::Shared);
//! ack_reports.ask(Version { kind: Kind::Route, name: "ingress_http".into(), version: 7 });
//! for (version, is_programmed) in ack_reports.next().await {}
//! # }
//! ```

mod ack_reports;
mod follower;
mod holder;
mod message;
mod outcomes;
mod page;
mod questions;
mod state;

pub use ack_reports::AckReports;
pub use message::{Question, Shared};
pub use outcomes::Outcomes;

use parking_lot::Mutex;
use questions::Questions;
use state::Withheld;
use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};
use tokio::sync::{oneshot, watch};
use tracing::info;
use xds::{Fleet, FleetAckCounts, Quarantined, Server, TlsFiles};

/// What this replica is to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nobody is known to hold the lease.
    #[default]
    Alone,
    /// It holds the lease.
    Holder,
    /// The one at `host:port` does.
    Follower(Arc<str>),
}

/// This replica's side of the talk. Clones are handles of the same one.
#[derive(Clone)]
pub struct Replicas(Arc<Inner>);

pub(crate) struct Inner {
    server: Server,
    tls: Option<TlsFiles>,
    place: watch::Sender<Role>,
    withheld: Mutex<Withheld>,
    asked: Mutex<Questions>,
    /// Counts changes of what is withheld and of cases, for those who pass them on.
    changed: watch::Sender<u64>,
    others: watch::Sender<Shared>,
    /// Cases that wait for the holder's word.
    pending: Mutex<HashMap<Question, Pending>>,
    /// There is a stream to the holder.
    linked: AtomicBool,
    next_id: AtomicU64,
}

/// A case that waits for the holder's word; it goes when the word is there.
pub(crate) struct Pending {
    outcome: oneshot::Sender<bool>,
    /// Whether the holder was asked. That is kept here and not by whoever asks, since the same case may come again.
    is_said: bool,
}

impl Replicas {
    /// A replica that knows of no other. `tls` are the files that its server serves with.
    pub fn new(server: Server, tls: Option<TlsFiles>) -> Self {
        Self(Arc::new(Inner {
            server,
            tls,
            place: watch::Sender::default(),
            withheld: Mutex::default(),
            asked: Mutex::default(),
            changed: watch::Sender::default(),
            others: watch::Sender::default(),
            pending: Mutex::default(),
            linked: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
        }))
    }

    /// Takes a place among the replicas, as the lease says.
    pub fn take(&self, place: Role) {
        self.0.place.send_if_modified(|now| {
            let differs = *now != place;
            if differs {
                info!(role = ?place, "role among the replicas changed");
                *now = place;
            }
            differs
        });
    }

    /// Tells the others all that this replica withholds from a fleet.
    pub fn report(&self, fleet: &Fleet, holds: Vec<Quarantined>) {
        self.0.update(|withheld| withheld.own.set(fleet, holds));
    }

    /// What the others withhold.
    pub fn others(&self) -> watch::Receiver<Shared> {
        self.0.others.subscribe()
    }

    /// What proxies made of resources, in place of an [`xds::AckMonitor`]: before a resource is given up, the others are asked
    /// whether their proxies take it.
    pub fn outcomes(&self, fleet: Fleet) -> Outcomes {
        Outcomes::new(self.0.clone(), fleet)
    }

    /// Whether the proxies of all replicas have what is asked about, as it changes.
    pub fn ack_reports(&self, fleet: Fleet) -> AckReports {
        AckReports::new(self.0.clone(), fleet)
    }

    /// Talks until `shutdown`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let inner = self.0;
        let mut shutdown = pin!(shutdown);
        let mut place = inner.place.subscribe();
        let mut peers = inner.server.peers();
        loop {
            let now = place.borrow_and_update().clone();
            let following = async {
                match &now {
                    Role::Follower(address) => follower::follow(&inner, address).await,
                    Role::Alone | Role::Holder => std::future::pending().await,
                }
            };
            // Whoever comes early, before we know that the lease is ours, waits a moment for it.
            let taking_in = async {
                if matches!(now, Role::Follower(_)) {
                    return std::future::pending().await;
                }
                while let Some(peer) = peers.recv().await {
                    tokio::spawn(holder::attend(inner.clone(), peer));
                }
            };
            tokio::select! {
                () = &mut shutdown => return,
                changed = place.changed() => if changed.is_err() { return },
                () = following => {}
                () = taking_in => return,
            }
            inner.unlink();
        }
    }
}

impl Inner {
    /// Changes what is withheld and tells whoever needs to know.
    fn update(&self, change: impl FnOnce(&mut Withheld)) {
        let others = {
            let mut withheld = self.withheld.lock();
            change(&mut withheld);
            withheld.others(None)
        };
        self.others.send_if_modified(|before| {
            let differs = *before != others;
            if differs {
                *before = others;
            }
            differs
        });
        self.changed.send_modify(|count| *count += 1);
    }

    /// All counts that are known of what is asked since then, and whether every follower has answered.
    fn sum(&self, question: &Question, since: Instant) -> (FleetAckCounts, bool) {
        let acks = self.server.acks(&question.fleet);
        let own = acks.map(|acks| acks.ack_counts(question.kind, &question.name, question.version, since));
        let mut sum = own.map(|(sum, _)| sum).unwrap_or_default();
        let waits = self.asked.lock().add(question, since, Instant::now(), &mut sum);
        (sum, waits.is_none())
    }

    /// There is no stream to the holder any more: what it said no longer holds, and nobody waits for its word.
    fn unlink(&self) {
        self.linked.store(false, Ordering::Relaxed);
        self.update(|withheld| withheld.from_holder = Shared::default());
        self.pending.lock().clear();
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

/// Done at that time, or never.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
