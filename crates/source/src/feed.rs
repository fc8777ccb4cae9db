//! The channel between sources and the one who listens to them.
//!
//! In: updates of any number of sources ([`Feeder`]). Out: batches ([`Feed::next`]). There are no timers: a listener that
//! waits is given an update at once; while it is busy, updates gather, and a later change of an object takes the place
//! of an earlier one. So the backlog is never longer than there are objects, and a source that runs ahead of the
//! listener by more than `capacity` changes waits for it.

use crate::{Batch, Change, Problem, Subject};
use kinds::ObjectRef;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::sync::Notify;

/// How many changes may wait for the listener before sources are held up.
pub const CAPACITY: usize = 16_384;

/// The listener is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of changes is gone")]
pub struct Closed;

/// What a source says in one breath: it becomes part of one batch, never of two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// The objects that changed.
    pub changes: Vec<Change>,
    /// Everything that is now wrong with each of these subjects.
    pub problems: BTreeMap<Subject, Vec<Problem>>,
    /// When the source began to decode it, where that [is traced](Feeder::began).
    pub began: Option<Instant>,
}

/// A channel with its first source. Nothing is synced until each source that was ever made has said so.
pub fn feed(capacity: usize) -> (Feeder, Feed) {
    let shared = Arc::new(Shared {
        capacity: capacity.max(1),
        waiting: Mutex::new(Waiting { feeders: 1, unsynced: 1, ..Waiting::default() }),
        filled: Notify::new(),
        emptied: Notify::new(),
        is_traced: AtomicBool::new(false),
    });
    (Feeder { shared: shared.clone(), synced: false }, Feed { shared })
}

struct Shared {
    capacity: usize,
    waiting: Mutex<Waiting>,
    /// One listener waits on it.
    filled: Notify,
    /// Any number of sources wait on it.
    emptied: Notify,
    /// Whether the listener wants to know how long it takes to decode.
    is_traced: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    changes: Vec<Change>,
    at: HashMap<ObjectRef, usize>,
    problems: BTreeMap<Subject, Vec<Problem>>,
    feeders: usize,
    unsynced: usize,
    synced: bool,
    /// When the first of what waits began to be decoded, and when the last of it was.
    decoded: Option<(Instant, Instant)>,
    /// Whether the listener has been told that all is synced.
    synced_reported: bool,
    closed: bool,
}

impl Waiting {
    fn put(&mut self, update: Update) {
        for change in update.changes {
            match self.at.get(&change.key) {
                Some(&at) => self.changes[at] = change,
                None => {
                    self.at.insert(change.key.clone(), self.changes.len());
                    self.changes.push(change);
                }
            }
        }
        self.problems.extend(update.problems);
        if let Some(began) = update.began {
            let first = self.decoded.map_or(began, |(first, _)| first.min(began));
            self.decoded = Some((first, Instant::now()));
        }
    }

    fn take(&mut self) -> Option<Batch> {
        let is_newly_synced = self.synced && !self.synced_reported;
        if self.changes.is_empty() && self.problems.is_empty() && !is_newly_synced {
            return None;
        }
        self.synced_reported = self.synced;
        // Dropped rather than cleared: after a first load of everything its room is not needed again.
        self.at = HashMap::new();
        let (changes, problems) = (std::mem::take(&mut self.changes), std::mem::take(&mut self.problems));
        Some(Batch { changes, problems, synced: self.synced, decoded: self.decoded.take() })
    }

    fn take_only(&mut self, is_meant: impl Fn(&ObjectRef) -> bool) -> Vec<Change> {
        if !self.at.keys().any(&is_meant) {
            return Vec::new();
        }
        let (taken, left) = std::mem::take(&mut self.changes).into_iter().partition(|change| is_meant(&change.key));
        self.changes = left;
        self.at = self.changes.iter().enumerate().map(|(at, change)| (change.key.clone(), at)).collect();
        taken
    }
}

/// The end that a source holds.
pub struct Feeder {
    shared: Arc<Shared>,
    synced: bool,
}

impl Feeder {
    /// The end for one more source.
    pub fn another(&self) -> Feeder {
        let mut waiting = self.shared.waiting.lock();
        waiting.feeders += 1;
        waiting.unsynced += 1;
        Feeder { shared: self.shared.clone(), synced: false }
    }

    /// Now, if the listener wants to know how long it takes to decode; it goes into an [`Update`].
    pub fn began(&self) -> Option<Instant> {
        self.shared.is_traced.load(Ordering::Relaxed).then(Instant::now)
    }

    /// Says something; waits first while too much is waiting to be heard.
    pub async fn send(&self, update: Update) -> Result<(), Closed> {
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                let mut waiting = self.shared.waiting.lock();
                if waiting.closed {
                    return Err(Closed);
                }
                if waiting.changes.len() < self.shared.capacity {
                    waiting.put(update);
                    break;
                }
            }
            emptied.await;
        }
        self.shared.filled.notify_one();
        Ok(())
    }

    /// Says that everything this source knows has been sent.
    pub fn synced(&mut self) {
        if std::mem::replace(&mut self.synced, true) {
            return;
        }
        let mut waiting = self.shared.waiting.lock();
        waiting.unsynced -= 1;
        if waiting.unsynced == 0 {
            waiting.synced = true;
            self.shared.filled.notify_one();
        }
    }

    /// Waits until the listener is gone.
    pub async fn closed(&self) {
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.shared.waiting.lock().closed {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        // A source that ends without having synced leaves the whole unsynced: half a world is never published.
        self.shared.waiting.lock().feeders -= 1;
        self.shared.filled.notify_one();
    }
}

/// The end of the one who listens.
pub struct Feed {
    shared: Arc<Shared>,
}

impl Feed {
    /// From now on batches say when they were decoded.
    pub fn trace(&self) {
        self.shared.is_traced.store(true, Ordering::Relaxed);
    }

    /// What happened since the last batch, as soon as anything has; none when every source has ended. Nothing is lost
    /// when the future is dropped.
    pub async fn next(&mut self) -> Option<Batch> {
        loop {
            {
                let mut waiting = self.shared.waiting.lock();
                if let Some(batch) = waiting.take() {
                    self.shared.emptied.notify_waiters();
                    return Some(batch);
                }
                if waiting.feeders == 0 {
                    return None;
                }
            }
            self.shared.filled.notified().await;
        }
    }

    /// Of what happened since the last batch, the changes of some objects. All else stays, and goes on gathering.
    pub fn take_only(&mut self, is_meant: impl Fn(&ObjectRef) -> bool) -> Vec<Change> {
        let taken = self.shared.waiting.lock().take_only(is_meant);
        if !taken.is_empty() {
            self.shared.emptied.notify_waiters();
        }
        taken
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut waiting = self.shared.waiting.lock();
        waiting.closed = true;
        waiting.take();
        self.shared.emptied.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
