//! The holder's side: one follower's stream, and the cases that it decides for all.

use crate::{
    Inner, Role,
    message::{Down, HoldChange, Question, Shared, Up},
    page::Page,
    questions::Ask,
    until,
};
use std::{collections::VecDeque, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tracing::{info, warn};
use xds::{Peer, PeerReceiver, PeerSender};

/// How long a follower may take to read.
const SLOW: Duration = Duration::from_secs(10);
/// How long a case may take: then it is decided with what is known.
const CASE: Duration = Duration::from_millis(500);

/// Talks with one follower until it goes, or this replica no longer holds the lease.
pub(crate) async fn attend(inner: Arc<Inner>, peer: Peer) {
    let id = inner.id();
    let Peer { address, receiver, sender } = peer;
    info!(%address, "replica connected");
    inner.update(|withheld| _ = withheld.followers.insert(id, Shared::default()));
    let asks = inner.asked.lock().join(id);
    let (decided, outcomes) = mpsc::channel(64);
    tokio::select! {
        () = listen(&inner, id, address, receiver, decided) => {}
        () = speak(&inner, id, sender, asks, outcomes) => {}
        () = no_longer(&inner) => {}
    }
    inner.asked.lock().leave(id);
    inner.update(|withheld| _ = withheld.followers.remove(&id));
    info!(%address, "replica disconnected");
}

/// Done when another holds the lease.
async fn no_longer(inner: &Inner) {
    let mut place = inner.place.subscribe();
    if place.wait_for(|place| matches!(place, Role::Follower(_))).await.is_err() {
        std::future::pending().await
    }
}

async fn listen(
    inner: &Arc<Inner>,
    id: u64,
    address: SocketAddr,
    mut receiver: PeerReceiver,
    decided: mpsc::Sender<(Question, bool)>,
) {
    while let Some(message) = receiver.next().await {
        match serde_json::from_slice::<Up>(&message) {
            Ok(up) => on_outcome(inner, id, up, &decided),
            Err(error) => return warn!(%address, %error, "cannot decode a message of another replica"),
        }
    }
}

fn on_outcome(inner: &Arc<Inner>, id: u64, up: Up, decided: &mpsc::Sender<(Question, bool)>) {
    let Up { hold_changes, answers, cases } = up;
    if !hold_changes.is_empty() {
        inner.update(|withheld| {
            if let Some(follower) = withheld.followers.get_mut(&id) {
                follower.apply(hold_changes);
            }
        });
    }
    if !answers.is_empty() {
        inner.asked.lock().answer(id, answers);
    }
    for question in cases {
        let (inner, decided) = (inner.clone(), decided.clone());
        tokio::spawn(async move {
            let stands = decide(&inner, &question).await;
            // A follower that has gone needs no word.
            let _ = decided.send((question, stands)).await;
        });
    }
}

/// What is yet to be said to a follower.
#[derive(Default)]
struct Outbox {
    outcomes: VecDeque<(Question, bool)>,
    hold_changes: VecDeque<HoldChange>,
    asks: VecDeque<Ask>,
    synced: bool,
}

impl Outbox {
    /// The next message, if there is anything to say. The first says at least that there is nothing.
    fn page(&mut self) -> Option<Down> {
        let mut page = Page::new();
        let (outcomes, hold_changes) = (page.fill(&mut self.outcomes), page.fill(&mut self.hold_changes));
        let asks = page.fill(&mut self.asks);
        let is_all = self.outcomes.is_empty() && self.hold_changes.is_empty() && self.asks.is_empty();
        let synced = is_all && !self.synced;
        self.synced |= is_all;
        let down = Down { hold_changes, asks, outcomes, synced };
        (down != Down::default()).then_some(down)
    }
}

async fn speak(
    inner: &Inner,
    id: u64,
    sender: PeerSender,
    mut asks: mpsc::UnboundedReceiver<Ask>,
    mut outcomes: mpsc::Receiver<(Question, bool)>,
) {
    let mut changed = inner.changed.subscribe();
    let (mut told, mut out) = (Shared::default(), Outbox::default());
    changed.mark_changed();
    loop {
        if changed.borrow_and_update().has_changed() {
            let holds = inner.withheld.lock().others(Some(id));
            out.hold_changes.extend(told.changes(&holds));
            told = holds;
        }
        while let Ok(ask) = asks.try_recv() {
            out.asks.push_back(ask);
        }
        while let Some(down) = out.page() {
            let Ok(text) = serde_json::to_vec(&down) else { return };
            if !timeout(SLOW, sender.send(&text)).await.unwrap_or(false) {
                return;
            }
        }
        tokio::select! {
            Some(outcome) = outcomes.recv() => out.outcomes.push_back(outcome),
            ask = asks.recv() => match ask {
                Some(ask) => out.asks.push_back(ask),
                None => return,
            },
            _ = changed.changed() => changed.mark_changed(),
        }
    }
}

/// Whether a refusal stands: not if proxies of other replicas take what was refused. Those that are silent are not waited
/// for longer than [`CASE`]: one that is stuck must not make every refusal stand.
pub(crate) async fn decide(inner: &Inner, question: &Question) -> bool {
    let others = {
        let mut asked = inner.asked.lock();
        if !asked.has_followers() {
            return true;
        }
        asked.ask(question.clone());
        asked.listen()
    };
    let begun = std::time::Instant::now();
    let deadline = Instant::now() + CASE;
    let mut own = inner.server.acks(&question.fleet).map(|acks| acks.answers());
    let good = loop {
        others.take();
        if let Some(answers) = &mut own {
            answers.borrow_and_update();
        }
        let (sum, is_complete) = inner.sum(question, begun);
        let good = xds::decide(&sum).filter(|_| is_complete);
        if good.is_some() || Instant::now() >= deadline {
            break good.or_else(|| xds::judge_by_now(sum));
        }
        let own = async {
            let Some(answers) = &mut own else { return std::future::pending().await };
            if answers.changed().await.is_err() {
                std::future::pending().await
            }
        };
        tokio::select! {
            () = others.filled.notified() => {}
            () = own => {}
            () = until(Some(deadline.into())) => {}
        }
    };
    let mut asked = inner.asked.lock();
    asked.unlisten(&others);
    asked.forget(question);
    good != Some(true)
}
