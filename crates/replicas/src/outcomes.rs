//! Outcomes of this replica's monitor, with the others asked before a resource is given up.
//!
//! In: what an [`xds::AckMonitor`] says of this replica's proxies. Out: the same, but for refusals of what other replicas'
//! proxies take: one of many is reported, not a verdict. Without others, or without an answer, the monitor's word stands.

use crate::{Inner, Pending, Role, holder, message::Question};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tracing::warn;
use xds::{AckMonitor, Fleet, Kind, Name, Outcome, ResourceOutcome};

/// How long the holder may take to say whether a case stands.
const CASE: Duration = Duration::from_secs(1);

/// The outcomes of one fleet.
pub struct Outcomes {
    outcomes: mpsc::UnboundedReceiver<ResourceOutcome>,
    probes: mpsc::UnboundedSender<Vec<(Kind, Name)>>,
    task: JoinHandle<()>,
}

impl Outcomes {
    pub(crate) fn new(inner: Arc<Inner>, fleet: Fleet) -> Self {
        let monitor = AckMonitor::new(&inner.server, fleet.clone());
        let (out, outcomes) = mpsc::unbounded_channel();
        let (probes, asked) = mpsc::unbounded_channel();
        Self { outcomes, probes, task: tokio::spawn(preside(inner, fleet, monitor, asked, out)) }
    }

    /// Asks for an outcome on what is published under these names, refused or not.
    pub fn expect(&self, names: Vec<(Kind, Name)>) {
        if !names.is_empty() {
            // The task that listens ends with us.
            let _ = self.probes.send(names);
        }
    }

    /// The next outcome. May be dropped and called again at any time: nothing is lost.
    pub async fn next(&mut self) -> ResourceOutcome {
        match self.outcomes.recv().await {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Outcomes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn preside(
    inner: Arc<Inner>,
    fleet: Fleet,
    mut monitor: AckMonitor,
    mut probes: mpsc::UnboundedReceiver<Vec<(Kind, Name)>>,
    out: mpsc::UnboundedSender<ResourceOutcome>,
) {
    loop {
        tokio::select! {
            asked = probes.recv() => match asked {
                Some(names) => monitor.expect(names),
                None => return,
            },
            outcome = monitor.next() => {
                let (inner, fleet, out) = (inner.clone(), fleet.clone(), out.clone());
                tokio::spawn(async move {
                    let outcome = confirm(&inner, fleet, outcome).await;
                    let _ = out.send(outcome);
                });
            }
        }
    }
}

/// The outcome, as all replicas together see it.
async fn confirm(inner: &Inner, fleet: Fleet, outcome: ResourceOutcome) -> ResourceOutcome {
    if !matches!(outcome.outcome, Outcome::Refused { .. }) {
        return outcome;
    }
    let question = Question { fleet, kind: outcome.kind, name: outcome.name.clone(), version: outcome.version };
    let place = inner.place.borrow().clone();
    let stands = match place {
        Role::Alone | Role::Holder => holder::decide(inner, &question).await,
        Role::Follower(_) if !inner.linked.load(Ordering::Relaxed) => true,
        Role::Follower(_) => {
            let (outcome, word) = oneshot::channel();
            inner.pending.lock().insert(question.clone(), Pending { outcome, is_said: false });
            inner.changed.send_modify(|count| *count += 1);
            let word = timeout(CASE, word).await;
            inner.pending.lock().remove(&question);
            !matches!(word, Ok(Ok(false)))
        }
    };
    if stands {
        return outcome;
    }
    warn!(kind = %outcome.kind, name = %outcome.name, "rejected by proxies of this replica, but accepted by proxies of other replicas");
    ResourceOutcome { outcome: Outcome::Taken, ..outcome }
}
