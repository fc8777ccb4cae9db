//! The questions of the replica that writes status, to each fleet by a task of its own.
//!
//! In: versions to ask about. Out: answers, that a fleet was published to, and whether it has proxies, whichever fleet has any; and
//! the published version of a resource, at any time. A fleet without changes costs nothing, and a fleet that is gone is forgotten.
//!
//! Whether a fleet has proxies is asked like everything else: every Envoy subscribes to all listeners, so each of them is counted for
//! a listener of any name ([`anybody`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::FleetId;
use model::status::{ProxyCounts, ProxyRefusal, ProxyState};
use pipeline::xds_fleet;
use replicas::{AckReport, AckReports, Replicas};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use xds::{AckCounts, FleetAckCounts, Kind, Server, Snapshot, Version};

use super::awaited::{Awaited, FleetProxies, Question};

/// How many questions are asked before other tasks run.
const SLICE: usize = 256;

/// For how long a fleet has had proxies, or none, when that is reported: a proxy that only connects again changes nothing.
const SETTLED: Duration = Duration::from_secs(2);
/// For how long a fleet has had no proxy when what earlier ones acknowledged no longer counts. A proxy that lost its connection is
/// back within seconds, one whose pod is replaced within this time.
const LASTING: Duration = Duration::from_secs(60);

/// What there is to know of a fleet.
pub enum FleetUpdate {
    /// Versions of which its proxies have answered something new; none for those that they have not acknowledged.
    Answers(Vec<(Version, Option<ProxyState>)>),
    /// Something was published to it.
    Published,
    /// Whether it has proxies.
    Proxies(FleetProxies),
}

/// A fleet whose acknowledgements are watched.
struct WatchedFleet {
    published: Arc<Snapshot>,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    questions: UnboundedSender<Vec<Question>>,
    _task: AbortOnDropHandle<()>,
}

/// The questions to all fleets.
pub struct Questions {
    server: Server,
    replicas: Replicas,
    fleets: BTreeMap<FleetId, WatchedFleet>,
    sender: UnboundedSender<(FleetId, FleetUpdate)>,
    receiver: UnboundedReceiver<(FleetId, FleetUpdate)>,
}

impl Questions {
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
            let asked = WatchedFleet { published, snapshots, questions, _task: AbortOnDropHandle::new(task) };
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

    /// The next update.
    pub async fn next(&mut self) -> (FleetId, FleetUpdate) {
        match self.receiver.recv().await {
            Some(update) => update,
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
    updates: UnboundedSender<(FleetId, FleetUpdate)>,
) {
    let anybody = anybody();
    reports.ask(anybody.clone());
    let mut connection = Connection { is_up: false, since: Instant::now(), reported: None };
    loop {
        let new = tokio::select! {
            asked = questions.recv() => {
                let Some(asked) = asked else { return };
                ask(&mut reports, asked).await;
                continue;
            }
            answers = reports.next() => {
                let mut new = Vec::with_capacity(answers.len());
                for (version, report) in answers {
                    if version == anybody {
                        connection.set(report.is_subscribed);
                    } else {
                        let state = acknowledged(&reports, &version, report);
                        new.push((version, state));
                    }
                }
                FleetUpdate::Answers(new)
            }
            changed = snapshots.changed() => {
                if changed.is_err() {
                    return;
                }
                FleetUpdate::Published
            }
            connected = connection.next() => FleetUpdate::Proxies(connected),
        };
        if updates.send((fleet.clone(), new)).is_err() {
            return;
        }
    }
}

/// What is asked to count the proxies of a fleet: a listener that there is not.
fn anybody() -> Version {
    Version { kind: Kind::Listener, name: "".into(), version: 0 }
}

/// Whether a fleet has proxies, and what was reported about it.
struct Connection {
    is_up: bool,
    since: Instant,
    reported: Option<FleetProxies>,
}

impl Connection {
    fn set(&mut self, is_up: bool) {
        if self.is_up != is_up {
            (self.is_up, self.since) = (is_up, Instant::now());
        }
    }

    /// What is to be reported next, when it is time. May be dropped and called again at any time.
    async fn next(&mut self) -> FleetProxies {
        let (connected, after) = match (self.is_up, self.reported) {
            (true, None | Some(FleetProxies::Present)) | (false, Some(FleetProxies::LongAbsent)) => {
                return std::future::pending().await;
            }
            (true, Some(_)) => (FleetProxies::Present, SETTLED),
            (false, None | Some(FleetProxies::Present)) => (FleetProxies::Absent, SETTLED),
            (false, Some(FleetProxies::Absent)) => (FleetProxies::LongAbsent, LASTING),
        };
        tokio::time::sleep_until(self.since + after).await;
        self.reported = Some(connected);
        connected
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

/// What proxies have made of a version; none unless they have acknowledged it.
fn acknowledged(reports: &AckReports, version: &Version, report: AckReport) -> Option<ProxyState> {
    let refusal = report.refusal.map(|refusal| Arc::new(ProxyRefusal { node: refusal.node, text: refusal.text }));
    let counts = || proxies(&reports.counts(version));
    report.is_programmed.then(|| ProxyState::Acknowledged { counts: counts(), refusal })
}

/// How many proxies of all replicas have acknowledged a version.
fn proxies(counts: &FleetAckCounts) -> ProxyCounts {
    let sum = |of: fn(&AckCounts) -> u32| counts.values().map(|counts| u64::from(of(counts))).sum();
    ProxyCounts { acknowledged: sum(|counts| counts.have), connected: sum(|counts| counts.clients()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told next, and after how many seconds; nothing if nothing is told within two minutes.
    async fn next(connection: &mut Connection) -> Option<(FleetProxies, u64)> {
        let begun = Instant::now();
        let reported = tokio::time::timeout(Duration::from_secs(120), connection.next()).await.ok()?;
        Some((reported, begun.elapsed().as_secs()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_fleet_without_proxies_is_told_when_it_is_settled_and_again_when_it_lasts() {
        let mut connection = Connection { is_up: false, since: Instant::now(), reported: None };
        assert_eq!(next(&mut connection).await, Some((FleetProxies::Absent, 2)));
        assert_eq!(next(&mut connection).await, Some((FleetProxies::LongAbsent, 58)));
        assert_eq!(next(&mut connection).await, None);
        connection.set(true);
        assert_eq!(next(&mut connection).await, Some((FleetProxies::Present, 2)));
        // One that only connects again is no news.
        connection.set(false);
        assert!(tokio::time::timeout(Duration::from_secs(1), connection.next()).await.is_err());
        connection.set(true);
        assert_eq!(next(&mut connection).await, None);
    }
}
