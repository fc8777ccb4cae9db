//! How patient the source is. There are no timers in the way of a change: all of these are for when something is wrong.

use std::time::Duration;

/// Pauses and limits.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The first pause after a failure. Each further one is twice as long, give or take a half.
    pub shortest_pause: Duration,
    /// The longest pause. Short, because the first task that gets through wakes all others: this is how long an API
    /// server that is back may wait for us.
    pub longest_pause: Duration,
    /// The longest pause before a kind that is not there is looked for again.
    pub absent_pause: Duration,
    /// How long a kind that was there must be away before what was read of it is told as gone.
    pub absent_after: Duration,
    /// After how long "there is no such kind" is believed of an API server that does not call itself ready.
    pub doubt: Duration,
    /// How long a list of one page, or one object, may take.
    pub answer: Duration,
    /// How long a watch may be silent. The API server sends a bookmark about every minute.
    pub silence: Duration,
    /// How long a watch is asked to last.
    pub watch: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            shortest_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(4),
            absent_pause: Duration::from_secs(15),
            absent_after: Duration::from_secs(60),
            doubt: Duration::from_secs(20),
            answer: Duration::from_secs(60),
            silence: Duration::from_secs(100),
            watch: Duration::from_secs(300),
        }
    }
}
