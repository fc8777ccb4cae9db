//! The task that makes fleets exist.
//!
//! In: the fleets that should exist ([`Fleets`]), as they change; the objects that the API server has, by watches. Out: requests to
//! the API server while this replica holds the lease, and a [`FleetStatus`] for each fleet when it changes ([`Statuses`]).
//!
//! Each fleet is on its own: at most one task works on it, it is retried after a pause of its own, and fleets take turns. What the
//! control loop says is put into a map, so it waits for nobody. Nothing is applied before the objects that exist are known, and
//! nothing is deleted before the fleets that should exist are.

mod targets;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures::{FutureExt, StreamExt};
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use model::FleetName;
use parking_lot::Mutex;
use status::Leadership;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tracing::warn;

use crate::objects::{INSTALLATION_LABEL, MANAGED_BY, ObjectKind};
use crate::problem::Problem;
use crate::request::{self, Done};
use crate::spec::FleetSpec;
use crate::status_of::FleetStatus;
use crate::{Settings, controller::targets::Targets};

/// How many fleets are worked on at once.
const CONCURRENT: usize = 8;
/// How often the CA of the xDS server is read again.
const CA_INTERVAL: Duration = Duration::from_secs(30);

/// The fleets that should exist, as reported by the control loop. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Fleets(Arc<DesiredFleets>);

#[derive(Debug, Default)]
struct DesiredFleets {
    changes: Mutex<Changes>,
    changed: Notify,
    /// Whether all fleets that should exist are known.
    is_synced: AtomicBool,
}

#[derive(Debug, Default)]
struct Changes {
    fleets: BTreeMap<FleetName, Option<Arc<FleetSpec>>>,
    synced: bool,
}

impl Fleets {
    /// A fleet should exist, and be so.
    pub fn put(&self, spec: FleetSpec) {
        self.change(|changes| _ = changes.fleets.insert(spec.name.clone(), Some(Arc::new(spec))));
    }

    /// A fleet should not exist any more.
    pub fn remove(&self, name: &FleetName) {
        self.change(|changes| _ = changes.fleets.insert(name.clone(), None));
    }

    /// All fleets that should exist are known: what belongs to no other may be deleted.
    pub fn synced(&self) {
        if !self.0.is_synced.swap(true, Ordering::Relaxed) {
            self.change(|changes| changes.synced = true);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Changes)) {
        change(&mut self.0.changes.lock());
        self.0.changed.notify_one();
    }
}

/// How fleets are doing, one after the other as it changes; nothing for one that is gone, with everything that was created.
pub type Statuses = mpsc::UnboundedReceiver<(FleetName, Option<FleetStatus>)>;

/// The task, to run.
pub struct Provisioner {
    client: kube::Client,
    settings: Settings,
    leadership: Leadership,
    desired: Fleets,
    statuses: mpsc::UnboundedSender<(FleetName, Option<FleetStatus>)>,
}

/// All ends: the fleets that should exist, how they are doing, and the task.
pub fn channel(client: kube::Client, settings: Settings, leadership: Leadership) -> (Fleets, Statuses, Provisioner) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let fleets = Fleets::default();
    let task = Provisioner { client, settings, leadership, desired: fleets.clone(), statuses: sender };
    (fleets, receiver, task)
}

type Watched = (ObjectKind, Option<String>, Result<Event<DynamicObject>, watcher::Error>);

impl Provisioner {
    /// Works until it is dropped.
    pub async fn run(self) {
        let mut targets = Targets::new(self.settings.clone());
        let mut leader = self.leadership.watch();
        loop {
            if !self.leadership.is_leader() {
                tokio::select! {
                    changed = leader.changed() => if changed.is_err() { return },
                    () = self.desired.0.changed.notified() => self.take(&mut targets),
                }
                continue;
            }
            targets.begin();
            self.lead(&mut targets, &mut leader).await;
        }
    }

    /// Works for as long as this replica holds the lease.
    async fn lead(&self, targets: &mut Targets, leader: &mut tokio::sync::watch::Receiver<bool>) {
        let mut watches = self.watches();
        let mut working = FuturesUnordered::new();
        let mut ca = interval(CA_INTERVAL);
        ca.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.take(targets);
            while working.len() < CONCURRENT
                && let Some((key, work)) = targets.next(Instant::now())
            {
                let (client, manager) = (self.client.clone(), self.settings.manager.clone());
                let performed = request::perform(client, manager, self.leadership.clone(), work);
                working.push(performed.map(|done: Done| (key, done)).boxed());
            }
            for status in targets.statuses() {
                // Whoever listened is gone on shutdown.
                let _ = self.statuses.send(status);
            }
            let wake = targets.wake();
            let alarm = async {
                match wake {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.desired.0.changed.notified() => {}
                Some((kind, namespace, event)) = watches.next() => observe(targets, kind, namespace, event),
                Some((key, done)) = working.next() => targets.done(&key, done, Instant::now()),
                _ = ca.tick() => self.read_ca(targets).await,
                () = alarm, if working.len() < CONCURRENT => {}
                _ = leader.changed() => if !self.leadership.is_leader() { return },
            }
        }
    }

    fn take(&self, targets: &mut Targets) {
        let changes = std::mem::take(&mut *self.desired.0.changes.lock());
        for (name, spec) in changes.fleets {
            targets.want(&name, spec);
        }
        if changes.synced {
            targets.synced();
        }
    }

    async fn read_ca(&self, targets: &mut Targets) {
        let Some(path) = &self.settings.xds.ca else { return targets.set_ca(Ok(None)) };
        let read = tokio::fs::read_to_string(path).await;
        targets.set_ca(read.map(Some).map_err(|error| Problem::of_ca(path, &error)));
    }

    /// The objects of all fleets of this installation, whatever namespace they are in.
    fn watches(&self) -> SelectAll<BoxStream<'static, Watched>> {
        let (key, value) = MANAGED_BY;
        let labels = format!("{key}={value},{INSTALLATION_LABEL}={}", self.settings.namespace);
        let config = watcher::Config::default().labels(&labels);
        let everywhere = self.settings.namespaces.is_empty();
        let namespaces = self.settings.namespaces.iter().cloned().map(Some);
        let namespaces: Vec<Option<String>> = namespaces.chain(everywhere.then_some(None)).collect();
        let mut all = SelectAll::new();
        for kind in ObjectKind::ALL {
            for namespace in namespaces.clone() {
                let resource = kind.resource();
                let api = match &namespace {
                    Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                    None => Api::all_with(self.client.clone(), &resource),
                };
                let events = watcher::watcher(api, config.clone()).default_backoff();
                all.push(events.map(move |event| (kind, namespace.clone(), event)).boxed());
            }
        }
        all
    }
}

fn observe(
    targets: &mut Targets,
    kind: ObjectKind,
    namespace: Option<String>,
    event: Result<Event<DynamicObject>, watcher::Error>,
) {
    match event {
        Ok(Event::Init) => targets.list_begins(kind, namespace),
        Ok(Event::InitApply(object)) => targets.listed(kind, namespace, request::value(object)),
        Ok(Event::InitDone) => targets.list_ends(kind, namespace),
        Ok(Event::Apply(object)) => targets.observe(kind, request::value(object)),
        Ok(Event::Delete(object)) => targets.vanished(kind, &request::value(object)),
        Err(error) => {
            let problem = watch_problem(kind, &error);
            let (code, text) = (problem.code, problem.to_string());
            if targets.not_watched(kind, namespace, problem) {
                warn!(%code, "{text} ({})", code.help());
            }
        }
    }
}

fn watch_problem(kind: ObjectKind, error: &watcher::Error) -> Problem {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(&**status),
        watcher::Error::WatchError(status) => Some(&**status),
        _ => None,
    };
    match status {
        Some(status) => Problem::of_watch(kind, &status.message, status.code == 403),
        None => Problem::of_watch(kind, error, false),
    }
}
