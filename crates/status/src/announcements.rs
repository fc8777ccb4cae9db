//! The verdicts that have no event yet.
//!
//! In: all verdicts about each object, from translation and from reading. Out: one [`Announcement`] at a time for an
//! object. The event of a verdict that still holds is written again when the API server has deleted it, which is after an
//! hour. Only the first few verdicts about an object have events.

use crate::{
    event::{Announced, Announcement},
    rate_limiter::{Due, pause},
    report::Verdicts,
};
use kinds::ObjectKey;
use model::Verdict;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many verdicts about one object have events.
const TOLD: usize = 10;
/// A little longer than API servers keep events.
const FORGOTTEN: Duration = Duration::from_secs(61 * 60);
/// How long to wait after a request that failed, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(300));
/// How long to wait after a request that was denied, at first and at most. An API server that is starting denies what it
/// will allow; after that only a change of RBAC rules helps.
const REFUSED: (Duration, Duration) = (Duration::from_secs(30), FORGOTTEN);

#[derive(Debug, Default)]
struct Entry {
    translation: Verdicts,
    reading: Vec<Verdict>,
    uid: Option<String>,
    told: BTreeMap<Verdict, Told>,
    in_flight: bool,
}

#[derive(Debug)]
struct Told {
    /// When it is to be told next.
    due: Instant,
    /// Whether it came up after we knew everything, and has not been told since.
    is_new: bool,
    /// How often in a row that did not work. Each verdict has its own count, so that none waits for another.
    failures: u32,
}

/// The verdicts about all objects.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    entries: HashMap<ObjectKey, Entry>,
    due: Due<ObjectKey>,
}

impl Announcements {
    /// All verdicts of translation about an object; `is_new` if they are no part of what everybody learns at a start.
    pub fn translated(&mut self, key: &ObjectKey, verdicts: Verdicts, is_new: bool, now: Instant) {
        let verdicts = verdicts.filter(|verdicts| !verdicts.is_empty());
        if verdicts.is_none() && !self.entries.contains_key(key) {
            return;
        }
        self.entries.entry(key.clone()).or_default().translation = verdicts;
        self.review(key, is_new, now);
    }

    /// All that the source finds wrong with an object.
    pub fn read(&mut self, key: &ObjectKey, verdicts: Vec<Verdict>, is_new: bool, now: Instant) {
        if verdicts.is_empty() && !self.entries.contains_key(key) {
            return;
        }
        self.entries.entry(key.clone()).or_default().reading = verdicts;
        self.review(key, is_new, now);
    }

    /// The uid of an object as it is now; none if it is gone or not known.
    pub fn observe(&mut self, key: &ObjectKey, uid: Option<String>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.uid.is_some() && entry.uid != uid {
            // Another object, about which nothing has been told.
            entry.told.clear();
            entry.uid = uid;
            self.review(key, true, now);
        }
    }

    /// When there may be something to tell.
    pub fn next_at(&self) -> Option<Instant> {
        self.due.next()
    }

    /// The next one; it must be answered by [`Self::done`].
    pub fn next(&mut self, now: Instant, uid: impl Fn(&ObjectKey) -> Option<String>) -> Option<Announcement> {
        while let Some(key) = self.due.pop(now) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let Some((verdict, told)) = entry.told.iter().find(|(_, told)| told.due <= now) else {
                self.queue(&key, now);
                continue;
            };
            entry.in_flight = true;
            let uid = uid(&key).or_else(|| entry.uid.clone());
            let more = entry.verdicts().count() - entry.told.len();
            return Some(Announcement { uid, verdict: verdict.clone(), more, is_new: told.is_new, key });
        }
        None
    }

    /// What became of it.
    pub fn done(&mut self, it: &Announcement, outcome: Announced, now: Instant) {
        let Some(entry) = self.entries.get_mut(&it.key) else { return };
        entry.in_flight = false;
        match &outcome {
            Announced::Said(uid) => entry.uid = Some(uid.clone()),
            Announced::Gone => entry.uid = None,
            Announced::Refused | Announced::Failed => {}
        }
        if let Some(told) = entry.told.get_mut(&it.verdict) {
            told.answered(&outcome, now);
        }
        if entry.is_done() {
            self.entries.remove(&it.key);
        } else {
            self.queue(&it.key, now);
        }
    }

    /// Brings what is to be told in line with what is known.
    fn review(&mut self, key: &ObjectKey, is_new: bool, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let mut wanted: Vec<Verdict> = entry.verdicts().cloned().collect();
        wanted.sort_by(|a, b| (a.severity(), a).cmp(&(b.severity(), b)));
        wanted.truncate(TOLD);
        let mut before = std::mem::take(&mut entry.told);
        for verdict in wanted {
            let told = before.remove(&verdict).unwrap_or(Told { due: now, is_new, failures: 0 });
            entry.told.insert(verdict, told);
        }
        if entry.is_done() {
            self.entries.remove(key);
            self.due.remove(key);
        } else {
            self.queue(key, now);
        }
    }

    fn queue(&mut self, key: &ObjectKey, now: Instant) {
        let Some(entry) = self.entries.get(key).filter(|entry| !entry.in_flight) else { return };
        if let Some(due) = entry.told.values().map(|told| told.due).min() {
            self.due.put(key, due.max(now));
        }
    }
}

impl Told {
    /// When it is to be told again, after what became of it.
    fn answered(&mut self, outcome: &Announced, now: Instant) {
        let rest = match outcome {
            Announced::Said(_) => {
                *self = Told { due: now, is_new: false, failures: 0 };
                FORGOTTEN
            }
            // The verdicts go when their object does; until then there is nobody to tell.
            Announced::Gone => FORGOTTEN,
            Announced::Refused => self.after_failure(REFUSED),
            Announced::Failed => self.after_failure(RETRY),
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
        !self.in_flight && self.told.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use kinds::Kind;
    use model::{Code, ObjectRef};

    fn key() -> ObjectKey {
        ObjectKey::new(Kind::Service, "shop", "web")
    }

    fn verdict(code: Code, message: &str) -> Verdict {
        Verdict::new(code, ObjectRef::new("Service", "shop", "web").at(""), message)
    }

    fn said(messages: &[&str]) -> Verdicts {
        Some(Arc::new(messages.iter().map(|message| verdict(Code::NoEndpoints, message)).collect()))
    }

    /// Tells everything that waits; gives what was told.
    fn tell(all: &mut Announcements, now: Instant) -> Vec<(String, bool)> {
        let mut told = Vec::new();
        while let Some(it) = all.next(now, |_| None) {
            told.push((it.verdict.message.to_string(), it.is_new));
            all.done(&it, Announced::Said("u".to_owned()), now);
        }
        told
    }

    fn new(message: &str) -> (String, bool) {
        (message.to_owned(), true)
    }

    #[test]
    fn each_verdict_is_told_once_and_again_when_it_comes_back() {
        let (mut all, now) = (Announcements::default(), Instant::now());
        all.translated(&key(), said(&["a", "b"]), true, now);
        assert_eq!(tell(&mut all, now), [new("a"), new("b")]);
        all.translated(&key(), said(&["a", "b", "c"]), true, now);
        assert_eq!(tell(&mut all, now), [new("c")]);
        all.translated(&key(), said(&["a"]), true, now);
        all.translated(&key(), said(&["a", "b"]), true, now);
        assert_eq!(tell(&mut all, now), [new("b")]);
        all.translated(&key(), said(&[]), true, now);
        assert!(all.entries.is_empty() && all.next_at().is_none());
    }

    #[test]
    fn what_stands_is_told_again_when_it_was_forgotten() {
        let (mut all, now) = (Announcements::default(), Instant::now());
        all.translated(&key(), said(&["a"]), false, now);
        assert_eq!(tell(&mut all, now), [("a".to_owned(), false)]);
        let hour = now + Duration::from_secs(3_600);
        assert!(tell(&mut all, hour).is_empty());
        assert_eq!(tell(&mut all, hour + Duration::from_secs(60)), [("a".to_owned(), false)]);
    }

    #[test]
    fn of_many_the_gravest_are_told() {
        let (mut all, now) = (Announcements::default(), Instant::now());
        let mut verdicts: Vec<Verdict> = (0..40).map(|n| verdict(Code::NoEndpoints, &format!("{n:02}"))).collect();
        verdicts.push(verdict(Code::ExternalNameOff, "grave"));
        all.translated(&key(), Some(Arc::new(verdicts)), true, now);
        let it = all.next(now, |_| None).unwrap();
        assert_eq!(it.more, 31);
        all.done(&it, Announced::Said("u".to_owned()), now);
        let told = tell(&mut all, now);
        assert_eq!(told.len(), TOLD - 1);
        assert!(it.verdict.message.contains("grave") || told.contains(&new("grave")));
    }

    #[test]
    fn another_object_of_the_name_is_told_of_anew() {
        let (mut all, now) = (Announcements::default(), Instant::now());
        all.translated(&key(), said(&["a"]), false, now);
        all.read(&key(), vec![verdict(Code::NotDecodable, "r")], false, now);
        assert_eq!(tell(&mut all, now).len(), 2);
        all.observe(&key(), Some("u".to_owned()), now);
        assert!(tell(&mut all, now).is_empty());
        all.observe(&key(), Some("v".to_owned()), now);
        assert_eq!(tell(&mut all, now).len(), 2);
        all.translated(&key(), None, true, now);
        all.read(&key(), Vec::new(), true, now);
        assert!(all.entries.is_empty());
    }

    #[test]
    fn failures_wait() {
        let (mut all, now) = (Announcements::default(), Instant::now());
        all.translated(&key(), said(&["a"]), true, now);
        let it = all.next(now, |_| None).unwrap();
        assert!(all.next(now, |_| None).is_none());
        all.done(&it, Announced::Failed, now);
        assert!(all.next(now, |_| None).is_none());
        assert_eq!(tell(&mut all, now + RETRY.0), [new("a")]);
    }

    #[test]
    fn a_verdict_that_cannot_be_told_keeps_no_other_waiting() {
        for outcome in [|| Announced::Failed, || Announced::Refused] {
            let (mut all, now) = (Announcements::default(), Instant::now());
            all.translated(&key(), said(&["a", "b"]), true, now);
            let it = all.next(now, |_| None).unwrap();
            assert_eq!(&*it.verdict.message, "a");
            all.done(&it, outcome(), now);
            assert_eq!(tell(&mut all, now), [new("b")]);
        }
    }

    #[test]
    fn what_is_refused_again_and_again_is_asked_once_an_hour() {
        let (mut all, mut now) = (Announcements::default(), Instant::now());
        all.translated(&key(), said(&["a"]), true, now);
        let mut waits = Vec::new();
        for _ in 0..12 {
            let it = all.next(now, |_| None).unwrap();
            all.done(&it, Announced::Refused, now);
            let next = all.next_at().unwrap();
            waits.push(next - now);
            now = next;
        }
        assert_eq!((waits[0], *waits.last().unwrap()), (REFUSED.0, FORGOTTEN));
        assert!(waits.is_sorted());
    }
}
