//! The holder's side: one follower's stream, and the cases that it decides for all.

use crate::{
    Inner, Place,
    message::{Down, Question, Shared, Up},
    until,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tracing::{info, warn};
use xds::Peer;

/// How long a follower may take to read.
const SLOW: Duration = Duration::from_secs(10);
/// How long a case may take: then it is decided with what is known.
const CASE: Duration = Duration::from_millis(500);

/// What a follower was last told.
#[derive(Default)]
struct Told {
    holds: Shared,
    questions: Vec<Question>,
}

/// Talks with one follower until it goes, or this replica no longer holds the lease.
pub(crate) async fn attend(inner: Arc<Inner>, mut peer: Peer) {
    let id = inner.id();
    info!(address = %peer.address, "a replica has connected");
    inner.update(|state| _ = state.followers.insert(id, Default::default()));
    converse(&inner, &mut peer, id).await;
    inner.update(|state| _ = state.followers.remove(&id));
    info!(address = %peer.address, "a replica has gone");
}

async fn converse(inner: &Arc<Inner>, peer: &mut Peer, id: u64) {
    let (decided, mut rulings) = mpsc::channel::<(Question, bool)>(64);
    let (mut changed, mut place) = (inner.changed.subscribe(), inner.place.subscribe());
    let mut told = Told::default();
    let mut down = Down::default();
    loop {
        changed.borrow_and_update();
        if matches!(*place.borrow_and_update(), Place::Follower(_)) {
            return;
        }
        news(inner, id, &mut told, &mut down);
        let something = down != Down::default();
        if something && !say(peer, &std::mem::take(&mut down)).await {
            return;
        }
        tokio::select! {
            message = peer.next() => {
                let Some(message) = message else { return };
                match serde_json::from_slice::<Up>(&message) {
                    Ok(up) => hear(inner, id, up, &decided),
                    Err(error) => return warn!(address = %peer.address, %error, "a replica is not understood"),
                }
            }
            Some(ruling) = rulings.recv() => down.rulings.push(ruling),
            _ = changed.changed() => {}
            _ = place.changed() => {}
        }
    }
}

/// What has changed since the follower was last told.
fn news(inner: &Inner, id: u64, told: &mut Told, down: &mut Down) {
    let state = inner.state.lock();
    let (holds, questions) = (state.others(Some(id)), state.questions());
    drop(state);
    if holds != told.holds {
        told.holds.clone_from(&holds);
        down.holds = Some(holds);
    }
    if questions != told.questions {
        told.questions.clone_from(&questions);
        down.questions = Some(questions);
    }
}

async fn say(peer: &Peer, down: &Down) -> bool {
    let Ok(text) = serde_json::to_vec(down) else { return false };
    timeout(SLOW, peer.send(&text)).await.unwrap_or(false)
}

fn hear(inner: &Arc<Inner>, id: u64, up: Up, decided: &mpsc::Sender<(Question, bool)>) {
    let Up { holds, answers, cases } = up;
    if holds.is_some() || !answers.is_empty() {
        inner.update(|state| {
            let wanted = state.questions();
            let Some(follower) = state.followers.get_mut(&id) else { return };
            if let Some(holds) = holds {
                follower.holds = holds;
            }
            follower.answers.extend(answers);
            follower.answers.retain(|question, _| wanted.binary_search(question).is_ok());
        });
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

/// Whether a refusal stands: not if proxies of other replicas take what was refused.
pub(crate) async fn decide(inner: &Inner, question: &Question) -> bool {
    if inner.state.lock().followers.is_empty() {
        return true;
    }
    let mut changed = inner.changed.subscribe();
    inner.update(|state| *state.cases.entry(question.clone()).or_default() += 1);
    let deadline = Instant::now() + CASE;
    let good = loop {
        changed.borrow_and_update();
        let (sum, complete) = inner.sum(question);
        let good = xds::judge(&sum).filter(|_| complete);
        if good.is_some() || Instant::now() >= deadline {
            break good.or_else(|| xds::judge(&sum));
        }
        tokio::select! {
            _ = changed.changed() => {}
            () = inner.answers(std::slice::from_ref(question)) => {}
            () = until(Some(deadline.into())) => {}
        }
    };
    inner.update(|state| {
        if let Some(count) = state.cases.get_mut(question) {
            *count -= 1;
            if *count == 0 {
                state.cases.remove(question);
            }
        }
    });
    good != Some(true)
}
