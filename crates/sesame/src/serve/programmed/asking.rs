//! The questions of the replica that writes status, to each fleet by a task of its own.
//!
//! In: versions to ask about. Out: answers, and that a fleet was published to, whichever fleet has any; and the published version
//! of a resource, at any time. A fleet without news costs nothing, and a fleet that is gone is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::FleetId;
use model::status::ProxyCounts;
use pipeline::xds_fleet;
use replicas::{AckReports, Replicas};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use xds::{AckCounts, FleetAckCounts, Kind, Server, Snapshot, Version};

use super::awaited::{Awaited, Question};

/// How many questions are asked before other tasks run.
const SLICE: usize = 256;

/// What there is to know of a fleet.
pub enum News {
    /// Versions that its proxies have acknowledged, or no longer have.
    Answers(Vec<(Version, Option<ProxyCounts>)>),
    /// Something was published to it.
    Published,
}

/// A fleet that is asked.
struct Asked {
    published: Arc<Snapshot>,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    questions: UnboundedSender<Vec<Question>>,
    _task: AbortOnDropHandle<()>,
}

/// The questions to all fleets.
pub struct Asking {
    server: Server,
    replicas: Replicas,
    fleets: BTreeMap<FleetId, Asked>,
    sender: UnboundedSender<(FleetId, News)>,
    receiver: UnboundedReceiver<(FleetId, News)>,
}

impl Asking {
    /// Nothing is asked yet.
    pub fn new(server: Server, replicas: Replicas) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { server, replicas, fleets: BTreeMap::new(), sender, receiver }
    }

    /// Follows fleets from now on.
    pub fn follow(&mut self, fleets: impl IntoIterator<Item = FleetId>) {
        for fleet in fleets {
            if self.fleets.contains_key(&fleet) {
                continue;
            }
            let name = xds_fleet(&fleet);
            let mut snapshots = self.server.snapshots(&name);
            let published = snapshots.borrow_and_update().clone().unwrap_or_default();
            let (questions, asked) = mpsc::unbounded_channel();
            let (reports, changes) = (self.replicas.ack_reports(name), snapshots.clone());
            let task = tokio::spawn(run(fleet.clone(), reports, changes, asked, self.sender.clone()));
            let asked = Asked { published, snapshots, questions, _task: AbortOnDropHandle::new(task) };
            self.fleets.insert(fleet, asked);
        }
    }

    /// A fleet is gone; one of that name that comes later is another.
    pub fn forget(&mut self, fleet: &FleetId) {
        self.fleets.remove(fleet);
    }

    /// The published version of a resource.
    pub fn version(&self, fleet: &FleetId, kind: Kind, name: &str) -> Option<u64> {
        self.fleets.get(fleet)?.published.get(kind, name).map(|entry| entry.version)
    }

    /// Follows the published versions of a fleet; looks only at those that changed.
    pub fn publish(&mut self, fleet: &FleetId, awaited: &mut Awaited) {
        let Some(asked) = self.fleets.get_mut(fleet) else { return };
        let Some(next) = asked.snapshots.borrow_and_update().clone() else { return };
        for kind in Kind::ALL {
            for change in asked.published.table(kind).changes(next.table(kind)) {
                awaited.publish(fleet, kind, change.name, change.new.map(|entry| entry.version));
            }
        }
        asked.published = next;
    }

    /// Asks, each fleet its own.
    pub fn ask(&mut self, questions: Vec<Question>) {
        let mut by_fleet: BTreeMap<FleetId, Vec<Question>> = BTreeMap::new();
        for question in questions {
            let (Question::Ask(fleet, _) | Question::Forget(fleet, _)) = &question;
            by_fleet.entry(fleet.clone()).or_default().push(question);
        }
        for (fleet, questions) in by_fleet {
            if let Some(asked) = self.fleets.get(&fleet) {
                // The task lives as long as this does.
                let _ = asked.questions.send(questions);
            }
        }
    }

    /// The next news.
    pub async fn next(&mut self) -> (FleetId, News) {
        match self.receiver.recv().await {
            Some(news) => news,
            // There is a sender here.
            None => std::future::pending().await,
        }
    }
}

async fn run(
    fleet: FleetId,
    mut reports: AckReports,
    mut snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    mut questions: UnboundedReceiver<Vec<Question>>,
    news: UnboundedSender<(FleetId, News)>,
) {
    loop {
        let new = tokio::select! {
            asked = questions.recv() => {
                let Some(asked) = asked else { return };
                ask(&mut reports, asked).await;
                continue;
            }
            answers = reports.next() => {
                let counted = |version: &Version| proxies(&reports.counts(version));
                let answers = answers.into_iter().map(|(version, is_programmed)| {
                    let programmed = is_programmed.then(|| counted(&version));
                    (version, programmed)
                });
                News::Answers(answers.collect())
            }
            changed = snapshots.changed() => {
                if changed.is_err() {
                    return;
                }
                News::Published
            }
        };
        if news.send((fleet.clone(), new)).is_err() {
            return;
        }
    }
}

async fn ask(reports: &mut AckReports, questions: Vec<Question>) {
    for (count, question) in questions.into_iter().enumerate() {
        match question {
            Question::Ask(_, version) => reports.ask(version),
            Question::Forget(_, version) => reports.forget(&version),
        }
        if count % SLICE == SLICE - 1 {
            tokio::task::yield_now().await;
        }
    }
}

/// How many proxies of all replicas have acknowledged a version.
fn proxies(counts: &FleetAckCounts) -> ProxyCounts {
    let sum = |of: fn(&AckCounts) -> u32| counts.values().map(|counts| u64::from(of(counts))).sum();
    ProxyCounts { acknowledged: sum(|counts| counts.have), connected: sum(|counts| counts.clients()) }
}
