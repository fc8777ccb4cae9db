//! The follower's side: a stream to the holder, opened again whenever it is lost.

use crate::{
    Inner,
    message::{Down, Question, Shared, Up},
    until,
};
use std::{
    collections::HashMap,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};
use xds::{Peer, Tallies};

/// How long to wait before the next try: at first, and at most.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// How long the holder may take to read.
const SLOW: Duration = Duration::from_secs(10);
/// How long answers gather before they are counted again.
const PACE: Duration = Duration::from_millis(20);

/// Follows the holder at that address for ever.
pub(crate) async fn follow(inner: &Inner, address: &str) {
    let mut wait = WAIT.0;
    loop {
        match xds::peer::connect(address, inner.tls.as_ref()).await {
            Ok(peer) => {
                info!(address, "connected to the replica that holds the lease");
                wait = WAIT.0;
                inner.linked.store(true, Ordering::Relaxed);
                converse(inner, peer).await;
                info!(address, "lost the replica that holds the lease; going on alone");
                inner.unlink();
            }
            Err(error) if wait == WAIT.0 => {
                warn!(
                    address,
                    error = &error as &dyn std::error::Error,
                    "no stream to the replica that holds the lease"
                );
            }
            Err(error) => debug!(address, error = &error as &dyn std::error::Error, "still no stream"),
        }
        sleep(wait).await;
        wait = (wait * 2).min(WAIT.1);
    }
}

/// What the holder was last told, and wants to know.
#[derive(Default)]
struct Told {
    holds: Shared,
    answers: HashMap<Question, Tallies>,
    questions: Vec<Question>,
    cases: Vec<Question>,
}

async fn converse(inner: &Inner, mut peer: Peer) {
    let mut told = Told::default();
    let mut changed = inner.changed.subscribe();
    let mut counted = Instant::now() - PACE;
    let mut wake = None;
    loop {
        changed.borrow_and_update();
        let mut up = Up::default();
        if counted + PACE <= Instant::now() {
            wake = count(inner, &mut told, &mut up);
            counted = Instant::now();
        }
        news(inner, &mut told, &mut up);
        if up != Up::default() && !say(&peer, &up).await {
            return;
        }
        tokio::select! {
            message = peer.next() => {
                let Some(message) = message else { return };
                match serde_json::from_slice::<Down>(&message) {
                    Ok(down) => hear(inner, &mut told, down),
                    Err(error) => return warn!(address = %peer.address, %error, "a replica is not understood"),
                }
                // Whoever asks wants to know at once.
                counted = Instant::now() - PACE;
            }
            _ = changed.changed() => {}
            () = inner.answers(&told.questions) => wake = Some(counted + PACE),
            () = until(wake) => {}
        }
    }
}

/// Counts what was asked for, and says what has changed; gives when something may without anybody answering.
fn count(inner: &Inner, told: &mut Told, up: &mut Up) -> Option<Instant> {
    let mut wake = None;
    for question in &told.questions {
        let (tallies, next) = inner.own(question);
        wake = wake.into_iter().chain(next).min();
        if told.answers.get(question) != Some(&tallies) {
            told.answers.insert(question.clone(), tallies.clone());
            up.answers.push((question.clone(), tallies));
        }
    }
    wake
}

/// What has changed besides.
fn news(inner: &Inner, told: &mut Told, up: &mut Up) {
    let holds = inner.state.lock().own.clone();
    if holds != told.holds {
        told.holds.clone_from(&holds);
        up.holds = Some(holds);
    }
    let pending = inner.pending.lock();
    up.cases = pending.keys().filter(|case| !told.cases.contains(case)).cloned().collect();
    told.cases = pending.keys().cloned().collect();
}

async fn say(peer: &Peer, up: &Up) -> bool {
    let Ok(text) = serde_json::to_vec(up) else { return false };
    timeout(SLOW, peer.send(&text)).await.unwrap_or(false)
}

fn hear(inner: &Inner, told: &mut Told, down: Down) {
    if let Some(holds) = down.holds {
        inner.update(|state| state.from_holder = holds);
    }
    if let Some(questions) = down.questions {
        told.answers.retain(|question, _| questions.binary_search(question).is_ok());
        told.questions = questions;
    }
    for (case, stands) in down.rulings {
        if let Some(waits) = inner.pending.lock().remove(&case) {
            let _ = waits.send(stands);
        }
    }
}
