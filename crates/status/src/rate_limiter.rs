//! Rate limit, backoff and queue of requests to the API server.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    time::{Duration, Instant},
};

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests a second.
    pub per_second: f64,
    /// Maximum burst.
    pub burst: u32,
}

/// A token bucket for a [`Rate`].
#[derive(Debug)]
pub(crate) struct RateLimiter {
    rate: Rate,
    left: f64,
    at: Instant,
}

impl RateLimiter {
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, left: rate.burst.max(1).into(), at: now }
    }

    /// When the next request may be sent.
    pub fn ready_at(&mut self, now: Instant) -> Instant {
        let most = f64::from(self.rate.burst.max(1));
        let per_second = self.rate.per_second.max(0.01);
        self.left = most.min(self.left + now.saturating_duration_since(self.at).as_secs_f64() * per_second);
        self.at = now;
        let missing = (1.0 - self.left).max(0.0);
        now + Duration::from_secs_f64(missing / per_second)
    }

    /// Counts a request.
    pub fn spend(&mut self) {
        self.left -= 1.0;
    }
}

/// Exponential backoff after a number of failures in a row.
pub(crate) fn pause(failures: u32, first: Duration, most: Duration) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => first.saturating_mul(1 << (failures - 1).min(20)).min(most),
    }
}

/// A queue that has each key once.
#[derive(Debug)]
pub(crate) struct Due<K> {
    at: HashMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Due<K> {
    fn default() -> Self {
        Self { at: HashMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Clone + Ord + Hash> Due<K> {
    /// Queues a key, or moves it forward; a key that is queued already keeps its place.
    pub fn put(&mut self, key: &K, at: Instant) {
        if let Some(before) = self.at.get(key) {
            if *before <= at {
                return;
            }
            self.order.remove(&(*before, key.clone()));
        }
        self.at.insert(key.clone(), at);
        self.order.insert((at, key.clone()));
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &K) {
        if let Some(at) = self.forget(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// Gives memory back, too: after a start everything may wait, and hardly anything ever again.
    fn forget(&mut self, key: &K) -> Option<Instant> {
        let at = self.at.remove(key);
        if self.at.len() < self.at.capacity() / 8 {
            self.at.shrink_to(self.at.capacity() / 4);
        }
        at
    }

    /// Takes the key that is due first, if it is due now.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.forget(&key);
        Some(key)
    }

    /// When the next key is due.
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.at.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_and_then_a_steady_pace() {
        let begin = Instant::now();
        let mut rate_limiter = RateLimiter::new(Rate { per_second: 10.0, burst: 2 }, begin);
        for _ in 0..2 {
            assert_eq!(rate_limiter.ready_at(begin), begin);
            rate_limiter.spend();
        }
        let next = rate_limiter.ready_at(begin);
        assert!((next - begin).abs_diff(Duration::from_millis(100)) < Duration::from_millis(1), "{:?}", next - begin);
        assert_eq!(rate_limiter.ready_at(next + Duration::from_millis(1)), next + Duration::from_millis(1));
        rate_limiter.spend();
        let later = begin + Duration::from_secs(60);
        assert_eq!(rate_limiter.ready_at(later), later);
        assert!(rate_limiter.left <= 2.0, "no more than the burst is saved up");
    }

    #[test]
    fn pauses_double() {
        let pause = |failures| pause(failures, Duration::from_secs(1), Duration::from_secs(300)).as_secs();
        assert_eq!([0, 1, 2, 3, 9, 10, 99].map(pause), [0, 1, 2, 4, 256, 300, 300]);
    }

    #[test]
    fn a_key_waits_once_for_its_moment() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut due = Due::default();
        due.put(&"a", after(5));
        due.put(&"b", after(1));
        due.put(&"a", after(2));
        due.put(&"b", after(3));
        assert_eq!((due.len(), due.next()), (2, Some(after(1))));
        assert_eq!(due.pop(begin), None);
        assert_eq!((due.pop(after(9)), due.pop(after(9)), due.pop(after(9))), (Some("b"), Some("a"), None));
        due.put(&"a", begin);
        due.remove(&"a");
        assert_eq!((due.len(), due.next()), (0, None));
    }

    #[test]
    fn a_queue_that_was_long_gives_memory_back() {
        let begin = Instant::now();
        let mut due = Due::default();
        (0..10_000).for_each(|key| due.put(&key, begin));
        assert!(due.at.capacity() >= 10_000);
        (0..5_000).for_each(|key| due.remove(&key));
        while due.pop(begin).is_some() {}
        assert!(due.at.capacity() < 100, "{}", due.at.capacity());
    }
}
