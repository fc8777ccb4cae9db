//! What the control loop says after a batch, and the map where it waits until the writer takes it.
//!
//! [`Reporter::report`] never waits and never fails: what is said about an object takes the place of what was said
//! before, so there is never more waiting than there are objects. Every replica is told everything and writes nothing of
//! it until it is the leader, so that a new leader has nothing to ask.

use crate::statuses;
use kinds::{Kind, Object, kind};
use model::{ObjectRef, Verdict};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::Notify;

/// All verdicts about an object; nothing if it is not ours.
pub type Said = Option<Arc<Vec<Verdict>>>;

/// What a batch brought.
#[derive(Debug, Default)]
pub struct Report {
    /// The objects that the source said are new, other or gone. Kinds that are not [wanted](wants) may be left out.
    pub objects: Vec<(ObjectRef, Option<Object>)>,
    /// What came out of the pipeline: `Output::verdicts`.
    pub verdicts: Vec<(ObjectRef, Said)>,
    /// Everything that the source now finds wrong with each of these objects; an empty list says that it is mended.
    pub problems: Vec<(ObjectRef, Vec<Verdict>)>,
    /// The objects of which it is news that proxies have all of them, or that they do not.
    pub programmed: Vec<(ObjectRef, Programmed)>,
    /// Whether every source has said everything it knows. It stays so; before, nothing is written.
    pub synced: bool,
}

/// Whether proxies have all of an object, as one batch of the control loop made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programmed {
    /// The batch, by number: what is said of an earlier one says nothing of a later one, whenever it arrives.
    pub batch: u64,
    /// Whether they have it.
    pub is_programmed: bool,
}

impl Programmed {
    /// The later one. Of the same batch, that they have it comes after that they do not.
    pub(crate) fn or(self, other: Programmed) -> Programmed {
        let order = |one: &Programmed| (one.batch, one.is_programmed);
        if order(&self) >= order(&other) { self } else { other }
    }
}

/// Whether the writer has a use for objects of the kind.
pub fn wants(kind: Kind) -> bool {
    kind == kind::SERVICE || statuses::has_status(kind)
}

/// Where reports go. Clones are handles of the same one.
#[derive(Clone, Debug, Default)]
pub struct Reporter(Arc<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

/// Everything that was reported and not yet taken.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub objects: HashMap<ObjectRef, Option<Object>>,
    pub verdicts: HashMap<ObjectRef, Said>,
    pub problems: HashMap<ObjectRef, Vec<Verdict>>,
    pub programmed: HashMap<ObjectRef, Programmed>,
    pub synced: bool,
}

impl Reporter {
    /// Says what a batch brought.
    pub fn report(&self, report: Report) {
        {
            let mut waiting = self.0.waiting.lock();
            waiting.objects.extend(report.objects.into_iter().filter(|(key, _)| wants(key.kind)));
            waiting.verdicts.extend(report.verdicts);
            waiting.problems.extend(report.problems);
            for (object, programmed) in report.programmed {
                let known = waiting.programmed.entry(object).or_default();
                *known = known.or(programmed);
            }
            waiting.synced |= report.synced;
        }
        self.0.filled.notify_one();
    }

    /// Waits until there is something, and takes all of it. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&self) -> Waiting {
        self.0.filled.notified().await;
        let mut waiting = self.0.waiting.lock();
        let synced = waiting.synced;
        std::mem::replace(&mut waiting, Waiting { synced, ..Waiting::default() })
    }
}
