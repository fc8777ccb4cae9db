//! Decides what became of a resource from the answers of a fleet's clients: rejected by all clients of one version of Envoy, or
//! accepted.
//!
//! In: rejections as they happen, and resources whose outcome somebody asked for ([`AckMonitor::expect`]). Out: a
//! [`ResourceOutcome`] for each, once the clients of this replica have answered (see [`decide`]). The counts come from an
//! [`AckWatch`], so an answer costs the names in it, however many outcomes are pending. An outcome whose resource has been
//! published in another version meanwhile is dropped: the new version has an outcome of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{broadcast, watch};

use crate::ack_counts::decide;
use crate::acks::{AckWatch, Version};
use crate::fleet::{FleetAcks, FleetRuntime};
use crate::fleet_acks::{Event, Rejection, RejectionCause};
use crate::identity::Fleet;
use crate::kind::Kind;
use crate::resource::{Entry, Name};
use crate::server::Server;
use crate::table::Snapshot;

#[cfg(test)]
mod tests;

/// What became of one version of one resource.
#[derive(Clone, Debug)]
pub struct ResourceOutcome {
    /// The type of the resource.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: u64,
    /// The hash of its message: the version, save for endpoints.
    pub content: u64,
    /// Whether it was accepted.
    pub outcome: Outcome,
}

/// Whether clients accepted a resource.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every client that is not stuck has it, or some clients rejected what others of the same version of Envoy accepted.
    Accepted,
    /// All clients of one version of Envoy rejected it.
    Rejected {
        /// The error of one of them.
        text: Arc<str>,
        /// The version which that client continues to use, where it is known.
        held: Option<Arc<Entry>>,
    },
}

/// The monitor of one fleet.
pub struct AckMonitor {
    fleet: Fleet,
    acks: FleetAcks,
    watch: AckWatch,
    events: broadcast::Receiver<Event>,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    /// The snapshot that the pending outcomes were last compared with.
    view: Arc<Snapshot>,
    /// By resource, the version whose outcome is pending.
    pending: HashMap<(Kind, Name), u64>,
    /// By resource, the version that was last decided, and the last rejection of it that counted: the events of those that
    /// counted may still be on their way.
    counted: HashMap<(Kind, Name), (u64, u64)>,
    decided: VecDeque<ResourceOutcome>,
}

impl AckMonitor {
    /// The monitor of a fleet, from now on.
    pub fn new(server: &Server, fleet: Fleet) -> Self {
        Self::of(server.0.runtime(&fleet), server.events())
    }

    fn of(runtime: Arc<FleetRuntime>, events: broadcast::Receiver<Event>) -> Self {
        let mut snapshots = runtime.watch();
        let view = snapshots.borrow_and_update().clone().unwrap_or_default();
        Self {
            fleet: runtime.fleet.clone(),
            watch: AckWatch::of(runtime.clone()),
            acks: FleetAcks(runtime),
            events,
            snapshots,
            view,
            pending: HashMap::new(),
            counted: HashMap::new(),
            decided: VecDeque::new(),
        }
    }

    /// Asks for the outcome of the resources published under these names, rejected or not.
    pub fn expect(&mut self, names: impl IntoIterator<Item = (Kind, Name)>) {
        self.follow();
        for (kind, name) in names {
            if let Some(version) = self.view.get(kind, &name).map(|entry| entry.version) {
                self.open(kind, name, version);
            }
        }
    }

    /// The next outcome. May be dropped and called again at any time: nothing is lost.
    pub async fn next(&mut self) -> ResourceOutcome {
        loop {
            if let Some(outcome) = self.decided.pop_front() {
                return outcome;
            }
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(Event::Rejected(rejection)) => self.on_rejection(&rejection),
                    Ok(Event::Joined(_) | Event::Left { .. }) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.acks.rejections().iter().for_each(|rejection| self.on_rejection(rejection));
                    }
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
                changed = self.snapshots.changed() => match changed {
                    Ok(()) => self.follow(),
                    Err(_) => std::future::pending().await,
                },
                counts = self.watch.next() => {
                    for (version, counts) in counts {
                        if decide(&counts).is_some() {
                            self.close(version);
                        }
                    }
                }
            }
        }
    }

    /// How often a client was looked at: what all of it has cost.
    pub fn looks(&self) -> u64 {
        self.watch.looks()
    }

    fn on_rejection(&mut self, rejection: &Rejection) {
        if rejection.client.fleet != self.fleet || rejection.cause != RejectionCause::Resource {
            return;
        }
        self.follow();
        let published = self.view.get(rejection.kind, &rejection.name).map(|entry| entry.version);
        let key = (rejection.kind, rejection.name.clone());
        let has_counted = self
            .counted
            .get(&key)
            .is_some_and(|(version, last)| *version == rejection.version && *last >= rejection.sequence);
        // What is no longer published is nobody's concern.
        if published == Some(rejection.version) && !has_counted {
            self.open(rejection.kind, rejection.name.clone(), rejection.version);
        }
    }

    fn open(&mut self, kind: Kind, name: Name, version: u64) {
        // The watch tells the first counts of a version by itself.
        self.pending.insert((kind, name.clone()), version);
        self.watch.watch(Version { kind, name, version }, Instant::now());
    }

    /// Takes the snapshot that is published now, and drops the pending outcomes of what has changed since the last one.
    fn follow(&mut self) {
        let Some(next) = self.snapshots.borrow_and_update().clone() else { return };
        let view = std::mem::replace(&mut self.view, next);
        if self.pending.is_empty() && self.counted.is_empty() || Arc::ptr_eq(&view, &self.view) {
            return;
        }
        for kind in Kind::ALL {
            for change in view.table(kind).changes(self.view.table(kind)) {
                let published = change.new.map(|entry| entry.version);
                let key = (kind, change.name.clone());
                if self.counted.get(&key).is_some_and(|(version, _)| Some(*version) != published) {
                    self.counted.remove(&key);
                }
                if let Some(version) = self.pending.get(&key).copied().filter(|version| Some(*version) != published) {
                    self.pending.remove(&key);
                    self.watch.forget(&Version { kind, name: key.1, version });
                }
            }
        }
    }

    /// Decides the outcome of a version that everybody seems to have answered.
    fn close(&mut self, version: Version) {
        self.follow();
        let key = (version.kind, version.name.clone());
        if self.pending.get(&key) != Some(&version.version) {
            return;
        }
        let mut rejections = self.acks.rejections_of(version.kind, &version.name);
        rejections.retain(|rejection| rejection.version == version.version);
        // All of these count: a rejection is noted while its session is locked.
        let Some(accepted) = self.watch.recount(&version, Instant::now()).as_ref().and_then(decide) else { return };
        self.pending.remove(&key);
        self.watch.forget(&version);
        if let Some(last) = rejections.iter().map(|rejection| rejection.sequence).max() {
            self.counted.insert(key, (version.version, last));
        }
        let Version { kind, name, version } = version;
        let content = self.view.get(kind, &name).map_or(version, |entry| entry.content());
        let outcome = match rejections.into_iter().next() {
            _ if accepted => Outcome::Accepted,
            Some(rejection) => Outcome::Rejected { text: rejection.text, held: rejection.held },
            None => Outcome::Rejected { text: "no reason was given".into(), held: None },
        };
        self.decided.push_back(ResourceOutcome { kind, name, version, content, outcome });
    }
}
