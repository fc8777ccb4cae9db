//! What the control loop reports after a batch, and the map in which it waits until the writer takes it.
//!
//! [`Reporter::report`] never waits and never fails: a report about an object replaces the one before, so no more waits than
//! there are objects. Every replica reports everything to its writer, which writes nothing until it is the leader: a new
//! leader knows everything already.

use crate::Addresses;
use kinds::Object;
use model::status::{ProxyState, StatusFacts};
use model::{ObjectRef, Verdict};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::Notify;

/// All verdicts about an object; none if it is not ours.
pub type Verdicts = Option<Arc<Vec<Verdict>>>;
/// The facts that the translation of an object has decided.
pub type Translated = Option<Arc<StatusFacts>>;

/// The results of a batch.
#[derive(Debug, Default)]
pub struct Report {
    /// The objects that are new, changed or gone, of the kinds that have a status of ours, and Services.
    pub objects: Vec<(ObjectRef, Option<Object>)>,
    /// What came out of the pipeline: `Output::verdicts`.
    pub verdicts: Vec<(ObjectRef, Verdicts)>,
    /// Facts about objects whose status is decided in translation.
    pub facts: Vec<(ObjectRef, Translated)>,
    /// Everything that the source now finds wrong with each of these objects; an empty list says that it is fixed.
    pub problems: Vec<(ObjectRef, Vec<Verdict>)>,
    /// The objects that proxies have answered about, or that wait for their answer.
    pub programmed: Vec<(ObjectRef, Programmed)>,
    /// Whether every source has listed all its objects. It stays so; before, nothing is written.
    pub synced: bool,
}

/// What proxies have made of all resources of an object, as of one batch of the control loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programmed {
    /// The number of the batch: a report about an earlier batch never replaces one about a later batch.
    pub batch: u64,
    /// What is known of them; none if nothing of the object is served.
    pub proxies: Option<ProxyState>,
}

impl Programmed {
    /// Whether proxies are to acknowledge it, and nothing is known of them yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.batch > 0 && matches!(self.proxies, Some(ProxyState::Pending | ProxyState::Waiting))
    }

    /// Whether this takes back what the status says of the same batch: a proxy that starts again and again is there and gone by turns.
    /// That proxies have acknowledged what no proxy had, or what some of them had not, takes nothing back.
    pub(crate) fn takes_back(&self, written: &Self) -> bool {
        let is_acknowledged = |it: &Self| matches!(it.proxies, Some(ProxyState::Acknowledged { .. }));
        let was_awaited = matches!(written.proxies, Some(ProxyState::NoProxies { .. } | ProxyState::Waiting));
        let is_other = self.batch == written.batch && self.proxies != written.proxies;
        is_other && !self.completes(written) && (is_acknowledged(written) || was_awaited && !is_acknowledged(self))
    }

    /// Whether all connected proxies have accepted what some of them had not, and no fewer are connected: the proxy that had not may
    /// otherwise be gone for the moment.
    fn completes(&self, written: &Self) -> bool {
        let (
            Some(ProxyState::Acknowledged { counts: before, refusal: refused }),
            Some(ProxyState::Acknowledged { counts, refusal: None }),
        ) = (&written.proxies, &self.proxies)
        else {
            return false;
        };
        let was_partial = refused.is_some() || before.acknowledged < before.connected;
        was_partial && counts.acknowledged == counts.connected && counts.connected >= before.connected
    }

    /// Takes a report that came later, unless it is about an earlier batch. Within a batch, what proxies have answered is later than
    /// that they have yet to: the one is said by the control loop, the other by a task.
    pub(crate) fn update(&mut self, other: Programmed) {
        let is_news = !matches!(other.proxies, None | Some(ProxyState::Pending));
        if other.batch > self.batch || other.batch == self.batch && is_news {
            *self = other;
        }
    }
}

/// Where objects are served and who says so, as the operator has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// As in [`Settings::addresses`](crate::Settings::addresses).
    pub addresses: Addresses,
    /// As in [`Settings::controller`](crate::Settings::controller).
    pub controller: String,
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
    pub verdicts: HashMap<ObjectRef, Verdicts>,
    pub facts: HashMap<ObjectRef, Translated>,
    pub problems: HashMap<ObjectRef, Vec<Verdict>>,
    pub programmed: HashMap<ObjectRef, Programmed>,
    pub identity: Option<Identity>,
    pub synced: bool,
}

impl Reporter {
    /// Reports the results of a batch.
    pub fn report(&self, report: Report) {
        {
            let mut waiting = self.0.waiting.lock();
            waiting.objects.extend(report.objects);
            waiting.verdicts.extend(report.verdicts);
            waiting.facts.extend(report.facts);
            waiting.problems.extend(report.problems);
            for (object, programmed) in report.programmed {
                waiting.programmed.entry(object).or_default().update(programmed);
            }
            waiting.synced |= report.synced;
        }
        self.0.filled.notify_one();
    }

    /// Takes other addresses and another controller name, in place of those of the [settings](crate::Settings).
    pub fn set_identity(&self, identity: Identity) {
        self.0.waiting.lock().identity = Some(identity);
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
