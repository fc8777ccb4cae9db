//! Limits the requests of one client that no response called for: a token bucket.

use std::time::{Duration, Instant};

/// The token bucket of one stream.
pub(super) struct RateLimiter {
    per_second: f64,
    most: f64,
    left: f64,
    at: Instant,
}

impl RateLimiter {
    /// A full bucket: a burst of so many, and so many a second in the long run.
    pub fn new(burst: u32, per_second: u32, now: Instant) -> Self {
        Self { per_second: per_second.into(), most: burst.into(), left: burst.into(), at: now }
    }

    /// Takes one token; `false` if there is none.
    pub fn try_take(&mut self, now: Instant) -> bool {
        self.fill(now);
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }

    /// Takes one token, on credit if there is none; gives until when no more requests may be read.
    pub fn take(&mut self, now: Instant) -> Option<Instant> {
        self.fill(now);
        self.left -= 1.0;
        (self.left < 0.0).then(|| now + Duration::from_secs_f64(-self.left / self.per_second.max(1.0)))
    }

    fn fill(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.left = (self.left + gained).min(self.most);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_fills_up() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(2, 10, start);
        assert_eq!([limiter.try_take(start), limiter.try_take(start), limiter.try_take(start)], [true, true, false]);
        assert!(limiter.try_take(start + Duration::from_millis(100)));
        assert!(!limiter.try_take(start + Duration::from_millis(150)));
    }

    #[test]
    fn a_debt_is_waited_for() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(1, 10, start);
        assert_eq!(limiter.take(start), None);
        assert_eq!(limiter.take(start), Some(start + Duration::from_millis(100)));
        assert_eq!(limiter.take(start + Duration::from_secs(1)), None);
    }
}
