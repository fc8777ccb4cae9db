//! Rulings of this replica's court, with the others heard before a resource is given up.
//!
//! In: what an [`xds::Court`] says of this replica's proxies. Out: the same, but for refusals of what other replicas'
//! proxies take: one of many is reported, not a verdict. Without others, or without an answer, the court's word stands.

use crate::{Inner, Pending, Place, holder, message::Question};
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
use xds::{Court, Fleet, Kind, Name, Outcome, Ruling};

/// How long the holder may take to say whether a case stands.
const CASE: Duration = Duration::from_secs(1);

/// The rulings of one fleet.
pub struct Rulings {
    rulings: mpsc::UnboundedReceiver<Ruling>,
    probes: mpsc::UnboundedSender<Vec<(Kind, Name)>>,
    task: JoinHandle<()>,
}

impl Rulings {
    pub(crate) fn new(inner: Arc<Inner>, fleet: Fleet) -> Self {
        let court = Court::new(&inner.server, fleet.clone());
        let (out, rulings) = mpsc::unbounded_channel();
        let (probes, asked) = mpsc::unbounded_channel();
        Self { rulings, probes, task: tokio::spawn(preside(inner, fleet, court, asked, out)) }
    }

    /// Asks for a ruling on what is published under these names, refused or not.
    pub fn expect(&self, names: Vec<(Kind, Name)>) {
        if !names.is_empty() {
            // The task that listens ends with us.
            let _ = self.probes.send(names);
        }
    }

    /// The next ruling. May be dropped and called again at any time: nothing is lost.
    pub async fn next(&mut self) -> Ruling {
        match self.rulings.recv().await {
            Some(ruling) => ruling,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Rulings {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn preside(
    inner: Arc<Inner>,
    fleet: Fleet,
    mut court: Court,
    mut probes: mpsc::UnboundedReceiver<Vec<(Kind, Name)>>,
    out: mpsc::UnboundedSender<Ruling>,
) {
    loop {
        tokio::select! {
            asked = probes.recv() => match asked {
                Some(names) => court.expect(names),
                None => return,
            },
            ruling = court.next() => {
                let (inner, fleet, out) = (inner.clone(), fleet.clone(), out.clone());
                tokio::spawn(async move {
                    let ruling = confirm(&inner, fleet, ruling).await;
                    let _ = out.send(ruling);
                });
            }
        }
    }
}

/// The ruling, as all replicas together see it.
async fn confirm(inner: &Inner, fleet: Fleet, ruling: Ruling) -> Ruling {
    if !matches!(ruling.outcome, Outcome::Refused { .. }) {
        return ruling;
    }
    let question = Question { fleet, kind: ruling.kind, name: ruling.name.clone(), version: ruling.version };
    let place = inner.place.borrow().clone();
    let stands = match place {
        Place::Alone | Place::Holder => holder::decide(inner, &question).await,
        Place::Follower(_) if !inner.linked.load(Ordering::Relaxed) => true,
        Place::Follower(_) => {
            let (ruling, word) = oneshot::channel();
            inner.pending.lock().insert(question.clone(), Pending { ruling, is_said: false });
            inner.changed.send_modify(|count| *count += 1);
            let word = timeout(CASE, word).await;
            inner.pending.lock().remove(&question);
            !matches!(word, Ok(Ok(false)))
        }
    };
    if stands {
        return ruling;
    }
    warn!(kind = %ruling.kind, name = %ruling.name, "refused here, but taken by proxies of other replicas");
    Ruling { outcome: Outcome::Taken, ..ruling }
}
