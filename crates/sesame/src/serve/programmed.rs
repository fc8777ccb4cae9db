//! Whether proxies have acknowledged an object, for the status of the object.
//!
//! In: the resources of each object, as the pipeline reports them after each batch; the published versions; and the versions
//! that the proxies of all replicas have acknowledged. Out: reports to the status writer. The control loop only puts what
//! changed into a channel and reports at once that it is not programmed yet; everything else is a task of its own, which
//! looks at what changed ([`awaited`]) and shares no lock with it. A report has the number of its batch, so that one about an
//! earlier version of an object never replaces one about a later version.
//!
//! An object is programmed when the proxies of every fleet that serves it have acknowledged it; it is not while a fleet has none.
//! Each fleet is asked by a task of its own ([`asking`]), so that one without news costs nothing.
//!
//! Only the replica that writes status asks. A resource that objects share is asked about in the version that is published
//! now, not in the one of the object's batch: another object may have changed it before any proxy answered.

mod asking;
mod awaited;

use std::sync::Arc;

use model::status::{Acknowledgement, ProxyCounts, ProxyState};
use model::{FleetId, ObjectRef};
use pipeline::ServedObject;
use replicas::Replicas;
use status::{Leadership, Report, Reporter};
use tokio::sync::mpsc;
use xds::Server;

use asking::{Asking, FleetUpdate};
use awaited::Awaited;

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
        let mut told = Vec::new();
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
            told.push((object.clone(), status::Programmed { batch: self.batch, proxies }));
            ours.push((object.clone(), resources.clone()));
        }
        if !ours.is_empty() || !gone.is_empty() {
            // The task ends with the server.
            let _ = self.batches.send(Batch { number: self.batch, object_resources: ours, gone: gone.to_vec() });
        }
        told
    }
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
                    let mut new = Asking::new(self.server.clone(), replicas.clone());
                    new.follow(awaited.fleets());
                    awaited.begin(|fleet, kind, name| new.version(fleet, kind, name));
                    asking = Some(new);
                }
                (false, Some(_)) => {
                    awaited.end();
                    asking = None;
                }
                _ => {}
            }
            if let Some(asking) = &mut asking {
                asking.ask(awaited.questions());
            }
            let programmed: Vec<_> = awaited.programmed();
            if !programmed.is_empty() {
                reporter.report(Report { programmed, ..Report::default() });
            }
            tokio::select! {
                batch = self.batches.recv() => {
                    let Some(batch) = batch else { return };
                    take(batch, &mut asking, &mut awaited);
                }
                changed = leader.changed() => if changed.is_err() { return },
                (fleet, news) = next(&mut asking) => match (news, &mut asking) {
                    (FleetUpdate::Answers(answers), _) => {
                        for (version, state) in answers {
                            awaited.answer(&fleet, &version, state);
                        }
                    }
                    (FleetUpdate::Published, Some(asking)) => asking.publish(&fleet, &mut awaited),
                    (FleetUpdate::Proxies(proxies), Some(asking)) => {
                        awaited.set_proxies(&fleet, proxies, |fleet, kind, name| asking.version(fleet, kind, name));
                    }
                    (FleetUpdate::Published | FleetUpdate::Proxies(_), None) => {}
                },
            }
        }
    }
}

fn take(batch: Batch, asking: &mut Option<Asking>, awaited: &mut Awaited) {
    if let Some(asking) = asking {
        for fleet in &batch.gone {
            asking.forget(fleet);
            awaited.forget(fleet);
        }
        let resources =
            batch.object_resources.iter().flat_map(|(_, resources)| resources.iter().flat_map(|it| it.iter()));
        let fleets: std::collections::BTreeSet<FleetId> = resources.map(|resource| resource.fleet.clone()).collect();
        fleets.iter().for_each(|fleet| asking.publish(fleet, awaited));
        asking.follow(fleets);
    }
    for (object, object_resources) in batch.object_resources {
        let version = |fleet: &FleetId, kind, name: &str| asking.as_ref()?.version(fleet, kind, name);
        awaited.put(object, batch.number, object_resources, version);
    }
}

async fn next(asking: &mut Option<Asking>) -> (FleetId, FleetUpdate) {
    match asking {
        Some(asking) => asking.next().await,
        None => std::future::pending().await,
    }
}
