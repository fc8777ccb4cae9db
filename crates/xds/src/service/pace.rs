//! How fast one client may ask: requests that no response called for are paid from a budget that fills up over time.

use std::time::{Duration, Instant};

/// The budget of one stream.
pub(super) struct Pace {
    per_second: f64,
    most: f64,
    left: f64,
    at: Instant,
}

impl Pace {
    /// A full budget: so many at once, and so many in a second in the long run.
    pub fn new(burst: u32, per_second: u32, now: Instant) -> Self {
        Self { per_second: per_second.into(), most: burst.into(), left: burst.into(), at: now }
    }

    /// Pays for one request; `false` if there is nothing left to pay with.
    pub fn pay(&mut self, now: Instant) -> bool {
        self.fill(now);
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }

    /// Pays for one request, with a debt if there is nothing left; says until when nobody else may ask.
    pub fn owe(&mut self, now: Instant) -> Option<Instant> {
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
        let mut pace = Pace::new(2, 10, start);
        assert_eq!([pace.pay(start), pace.pay(start), pace.pay(start)], [true, true, false]);
        assert!(pace.pay(start + Duration::from_millis(100)));
        assert!(!pace.pay(start + Duration::from_millis(150)));
    }

    #[test]
    fn a_debt_is_waited_for() {
        let start = Instant::now();
        let mut pace = Pace::new(1, 10, start);
        assert_eq!(pace.owe(start), None);
        assert_eq!(pace.owe(start), Some(start + Duration::from_millis(100)));
        assert_eq!(pace.owe(start + Duration::from_secs(1)), None);
    }
}
