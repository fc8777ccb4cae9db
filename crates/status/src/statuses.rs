//! The objects whose status differs from what it should say.
//!
//! In: objects as they are, the verdicts and facts about those that are ours, and the addresses. Out: one [`Write`] at a time,
//! never two for one object. There is no clock and no API server in here: both are the writer's.
//!
//! The status of an object is compared with what it should say whenever either changes, and again when its turn has come, so
//! whatever happens in between costs no request. What was written is remembered by the object's uid and forgotten with it; of
//! that, only hashes: there may be very many objects, and hardly any is ever written again.

use crate::{
    Settings,
    address::{self, Addresses},
    change::{self, Change, Current},
    observed::{Observed, hash_of},
    rate_limiter::{Due, pause},
    report::{Identity, Programmed, Translated, Verdicts},
};
use kinds::{Kind, Object, ObjectRef, Service, kind};
use model::status::{Acknowledgement, Address, StatusInput, StatusKind};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long to wait after a request that failed, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// How long to wait before something is written again that somebody else has undone, at first and at most.
const UNDONE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// How often the same is written after it was undone before the status counts as contested, and how long to wait from then on: another
/// installation, or another controller, writes to the same field, and both would go on for ever.
const CONTESTED: (u32, Duration) = (3, Duration::from_secs(3600));

/// How long to wait after a write before another one that changes only what proxies report about the same version, and [takes
/// back](Programmed::takes_back) what the first one says: a proxy that restarts again and again must not cause a write each time.
const PROXIES: Duration = Duration::from_secs(10);

/// How long the status of an object that proxies have not acknowledged is [held back](Acknowledgement::Awaited).
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub key: ObjectRef,
    /// The object as we saw it last: a write succeeds only if it is still the same.
    pub object: Observed,
    pub change: Change,
    /// A hash of what it says besides what proxies say.
    pub besides_proxies: u64,
    /// When it was handed out.
    pub sent_at: Instant,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Written; the object as it is now.
    Written(Object),
    /// The object has changed; as it is now, if it still exists.
    Conflict(Option<Object>),
    /// It failed, and is tried again.
    Failed,
}

impl Outcome {
    /// One word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Written(_) => "written",
            Outcome::Conflict(_) => "conflict",
            Outcome::Failed => "failed",
        }
    }
}

/// What was written to an object.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// The hash of the change.
    change: u64,
    /// The hash of what the API server made of it.
    status: u64,
    /// The hash of what it says besides what proxies say.
    besides_proxies: u64,
    /// When it was sent.
    sent_at: Instant,
}

#[derive(Debug, Default)]
struct Entry {
    object: Option<Observed>,
    /// The verdicts about it; none if it is not ours.
    verdicts: Verdicts,
    /// The facts that its translation has decided.
    translated: Translated,
    /// What proxies have made of all of it, as it is now.
    programmed: Programmed,
    /// What its status says of that, or what the write in flight does.
    written: Programmed,
    /// Since when its status has been out of date.
    behind: Option<Instant>,
    in_flight: bool,
    /// What was last written.
    last: Option<Written>,
    /// Whether anything in its status may be ours: from when it is ours until that is withdrawn. Not known of an object that was
    /// another process's.
    has_ours: Option<bool>,
    /// How often that was written before.
    undone: u32,
    failures: u32,
    not_before: Option<Instant>,
}

/// All objects that have a status of ours.
#[derive(Debug)]
pub(crate) struct Statuses {
    source: Addresses,
    controller: String,
    kinds: fn(Kind) -> Option<&'static StatusKind>,
    /// None until they are known.
    addresses: Option<Vec<Address>>,
    /// The addresses of every Service that has any: the operator may name another one.
    balancers: HashMap<ObjectRef, Vec<Address>>,
    synced: bool,
    entries: HashMap<ObjectRef, Entry>,
    due: Due<ObjectRef>,
    /// Those that are written once in an interval. They take turns with the others: a count is to be right soon after the last of
    /// what it counts, not after the status of all that was.
    counting: Due<ObjectRef>,
    /// Whose turn it is.
    is_turn_of_counting: bool,
    /// The first object whose status is contested, until that is told.
    contested: Option<ObjectRef>,
}

impl Statuses {
    pub fn new(settings: &Settings) -> Self {
        let addresses = match &settings.addresses {
            Addresses::Fixed(addresses) => Some(addresses.clone()),
            Addresses::Service(_) => None,
        };
        Self {
            source: settings.addresses.clone(),
            controller: settings.controller.clone(),
            kinds: settings.kinds,
            addresses,
            balancers: HashMap::new(),
            synced: false,
            entries: HashMap::new(),
            due: Due::default(),
            counting: Due::default(),
            is_turn_of_counting: false,
            contested: None,
        }
    }

    /// An object as it is now.
    pub fn observe(&mut self, key: &ObjectRef, object: Option<Object>, now: Instant) {
        if key.kind == kind::SERVICE {
            self.observe_service(key, object.as_ref(), now);
        }
        if (self.kinds)(key.kind).is_none() {
            return;
        }
        match object.as_ref().and_then(Observed::new) {
            Some(object) => {
                if self.entries.entry(key.clone()).or_default().observe(object) {
                    self.review(key, now);
                }
            }
            None => self.forget(key),
        }
    }

    fn observe_service(&mut self, key: &ObjectRef, service: Option<&Object>, now: Instant) {
        let service = service.and_then(Object::get::<Service>);
        let addresses = service.map(|service| address::of(service)).unwrap_or_default();
        if matches!(&self.source, Addresses::Service(source) if source == key) {
            self.set_addresses(addresses.clone(), now);
        }
        if addresses.is_empty() {
            self.balancers.remove(key);
        } else {
            self.balancers.insert(key.clone(), addresses);
        }
    }

    fn set_addresses(&mut self, addresses: Vec<Address>, now: Instant) {
        if self.addresses.as_ref() != Some(&addresses) {
            self.addresses = Some(addresses);
            self.review_all(now);
        }
    }

    /// Takes other addresses, and another name of ours in lists.
    pub fn set_identity(&mut self, identity: Identity, now: Instant) {
        let Identity { addresses, controller } = identity;
        if self.controller != controller {
            self.controller = controller;
            self.review_all(now);
        }
        match &addresses {
            Addresses::Fixed(fixed) => self.set_addresses(fixed.clone(), now),
            Addresses::Service(service) => {
                let known = self.balancers.get(service).cloned();
                match known.or_else(|| self.synced.then(Vec::new)) {
                    Some(known) => self.set_addresses(known, now),
                    None => self.addresses = None,
                }
            }
        }
        self.source = addresses;
    }

    fn forget(&mut self, key: &ObjectRef) {
        self.queue(key).remove(key);
        match self.entries.get_mut(key) {
            Some(entry) if entry.in_flight || entry.is_reported() => entry.renew(),
            _ => _ = self.entries.remove(key),
        }
    }

    /// All verdicts about an object; none if it is not ours.
    pub fn claim(&mut self, key: &ObjectRef, verdicts: Verdicts, now: Instant) {
        self.update(key, now, |entry| {
            entry.has_ours = if verdicts.is_some() { Some(true) } else { entry.has_ours };
            entry.verdicts = verdicts;
        });
    }

    /// The facts that the translation of an object has decided.
    pub fn translate(&mut self, key: &ObjectRef, translated: Translated, now: Instant) {
        self.update(key, now, |entry| entry.translated = translated);
    }

    fn update(&mut self, key: &ObjectRef, now: Instant, update: impl FnOnce(&mut Entry)) {
        if (self.kinds)(key.kind).is_none() {
            return;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        update(entry);
        if entry.object.is_none() && !entry.is_reported() && !entry.in_flight {
            self.entries.remove(key);
        } else {
            self.review(key, now);
        }
    }

    /// What proxies have made of all of an object.
    pub fn program(&mut self, key: &ObjectRef, programmed: Programmed, now: Instant) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.programmed.update(programmed);
            self.review(key, now);
        }
    }

    /// Every source has listed all its objects.
    pub fn synced(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.synced, true) {
            self.addresses.get_or_insert_default();
            self.review_all(now);
        }
    }

    /// The uid of an object, where it is known.
    pub fn uid(&self, key: &ObjectRef) -> Option<String> {
        let object = self.entries.get(key)?.object.as_ref()?;
        Some(object.uid.to_string())
    }

    /// An object whose status somebody else keeps changing, once there is one more.
    pub fn take_contested(&mut self) -> Option<ObjectRef> {
        self.contested.take()
    }

    /// How many objects have a status that is out of date.
    pub fn behind(&self) -> usize {
        self.due.len() + self.counting.len()
    }

    /// When the next write is due.
    pub fn next_at(&self) -> Option<Instant> {
        [self.due.next(), self.counting.next()].into_iter().flatten().min()
    }

    /// The next request; [`Self::done`] must be called with its outcome.
    pub fn next(&mut self, now: Instant) -> Option<Write> {
        while let Some(key) = self.pop(now) {
            let Some((change, object)) = self.change(&key) else { continue };
            let besides_proxies = self.besides_proxies(&key);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.in_flight = true;
                entry.written.clone_from(&entry.programmed);
                return Some(Write { key, object, change, besides_proxies, sent_at: now });
            }
        }
        None
    }

    fn pop(&mut self, now: Instant) -> Option<ObjectRef> {
        self.is_turn_of_counting = !self.is_turn_of_counting;
        let (first, second) = match self.is_turn_of_counting {
            true => (&mut self.counting, &mut self.due),
            false => (&mut self.due, &mut self.counting),
        };
        first.pop(now).or_else(|| second.pop(now))
    }

    /// The queue that an object waits in.
    fn queue(&mut self, key: &ObjectRef) -> &mut Due<ObjectRef> {
        if self.interval(key).is_zero() { &mut self.due } else { &mut self.counting }
    }

    /// The shortest time between two writes to an object.
    fn interval(&self, key: &ObjectRef) -> Duration {
        (self.kinds)(key.kind).map_or(Duration::ZERO, |kind| kind.interval)
    }

    /// Takes the result of a request; says how long the status was out of date, if it no longer is.
    pub fn done(&mut self, write: Write, outcome: Outcome, now: Instant) -> Option<Duration> {
        let Write { key, object, change, besides_proxies, sent_at } = write;
        let interval = self.interval(&key);
        let entry = self.entries.get_mut(&key)?;
        entry.in_flight = false;
        let is_same = entry.object.as_ref().is_some_and(|known| known.uid == object.uid);
        if !is_same {
            // The object is gone, or another has its name by now.
            if entry.object.is_none() && !entry.is_reported() {
                self.entries.remove(&key);
            } else {
                self.review(&key, now);
            }
            return None;
        }
        let mut lag = None;
        match outcome {
            Outcome::Written(written) => {
                lag = entry.behind.take().map(|since| now.saturating_duration_since(since));
                entry.has_ours = Some(matches!(change, Change::Apply(_)));
                let change = change.digest();
                let again = entry.last.is_some_and(|last| last.change == change);
                entry.undone = if again { entry.undone + 1 } else { 0 };
                entry.failures = 0;
                let rest = match entry.undone {
                    undone if undone < CONTESTED.0 => pause(undone, UNDONE.0, UNDONE.1),
                    _ => CONTESTED.1,
                };
                entry.not_before = Some((sent_at + interval).max(now + rest));
                if entry.undone == CONTESTED.0 {
                    self.contested.get_or_insert_with(|| key.clone());
                }
                if let Some(written) = Observed::new(&written) {
                    let status = hash_of(&written.status);
                    entry.last = Some(Written { change, status, besides_proxies, sent_at });
                    entry.observe(written);
                }
            }
            Outcome::Conflict(current) => {
                entry.fail(now);
                self.learn(&key, current, object.version);
            }
            Outcome::Failed => entry.fail(now),
        }
        self.review(&key, now);
        lag
    }

    /// Takes the object as it was read after a conflict with the version that was sent. Verdicts are about what the watch has delivered: if
    /// more than the status has changed, the watch will deliver that too, and new verdicts with it.
    fn learn(&mut self, key: &ObjectRef, current: Option<Object>, sent: u64) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match (&entry.object, current.as_ref().and_then(Observed::new)) {
            // What is read after a write is newer than it, unless the API server's data were restored from a backup meanwhile.
            (Some(known), Some(current)) if known.uid == current.uid && current.version < sent => {
                entry.object = Some(current);
                entry.last = None;
            }
            (Some(known), Some(current)) if known.equals_but_status(&current) => _ = entry.observe(current),
            (Some(known), Some(current)) if known.version > current.version => {}
            _ => self.forget(key),
        }
    }

    fn review_all(&mut self, now: Instant) {
        for key in self.entries.keys().cloned().collect::<Vec<_>>() {
            self.review(&key, now);
        }
    }

    /// Queues the object if its status is out of date.
    fn review(&mut self, key: &ObjectRef, now: Instant) {
        let (change, held_until) = (self.change(key), self.held_until(key));
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some((change, _)) = change else {
            entry.behind = None;
            // While proxies are waited for, the status goes on saying what they made of it before.
            if !entry.in_flight && !entry.programmed.is_pending() {
                entry.written.clone_from(&entry.programmed);
            }
            self.queue(key).remove(key);
            return;
        };
        if entry.undone >= CONTESTED.0 && entry.last.is_some_and(|last| last.change != change.digest()) {
            // Only what was undone waits.
            (entry.undone, entry.not_before) = (0, None);
        }
        let behind = *entry.behind.get_or_insert(now);
        if !entry.in_flight {
            let is_awaited =
                (self.kinds)(key.kind).is_some_and(|kind| kind.acknowledgement == Acknowledgement::Awaited);
            let waits = is_awaited && entry.programmed.is_pending();
            let due = if waits { behind + LONGEST_WAIT } else { now };
            let at = due.max(entry.not_before.unwrap_or(due)).max(held_until.unwrap_or(due));
            if waits {
                // It was due at once before it was known that proxies are to have it first.
                self.queue(key).remove(key);
            }
            self.queue(key).put(key, at);
        }
    }

    /// Until when a write waits that would say nothing new but what proxies take back.
    fn held_until(&self, key: &ObjectRef) -> Option<Instant> {
        let entry = self.entries.get(key)?;
        let last = entry.last.filter(|_| entry.programmed.takes_back(&entry.written))?;
        (last.besides_proxies == self.besides_proxies(key)).then(|| last.sent_at + PROXIES)
    }

    /// What the status of the object should say besides what proxies say, as a hash.
    fn besides_proxies(&self, key: &ObjectRef) -> u64 {
        let (entry, kind) = (self.entries.get(key), (self.kinds)(key.kind));
        let facts = entry.zip(kind).and_then(|(entry, kind)| {
            let translated = entry.translated.as_deref();
            let addresses = self.addresses.as_deref().unwrap_or_default();
            let verdicts = entry.verdicts.as_deref()?;
            Some((kind.facts)(&StatusInput { verdicts, translated, proxies: None, addresses }))
        });
        let generation = entry.and_then(|entry| entry.object.as_ref()).map(|object| object.generation);
        hash_of(&(generation, facts))
    }

    /// What must be written to the object, and the object.
    fn change(&self, key: &ObjectRef) -> Option<(Change, Observed)> {
        let addresses = self.addresses.as_deref().filter(|_| self.synced)?;
        let entry = self.entries.get(key)?;
        let object = entry.object.as_ref()?;
        let kind = (self.kinds)(key.kind)?;
        let status = object.status.to_json();
        let current = Current {
            layout: &kind.layout,
            status: &status,
            generation: object.generation,
            controller: &self.controller,
        };
        let change = match &entry.verdicts {
            Some(verdicts) => {
                let input = StatusInput {
                    verdicts,
                    translated: entry.translated.as_deref(),
                    proxies: entry.programmed.proxies.as_ref(),
                    addresses,
                };
                change::to(&(kind.facts)(&input), current)?
            }
            None => change::to_withdraw(addresses, entry.has_ours, current)?,
        };
        // Written already, and this is what the API server made of it: what another controller wrote stands.
        let is_settled = |last: Written| last.status == hash_of(&object.status) && last.change == change.digest();
        (!entry.last.is_some_and(is_settled)).then(|| (change, object.clone()))
    }
}

impl Entry {
    /// Takes the object as it is now; says whether that is news.
    fn observe(&mut self, object: Observed) -> bool {
        match &self.object {
            Some(known) if known.uid != object.uid => self.renew(),
            // The response to our own write arrived before the watch event, which says the same or less.
            Some(known) if known.version > object.version || *known == object => return false,
            _ => {}
        }
        self.object = Some(object);
        true
    }

    /// Forgets the object and what was written to it. Verdicts stay: another object of the same name and contents may follow,
    /// about which the pipeline has nothing new to report.
    fn renew(&mut self) {
        let (verdicts, translated) = (self.verdicts.take(), self.translated.take());
        let (programmed, in_flight) = (std::mem::take(&mut self.programmed), self.in_flight);
        let has_ours = verdicts.as_ref().map(|_| true);
        *self = Entry { verdicts, translated, programmed, in_flight, has_ours, ..Entry::default() };
    }

    /// Whether the control loop has said anything about the object.
    fn is_reported(&self) -> bool {
        self.verdicts.is_some() || self.translated.is_some()
    }

    fn fail(&mut self, now: Instant) {
        self.failures += 1;
        self.not_before = Some(now + pause(self.failures, RETRY.0, RETRY.1));
    }
}

#[cfg(test)]
mod tests;
