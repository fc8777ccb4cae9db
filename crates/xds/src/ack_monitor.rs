//! What the answers of a fleet's clients say about a resource: refused by all of a kind, or taken.
//!
//! In: refusals as they happen, and resources that somebody wants to hear about ([`AckMonitor::expect`]). Out: a [`ResourceOutcome`]
//! for each, once the clients of this replica have answered (see [`decide`]). A case whose resource has changed meanwhile is
//! dropped: the new version is another case. Nothing runs while there is no case.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{broadcast, watch};
use tokio::time;

use crate::ack_counts::decide;
use crate::fleet::FleetAcks;
use crate::fleet_acks::{Blame, Event, Refusal};
use crate::identity::Fleet;
use crate::kind::Kind;
use crate::resource::{Entry, Name};
use crate::server::Server;

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
    /// What the clients made of it.
    pub outcome: Outcome,
}

/// What clients made of a resource.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Everybody who is not stuck has it, or it is one of many who refused it.
    Taken,
    /// All clients of one version of Envoy refused it.
    Refused {
        /// The words of one of them.
        text: Arc<str>,
        /// What that one goes on with, where that is known.
        held: Option<Arc<Entry>>,
    },
}

struct PendingOutcome {
    version: u64,
    /// Since when it has been waited for.
    since: Instant,
    refusal: Option<Refusal>,
}

impl PendingOutcome {
    fn new(version: u64, refusal: Option<Refusal>) -> Self {
        Self { version, since: Instant::now(), refusal }
    }
}

/// The monitor of one fleet.
pub struct AckMonitor {
    fleet: Fleet,
    acks: FleetAcks,
    events: broadcast::Receiver<Event>,
    answers: watch::Receiver<u64>,
    cases: BTreeMap<(Kind, Name), PendingOutcome>,
}

impl AckMonitor {
    /// The monitor of a fleet, from now on.
    pub fn new(server: &Server, fleet: Fleet) -> Self {
        let events = server.events();
        let acks = FleetAcks(server.0.hub(&fleet));
        let answers = acks.answers();
        Self { fleet, acks, events, answers, cases: BTreeMap::new() }
    }

    /// Asks for an outcome on what is published under these names, refused or not.
    pub fn expect(&mut self, names: impl IntoIterator<Item = (Kind, Name)>) {
        let Some(snapshot) = self.acks.snapshot() else { return };
        for (kind, name) in names {
            let Some(entry) = snapshot.get(kind, &name) else { continue };
            let version = entry.version;
            let case = self.cases.entry((kind, name)).or_insert_with(|| PendingOutcome::new(version, None));
            if case.version != version {
                *case = PendingOutcome::new(version, None);
            }
        }
    }

    /// The next outcome. May be dropped and called again at any time: nothing is lost.
    pub async fn next(&mut self) -> ResourceOutcome {
        loop {
            let wake = match self.rule() {
                Ok(outcome) => return outcome,
                Err(wake) => wake,
            };
            let stuck = async {
                match wake {
                    Some(at) => time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(Event::Refused(refusal)) => self.open(refusal),
                    Ok(Event::Joined(_) | Event::Left(_)) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.acks.refusals().into_iter().for_each(|refusal| self.open(refusal));
                    }
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
                changed = self.answers.changed(), if !self.cases.is_empty() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                () = stuck => {}
            }
        }
    }

    fn open(&mut self, refusal: Refusal) {
        if refusal.client.fleet == self.fleet && refusal.blame == Blame::Resource {
            let (key, version) = ((refusal.kind, refusal.name.clone()), refusal.version);
            let known = self.cases.entry(key).or_insert_with(|| PendingOutcome::new(version, None));
            let since = if known.version == version { known.since } else { Instant::now() };
            *known = PendingOutcome { version, since, refusal: Some(refusal) };
        }
    }

    /// The first case that can be decided, or when the next may be without anybody answering.
    fn rule(&mut self) -> Result<ResourceOutcome, Option<Instant>> {
        self.answers.borrow_and_update();
        let Some(snapshot) = self.acks.snapshot().filter(|_| !self.cases.is_empty()) else { return Err(None) };
        self.cases
            .retain(|(kind, name), case| snapshot.get(*kind, name).is_some_and(|entry| entry.version == case.version));
        let mut wake = None::<Instant>;
        let mut decided = None;
        for ((kind, name), case) in &self.cases {
            let (tallies, next) = self.acks.ack_counts(*kind, name, case.version, case.since);
            if let Some(good) = decide(&tallies) {
                decided = Some((*kind, name.clone(), good));
                break;
            }
            wake = wake.into_iter().chain(next).min();
        }
        let Some((kind, name, good)) = decided else { return Err(wake) };
        let case = self.cases.remove(&(kind, name.clone())).ok_or(None)?;
        let content = snapshot.get(kind, &name).map_or(case.version, |entry| entry.content());
        // A refusal may be known from its count before its event has come.
        let refusal = case.refusal.or_else(|| self.acks.refusals_of(kind, &name).into_iter().next());
        let outcome = match refusal.filter(|_| !good) {
            Some(refusal) => Outcome::Refused { text: refusal.text, held: refusal.held },
            None if good => Outcome::Taken,
            None => Outcome::Refused { text: "no reason was given".into(), held: None },
        };
        Ok(ResourceOutcome { kind, name, version: case.version, content, outcome })
    }
}
