//! How backends are probed, and how new ones are eased in.

use crate::{HeaderValue, route::Path};
use std::time::Duration;

/// How backends are probed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HealthCheck {
    /// What is tried.
    pub probe: Probe,
    /// The time between probes; a second at least.
    pub interval: Duration,
    /// How long an answer may take; not zero.
    pub timeout: Duration,
    /// Failures after which a backend is not used; not zero.
    pub unhealthy: u32,
    /// Successes after which it is used again; not zero.
    pub healthy: u32,
}

/// What is tried to see whether a backend lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// A request.
    Http {
        /// The path that is asked for.
        path: Path,
        /// The host that is asked for.
        host: HeaderValue,
        /// The statuses that are good, each from the first to before the second, from 100 to 600; 200 alone where there is
        /// none.
        statuses: Vec<(u16, u16)>,
    },
    /// A connection.
    Tcp,
}

/// How new endpoints are eased in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlowStart {
    /// For how long; not zero.
    pub window: Duration,
    /// How fast.
    pub aggression: Aggression,
    /// The share to begin with, in a hundred; 0 to 100.
    pub least_percent: u32,
}

/// How fast something new is eased in: 1 in even steps, above that sooner. Always above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aggression(u64);

impl Aggression {
    /// Reads a number above 0.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let value: f64 = text.parse().ok().filter(|_| digits)?;
        (value.is_finite() && value > 0.0).then(|| Self(value.to_bits()))
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}
