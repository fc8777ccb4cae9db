//! What the engine counts: for tests that assert how little was done, for metrics and for debug pages.

use std::time::Duration;

/// The figures of one table. Events count up from the start; sizes are of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableCounters {
    /// The table's name.
    pub name: &'static str,
    /// Rows that have a value.
    pub rows: usize,
    /// Keys that are known: rows, and keys that were missed or claimed and have no value.
    pub keys: usize,
    /// Index keys that are known, over all indexes of the table.
    pub index_keys: usize,
    /// Dependency records of the table's rows.
    pub reads: usize,
    /// Rows whose computation panicked: they hold on to a last good value, or failed without one.
    pub failed: usize,
    /// Rows whose computation depends on something that is not known yet.
    pub pending: usize,
    /// How often a row ceased to be pending.
    pub resolved: u64,
    /// Rows that are computed on another thread, or wait for that.
    pub offloaded: usize,
    /// How often a computation on another thread was finished.
    pub jobs: u64,
    /// How often a row was computed (or, in an input table, set).
    pub computed: u64,
    /// How often the result was equal to what was there, and nothing further happened.
    pub unchanged: u64,
    /// How often a computation panicked.
    pub panics: u64,
}

/// The figures of one batch: from the first change of an input to the moment nothing is left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batch {
    /// Input rows that changed.
    pub changes: u64,
    /// Rows that were computed.
    pub computed: u64,
    /// Calls of `run` and `drain_lane` that had something to do.
    pub slices: u64,
    /// The time spent in them.
    pub busy: Duration,
}
