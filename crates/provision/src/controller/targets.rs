//! The fleets as they should be and as they are, and what there is to do about each.
//!
//! In: what the control loop wants, what watches and answers show, and the time. Out: one piece of work at a time for a fleet, in
//! the order in which fleets came to need some, and the status of each fleet where it changed. No I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use model::FleetName;
use serde_json::Value;
use tokio::time::Instant;

use crate::Settings;
use crate::name;
use crate::objects::{FLEET_LABEL, FleetObjects, ObjectKind};
use crate::problem::Problem;
use crate::request::{self, Done, Work};
use crate::spec::FleetSpec;
use crate::status_of::{self, FleetStatus};

#[cfg(test)]
mod tests;

/// The first pause after a failure, and the longest; each is twice the one before.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The least time between two pieces of work for one fleet: who edits a Gateway all the time costs no more than this.
const INTERVAL: Duration = Duration::from_millis(250);

/// Where the objects of a fleet are: their namespace and their name.
pub type Key = (String, String);

/// One fleet.
#[derive(Default)]
struct Target {
    /// What should be; none if the fleet is to go.
    wanted: Option<FleetObjects>,
    /// What is.
    objects: BTreeMap<ObjectKind, Value>,
    is_queued: bool,
    /// When it is queued again, while it waits for that.
    waits_until: Option<Instant>,
    is_busy: bool,
    /// Something changed while it was busy.
    is_stale: bool,
    /// The uids of objects that vanished while it was busy: an answer may be from before that.
    vanished: BTreeSet<String>,
    /// How often in a row it failed.
    failures: u32,
    /// How often objects were repaired since they should last be otherwise: somebody may change them back each time.
    repairs: u32,
    not_before: Option<Instant>,
    problem: Option<Problem>,
}

/// A watch: of a kind, in a namespace or in all of them.
type Watch = (ObjectKind, Option<String>);

/// All fleets.
pub struct Targets {
    settings: Settings,
    targets: BTreeMap<Key, Target>,
    /// The fleets that should exist, and where their objects are.
    specs: BTreeMap<FleetName, (Arc<FleetSpec>, Key)>,
    is_synced: bool,
    /// The CA, once it is read.
    ca: Option<Result<Option<String>, Problem>>,
    /// Watches that have begun a list: what they have found of it.
    listing: HashMap<Watch, BTreeSet<Key>>,
    /// Watches whose first list is complete.
    listed: BTreeSet<Watch>,
    broken: BTreeMap<Watch, Problem>,
    queue: VecDeque<Key>,
    waiting: BTreeSet<(Instant, Key)>,
    /// The status that was last reported for each fleet.
    last_reported: BTreeMap<FleetName, FleetStatus>,
    /// Fleets whose status may have changed since it was reported.
    unreported: BTreeSet<FleetName>,
}

impl Targets {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            targets: BTreeMap::new(),
            specs: BTreeMap::new(),
            is_synced: false,
            ca: None,
            listing: HashMap::new(),
            listed: BTreeSet::new(),
            broken: BTreeMap::new(),
            queue: VecDeque::new(),
            waiting: BTreeSet::new(),
            last_reported: BTreeMap::new(),
            unreported: BTreeSet::new(),
        }
    }

    /// This replica has become the one that writes: what exists is looked at anew.
    pub fn begin(&mut self) {
        let (specs, is_synced) = (std::mem::take(&mut self.specs), self.is_synced);
        *self = Self { is_synced, ..Self::new(self.settings.clone()) };
        for (name, (spec, _)) in specs {
            self.want(&name, Some(spec));
        }
    }

    /// A fleet should be so, or not be.
    pub fn want(&mut self, name: &FleetName, spec: Option<Arc<FleetSpec>>) {
        let before = self.specs.remove(name).map(|(_, key)| key);
        let key = spec.as_ref().map(|spec| key(spec));
        // A Gateway that was deleted and created again has other objects.
        if let Some(before) = before.filter(|before| Some(before) != key.as_ref()) {
            self.target(&before).wanted = None;
            self.queue(&before);
        }
        if let (Some(spec), Some(key)) = (spec, key) {
            self.specs.insert(name.clone(), (spec, key));
            self.render(name);
        }
        self.unreported.insert(name.clone());
    }

    /// All fleets that should exist are known.
    pub fn synced(&mut self) {
        self.is_synced = true;
        self.queue_all();
    }

    /// Takes the CA that proxies know the xDS server by.
    pub fn set_ca(&mut self, ca: Result<Option<String>, Problem>) {
        // One that cannot be read any more is used on.
        if self.ca.as_ref() == Some(&ca) || (ca.is_err() && matches!(self.ca, Some(Ok(_)))) {
            return;
        }
        self.ca = Some(ca);
        let names: Vec<_> = self.specs.keys().cloned().collect();
        names.iter().for_each(|name| self.render(name));
        self.unreported.extend(names);
    }

    /// A list of objects begins.
    pub fn list_begins(&mut self, kind: ObjectKind, namespace: Option<String>) {
        self.listing.insert((kind, namespace), BTreeSet::new());
    }

    /// An object of a list.
    pub fn listed(&mut self, kind: ObjectKind, namespace: Option<String>, object: Value) {
        if let Some(found) = self.listing.get_mut(&(kind, namespace)) {
            found.insert(key_of(&object));
        }
        self.observe(kind, object);
    }

    /// A list is complete: what is not in it is gone.
    pub fn list_ends(&mut self, kind: ObjectKind, namespace: Option<String>) {
        let watch = (kind, namespace);
        let found = self.listing.remove(&watch).unwrap_or_default();
        let is_here = |key: &Key| watch.1.as_ref().is_none_or(|namespace| *namespace == key.0);
        let gone: Vec<Key> = self.targets.keys().filter(|key| is_here(key) && !found.contains(*key)).cloned().collect();
        for key in gone {
            if self.target(&key).forget(kind) {
                self.queue(&key);
            }
        }
        self.broken.remove(&watch);
        self.unreported.extend(self.specs.keys().cloned());
        if self.listed.insert(watch) {
            self.queue_all();
        }
    }

    /// An object exists, as it is. One that only has our labels, because it was copied, is nobody's.
    pub fn observe(&mut self, kind: ObjectKind, object: Value) {
        let key = key_of(&object);
        if object["metadata"]["labels"][FLEET_LABEL].as_str() != Some(&key.1) {
            return self.vanished(kind, &object);
        }
        self.target(&key).objects.insert(kind, object);
        self.queue(&key);
    }

    /// An object is gone.
    pub fn vanished(&mut self, kind: ObjectKind, object: &Value) {
        let key = key_of(object);
        if let Some(target) = self.targets.get_mut(&key) {
            target.vanished.extend(uid(object));
            target.forget(kind);
            self.queue(&key);
        }
    }

    /// The objects of a kind cannot be watched. Says whether that is new.
    pub fn not_watched(&mut self, kind: ObjectKind, namespace: Option<String>, problem: Problem) -> bool {
        self.unreported.extend(self.specs.keys().cloned());
        self.broken.insert((kind, namespace), problem).is_none()
    }

    /// The next fleet to work on, and what there is to do.
    pub fn next(&mut self, now: Instant) -> Option<(Key, Work)> {
        if !self.has_listed_all() {
            return None;
        }
        while let Some((at, key)) = self.waiting.first().cloned().filter(|(at, _)| *at <= now) {
            self.waiting.remove(&(at, key.clone()));
            if let Some(target) = self.targets.get_mut(&key) {
                target.waits_until = None;
            }
            self.queue.push_back(key);
        }
        while let Some(key) = self.queue.pop_front() {
            let is_synced = self.is_synced;
            let Some(target) = self.targets.get_mut(&key) else { continue };
            if let Some(at) = target.not_before.filter(|at| *at > now) {
                target.waits_until = Some(at);
                self.waiting.insert((at, key));
                continue;
            }
            target.is_queued = false;
            match target.work(&key, is_synced) {
                Some(work) => {
                    target.is_busy = true;
                    target.vanished.clear();
                    target.repairs += u32::from(target.is_repair());
                    return Some((key, work));
                }
                None => {
                    // What had failed is by now as it should be, whoever did it.
                    if target.problem.take().is_some() {
                        target.failures = 0;
                        self.note(&key);
                    }
                    self.settle(&key);
                }
            }
        }
        None
    }

    /// Takes what became of a piece of work.
    pub fn done(&mut self, key: &Key, done: Done, now: Instant) {
        let Some(target) = self.targets.get_mut(key) else { return };
        target.is_busy = false;
        let rewritten = done.objects.iter().find(|(kind, object)| target.must_apply(*kind, object));
        let problem = done.problem.or_else(|| rewritten.map(|(kind, _)| Problem::rewritten(*kind, &key.0, &key.1)));
        for (kind, object) in done.objects {
            target.answered(kind, object);
        }
        target.failures = if problem.is_some() { target.failures.saturating_add(1) } else { 0 };
        target.problem = problem;
        let pause = match target.failures.max(target.repairs) {
            0 => INTERVAL,
            times => BACKOFF.0.saturating_mul(1 << (times - 1).min(10)).min(BACKOFF.1),
        };
        target.not_before = Some(now + pause);
        if target.problem.is_some() || std::mem::take(&mut target.is_stale) {
            self.queue(key);
        } else {
            self.settle(key);
        }
        self.note(key);
    }

    /// When there is work although nothing changes.
    pub fn wake(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at).filter(|_| self.has_listed_all())
    }

    /// What has changed about fleets since the last time.
    pub fn statuses(&mut self) -> Vec<(FleetName, Option<FleetStatus>)> {
        let mut changed = Vec::new();
        // Until it is known what exists, the status that was reported before stays, whoever reported it.
        if !self.has_listed_all() && self.broken.is_empty() {
            return changed;
        }
        for name in std::mem::take(&mut self.unreported) {
            let status = self.status(&name);
            if self.last_reported.get(&name) == status.as_ref() {
                continue;
            }
            match &status {
                Some(status) => _ = self.last_reported.insert(name.clone(), status.clone()),
                None => _ = self.last_reported.remove(&name),
            }
            changed.push((name, status));
        }
        changed
    }

    fn status(&self, name: &FleetName) -> Option<FleetStatus> {
        let (spec, key) = self.specs.get(name)?;
        let target = self.targets.get(key);
        let object = |kind| target.and_then(|target| target.objects.get(&kind));
        let here = |watch: &Watch| watch.1.as_ref().is_none_or(|namespace| **namespace == *name.namespace);
        let unwatched = self.broken.iter().find(|(watch, _)| here(watch)).map(|(_, problem)| problem.clone());
        let ca = self.ca.as_ref().and_then(|ca| ca.as_ref().err()).cloned();
        Some(FleetStatus {
            uid: spec.owner.uid.clone(),
            ready: object(ObjectKind::Deployment).map(status_of::ready).unwrap_or_default(),
            addresses: object(ObjectKind::Service).map(status_of::addresses).unwrap_or_default(),
            problem: target.and_then(|target| target.problem.clone()).or(unwatched).or(ca),
        })
    }

    /// Whether every watch has listed its objects.
    fn has_listed_all(&self) -> bool {
        let watches = ObjectKind::ALL.len() * self.settings.namespaces.len().max(1);
        self.listed.len() == watches
    }

    fn render(&mut self, name: &FleetName) {
        let (Some((spec, key)), Some(Ok(ca))) = (self.specs.get(name), &self.ca) else { return };
        let objects = FleetObjects::new(spec.clone(), &self.settings, ca.as_deref());
        let key = key.clone();
        let target = self.target(&key);
        if target.wanted.as_ref() != Some(&objects) {
            // Somebody has changed something: it may work now.
            (target.failures, target.repairs) = (0, 0);
            target.not_before = target.not_before.map(|at| at.min(Instant::now() + INTERVAL));
            target.wanted = Some(objects);
            self.queue(&key);
        }
    }

    fn target(&mut self, key: &Key) -> &mut Target {
        self.targets.entry(key.clone()).or_default()
    }

    fn queue_all(&mut self) {
        let keys: Vec<Key> = self.targets.keys().cloned().collect();
        keys.iter().for_each(|key| self.queue(key));
    }

    fn queue(&mut self, key: &Key) {
        self.note(key);
        let Some(target) = self.targets.get_mut(key) else { return };
        if target.is_busy {
            target.is_stale = true;
            return;
        }
        if std::mem::replace(&mut target.is_queued, true) {
            // It waits for its turn, or for a moment that may have come nearer.
            if let (Some(at), Some(sooner)) = (target.waits_until, target.not_before)
                && sooner < at
            {
                target.waits_until = Some(sooner);
                self.waiting.remove(&(at, key.clone()));
                self.waiting.insert((sooner, key.clone()));
            }
            return;
        }
        self.queue.push_back(key.clone());
    }

    /// Its status may have changed.
    fn note(&mut self, key: &Key) {
        let wanted = self.targets.get(key).and_then(|target| target.wanted.as_ref());
        self.unreported.extend(wanted.map(|wanted| wanted.spec.name.clone()));
    }

    /// There is nothing to do about a fleet; it is forgotten if nothing is left of it.
    fn settle(&mut self, key: &Key) {
        let Some(target) = self.targets.get(key) else { return };
        if target.wanted.is_none() && target.objects.is_empty() && !target.is_busy && !target.is_queued {
            self.targets.remove(key);
        }
    }
}

impl Target {
    fn work(&self, (namespace, name): &Key, is_synced: bool) -> Option<Work> {
        let Some(wanted) = &self.wanted else {
            let objects = self.objects.iter().filter(|(_, object)| is_synced && !is_going(object));
            let objects: Vec<_> = objects.map(|(kind, object)| (*kind, uid(object).unwrap_or_default())).collect();
            return (!objects.is_empty()).then(|| Work::Delete(namespace.clone(), name.clone(), objects));
        };
        let uid = &wanted.spec.owner.uid;
        let kinds = wanted.objects.iter().filter_map(|applied| match self.objects.get(&applied.kind) {
            None => Some((applied.kind, false)),
            // It is applied once it is gone.
            Some(object) if is_going(object) => None,
            Some(object) if !request::is_owned(object, uid) => Some((applied.kind, false)),
            Some(object) => request::must_apply(object, applied).then_some((applied.kind, true)),
        });
        let kinds: Vec<_> = kinds.collect();
        (!kinds.is_empty()).then(|| Work::Apply(wanted.clone(), kinds))
    }

    /// An object is not there any more. Says whether it was.
    fn forget(&mut self, kind: ObjectKind) -> bool {
        let object = self.objects.remove(&kind);
        self.vanished.extend(object.as_ref().and_then(uid));
        object.is_some()
    }

    /// Takes an object as a request was answered, unless watches have shown something later: they are read at the same time.
    fn answered(&mut self, kind: ObjectKind, object: Value) {
        let is_gone = uid(&object).is_some_and(|uid| self.vanished.contains(&uid));
        let is_older = |known: &Value| uid(known) == uid(&object) && version(known) > version(&object);
        if !is_gone && !self.objects.get(&kind).is_some_and(is_older) {
            self.objects.insert(kind, object);
        }
    }

    /// Whether an object that should be there is not as it should be.
    fn must_apply(&self, kind: ObjectKind, object: &Value) -> bool {
        let applied = self.wanted.as_ref().and_then(|wanted| wanted.get(kind));
        applied.is_some_and(|applied| request::must_apply(object, applied))
    }

    /// Whether all that there is to apply has been applied before.
    fn is_repair(&self) -> bool {
        let applied = self.wanted.iter().flat_map(|wanted| &wanted.objects);
        let mut drifted = applied.filter(|applied| {
            self.objects.get(&applied.kind).is_none_or(|object| request::must_apply(object, applied))
        });
        drifted.all(|applied| self.objects.get(&applied.kind).is_some_and(|object| request::has_hash(object, applied)))
            && self.wanted.is_some()
    }
}

/// Whether an object is being deleted.
fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn uid(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn key(spec: &FleetSpec) -> Key {
    (spec.name.namespace.to_string(), name::of(&spec.name, &spec.owner.uid))
}

fn key_of(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}
