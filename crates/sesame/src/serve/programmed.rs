//! Whether proxies serve what an object says, for the status of the object.
//!
//! In: which resources carry each object, as the pipeline says it after each batch; what is published; and of which versions
//! the proxies of all replicas have come to have them. Out: word to the status writer. The control loop only puts what
//! changed into a channel and says on the spot that it is not programmed yet; everything else is a task of its own, which
//! looks at what changed ([`awaited`]) and shares no lock with it. What is said carries the number of the batch, so that word
//! of an earlier form of an object never stands over that of a later one.
//!
//! Only the replica that writes asks. A resource that objects share is asked about as it is published by now, not as it was
//! when the object changed: another object's change may have come over it before any proxy had answered.

mod awaited;

use std::sync::Arc;

use kinds::{HttpProxy, Typed};
use model::ObjectRef;
use pipeline::ObjectResource;
use replicas::{AckReports, Replicas};
use status::{Leadership, Report, Reporter};
use tokio::sync::{mpsc, watch};
use xds::{Fleet, Kind, Server, Snapshot};

use awaited::{Awaited, Question};

/// How many questions are asked before others may work.
const SLICE: usize = 256;

/// What carries objects since a batch; nothing for those that are no longer ours.
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
    /// Takes what a batch has changed, after it was published; gives what the status is to say for now.
    pub fn take(
        &mut self,
        object_resources: &[(ObjectRef, Option<Arc<Vec<ObjectResource>>>)],
    ) -> Vec<(ObjectRef, status::Programmed)> {
        self.batch += 1;
        let ours: ObjectResources =
            object_resources.iter().filter(|(object, _)| HttpProxy::KINDS.contains(&object.kind)).cloned().collect();
        let pending = status::Programmed { batch: self.batch, is_programmed: false };
        let told = ours.iter().map(|(object, _)| (object.clone(), pending)).collect();
        if !ours.is_empty() {
            // The task ends with the server.
            let _ = self.object_resources.send((self.batch, ours));
        }
        told
    }
}

impl Task {
    /// Asks, and tells, for as long as the control loop works.
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

/// Takes what has come of the questions, or what is published by now.
async fn next(asking: &mut Option<Asking>, awaited: &mut Awaited) {
    let Some(asking) = asking else { return std::future::pending().await };
    tokio::select! {
        answers = asking.ack_reports.next() => {
            for (version, is_programmed) in answers {
                awaited.answer(&version, is_programmed);
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

/// The questions of the replica that writes.
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

    /// The version of a resource that is published.
    fn version(&self, kind: Kind, name: &str) -> Option<u64> {
        self.published.get(kind, name).map(|entry| entry.version)
    }

    /// Follows what is published: what differs from before, and no more, is looked at.
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
