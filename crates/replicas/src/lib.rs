//! Communication between replicas: what the proxies of each have acknowledged and rejected, with the leader in the middle.
//!
//! A proxy may be connected to any replica. Each follower keeps one stream to the leader, on the xDS port and with the same
//! certificates ([`xds::peer`]). It sends what its own pipeline withholds, the rejections that it wants confirmed, and the answers
//! to the leader's questions; it receives what all others withhold, decisions, and the questions: changes only, in pages. Counts
//! are per version of a resource, which is the hash of its content, so they can be added up. A replica without a stream continues
//! with what it withholds and counts itself; nothing here ever stops serving.
//!
//! ```no_run
//! # use replicas::{Role, Replicas};
//! # use xds::{Fleet, Kind, Server, TlsFiles, Version};
//! # async fn example(server: Server, files: TlsFiles, stop: impl Future<Output = ()> + Send + 'static) {
//! let replicas = Replicas::new(server, Some(files));
//! tokio::spawn(replicas.clone().run(stop));
//! replicas.take(Role::Follower("10.0.0.7:8001".into())); // as the lease says; `Role::Leader` when it is ours
//!
//! // The control loop: these instead of an `xds::AckMonitor`'s, and what others withhold.
//! let mut outcomes = replicas.outcomes(Fleet::Shared);
//! let mut others = replicas.others();
//! tokio::select! {
//!     outcome = outcomes.next() => { /* pipeline.on_outcome(&outcome), then work and publish, then: */ }
//!     _ = others.changed() => { /* pipeline.withhold(others.borrow_and_update().of(&Fleet::Shared)) */ }
//! }
//! outcomes.expect(vec![/* output.probes */]);
//! replicas.report(&Fleet::Shared, vec![/* output.withheld, if it has changed */]);
//!
//! // Status, on the leader.
//! let mut ack_reports = replicas.ack_reports(Fleet::Shared);
//! ack_reports.ask(Version { kind: Kind::Route, name: "ingress_http".into(), version: 7 });
//! for (version, report) in ack_reports.next().await {}
//! # }
//! ```

mod ack_reports;
mod follower;
mod holders;
mod leader;
mod message;
mod outcomes;
mod page;
mod pending;
mod questions;
mod state;

pub use ack_reports::{AckReport, AckReports};
pub use message::{CertificateHolders, Question, Shared};
pub use outcomes::Outcomes;

use parking_lot::Mutex;
use pending::PendingDecisions;
use questions::Questions;
use state::{Certificates, Withheld};
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};
use tokio::sync::watch;
use tracing::info;
use xds::{Fleet, Quarantined, Server, TlsFiles};

/// The role of this replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// No leader is known.
    #[default]
    Alone,
    /// It holds the lease.
    Leader,
    /// The replica at `host:port` holds the lease.
    Follower(Arc<str>),
}

/// This replica's side. Clones are handles of the same one.
#[derive(Clone)]
pub struct Replicas(Arc<Inner>);

pub(crate) struct Inner {
    server: Server,
    tls: Option<TlsFiles>,
    role: watch::Sender<Role>,
    withheld: Mutex<Withheld>,
    asked: Mutex<Questions>,
    certificates: Mutex<Certificates>,
    /// Counts changes of what is withheld and of pending rejections, for the tasks that send them.
    changed: watch::Sender<u64>,
    others: watch::Sender<Shared>,
    /// Rejections that wait for the leader's decision.
    pending: Mutex<PendingDecisions>,
    /// There is a stream to the leader.
    is_connected: AtomicBool,
    next_id: AtomicU64,
}

impl Replicas {
    /// A replica that knows no other. `tls` are the files that its server serves with.
    pub fn new(server: Server, tls: Option<TlsFiles>) -> Self {
        Self(Arc::new(Inner {
            server,
            tls,
            role: watch::Sender::default(),
            withheld: Mutex::default(),
            asked: Mutex::default(),
            certificates: Mutex::default(),
            changed: watch::Sender::default(),
            others: watch::Sender::default(),
            pending: Mutex::default(),
            is_connected: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
        }))
    }

    /// Sets the role, according to the lease.
    pub fn take(&self, role: Role) {
        self.0.role.send_if_modified(|now| {
            let differs = *now != role;
            if differs {
                info!(?role, "role of this replica changed");
                *now = role;
            }
            differs
        });
    }

    /// Sends the others everything that this replica withholds from a fleet.
    pub fn report(&self, fleet: &Fleet, holds: Vec<Quarantined>) {
        self.0.update(|withheld| withheld.own.set(fleet, holds));
    }

    /// Tells the leader which certificates this replica and its proxies have.
    pub fn report_certificates(&self, holders: Vec<CertificateHolders>) {
        let holders = holders::bounded(holders);
        let mut certificates = self.0.certificates.lock();
        if certificates.own.as_ref() != Some(&holders) {
            certificates.own = Some(holders);
            drop(certificates);
            self.0.changed.send_modify(|count| *count += 1);
        }
    }

    /// The certificates that this replica, those that follow it and all their proxies have.
    pub fn certificates(&self) -> Vec<CertificateHolders> {
        self.0.certificates.lock().all()
    }

    /// What the others withhold.
    pub fn others(&self) -> watch::Receiver<Shared> {
        self.0.others.subscribe()
    }

    /// What proxies made of resources, in place of an [`xds::AckMonitor`]: before a resource is withheld, the others are asked
    /// whether their proxies accept it.
    pub fn outcomes(&self, fleet: Fleet) -> Outcomes {
        Outcomes::new(self.0.clone(), fleet)
    }

    /// Whether the proxies of all replicas have what is asked about, as it changes.
    pub fn ack_reports(&self, fleet: Fleet) -> AckReports {
        AckReports::new(self.0.clone(), fleet)
    }

    /// Runs until `shutdown`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let inner = self.0;
        let mut shutdown = pin!(shutdown);
        let mut role = inner.role.subscribe();
        let mut peers = inner.server.peers();
        loop {
            let now = role.borrow_and_update().clone();
            let following = async {
                match &now {
                    Role::Follower(address) => follower::follow(&inner, address).await,
                    Role::Alone | Role::Leader => std::future::pending().await,
                }
            };
            // A follower that connects before this replica knows that it holds the lease is served, too.
            let taking_in = async {
                if matches!(now, Role::Follower(_)) {
                    return std::future::pending().await;
                }
                while let Some(peer) = peers.recv().await {
                    tokio::spawn(leader::serve_follower(inner.clone(), peer));
                }
            };
            tokio::select! {
                () = &mut shutdown => return,
                changed = role.changed() => if changed.is_err() { return },
                () = following => {}
                () = taking_in => return,
            }
            inner.on_disconnect();
        }
    }
}

impl Inner {
    /// Changes what is withheld and notifies whoever depends on it.
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

    /// There is no stream to the leader any more: what it sent no longer holds, and nobody waits for its decision.
    fn on_disconnect(&self) {
        self.is_connected.store(false, Ordering::Relaxed);
        self.update(|withheld| withheld.from_leader = Shared::default());
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
