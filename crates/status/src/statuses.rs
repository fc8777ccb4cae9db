//! Which objects say something else than they should.
//!
//! In: objects as they are, which of them are ours, and the addresses. Out: one [`Write`] at a time, never two for one
//! object. There is no clock and no API server in here: both are the writer's.
//!
//! An object is compared with what it should say whenever either changes, and again when its turn has come, so whatever
//! happens in between costs no request. What was written is remembered by the object's uid and forgotten with it.

use crate::{
    address::{self, Addresses},
    http_proxy, ingress,
    rate_limiter::{Due, pause},
    report::{Programmed, Said},
};
use kinds::{HttpProxy, Ingress, Kind, Object, ObjectRef, Service, Typed, ingress::LoadBalancerAddress};
use serde_json::Value;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long to wait after a request that failed, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// How long to wait before something is said again that somebody else undid.
const UNDONE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// What must be written to an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// This is our part of the status.
    Say(Value),
    /// We have nothing to say; what we said goes.
    Withdraw,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub key: ObjectRef,
    /// The object as we saw it last: a write succeeds only if it is still so.
    pub object: Object,
    pub change: Change,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The object as it is now.
    Written(Object),
    /// The object was another than we thought; as it is now, if it is still there.
    Conflict(Option<Object>),
    /// It failed, and may fail again.
    Failed,
}

#[derive(Debug, Default)]
struct Entry {
    object: Option<Object>,
    /// The verdicts about it; nothing if it is not ours.
    said: Said,
    /// Whether proxies have all of it, as it is now.
    programmed: Programmed,
    /// Since when it has not said what it should.
    behind: Option<Instant>,
    in_flight: bool,
    /// What was last written, and the object as it was then.
    last: Option<(Change, Object)>,
    /// How often that was written before.
    undone: u32,
    failures: u32,
    not_before: Option<Instant>,
}

/// All objects that have a status of ours.
#[derive(Debug)]
pub(crate) struct Statuses {
    source: Addresses,
    /// None until they are known.
    addresses: Option<Vec<LoadBalancerAddress>>,
    synced: bool,
    entries: HashMap<ObjectRef, Entry>,
    due: Due<ObjectRef>,
}

impl Statuses {
    pub fn new(source: Addresses) -> Self {
        let addresses = match &source {
            Addresses::Fixed(addresses) => Some(addresses.clone()),
            Addresses::Service(_) => None,
        };
        Self { source, addresses, synced: false, entries: HashMap::new(), due: Due::default() }
    }

    /// An object as it is now.
    pub fn observe(&mut self, key: &ObjectRef, object: Option<Object>, now: Instant) {
        if matches!(&self.source, Addresses::Service(service) if service == key) {
            self.observe_service(object.as_ref(), now);
        }
        if !has_status(key.kind) {
            return;
        }
        let Some(object) = object else {
            self.forget(key);
            return;
        };
        let entry = self.entries.entry(key.clone()).or_default();
        if let Some(known) = &entry.object {
            let (known, new) = (known.meta(), object.meta());
            if known.uid != new.uid {
                entry.renew();
            } else if known.resource_version > new.resource_version {
                // The answer to a write of ours was faster than the watch.
                return;
            }
        }
        entry.object = Some(object);
        self.review(key, now);
    }

    fn observe_service(&mut self, service: Option<&Object>, now: Instant) {
        let service = service.and_then(Object::get::<Service>);
        let addresses = service.map(|service| address::of(service)).unwrap_or_default();
        if self.addresses.as_ref() != Some(&addresses) {
            self.addresses = Some(addresses);
            self.review_all(now);
        }
    }

    fn forget(&mut self, key: &ObjectRef) {
        self.due.remove(key);
        match self.entries.get_mut(key) {
            Some(entry) if entry.in_flight || entry.said.is_some() => entry.renew(),
            _ => _ = self.entries.remove(key),
        }
    }

    /// All verdicts about an object; nothing if it is not ours.
    pub fn claim(&mut self, key: &ObjectRef, said: Said, now: Instant) {
        if !has_status(key.kind) {
            return;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        entry.said = said;
        if entry.object.is_none() && entry.said.is_none() && !entry.in_flight {
            self.entries.remove(key);
        } else {
            self.review(key, now);
        }
    }

    /// Whether proxies have all of an object.
    pub fn program(&mut self, key: &ObjectRef, programmed: Programmed, now: Instant) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.programmed = entry.programmed.or(programmed);
            self.review(key, now);
        }
    }

    /// Everything is known.
    pub fn synced(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.synced, true) {
            self.addresses.get_or_insert_default();
            self.review_all(now);
        }
    }

    /// What tells an object from others of its name, where that is known.
    pub fn uid(&self, key: &ObjectRef) -> Option<String> {
        let object = self.entries.get(key)?.object.as_ref()?;
        Some(object.meta().uid.to_string())
    }

    /// How many objects do not say what they should.
    pub fn behind(&self) -> usize {
        self.due.len()
    }

    /// When there may be something to write.
    pub fn next_at(&self) -> Option<Instant> {
        self.due.next()
    }

    /// The next request; it must be answered by [`Self::done`].
    pub fn next(&mut self, now: Instant) -> Option<Write> {
        while let Some(key) = self.due.pop(now) {
            let Some((change, object)) = self.change(&key) else { continue };
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.in_flight = true;
                return Some(Write { key, object, change });
            }
        }
        None
    }

    /// What became of a request; how long the object had not said what it should, if it now does.
    pub fn done(&mut self, write: Write, outcome: Outcome, now: Instant) -> Option<Duration> {
        let Write { key, object, change } = write;
        let entry = self.entries.get_mut(&key)?;
        entry.in_flight = false;
        let is_same = entry.object.as_ref().is_some_and(|known| known.meta().uid == object.meta().uid);
        if !is_same {
            // Another object has the name by now, or none.
            if entry.object.is_none() && entry.said.is_none() {
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
                let again = entry.last.as_ref().is_some_and(|(last, _)| *last == change);
                entry.undone = if again { entry.undone + 1 } else { 0 };
                entry.failures = 0;
                entry.not_before = Some(now + pause(entry.undone, UNDONE.0, UNDONE.1));
                entry.last = Some((change, written.clone()));
                self.observe(&key, Some(written), now);
            }
            Outcome::Conflict(current) => {
                entry.fail(now);
                self.learn(&key, current, now);
            }
            Outcome::Failed => entry.fail(now),
        }
        self.review(&key, now);
        lag
    }

    /// Takes what was found when a write was refused. Whether the object is ours was decided on what the watch had
    /// brought: if more than the status is new, the watch will bring that too, and the decision with it.
    fn learn(&mut self, key: &ObjectRef, current: Option<Object>, now: Instant) {
        let known = self.entries.get(key).and_then(|entry| entry.object.as_ref());
        match (known, current) {
            (Some(known), Some(current)) if known.asks_the_same(&current) => self.observe(key, Some(current), now),
            (Some(known), Some(current)) if known.meta().resource_version > current.meta().resource_version => {}
            _ => self.forget(key),
        }
    }

    fn review_all(&mut self, now: Instant) {
        for key in self.entries.keys().cloned().collect::<Vec<_>>() {
            self.review(&key, now);
        }
    }

    /// Queues the object if it does not say what it should.
    fn review(&mut self, key: &ObjectRef, now: Instant) {
        let differs = self.change(key).is_some();
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !differs {
            entry.behind = None;
            self.due.remove(key);
            return;
        }
        entry.behind.get_or_insert(now);
        if !entry.in_flight {
            self.due.put(key, entry.not_before.map_or(now, |not_before| not_before.max(now)));
        }
    }

    /// What must be written to the object, and the object.
    fn change(&self, key: &ObjectRef) -> Option<(Change, Object)> {
        let addresses = self.addresses.as_deref().filter(|_| self.synced)?;
        let entry = self.entries.get(key)?;
        let object = entry.object.as_ref()?;
        let change = if let Some(ingress) = object.get::<Ingress>() {
            ingress::change(ingress, entry.said.is_some(), addresses)?
        } else {
            let verdicts = entry.said.as_ref().map(|verdicts| verdicts.as_slice());
            let proxy = object.get::<HttpProxy>()?;
            http_proxy::change(proxy, verdicts, addresses, entry.programmed.is_programmed.then_some(true))?
        };
        // Said already, and the API server made of it what the object says: another's word stands.
        let settled = entry.last.as_ref().is_some_and(|(last, then)| *last == change && then.says_the_same(object));
        (!settled).then(|| (change, object.clone()))
    }
}

impl Entry {
    /// Forgets the object, and what was written to it. What is known of others of the name stays: another object may have
    /// come in its place with the same contents, about which there is nothing new to say.
    fn renew(&mut self) {
        let (said, programmed, in_flight) = (self.said.take(), self.programmed, self.in_flight);
        *self = Entry { said, programmed, in_flight, ..Entry::default() };
    }

    fn fail(&mut self, now: Instant) {
        self.failures += 1;
        self.not_before = Some(now + pause(self.failures, RETRY.0, RETRY.1));
    }
}

/// Whether objects of the kind have a status of ours.
pub(crate) fn has_status(kind: Kind) -> bool {
    Ingress::KINDS.contains(&kind) || HttpProxy::KINDS.contains(&kind)
}

#[cfg(test)]
mod tests;
