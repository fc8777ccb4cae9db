//! Whether proxies have acknowledged an object, for the status of the object.
//!
//! In: the resources of each object, as the pipeline reports them after each batch; the published versions; and the versions
//! that the proxies of all replicas have acknowledged. Out: reports to the status writer. The control loop only puts what
//! changed into a channel and reports at once that it is not programmed yet; everything else is a task of its own, which
//! looks at what changed ([`awaited`]) and shares no lock with it. A report has the number of its batch, so that one about an
//! earlier version of an object never replaces one about a later version.
//!
//! An object is programmed when the proxies of every fleet that serves it have acknowledged it; it is not while a fleet has none.
//! Each fleet is asked by a task of its own ([`questions`]), so that one without changes costs nothing.
//!
//! Only the replica that writes status asks. A resource that objects share is asked about in the version that is published
//! now, not in the one of the object's batch: another object may have changed it before any proxy answered.

mod awaited;
mod questions;

use std::sync::Arc;

use model::status::{Acknowledgement, ProxyCounts, ProxyState};
use model::{FleetId, ObjectRef};
use pipeline::ServedObject;
use replicas::Replicas;
use status::{Leadership, Report, Reporter};
use tokio::sync::mpsc;
use xds::Server;

use awaited::Awaited;
use questions::{FleetUpdate, Questions};

/// The resources of objects as of a batch; none for those that are no longer ours.
type ObjectResources = Vec<(ObjectRef, Option<Arc<ServedObject>>)>;

/// What a batch has changed.
struct Batch {
    number: u64,
    object_resources: ObjectResources,
    /// The fleets that are gone with it.
    gone: Vec<FleetId>,
}

/// The control loop's end.
pub struct Programmed {
    batch: u64,
    batches: mpsc::UnboundedSender<Batch>,
}

/// The other end, to run.
pub struct Task {
    server: Server,
    batches: mpsc::UnboundedReceiver<Batch>,
}

/// Both ends.
pub fn channel(server: Server) -> (Programmed, Task) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Programmed { batch: 0, batches: sender }, Task { server, batches: receiver })
}

impl Programmed {
    /// Takes what a batch has changed, after it was published; gives what the status says until proxies have answered.
    pub fn take(
        &mut self,
        object_resources: &[(ObjectRef, Option<Arc<ServedObject>>)],
        gone: &[FleetId],
    ) -> Vec<(ObjectRef, status::Programmed)> {
        self.batch += 1;
        let mut ours = ObjectResources::new();
        let mut statuses = Vec::new();
        for (object, resources) in object_resources {
            let acknowledgement = pipeline::status_of(object.kind).map(|kind| kind.acknowledgement);
            let is_served = resources.as_ref().is_some_and(|resources| !resources.is_empty());
            let proxies = match acknowledgement {
                None | Some(Acknowledgement::Ignored) => continue,
                Some(Acknowledgement::Awaited | Acknowledgement::Reported) if is_served => Some(ProxyState::Pending),
                // Nothing is waited for where no proxy serves anything of it.
                Some(Acknowledgement::Awaited) => Some(ProxyState::acknowledged(ProxyCounts::default())),
                Some(Acknowledgement::Reported) => None,
            };
            statuses.push((object.clone(), status::Programmed { batch: self.batch, proxies }));
            ours.push((object.clone(), resources.clone()));
        }
        if !ours.is_empty() || !gone.is_empty() {
            // The task ends with the server.
            let _ = self.batches.send(Batch { number: self.batch, object_resources: ours, gone: gone.to_vec() });
        }
        statuses
    }
}

impl Task {
    /// Asks and reports for as long as the control loop runs.
    pub async fn run(mut self, replicas: Replicas, leadership: Leadership, reporter: Reporter) {
        let mut leader = leadership.watch();
        let mut awaited = Awaited::default();
        let mut questions: Option<Questions> = None;
        loop {
            match (leadership.is_leader(), &questions) {
                (true, None) => {
                    let mut new = Questions::new(self.server.clone(), replicas.clone());
                    new.follow(awaited.fleets());
                    awaited.begin(|fleet, kind, name| new.version(fleet, kind, name));
                    questions = Some(new);
                }
                (false, Some(_)) => {
                    awaited.end();
                    questions = None;
                }
                _ => {}
            }
            if let Some(questions) = &mut questions {
                questions.ask(awaited.questions());
            }
            let programmed: Vec<_> = awaited.programmed();
            if !programmed.is_empty() {
                reporter.report(Report { programmed, ..Report::default() });
            }
            tokio::select! {
                batch = self.batches.recv() => {
                    let Some(batch) = batch else { return };
                    take(batch, &mut questions, &mut awaited);
                }
                changed = leader.changed() => if changed.is_err() { return },
                (fleet, update) = next(&mut questions) => match (update, &mut questions) {
                    (FleetUpdate::Answers(answers), _) => {
                        for (version, state) in answers {
                            awaited.answer(&fleet, &version, state);
                        }
                    }
                    (FleetUpdate::Published, Some(questions)) => questions.publish(&fleet, &mut awaited),
                    (FleetUpdate::Proxies(proxies), Some(questions)) => {
                        awaited.set_proxies(&fleet, proxies, |fleet, kind, name| questions.version(fleet, kind, name));
                    }
                    (FleetUpdate::Published | FleetUpdate::Proxies(_), None) => {}
                },
            }
        }
    }
}

fn take(batch: Batch, questions: &mut Option<Questions>, awaited: &mut Awaited) {
    if let Some(questions) = questions {
        for fleet in &batch.gone {
            questions.forget(fleet);
            awaited.forget(fleet);
        }
        let resources =
            batch.object_resources.iter().flat_map(|(_, resources)| resources.iter().flat_map(|it| it.iter()));
        let fleets: std::collections::BTreeSet<FleetId> = resources.map(|resource| resource.fleet.clone()).collect();
        fleets.iter().for_each(|fleet| questions.publish(fleet, awaited));
        questions.follow(fleets);
    }
    for (object, object_resources) in batch.object_resources {
        let version = |fleet: &FleetId, kind, name: &str| questions.as_ref()?.version(fleet, kind, name);
        awaited.put(object, batch.number, object_resources, version);
    }
}

async fn next(questions: &mut Option<Questions>) -> (FleetId, FleetUpdate) {
    match questions {
        Some(questions) => questions.next().await,
        None => std::future::pending().await,
    }
}
