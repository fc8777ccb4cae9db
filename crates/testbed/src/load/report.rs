//! What became of a load.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

/// How many failures a report shows in words; it holds all of them.
const SHOWN: usize = 20;

#[derive(Default)]
pub(super) struct RequestCounts {
    pub sent: u64,
    pub retried: u64,
    pub failed: Vec<Failed>,
    pub latencies: Vec<Duration>,
    /// When the last good answer came, and the longest time without one.
    pub last: Option<Instant>,
    pub gap: Duration,
}

impl RequestCounts {
    /// Books a good answer to a request that was due then.
    pub fn good(&mut self, due: Instant) {
        let now = Instant::now();
        self.latencies.push(now.duration_since(due));
        self.gap = self.gap.max(self.last.map_or(Duration::ZERO, |last| now.duration_since(last)));
        self.last = Some(now);
    }
}

/// What became of a load; its `Display` is for people.
#[derive(Clone, Debug)]
pub struct Report {
    /// Requests that were due, whatever became of them.
    pub sent: u64,
    /// Those that did not end as expected, in the order of their ends.
    pub failed: Vec<Failed>,
    /// Tries that were repeated because they had done nothing: the connection was closing.
    pub retried: u64,
    /// Connections opened.
    pub connections: u64,
    /// Half of the good answers came within this time.
    pub p50: Duration,
    /// 90 of 100 did.
    pub p90: Duration,
    /// 99 of 100 did.
    pub p99: Duration,
    /// All did.
    pub max: Duration,
    /// The longest time without a good answer.
    pub gap: Duration,
    /// How long the load lasted.
    pub elapsed: Duration,
}

/// One request that did not end as expected.
#[derive(Clone, Debug)]
pub struct Failed {
    /// When it was due, from the start of the load.
    pub at: Duration,
    /// How long it took to fail.
    pub took: Duration,
    /// The status, if there was one.
    pub status: Option<StatusCode>,
    /// What went wrong.
    pub what: String,
}

impl RequestCounts {
    pub fn report(mut self, elapsed: Duration, connections: u64) -> Report {
        self.latencies.sort_unstable();
        let percentile = |p: f64| {
            let last = self.latencies.len().saturating_sub(1);
            self.latencies.get((last as f64 * p).round() as usize).copied().unwrap_or_default()
        };
        Report {
            sent: self.sent,
            retried: self.retried,
            connections,
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            max: percentile(1.0),
            gap: self.gap,
            elapsed,
            failed: self.failed,
        }
    }
}

impl Report {
    /// Panics with the whole story unless requests were sent and every one was answered as expected.
    pub fn assert_nothing_lost(&self) {
        assert!(self.sent > 0 && self.failed.is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests in {:.1?}, {} failed, {} retried, {} connections; p50 {:.1?}, p90 {:.1?}, p99 {:.1?}, max {:.1?}",
            self.sent,
            self.elapsed,
            self.failed.len(),
            self.retried,
            self.connections,
            self.p50,
            self.p90,
            self.p99,
            self.max
        )?;
        for failed in self.failed.iter().take(SHOWN) {
            write!(f, "\n  at {:.3?}, after {:.1?}: {}", failed.at, failed.took, failed.what)?;
        }
        match self.failed.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
