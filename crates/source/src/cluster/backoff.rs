//! Pauses between tries, and the one connection that all tasks share.
//!
//! A pause grows from try to try and is jittered, so that many that failed together do not come back together. But when
//! the API server is back, kinds that catch up one after another would show a Service gone before the object that no
//! longer points to it: so the first that gets through wakes all who wait for the connection.

use crate::{
    Problem, Subject,
    cluster::{Connection, Timing},
};
use model::Code;
use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::watch;

/// Whether the API server can be reached, as far as this source knows.
pub struct ApiConnection {
    is_lost: AtomicBool,
    /// Where that is told to people.
    pub connection: Connection,
    /// Counts how often it was found again.
    found: watch::Sender<u64>,
}

impl ApiConnection {
    pub fn new(connection: Connection) -> Self {
        Self { is_lost: AtomicBool::new(false), connection, found: watch::Sender::new(0) }
    }

    /// What is said about it is said about this.
    pub fn subject() -> Subject {
        Connection::subject()
    }

    /// Notes that it cannot be reached; what there is to say if that is news.
    pub fn lost(&self, why: &str) -> Option<Problem> {
        self.connection.failed(why);
        let is_news = !self.is_lost.swap(true, Ordering::SeqCst);
        let address = self.connection.address();
        let text = || format!("{address} cannot be reached; the last known configuration stays in effect");
        is_news.then(|| Problem::new(Code::ApiServerFailed, text()))
    }

    /// Notes that it answers; whether that is news.
    pub fn found(&self) -> bool {
        self.connection.answered();
        let is_news = self.is_lost.swap(false, Ordering::SeqCst);
        if is_news {
            self.found.send_modify(|count| *count += 1);
        }
        is_news
    }

    /// To be woken when it is found again after now.
    pub fn watch(&self) -> watch::Receiver<u64> {
        let mut found = self.found.subscribe();
        found.mark_unchanged();
        found
    }
}

/// The pauses of one task.
pub struct Backoff {
    next: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Backoff {
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
        let mut backoff = Backoff::after_failure(&timing);
        let pauses: Vec<_> = (0..20).map(|_| backoff.pause(None)).collect();
        assert!(pauses[0] < Duration::from_millis(151), "{pauses:?}");
        assert!(pauses[19] >= timing.longest_pause / 2 && pauses[19] <= timing.longest_pause * 3 / 2, "{pauses:?}");
        assert!(pauses.windows(2).any(|pair| pair[0] > pair[1]), "{pauses:?}");
        assert_eq!(backoff.pause(Some(Duration::from_secs(30))), Duration::from_secs(30));
        backoff.reset();
        assert!(backoff.pause(None) < Duration::from_millis(151));
    }

    #[tokio::test]
    async fn whoever_waits_for_the_link_is_woken_even_if_it_came_back_before() {
        let connection = ApiConnection::new(Connection::default());
        assert!(!connection.found());
        let mut waiting = connection.watch();
        assert!(connection.lost("refused").is_some() && connection.lost("refused").is_none());
        assert!(connection.found() && !connection.found());
        tokio::time::timeout(Duration::from_secs(10), waiting.changed())
            .await
            .expect("the connection is back")
            .unwrap();
        assert!(!connection.watch().has_changed().unwrap());
    }
}
