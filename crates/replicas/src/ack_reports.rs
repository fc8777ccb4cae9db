//! Whether the proxies of all replicas have acknowledged versions of resources, reported when it changes.
//!
//! In: versions of resources ([`AckReports::ask`]). Out: those of which it has come to be so, or is no longer so
//! ([`AckReports::next`]). This replica's proxies are counted by an [`AckWatch`], the others' by their replicas, which say what
//! has changed; so a version costs something when it is asked for, and when somebody answers.

use crate::{
    Inner,
    message::Question,
    questions::{Answers, shrink},
    until,
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};
use xds::{AckWatch, Fleet, FleetAckCounts, Nack, Version};

/// What the proxies of all replicas make of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AckReport {
    /// Whether proxies have it: all that are not stuck, and at least one. One of many that refuses is its own problem.
    pub is_programmed: bool,
    /// Whether any proxy has asked for it, or may have: not all replicas have answered yet.
    pub is_subscribed: bool,
    /// Of the proxies that refuse it, the first by the id of its node.
    pub refusal: Option<Nack>,
}

struct Open {
    since: Instant,
    /// What was last reported.
    report: AckReport,
    /// When it is looked at again although nobody has answered.
    deadline: Option<Instant>,
}

/// What one task waits for, of one fleet.
pub struct AckReports {
    inner: Arc<Inner>,
    fleet: Fleet,
    own: AckWatch,
    others: Arc<Answers>,
    open: HashMap<Version, Open>,
    deadlines: BTreeSet<(Instant, Version)>,
    changed: Vec<(Version, AckReport)>,
}

impl AckReports {
    pub(crate) fn new(inner: Arc<Inner>, fleet: Fleet) -> Self {
        let others = inner.asked.lock().listen();
        Self {
            own: AckWatch::new(&inner.server, &fleet),
            others,
            open: HashMap::new(),
            deadlines: BTreeSet::new(),
            changed: Vec::new(),
            inner,
            fleet,
        }
    }

    /// Asks all replicas about a version. Until [`Self::next`] says otherwise, it is as in [`AckReport::default`].
    pub fn ask(&mut self, version: Version) {
        let now = Instant::now();
        let open = Open { since: now, report: AckReport::default(), deadline: None };
        if self.open.contains_key(&version) {
            return;
        }
        self.inner.asked.lock().ask(Question::new(&self.fleet, &version));
        self.own.watch(version.clone(), now);
        self.open.insert(version, open);
    }

    /// No longer asks about a version.
    pub fn forget(&mut self, version: &Version) {
        let Some(open) = self.open.remove(version) else { return };
        shrink(&mut self.open);
        if let Some(at) = open.deadline {
            self.deadlines.remove(&(at, version.clone()));
        }
        self.own.forget(version);
        self.inner.asked.lock().forget(&Question::new(&self.fleet, version));
    }

    /// The versions of which there is something new. May be dropped and called again at any time: nothing is lost.
    pub async fn next(&mut self) -> Vec<(Version, AckReport)> {
        while self.changed.is_empty() {
            self.turn().await;
        }
        std::mem::take(&mut self.changed)
    }

    /// Waits until something is known that was not, and takes it. May be dropped and called again at any time.
    pub(crate) async fn turn(&mut self) {
        tokio::select! {
            counts = self.own.next() => self.look_at(counts.into_iter().map(|(version, _)| version).collect()),
            () = self.others.filled.notified() => {
                let new = self.others.take();
                if new.all {
                    self.look_at(self.open.keys().cloned().collect());
                } else {
                    let ours = new.questions.into_iter().filter(|question| question.fleet == self.fleet);
                    self.look_at(ours.map(|question| question.resource()).collect());
                }
            }
            () = until(self.deadlines.first().map(|(at, _)| *at)) => {
                let now = Instant::now();
                let late = self.deadlines.iter().take_while(|(at, _)| *at <= now);
                self.look_at(late.map(|(_, version)| version.clone()).collect());
            }
        }
    }

    /// How many proxies stand how to a version that was asked about, over all replicas that are known to this one, by version
    /// of Envoy.
    pub fn counts(&self, version: &Version) -> FleetAckCounts {
        self.sum(version, Instant::now()).0
    }

    /// The counts that are known, and until when more are waited for.
    pub(crate) fn sum(&self, version: &Version, now: Instant) -> (FleetAckCounts, Option<Instant>) {
        let mut sum = self.own.counts(version).unwrap_or_default();
        let asked = self.inner.asked.lock();
        let Some(open) = self.open.get(version).filter(|_| asked.has_followers()) else { return (sum, None) };
        let wait = asked.add(&Question::new(&self.fleet, version), open.since, now, &mut sum);
        (sum, wait)
    }

    fn look_at(&mut self, versions: Vec<Version>) {
        let now = Instant::now();
        for version in versions {
            if !self.open.contains_key(&version) {
                continue;
            }
            let (sum, wait) = self.sum(&version, now);
            let report = AckReport {
                is_programmed: wait.is_none() && xds::decide(&sum) == Some(true),
                is_subscribed: wait.is_some() || sum.values().any(|counts| counts.clients() > 0),
                refusal: self.refusal(&version, &sum),
            };
            let Some(open) = self.open.get_mut(&version) else { continue };
            let before = std::mem::replace(&mut open.deadline, wait);
            if before != wait {
                if let Some(at) = before {
                    self.deadlines.remove(&(at, version.clone()));
                }
                if let Some(at) = wait {
                    self.deadlines.insert((at, version.clone()));
                }
            }
            if open.report != report {
                open.report.clone_from(&report);
                self.changed.push((version, report));
            }
        }
    }

    /// Of all proxies that refuse a version with these counts, the first by the id of its node.
    fn refusal(&self, version: &Version, counts: &FleetAckCounts) -> Option<Nack> {
        if counts.values().all(|counts| counts.refused == 0) {
            return None;
        }
        let asked = self.inner.asked.lock();
        let others = asked.refusal(&Question::new(&self.fleet, version)).cloned();
        self.own.refusal(version).into_iter().chain(others).min()
    }
}

impl Drop for AckReports {
    fn drop(&mut self) {
        let mut asked = self.inner.asked.lock();
        asked.unlisten(&self.others);
        for version in self.open.keys() {
            asked.forget(&Question::new(&self.fleet, version));
        }
    }
}
