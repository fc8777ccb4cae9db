//! How fast one client may ask: requests that no response called for are paid from a budget that fills up over time.

use std::time::Instant;

use crate::limits::Limits;

/// The budget of one stream.
pub(super) struct Pace {
    left: f64,
    at: Instant,
}

impl Pace {
    pub fn new(limits: &Limits, now: Instant) -> Self {
        Self { left: f64::from(limits.request_burst), at: now }
    }

    /// Pays for one request; `false` if there is nothing left to pay with.
    pub fn pay(&mut self, limits: &Limits, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * f64::from(limits.requests_per_second);
        self.left = (self.left + gained).min(f64::from(limits.request_burst));
        self.at = now;
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}
