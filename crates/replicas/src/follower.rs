//! The follower's side: a stream to the leader, reopened with backoff whenever it ends.

use crate::{
    Inner,
    message::{self, CertificateHolders, FollowerMessage, LeaderMessage, QuarantineChange, Question, Shared},
    page::Page,
};
use futures::{FutureExt, future::select_all};
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
use xds::{AckWatch, Fleet, FleetAckCounts, Nack, Peer, PeerSender, Version};

/// Backoff between connection attempts: shortest and longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// How long the leader may take to read a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long counts are collected before they are sent.
const COUNTS_INTERVAL: Duration = Duration::from_millis(20);

/// Follows the leader at that address until dropped.
pub(crate) async fn follow(inner: &Inner, address: &str) {
    let mut wait = BACKOFF.0;
    loop {
        match xds::peer::connect(address, inner.tls.as_ref()).await {
            Ok(peer) => {
                info!(peer = address, "connected to the leader");
                inner.is_connected.store(true, Ordering::Relaxed);
                // The backoff is reset only by a leader that sent its whole state.
                if exchange(inner, peer).await {
                    wait = BACKOFF.0;
                }
                info!(peer = address, retry_in = ?wait, "lost the connection to the leader; deciding without the other replicas");
                inner.on_disconnect();
            }
            Err(error) if wait == BACKOFF.0 => {
                warn!(
                    peer = address,
                    error = &error as &dyn std::error::Error,
                    "failed to connect to the leader; retrying"
                );
            }
            Err(error) => {
                debug!(
                    peer = address,
                    error = &error as &dyn std::error::Error,
                    "failed to connect to the leader again"
                )
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(BACKOFF.1);
    }
}

/// Exchanges messages until the stream ends; says whether the leader sent its whole state.
async fn exchange(inner: &Inner, peer: Peer) -> bool {
    let Peer { address, mut receiver, sender } = peer;
    let (asks, asked) = mpsc::unbounded_channel();
    let mut synced = false;
    let listening = async {
        let mut reader = message::Reader::new(address);
        while let Some(message) = receiver.next().await {
            match reader.read::<LeaderMessage>(&message) {
                Ok(message) => {
                    synced |= message.synced;
                    on_message(inner, message, &asks);
                }
                Err(error) => return warn!(peer = %address, %error, "invalid message from the leader"),
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = send_messages(inner, sender, asked) => {}
    }
    synced
}

fn on_message(inner: &Inner, message: LeaderMessage, asks: &mpsc::UnboundedSender<Vec<(Question, bool)>>) {
    let LeaderMessage { quarantine_changes, asks: asked, outcomes, synced: _ } = message;
    if !quarantine_changes.is_empty() {
        inner.update(|withheld| withheld.from_leader.apply(quarantine_changes));
    }
    if !asked.is_empty() {
        // The receiver ends together with this task.
        let _ = asks.send(asked);
    }
    for (question, stands) in outcomes {
        inner.pending.lock().decide(&question, stands);
    }
}

/// What is yet to be sent to the leader.
#[derive(Default)]
struct Outbox {
    rejections: VecDeque<Question>,
    quarantine_changes: VecDeque<QuarantineChange>,
    answers: VecDeque<(Question, FleetAckCounts)>,
    refusals: VecDeque<(Question, Option<Nack>)>,
    certificates: Option<Vec<CertificateHolders>>,
}

impl Outbox {
    /// The next message, if there is anything to send.
    fn page(&mut self) -> Option<FollowerMessage> {
        let mut page = Page::new();
        let (rejections, quarantine_changes) =
            (page.fill(&mut self.rejections), page.fill(&mut self.quarantine_changes));
        // Before the counts: whoever counts a refusal knows whose it is.
        let refusals = page.fill(&mut self.refusals);
        let answers = page.fill(&mut self.answers);
        let certificates = page.take(&mut self.certificates);
        let message = FollowerMessage { quarantine_changes, answers, refusals, rejections, certificates };
        (message != FollowerMessage::default()).then_some(message)
    }
}

/// What was sent to the leader, and what it asks about.
#[derive(Default)]
struct Sent {
    holds: Shared,
    watches: BTreeMap<Fleet, AckWatch>,
    answers: HashMap<Question, FleetAckCounts>,
    refusals: HashMap<Question, Nack>,
    certificates: Option<Vec<CertificateHolders>>,
}

/// What is new about a fleet that the leader asks about.
enum News {
    /// Counts that may have changed.
    Counts(Vec<(Version, FleetAckCounts)>),
    /// It is gone.
    Gone,
}

async fn send_messages(inner: &Inner, sender: PeerSender, mut asked: mpsc::UnboundedReceiver<Vec<(Question, bool)>>) {
    let mut changed = inner.changed.subscribe();
    let (mut sent, mut out) = (Sent::default(), Outbox::default());
    let mut next_count = Instant::now();
    changed.mark_changed();
    loop {
        if changed.borrow_and_update().has_changed() {
            sent.queue_changes(inner, &mut out);
        }
        while let Some(message) = out.page() {
            let Ok(text) = serde_json::to_vec(&message) else { return };
            if !timeout(SEND_TIMEOUT, sender.send(&text)).await.unwrap_or(false) {
                return;
            }
        }
        tokio::select! {
            asks = asked.recv() => match asks {
                Some(asks) => {
                    sent.take(inner, asks);
                    // A new question is answered at once.
                    next_count = Instant::now();
                }
                None => return,
            },
            _ = changed.changed() => changed.mark_changed(),
            news = sent.news(next_count) => {
                for (fleet, news) in news {
                    match news {
                        News::Counts(counts) => sent.answer(&fleet, counts, &mut out),
                        News::Gone => sent.renew(inner, &fleet),
                    }
                }
                next_count = Instant::now() + COUNTS_INTERVAL;
            }
        }
    }
}

impl Sent {
    /// Queues what has changed besides the counts.
    fn queue_changes(&mut self, inner: &Inner, out: &mut Outbox) {
        let holds = inner.withheld.lock().own.clone();
        out.quarantine_changes.extend(self.holds.changes(&holds));
        self.holds = holds;
        out.rejections.extend(inner.pending.lock().unsent());
        let certificates = inner.certificates.lock().own.clone();
        if self.certificates != certificates {
            self.certificates.clone_from(&certificates);
            out.certificates = certificates;
        }
    }

    /// Takes questions that are asked from now on, or no longer.
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
                self.refusals.remove(&question);
            }
        }
    }

    /// What is new about fleets, not before that time: of each that has news, so that none that changes all the time keeps others waiting.
    async fn news(&mut self, not_before: Instant) -> Vec<(Fleet, News)> {
        sleep_until(not_before.into()).await;
        let next = self.watches.iter_mut().map(|(fleet, watch)| {
            let gone = watch.gone();
            Box::pin(async move {
                let news = tokio::select! {
                    () = gone.cancelled() => News::Gone,
                    counts = watch.next() => News::Counts(counts),
                };
                (fleet.clone(), news)
            })
        });
        let next: Vec<_> = next.collect();
        if next.is_empty() {
            return std::future::pending().await;
        }
        let (first, _, others) = select_all(next).await;
        let others = others.into_iter().filter_map(FutureExt::now_or_never);
        std::iter::once(first).chain(others).collect()
    }

    /// A fleet is gone: what is asked about it is asked about the one of its name that comes later.
    fn renew(&mut self, inner: &Inner, fleet: &Fleet) {
        let asked = self.watches.remove(fleet).map(|watch| watch.watched()).unwrap_or_default();
        if asked.is_empty() {
            return;
        }
        let mut watch = AckWatch::new(&inner.server, fleet);
        asked.into_iter().for_each(|version| watch.watch(version, Instant::now()));
        self.watches.insert(fleet.clone(), watch);
    }

    /// Queues the counts that differ from those sent before.
    fn answer(&mut self, fleet: &Fleet, counts: Vec<(Version, FleetAckCounts)>, out: &mut Outbox) {
        for (version, counts) in counts {
            let question = Question::new(fleet, &version);
            let refusal = self.watches.get(fleet).and_then(|watch| watch.refusal(&version));
            if self.refusals.get(&question) != refusal.as_ref() {
                match &refusal {
                    Some(refusal) => _ = self.refusals.insert(question.clone(), refusal.clone()),
                    None => _ = self.refusals.remove(&question),
                }
                out.refusals.push_back((question.clone(), refusal));
            }
            if self.answers.get(&question) != Some(&counts) {
                self.answers.insert(question.clone(), counts.clone());
                out.answers.push_back((question, counts));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{holders::bounded, page::PAGE};
    use xds::Kind;

    #[test]
    fn certificates_wait_for_a_message_that_they_fit_into() {
        const ANSWERS: usize = 4_000;
        let answer = |at: usize| {
            let name = format!("cluster-{at}").into();
            (Question { fleet: Fleet::Shared, kind: Kind::Cluster, name, version: u64::MAX }, FleetAckCounts::default())
        };
        let proxies = |at: i64| {
            let names = vec![format!("envoy-{at}")];
            CertificateHolders { names, count: 1, is_proxy: true, leaf: Some(at), ..CertificateHolders::default() }
        };
        let reported = bounded((0..5_000).map(proxies).collect());
        let mut out = Outbox {
            answers: (0..ANSWERS).map(answer).collect(),
            certificates: Some(reported.clone()),
            ..Outbox::default()
        };
        let (mut answers, mut certificates) = (0, None);
        while let Some(message) = out.page() {
            let bytes = serde_json::to_vec(&message).map_or(0, |json| json.len());
            assert!(bytes < PAGE + 1_000, "{bytes} bytes");
            answers += message.answers.len();
            certificates = certificates.or(message.certificates);
        }
        assert_eq!((answers, certificates), (ANSWERS, Some(reported)));
    }
}
