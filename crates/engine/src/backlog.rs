//! Rows that wait because one change reached too many at once, so that smaller changes are computed before the rest of it.
//!
//! Rows may belong to a *partition* ([`Derived::partition`](crate::Derived::partition)): what must change together, in
//! whichever tables it is. While the [fan-out is limited](crate::Engine::limit_fan_out), one change of a row in a table that
//! [fans out](crate::Declared::fans_out) reaches so many partitions; all rows of the others wait here, keep their values, and
//! are no part of the batch, which ends without them. The owner of the engine [admits](crate::Engine::admit) them when it likes,
//! in the order in which they came; until then everything that reaches a partition that waits joins it, so no partition is ever
//! computed in part. One that a smaller change reaches meanwhile is admitted first. When all are admitted every row is what it
//! would be without a limit.
//!
//! What [sums up](crate::Declared::sums_up) many partitions would be computed with each of them. While partitions are admitted
//! such rows wait, too, behind all that waited before them.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

/// The partitions that wait.
#[derive(Default)]
pub(crate) struct Backlog {
    limit: Option<usize>,
    /// In which order they are admitted. It may name some that have been admitted since.
    queue: VecDeque<u64>,
    /// Their rows: table and slot.
    waiting: HashMap<u64, Vec<(u16, u32)>>,
    /// Whether the present change is limited.
    is_limited: bool,
    /// The partitions that the present change has reached.
    reached: HashSet<u64>,
    admitted: u64,
    /// What is computed now came from here.
    pub(crate) is_admitting: bool,
}

impl Backlog {
    pub(crate) fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// How many partitions wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many have been taken out.
    pub(crate) fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Another row changes, and tells all who depend on it.
    pub(crate) fn begin(&mut self, fans_out: bool) {
        self.is_limited = fans_out && self.limit.is_some();
        self.reached.clear();
    }

    /// Nothing can have to wait now.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_limited && !self.is_admitting
    }

    pub(crate) fn is_waiting(&self, partition: u64) -> bool {
        self.waiting.contains_key(&partition)
    }

    /// The present change reaches a partition: says whether that has to wait.
    pub(crate) fn reach(&mut self, partition: u64) -> bool {
        let limit = self.limit.unwrap_or(usize::MAX);
        let is_within = self.reached.contains(&partition) || self.reached.len() < limit;
        if is_within && !self.reached.insert(partition) {
            return self.is_waiting(partition);
        }
        if self.is_waiting(partition) {
            if is_within {
                self.queue.push_front(partition);
            }
            return true;
        }
        if is_within || !self.is_limited {
            return false;
        }
        self.put_last(partition);
        true
    }

    /// A partition waits behind all others, if it does not wait yet.
    pub(crate) fn put_last(&mut self, partition: u64) {
        self.waiting.entry(partition).or_insert_with(|| {
            self.queue.push_back(partition);
            Vec::new()
        });
    }

    /// A row waits with its partition.
    pub(crate) fn add(&mut self, partition: u64, table: u16, slot: u32) {
        self.put_last(partition);
        self.waiting.entry(partition).or_default().push((table, slot));
    }

    /// Takes the rows of so many partitions out.
    pub(crate) fn take(&mut self, count: usize) -> Vec<(u16, u32)> {
        let mut rows = Vec::new();
        let mut taken = 0;
        while taken < count
            && let Some(partition) = self.queue.pop_front()
        {
            if let Some(of_it) = self.waiting.remove(&partition) {
                rows.extend(of_it);
                taken += 1;
                self.admitted += 1;
            }
        }
        if self.waiting.is_empty() {
            self.queue.clear();
        }
        rows
    }
}
