//! Pauses between tries, and the one link that all tasks share.
//!
//! A pause grows from try to try and is jittered, so that many that failed together do not come back together. But when
//! the API server is back, kinds that catch up one after another would show a Service gone before the Ingress that no
//! longer points to it: so the first that gets through wakes all who wait for the link.

use crate::{Subject, cluster::Timing};
use parking_lot::Mutex;
use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use tracing::{info, warn};

/// Whether the API server can be reached.
pub struct Link {
    lost: Mutex<Option<Instant>>,
    /// Counts how often it was found again.
    found: watch::Sender<u64>,
}

impl Link {
    pub fn new() -> Self {
        Self { lost: Mutex::new(None), found: watch::Sender::new(0) }
    }

    /// What is said about it is said about this.
    pub fn subject() -> Subject {
        Subject::Source("the API server".into())
    }

    /// Notes that it cannot be reached; whether that is news.
    pub fn lost(&self, why: &str) -> bool {
        let mut lost = self.lost.lock();
        if lost.is_some() {
            return false;
        }
        *lost = Some(Instant::now());
        warn!(why, "the API server cannot be reached; what is known stays in force");
        true
    }

    /// Notes that it answers; whether that is news.
    pub fn found(&self) -> bool {
        let Some(since) = self.lost.lock().take() else { return false };
        info!(away = ?since.elapsed(), "the API server answers again");
        self.found.send_modify(|count| *count += 1);
        true
    }

    /// To be woken when it is found again after now.
    pub fn watch(&self) -> watch::Receiver<u64> {
        let mut found = self.found.subscribe();
        found.mark_unchanged();
        found
    }
}

/// The pauses of one task.
pub struct Patience {
    next: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Patience {
    /// Between two tries of what failed.
    pub fn after_failure(timing: &Timing) -> Self {
        Self { next: timing.shortest_pause, shortest: timing.shortest_pause, longest: timing.longest_pause }
    }

    /// Between two looks for what is not there.
    pub fn after_absence(timing: &Timing) -> Self {
        let shortest = timing.longest_pause.min(timing.absent_pause).max(timing.shortest_pause);
        Self { next: shortest, shortest, longest: timing.absent_pause }
    }

    /// It worked: the next pause is the shortest again.
    pub fn reset(&mut self) {
        self.next = self.shortest;
    }

    /// How long to wait now; at least as long as the server asked for, within reason.
    pub fn pause(&mut self, asked: Option<Duration>) -> Duration {
        let pause = jittered(self.next);
        self.next = self.longest.min(self.next * 2);
        match asked {
            Some(asked) => pause.max(asked.min(Duration::from_secs(60))),
            None => pause,
        }
    }
}

/// Give or take a half.
pub fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.5 + chance())
}

/// From 0 up to 1. The randomness of the standard library's hash maps is good enough to be apart from one another.
fn chance() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew() {
        let timing = Timing::default();
        let mut patience = Patience::after_failure(&timing);
        let pauses: Vec<_> = (0..20).map(|_| patience.pause(None)).collect();
        assert!(pauses[0] < Duration::from_millis(151), "{pauses:?}");
        assert!(pauses[19] >= timing.longest_pause / 2 && pauses[19] <= timing.longest_pause * 3 / 2, "{pauses:?}");
        assert!(pauses.windows(2).any(|pair| pair[0] > pair[1]), "{pauses:?}");
        assert_eq!(patience.pause(Some(Duration::from_secs(30))), Duration::from_secs(30));
        patience.reset();
        assert!(patience.pause(None) < Duration::from_millis(151));
    }

    #[tokio::test]
    async fn whoever_waits_for_the_link_is_woken_even_if_it_came_back_before() {
        let link = Link::new();
        assert!(!link.found());
        let mut waiting = link.watch();
        assert!(link.lost("refused") && !link.lost("refused"));
        assert!(link.found() && !link.found());
        tokio::time::timeout(Duration::from_secs(10), waiting.changed()).await.expect("the link is back").unwrap();
        assert!(!link.watch().has_changed().unwrap());
    }
}
