//! The verdicts that have no event yet.
//!
//! In: all verdicts about each object, from translation and from reading. Out: one [`PendingEvent`] at a time for an
//! object. The event of a verdict that still holds is written again when the API server has deleted it, which is after an
//! hour. Only the first few verdicts about an object have events.

use crate::{
    event::{EventOutcome, PendingEvent},
    rate_limiter::{Due, pause},
    report::Verdicts,
};
use model::{Code, ObjectRef, Verdict};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many verdicts about one object have events.
const LIMIT: usize = 10;
/// A little longer than API servers keep events.
const EXPIRY: Duration = Duration::from_secs(61 * 60);
/// How long to wait after a request that failed, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(300));
/// How long to wait after a request that was denied, at first and at most. An API server that is starting denies what it
/// will allow; after that only a change of RBAC rules helps.
const DENIED: (Duration, Duration) = (Duration::from_secs(30), EXPIRY);

#[derive(Debug, Default)]
struct Entry {
    translation: Verdicts,
    reading: Vec<Verdict>,
    uid: Option<String>,
    /// The verdicts that have an event, or are to get one.
    events: BTreeMap<Verdict, Schedule>,
    in_flight: bool,
}

#[derive(Debug)]
struct Schedule {
    /// When the event is written next.
    due: Instant,
    /// Whether the verdict is newer than the start of this replica, and has no event since.
    is_new: bool,
    /// How many tries in a row have failed. Each verdict has its own count, so that none waits for another.
    failures: u32,
}

/// The verdicts about all objects.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    entries: HashMap<ObjectRef, Entry>,
    due: Due<ObjectRef>,
}

impl EventQueue {
    /// All verdicts of translation about an object; `is_new` unless they are part of the first listing.
    pub fn translated(&mut self, key: &ObjectRef, verdicts: Verdicts, is_new: bool, now: Instant) {
        let verdicts = verdicts.filter(|verdicts| !verdicts.is_empty());
        if verdicts.is_none() && !self.entries.contains_key(key) {
            return;
        }
        self.entries.entry(key.clone()).or_default().translation = verdicts;
        self.review(key, is_new, now);
    }

    /// All problems that the source reports about an object. That it may not be read is an event on those that refer to it
    /// only: its uid, which an event needs, may not be read either.
    pub fn read(&mut self, key: &ObjectRef, mut verdicts: Vec<Verdict>, is_new: bool, now: Instant) {
        verdicts.retain(|verdict| verdict.code != Code::SecretNotReadable);
        if verdicts.is_empty() && !self.entries.contains_key(key) {
            return;
        }
        self.entries.entry(key.clone()).or_default().reading = verdicts;
        self.review(key, is_new, now);
    }

    /// The uid of an object as it is now; none if it is gone or not known.
    pub fn observe(&mut self, key: &ObjectRef, uid: Option<String>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.uid.is_some() && entry.uid != uid {
            // Another object, about which there are no events.
            entry.events.clear();
            entry.uid = uid;
            self.review(key, true, now);
        }
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.due.next()
    }

    /// The next event; [`Self::done`] must be called with its outcome.
    pub fn next(&mut self, now: Instant, uid: impl Fn(&ObjectRef) -> Option<String>) -> Option<PendingEvent> {
        while let Some(key) = self.due.pop(now) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let Some((verdict, schedule)) = entry.events.iter().find(|(_, schedule)| schedule.due <= now) else {
                self.queue(&key, now);
                continue;
            };
            entry.in_flight = true;
            let uid = uid(&key).or_else(|| entry.uid.clone());
            let more = entry.verdicts().count() - entry.events.len();
            return Some(PendingEvent { uid, verdict: verdict.clone(), more, is_new: schedule.is_new, key });
        }
        None
    }

    /// Takes the outcome of an event.
    pub fn done(&mut self, it: &PendingEvent, outcome: EventOutcome, now: Instant) {
        let Some(entry) = self.entries.get_mut(&it.key) else { return };
        entry.in_flight = false;
        match &outcome {
            EventOutcome::Written(uid) => entry.uid = Some(uid.clone()),
            EventOutcome::Gone => entry.uid = None,
            EventOutcome::Denied | EventOutcome::Failed => {}
        }
        if let Some(schedule) = entry.events.get_mut(&it.verdict) {
            schedule.answered(&outcome, now);
        }
        if entry.is_done() {
            self.entries.remove(&it.key);
        } else {
            self.queue(&it.key, now);
        }
    }

    /// Schedules an event for each verdict that should have one.
    fn review(&mut self, key: &ObjectRef, is_new: bool, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let mut wanted: Vec<Verdict> = entry.verdicts().cloned().collect();
        wanted.sort_by(|a, b| (a.severity(), a).cmp(&(b.severity(), b)));
        wanted.truncate(LIMIT);
        let mut before = std::mem::take(&mut entry.events);
        for verdict in wanted {
            let schedule = before.remove(&verdict).unwrap_or(Schedule { due: now, is_new, failures: 0 });
            entry.events.insert(verdict, schedule);
        }
        if entry.is_done() {
            self.entries.remove(key);
            self.due.remove(key);
        } else {
            self.queue(key, now);
        }
    }

    fn queue(&mut self, key: &ObjectRef, now: Instant) {
        let Some(entry) = self.entries.get(key).filter(|entry| !entry.in_flight) else { return };
        if let Some(due) = entry.events.values().map(|schedule| schedule.due).min() {
            self.due.put(key, due.max(now));
        }
    }
}

impl Schedule {
    /// Sets when the event is written again, by the outcome.
    fn answered(&mut self, outcome: &EventOutcome, now: Instant) {
        let rest = match outcome {
            EventOutcome::Written(_) => {
                *self = Schedule { due: now, is_new: false, failures: 0 };
                EXPIRY
            }
            // The verdicts go with their object; until then there is nothing to write to.
            EventOutcome::Gone => EXPIRY,
            EventOutcome::Denied => self.after_failure(DENIED),
            EventOutcome::Failed => self.after_failure(RETRY),
        };
        self.due = now + rest;
    }

    fn after_failure(&mut self, (first, most): (Duration, Duration)) -> Duration {
        self.failures = self.failures.saturating_add(1);
        pause(self.failures, first, most)
    }
}

impl Entry {
    fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.translation.iter().flat_map(Arc::as_ref).chain(&self.reading)
    }

    fn is_done(&self) -> bool {
        !self.in_flight && self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use kinds::kind;
    use model::Code;

    fn key() -> ObjectRef {
        ObjectRef::new(kind::SERVICE, "shop", "web")
    }

    fn verdict(code: Code, message: &str) -> Verdict {
        Verdict::new(code, ObjectRef::new(kinds::kind::SERVICE, "shop", "web").at(""), message)
    }

    fn verdicts(messages: &[&str]) -> Verdicts {
        Some(Arc::new(messages.iter().map(|message| verdict(Code::NoEndpoints, message)).collect()))
    }

    /// Writes every event that is due; returns the messages.
    fn queued(all: &mut EventQueue, now: Instant) -> Vec<(String, bool)> {
        let mut events = Vec::new();
        while let Some(it) = all.next(now, |_| None) {
            events.push((it.verdict.message.to_string(), it.is_new));
            all.done(&it, EventOutcome::Written("u".to_owned()), now);
        }
        events
    }

    fn new(message: &str) -> (String, bool) {
        (message.to_owned(), true)
    }

    #[test]
    fn each_verdict_is_told_once_and_again_when_it_comes_back() {
        let (mut all, now) = (EventQueue::default(), Instant::now());
        all.translated(&key(), verdicts(&["a", "b"]), true, now);
        assert_eq!(queued(&mut all, now), [new("a"), new("b")]);
        all.translated(&key(), verdicts(&["a", "b", "c"]), true, now);
        assert_eq!(queued(&mut all, now), [new("c")]);
        all.translated(&key(), verdicts(&["a"]), true, now);
        all.translated(&key(), verdicts(&["a", "b"]), true, now);
        assert_eq!(queued(&mut all, now), [new("b")]);
        all.translated(&key(), verdicts(&[]), true, now);
        assert!(all.entries.is_empty() && all.next_at().is_none());
    }

    #[test]
    fn what_stands_is_told_again_when_it_was_forgotten() {
        let (mut all, now) = (EventQueue::default(), Instant::now());
        all.translated(&key(), verdicts(&["a"]), false, now);
        assert_eq!(queued(&mut all, now), [("a".to_owned(), false)]);
        let hour = now + Duration::from_secs(3_600);
        assert!(queued(&mut all, hour).is_empty());
        assert_eq!(queued(&mut all, hour + Duration::from_secs(60)), [("a".to_owned(), false)]);
    }

    #[test]
    fn of_many_the_gravest_are_told() {
        let (mut all, now) = (EventQueue::default(), Instant::now());
        let mut verdicts: Vec<Verdict> = (0..40).map(|n| verdict(Code::NoEndpoints, &format!("{n:02}"))).collect();
        verdicts.push(verdict(Code::ExternalNameOff, "grave"));
        all.translated(&key(), Some(Arc::new(verdicts)), true, now);
        let it = all.next(now, |_| None).unwrap();
        assert_eq!(it.more, 31);
        all.done(&it, EventOutcome::Written("u".to_owned()), now);
        let events = queued(&mut all, now);
        assert_eq!(events.len(), LIMIT - 1);
        assert!(it.verdict.message.contains("grave") || events.contains(&new("grave")));
    }

    #[test]
    fn another_object_of_the_name_is_told_of_anew() {
        let (mut all, now) = (EventQueue::default(), Instant::now());
        all.translated(&key(), verdicts(&["a"]), false, now);
        all.read(&key(), vec![verdict(Code::NotDecodable, "r")], false, now);
        assert_eq!(queued(&mut all, now).len(), 2);
        all.observe(&key(), Some("u".to_owned()), now);
        assert!(queued(&mut all, now).is_empty());
        all.observe(&key(), Some("v".to_owned()), now);
        assert_eq!(queued(&mut all, now).len(), 2);
        all.translated(&key(), None, true, now);
        all.read(&key(), Vec::new(), true, now);
        assert!(all.entries.is_empty());
    }

    #[test]
    fn failures_wait() {
        let (mut all, now) = (EventQueue::default(), Instant::now());
        all.translated(&key(), verdicts(&["a"]), true, now);
        let it = all.next(now, |_| None).unwrap();
        assert!(all.next(now, |_| None).is_none());
        all.done(&it, EventOutcome::Failed, now);
        assert!(all.next(now, |_| None).is_none());
        assert_eq!(queued(&mut all, now + RETRY.0), [new("a")]);
    }

    #[test]
    fn a_verdict_that_cannot_be_told_keeps_no_other_waiting() {
        for outcome in [|| EventOutcome::Failed, || EventOutcome::Denied] {
            let (mut all, now) = (EventQueue::default(), Instant::now());
            all.translated(&key(), verdicts(&["a", "b"]), true, now);
            let it = all.next(now, |_| None).unwrap();
            assert_eq!(&*it.verdict.message, "a");
            all.done(&it, outcome(), now);
            assert_eq!(queued(&mut all, now), [new("b")]);
        }
    }

    #[test]
    fn what_is_refused_again_and_again_is_asked_once_an_hour() {
        let (mut all, mut now) = (EventQueue::default(), Instant::now());
        all.translated(&key(), verdicts(&["a"]), true, now);
        let mut waits = Vec::new();
        for _ in 0..12 {
            let it = all.next(now, |_| None).unwrap();
            all.done(&it, EventOutcome::Denied, now);
            let next = all.next_at().unwrap();
            waits.push(next - now);
            now = next;
        }
        assert_eq!((waits[0], *waits.last().unwrap()), (DENIED.0, EXPIRY));
        assert!(waits.is_sorted());
    }
}
