//! The leader's side: the stream of one follower, and decisions on rejections for all replicas.

use crate::{
    AckReports, Inner, Role,
    message::{self, FollowerMessage, LeaderMessage, QuarantineChange, Question, Shared},
    page::Page,
    questions::QuestionChange,
    until,
};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time::timeout};
use tracing::{info, warn};
use xds::{Peer, PeerReceiver, PeerSender};

/// How long a follower may take to read a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a decision may take: then it is made with what is known.
const DECISION_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves one follower until it disconnects, or this replica loses the lease.
pub(crate) async fn serve_follower(inner: Arc<Inner>, peer: Peer) {
    let id = inner.id();
    let Peer { address, receiver, sender } = peer;
    info!(peer = %address, "replica connected");
    inner.update(|withheld| _ = withheld.followers.insert(id, Shared::default()));
    inner.certificates.lock().followers.insert(id, (address, None));
    let asks = inner.asked.lock().join(id);
    let (decided, outcomes) = mpsc::channel(64);
    tokio::select! {
        () = receive_messages(&inner, id, address, receiver, decided) => {}
        () = send_messages(&inner, id, sender, asks, outcomes) => {}
        () = lease_lost(&inner) => {}
    }
    inner.asked.lock().leave(id);
    inner.certificates.lock().followers.remove(&id);
    inner.update(|withheld| _ = withheld.followers.remove(&id));
    info!(peer = %address, "replica disconnected");
}

/// Done when another replica holds the lease.
async fn lease_lost(inner: &Inner) {
    let mut role = inner.role.subscribe();
    if role.wait_for(|role| matches!(role, Role::Follower(_))).await.is_err() {
        std::future::pending().await
    }
}

async fn receive_messages(
    inner: &Arc<Inner>,
    id: u64,
    address: SocketAddr,
    mut receiver: PeerReceiver,
    decided: mpsc::Sender<(Question, bool)>,
) {
    let mut reader = message::Reader::new(address);
    while let Some(message) = receiver.next().await {
        match reader.read(&message) {
            Ok(message) => on_message(inner, id, message, &decided),
            Err(error) => return warn!(peer = %address, %error, "invalid message from a replica"),
        }
    }
}

fn on_message(inner: &Arc<Inner>, id: u64, message: FollowerMessage, decided: &mpsc::Sender<(Question, bool)>) {
    let FollowerMessage { quarantine_changes, answers, refusals, rejections, certificates } = message;
    if !quarantine_changes.is_empty() {
        inner.update(|withheld| {
            if let Some(follower) = withheld.followers.get_mut(&id) {
                follower.apply(quarantine_changes);
            }
        });
    }
    if !answers.is_empty() || !refusals.is_empty() {
        inner.asked.lock().answer(id, answers, refusals);
    }
    if let (Some(holders), Some((_, reported))) = (certificates, inner.certificates.lock().followers.get_mut(&id)) {
        *reported = Some(holders);
    }
    for question in rejections {
        let (inner, decided) = (inner.clone(), decided.clone());
        tokio::spawn(async move {
            let stands = decide(&inner, &question).await;
            // A follower that has disconnected needs no decision.
            let _ = decided.send((question, stands)).await;
        });
    }
}

/// What is yet to be sent to a follower.
#[derive(Default)]
struct Outbox {
    outcomes: VecDeque<(Question, bool)>,
    quarantine_changes: VecDeque<QuarantineChange>,
    asks: VecDeque<QuestionChange>,
    synced: bool,
}

impl Outbox {
    /// The next message, if there is anything to send. The first is sent even if it is empty.
    fn page(&mut self) -> Option<LeaderMessage> {
        let mut page = Page::new();
        let (outcomes, quarantine_changes) = (page.fill(&mut self.outcomes), page.fill(&mut self.quarantine_changes));
        let asks = page.fill(&mut self.asks);
        let is_all = self.outcomes.is_empty() && self.quarantine_changes.is_empty() && self.asks.is_empty();
        let synced = is_all && !self.synced;
        self.synced |= is_all;
        let message = LeaderMessage { quarantine_changes, asks, outcomes, synced };
        (message != LeaderMessage::default()).then_some(message)
    }
}

async fn send_messages(
    inner: &Inner,
    id: u64,
    sender: PeerSender,
    mut asks: mpsc::UnboundedReceiver<QuestionChange>,
    mut outcomes: mpsc::Receiver<(Question, bool)>,
) {
    let mut changed = inner.changed.subscribe();
    let (mut sent, mut out) = (Shared::default(), Outbox::default());
    changed.mark_changed();
    loop {
        if changed.borrow_and_update().has_changed() {
            let holds = inner.withheld.lock().others(Some(id));
            out.quarantine_changes.extend(sent.changes(&holds));
            sent = holds;
        }
        while let Ok(ask) = asks.try_recv() {
            out.asks.push_back(ask);
        }
        while let Some(message) = out.page() {
            let Ok(text) = serde_json::to_vec(&message) else { return };
            if !timeout(SEND_TIMEOUT, sender.send(&text)).await.unwrap_or(false) {
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

/// Whether a rejection stands: not if proxies of other replicas accept the resource. Those that do not answer are not waited
/// for longer than [`DECISION_TIMEOUT`]: one that is stuck must not make every rejection stand.
pub(crate) async fn decide(inner: &Arc<Inner>, question: &Question) -> bool {
    if !inner.asked.lock().has_followers() {
        return true;
    }
    let version = question.resource();
    let mut reports = AckReports::new(inner.clone(), question.fleet.clone());
    reports.ask(version.clone());
    let deadline = Instant::now() + DECISION_TIMEOUT;
    loop {
        let late = tokio::select! {
            () = reports.turn() => false,
            () = until(Some(deadline)) => true,
        };
        let (sum, waits_until) = reports.sum(&version, Instant::now());
        let accepted = if late { xds::decide_now(sum) } else { xds::decide(&sum).filter(|_| waits_until.is_none()) };
        if late || accepted.is_some() {
            return accepted != Some(true);
        }
    }
}
