//! Outcomes of this replica's monitor, confirmed by the other replicas before a resource is withheld.
//!
//! In: the outcomes of an [`xds::AckMonitor`] of this replica's proxies. Out: the same, except that what other replicas' proxies
//! accept is not rejected: one proxy of many is logged, and nothing is withheld. Without other replicas, or without an answer, the
//! monitor's outcome stands.

use crate::{Inner, Role, leader, message::Question};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tracing::warn;
use xds::{AckMonitor, Fleet, Kind, Name, Outcome, ResourceOutcome};

/// How long the leader may take to decide whether a rejection stands.
const DECISION_TIMEOUT: Duration = Duration::from_secs(1);

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
        Self { outcomes, probes, task: tokio::spawn(run(inner, fleet, monitor, asked, out)) }
    }

    /// Asks for the outcome of the resources published under these names, rejected or not.
    pub fn expect(&self, names: Vec<(Kind, Name)>) {
        if !names.is_empty() {
            // The task that receives ends with this handle.
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

async fn run(
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
async fn confirm(inner: &Arc<Inner>, fleet: Fleet, outcome: ResourceOutcome) -> ResourceOutcome {
    if !matches!(outcome.outcome, Outcome::Rejected { .. }) {
        return outcome;
    }
    let question = Question { fleet, kind: outcome.kind, name: outcome.name.clone(), version: outcome.version };
    let role = inner.role.borrow().clone();
    let stands = match role {
        Role::Alone | Role::Leader => leader::decide(inner, &question).await,
        Role::Follower(_) if !inner.is_connected.load(Ordering::Relaxed) => true,
        Role::Follower(_) => {
            let decision = inner.pending.lock().wait(&question);
            inner.changed.send_modify(|count| *count += 1);
            let decision = timeout(DECISION_TIMEOUT, decision).await;
            inner.pending.lock().drop_closed(&question);
            !matches!(decision, Ok(Ok(false)))
        }
    };
    if stands {
        return outcome;
    }
    warn!(kind = %outcome.kind, name = %outcome.name, "rejected by the proxies of this replica, but accepted by those of other replicas");
    ResourceOutcome { outcome: Outcome::Accepted, ..outcome }
}
