//! Whether proxies have acknowledged an object, for the status of the object.
//!
//! In: the resources of each object, as the pipeline reports them after each batch; the published versions; and the versions
//! that the proxies of all replicas have acknowledged. Out: reports to the status writer. The control loop only puts what
//! changed into a channel and reports at once that it is not programmed yet; everything else is a task of its own, which
//! looks at what changed ([`awaited`]) and shares no lock with it. A report has the number of its batch, so that one about an
//! earlier version of an object never replaces one about a later version.
//!
//! Only the replica that writes status asks. A resource that objects share is asked about in the version that is published
//! now, not in the one of the object's batch: another object may have changed it before any proxy answered.

mod awaited;

use std::sync::Arc;

use model::ObjectRef;
use model::status::ProxyCounts;
use pipeline::ObjectResource;
use replicas::{AckReports, Replicas};
use status::{Leadership, Report, Reporter};
use tokio::sync::{mpsc, watch};
use xds::{AckCounts, Fleet, FleetAckCounts, Kind, Server, Snapshot};

use awaited::{Awaited, Question};

/// How many questions are asked before other tasks run.
const SLICE: usize = 256;

/// The resources of objects as of a batch; none for those that are no longer ours.
type ObjectResources = Vec<(ObjectRef, Option<Arc<Vec<ObjectResource>>>)>;

/// The control loop's end.
pub struct Programmed {
    batch: u64,
    object_resources: mpsc::UnboundedSender<(u64, ObjectResources)>,
}

/// The other end, to run.
pub struct Task {
    server: Server,
    fleet: Fleet,
    object_resources: mpsc::UnboundedReceiver<(u64, ObjectResources)>,
}

/// Both ends.
pub fn channel(server: Server, fleet: Fleet) -> (Programmed, Task) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Programmed { batch: 0, object_resources: sender }, Task { server, fleet, object_resources: receiver })
}

impl Programmed {
    /// Takes what a batch has changed, after it was published; gives what the status says until proxies have answered.
    pub fn take(
        &mut self,
        object_resources: &[(ObjectRef, Option<Arc<Vec<ObjectResource>>>)],
    ) -> Vec<(ObjectRef, status::Programmed)> {
        self.batch += 1;
        let ours: ObjectResources =
            object_resources.iter().filter(|(object, _)| reports_programmed(object)).cloned().collect();
        let pending = status::Programmed { batch: self.batch, proxies: None };
        let told = ours.iter().map(|(object, _)| (object.clone(), pending)).collect();
        if !ours.is_empty() {
            // The task ends with the server.
            let _ = self.object_resources.send((self.batch, ours));
        }
        told
    }
}

/// Whether the status of an object says that proxies have acknowledged it.
fn reports_programmed(object: &ObjectRef) -> bool {
    pipeline::status_of(object.kind).is_some_and(|kind| kind.reports_programmed)
}

impl Task {
    /// Asks and reports for as long as the control loop runs.
    pub async fn run(mut self, replicas: Replicas, leadership: Leadership, reporter: Reporter) {
        let mut leader = leadership.watch();
        let mut awaited = Awaited::default();
        let mut asking: Option<Asking> = None;
        loop {
            match (leadership.is_leader(), &asking) {
                (true, None) => {
                    let new = Asking::new(&self.server, &replicas, &self.fleet);
                    awaited.begin(|kind, name| new.version(kind, name));
                    asking = Some(new);
                }
                (false, Some(_)) => {
                    awaited.end();
                    asking = None;
                }
                _ => {}
            }
            if let Some(asking) = &mut asking {
                asking.ask(awaited.questions()).await;
            }
            let programmed: Vec<_> = awaited.programmed();
            if !programmed.is_empty() {
                reporter.report(Report { programmed, ..Report::default() });
            }
            tokio::select! {
                batch = self.object_resources.recv() => {
                    let Some((batch, object_resources)) = batch else { return };
                    if let Some(asking) = &mut asking {
                        asking.publish(&mut awaited);
                    }
                    for (object, object_resources) in object_resources {
                        let version = |kind, name: &str| asking.as_ref()?.version(kind, name);
                        awaited.put(object, batch, object_resources, version);
                    }
                }
                changed = leader.changed() => if changed.is_err() { return },
                () = next(&mut asking, &mut awaited) => {}
            }
        }
    }
}

/// Takes the next answers, or the next published versions.
async fn next(asking: &mut Option<Asking>, awaited: &mut Awaited) {
    let Some(asking) = asking else { return std::future::pending().await };
    tokio::select! {
        answers = asking.ack_reports.next() => {
            for (version, is_programmed) in answers {
                awaited.answer(&version, is_programmed.then(|| proxies(&asking.ack_reports.counts(&version))));
            }
        }
        changed = asking.snapshots.changed() => {
            if changed.is_err() {
                return std::future::pending().await;
            }
            asking.publish(awaited);
        }
    }
}

/// How many proxies of all replicas have acknowledged a version.
fn proxies(counts: &FleetAckCounts) -> ProxyCounts {
    let sum = |of: fn(&AckCounts) -> u32| counts.values().map(|counts| u64::from(of(counts))).sum();
    ProxyCounts { acknowledged: sum(|counts| counts.have), connected: sum(|counts| counts.clients()) }
}

/// The questions of the replica that writes status.
struct Asking {
    ack_reports: AckReports,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    published: Arc<Snapshot>,
}

impl Asking {
    fn new(server: &Server, replicas: &Replicas, fleet: &Fleet) -> Self {
        let mut snapshots = server.snapshots(fleet);
        let published = snapshots.borrow_and_update().clone().unwrap_or_default();
        Self { ack_reports: replicas.ack_reports(fleet.clone()), snapshots, published }
    }

    /// The published version of a resource.
    fn version(&self, kind: Kind, name: &str) -> Option<u64> {
        self.published.get(kind, name).map(|entry| entry.version)
    }

    /// Follows the published versions; looks only at those that changed.
    fn publish(&mut self, awaited: &mut Awaited) {
        let Some(next) = self.snapshots.borrow_and_update().clone() else { return };
        for kind in Kind::ALL {
            for change in self.published.table(kind).changes(next.table(kind)) {
                awaited.publish(kind, change.name, change.new.map(|entry| entry.version));
            }
        }
        self.published = next;
    }

    async fn ask(&mut self, questions: Vec<Question>) {
        for (count, question) in questions.into_iter().enumerate() {
            match question {
                Question::Ask(version) => self.ack_reports.ask(version),
                Question::Forget(version) => self.ack_reports.forget(&version),
            }
            if count % SLICE == SLICE - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
}
