//! The follower's side: a stream to the leader, opened again whenever it is lost.

use crate::{
    Inner,
    message::{Down, HoldChange, Question, Shared, Up},
    page::Page,
};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc,
    time::{sleep, sleep_until, timeout},
};
use tracing::{debug, info, warn};
use xds::{AckWatch, Fleet, FleetAckCounts, Peer, PeerSender, Version};

/// How long to wait before the next try: at first, and at most.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// How long the holder may take to read.
const SLOW: Duration = Duration::from_secs(10);
/// How long answers gather before they are said.
const PACE: Duration = Duration::from_millis(20);

/// Follows the holder at that address for ever.
pub(crate) async fn follow(inner: &Inner, address: &str) {
    let mut wait = WAIT.0;
    loop {
        match xds::peer::connect(address, inner.tls.as_ref()).await {
            Ok(peer) => {
                info!(address, "connected to the leader");
                inner.linked.store(true, Ordering::Relaxed);
                // Reconnect quickly only to a leader that has sent its whole state.
                if converse(inner, peer).await {
                    wait = WAIT.0;
                }
                info!(address, again_in = ?wait, "lost connection to the leader; deciding without the other replicas");
                inner.unlink();
            }
            Err(error) if wait == WAIT.0 => {
                warn!(address, error = &error as &dyn std::error::Error, "failed to connect to the leader; retrying");
            }
            Err(error) => {
                debug!(address, error = &error as &dyn std::error::Error, "still no connection to the leader")
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(WAIT.1);
    }
}

/// Exchanges messages until the stream ends; returns whether the leader has sent its whole state.
async fn converse(inner: &Inner, peer: Peer) -> bool {
    let Peer { address, mut receiver, sender } = peer;
    let (asks, asked) = mpsc::unbounded_channel();
    let mut synced = false;
    let listening = async {
        while let Some(message) = receiver.next().await {
            match serde_json::from_slice::<Down>(&message) {
                Ok(down) => {
                    synced |= down.synced;
                    on_outcome(inner, down, &asks);
                }
                Err(error) => return warn!(%address, %error, "cannot decode a message of another replica"),
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = speak(inner, sender, asked) => {}
    }
    synced
}

fn on_outcome(inner: &Inner, down: Down, asks: &mpsc::UnboundedSender<Vec<(Question, bool)>>) {
    let Down { hold_changes, asks: asked, outcomes, synced: _ } = down;
    if !hold_changes.is_empty() {
        inner.update(|withheld| withheld.from_holder.apply(hold_changes));
    }
    if !asked.is_empty() {
        // Whoever listens ends together with us.
        let _ = asks.send(asked);
    }
    for (case, stands) in outcomes {
        if let Some(pending) = inner.pending.lock().remove(&case) {
            let _ = pending.outcome.send(stands);
        }
    }
}

/// What is yet to be said to the holder.
#[derive(Default)]
struct Outbox {
    cases: VecDeque<Question>,
    hold_changes: VecDeque<HoldChange>,
    answers: VecDeque<(Question, FleetAckCounts)>,
}

impl Outbox {
    /// The next message, if there is anything to say.
    fn page(&mut self) -> Option<Up> {
        let mut page = Page::new();
        let (cases, hold_changes) = (page.fill(&mut self.cases), page.fill(&mut self.hold_changes));
        let answers = page.fill(&mut self.answers);
        let up = Up { hold_changes, answers, cases };
        (up != Up::default()).then_some(up)
    }
}

/// What was said to the holder, and what it wants to know.
#[derive(Default)]
struct Told {
    holds: Shared,
    watches: BTreeMap<Fleet, AckWatch>,
    answers: HashMap<Question, FleetAckCounts>,
}

async fn speak(inner: &Inner, sender: PeerSender, mut asked: mpsc::UnboundedReceiver<Vec<(Question, bool)>>) {
    let mut changed = inner.changed.subscribe();
    let (mut told, mut out) = (Told::default(), Outbox::default());
    let mut next_count = Instant::now();
    changed.mark_changed();
    loop {
        if changed.borrow_and_update().has_changed() {
            told.news(inner, &mut out);
        }
        while let Some(up) = out.page() {
            let Ok(text) = serde_json::to_vec(&up) else { return };
            if !timeout(SLOW, sender.send(&text)).await.unwrap_or(false) {
                return;
            }
        }
        tokio::select! {
            asks = asked.recv() => match asks {
                Some(asks) => {
                    told.take(inner, asks);
                    // Whoever asks wants to know at once.
                    next_count = Instant::now();
                }
                None => return,
            },
            _ = changed.changed() => changed.mark_changed(),
            (fleet, counts) = told.counts(next_count) => {
                told.answer(&fleet, counts, &mut out);
                next_count = Instant::now() + PACE;
            }
        }
    }
}

impl Told {
    /// What has changed besides the counts. There is nothing left to be said of what was before.
    fn news(&mut self, inner: &Inner, out: &mut Outbox) {
        let holds = inner.withheld.lock().own.clone();
        out.hold_changes.extend(self.holds.changes(&holds));
        self.holds = holds;
        for (case, pending) in inner.pending.lock().iter_mut() {
            if !std::mem::replace(&mut pending.is_said, true) {
                out.cases.push_back(case.clone());
            }
        }
    }

    /// Takes what is asked from now on, or no longer.
    fn take(&mut self, inner: &Inner, asks: Vec<(Question, bool)>) {
        for (question, is_asked) in asks {
            if is_asked {
                let watch = || AckWatch::new(&inner.server, &question.fleet);
                let watch = self.watches.entry(question.fleet.clone()).or_insert_with(watch);
                watch.watch(question.resource(), Instant::now());
            } else {
                if let Some(watch) = self.watches.get_mut(&question.fleet) {
                    watch.forget(&question.resource());
                }
                self.answers.remove(&question);
            }
        }
    }

    /// Counts that may have changed, not before that time.
    async fn counts(&mut self, not_before: Instant) -> (Fleet, Vec<(Version, FleetAckCounts)>) {
        sleep_until(not_before.into()).await;
        let next = self.watches.iter_mut().map(|(fleet, watch)| {
            Box::pin(async move {
                let counts = watch.next().await;
                (fleet.clone(), counts)
            })
        });
        let next: Vec<_> = next.collect();
        if next.is_empty() {
            return std::future::pending().await;
        }
        futures::future::select_all(next).await.0
    }

    /// Answers where something else is to be said than before.
    fn answer(&mut self, fleet: &Fleet, counts: Vec<(Version, FleetAckCounts)>, out: &mut Outbox) {
        for (version, counts) in counts {
            let question = Question::new(fleet, &version);
            if self.answers.get(&question) != Some(&counts) {
                self.answers.insert(question.clone(), counts.clone());
                out.answers.push_back((question, counts));
            }
        }
    }
}
