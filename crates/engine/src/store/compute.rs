//! What happens to a derived row whose turn it is: compute, record what was read, cut off or tell on.
//!
//! A panic costs its row only. The reads up to the panic are recorded like any other, so that a change of what led to it
//! tries again; the value stays the last good one, or becomes what the table says of a failed row. A computation that is
//! pending leaves the last good value in place in the same way.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Differences, Store, is_same};
use crate::erased::{Later, Mode, Offloads, Step, TablePositions, Tables};
use crate::node::{Node, ROWS};
use crate::panicked::{Cause, StaleRow, message_of};
use crate::reads::{Read, Reader, Reads, Record};
use crate::table::{Derived, Table};

/// What a row keeps while it is pending.
type Keep<T, V> = fn(&T, &Arc<V>, Option<V>) -> Arc<V>;

/// The computation of a derived table, without the trait bound: a [`Store`] is also made for inputs.
pub(super) struct Rule<T: Table> {
    table: Arc<T>,
    compute: fn(&T, &T::Key, &mut Reads<'_>) -> Option<T::Value>,
    on_panic: fn(&T, &T::Key, &str) -> Option<T::Value>,
    while_pending: Keep<T, <T as Table>::Value>,
    is_large: fn(&T, &T::Key, &mut Reads<'_>) -> bool,
    partition: fn(&T, &T::Key) -> Option<u64>,
}

/// What a computation gave, or what it panicked with.
pub(super) type Evaluated<V> = Result<Option<Arc<V>>, Box<dyn Any + Send>>;

impl<T: Derived> Rule<T> {
    pub(super) fn new(table: T) -> Self {
        Self {
            table: Arc::new(table),
            compute: T::compute,
            on_panic: T::on_panic,
            while_pending: T::while_pending,
            is_large: T::is_large,
            partition: T::partition,
        }
    }
}

impl<T: Table> Clone for Rule<T> {
    fn clone(&self) -> Self {
        Self { table: Arc::clone(&self.table), ..*self }
    }
}

impl<T: Table> Rule<T> {
    /// The value of a row, or the panic that its computation ended with. An `old` value that is equal is kept.
    pub(super) fn evaluate(
        &self,
        key: &T::Key,
        old: Option<&Arc<T::Value>>,
        good: impl FnOnce() -> Option<Arc<T::Value>>,
        reads: &mut Reads<'_>,
    ) -> Evaluated<T::Value> {
        catch_unwind(AssertUnwindSafe(|| {
            let computed = (self.compute)(&self.table, key, reads);
            if reads.pending()
                && let Some(good) = good()
            {
                let kept = (self.while_pending)(&self.table, &good, computed);
                return Some(old.filter(|old| kept == **old).cloned().unwrap_or(kept));
            }
            match (computed, old) {
                (Some(new), Some(old)) if new == **old => Some(Arc::clone(old)),
                (new, _) => new.map(Arc::new),
            }
        }))
    }

    pub(super) fn partition(&self, key: &T::Key) -> Option<u64> {
        catch_unwind(AssertUnwindSafe(|| (self.partition)(&self.table, key))).unwrap_or_default()
    }

    fn is_large(&self, key: &T::Key, reads: &mut Reads<'_>) -> bool {
        // Whoever cannot even tell is computed here, where a panic has its place.
        catch_unwind(AssertUnwindSafe(|| (self.is_large)(&self.table, key, reads))).unwrap_or_default()
    }
}

impl<T: Table> Store<T> {
    /// Computes or offloads the next row that waits; when there is none, and not draining, removes one that left.
    pub(super) fn next(
        &mut self,
        earlier: &mut Tables,
        later: &mut Later<'_>,
        positions: &TablePositions,
        mode: Mode,
    ) -> Step {
        let draining = mode.drains;
        let next = match self.dirty.pop_front() {
            Some(slot) => Some(slot),
            None if draining => None,
            None => self.leaving.first().copied(),
        };
        let Some(slot) = next else { return Step::Nothing };
        self.rows.get_mut(slot).dirty = false;
        if self.defer_with_partition(slot, later.backlog) {
            return Step::Deferred;
        }
        let row = self.rows.get(slot);
        // Without a claim it goes. A draining may come long before its time to go, and it is in use till then.
        if row.claims == 0 && !draining {
            self.forget(slot, earlier, later);
            Step::Removed
        } else if let Some(Offloads { number, all }) = mode.offloads
            && (all || self.is_large(slot, earlier, positions))
        {
            self.queue(slot, number);
            Step::Offloaded
        } else {
            self.compute(slot, earlier, later, positions);
            Step::Computed
        }
    }

    /// Whether a row takes long to compute.
    fn is_large(&self, slot: u32, earlier: &Tables, positions: &TablePositions) -> bool {
        let Some(rule) = &self.rule else { return false };
        let mut reads = Reads::new(earlier, positions, Reader { name: T::NAME, lane: self.lane });
        let is_large = rule.is_large(self.rows.key(slot), &mut reads);
        if let Some(misuse) = reads.finish().misuse {
            panic!("{misuse}");
        }
        is_large
    }

    fn compute(&mut self, slot: u32, earlier: &mut Tables, later: &mut Later<'_>, positions: &TablePositions) {
        let rule = self.rule.as_ref().expect("only rows of derived tables are claimed");
        let (key, old) = (self.rows.key(slot), self.rows.get(slot).value.as_ref());
        let mut reads = Reads::new(earlier, positions, Reader { name: T::NAME, lane: self.lane });
        let result = rule.evaluate(key, old, || self.good(slot), &mut reads);
        drop(self.put(slot, result, None, reads.finish(), earlier, later));
    }

    /// Puts what a computation gave into its row, with what it read; gives back what was there before.
    pub(super) fn put(
        &mut self,
        slot: u32,
        result: Evaluated<T::Value>,
        differences: Option<Differences<T::Value>>,
        record: Record,
        earlier: &mut Tables,
        later: &mut Later<'_>,
    ) -> Option<Arc<T::Value>> {
        if let Some(misuse) = record.misuse {
            panic!("{misuse}");
        }
        self.counters.computed += 1;

        let (new, stale) = match result {
            Ok(new) if record.pending => (new, Some(StaleRow { cause: Cause::Pending, good: self.good(slot) })),
            Ok(new) => {
                self.given.remove(self.rows.key(slot));
                (new, None)
            }
            Err(panic) => {
                self.counters.panics += 1;
                let (key, message) = (self.rows.key(slot), message_of(&*panic));
                tracing::error!(table = T::NAME, ?key, panic = message, "a computation panicked");
                let good = self.good(slot);
                let value = good.clone().or_else(|| self.failed(slot, &message));
                (value, Some(StaleRow { cause: Cause::Panic(message), good }))
            }
        };
        let failure_changed = self.set_stale(slot, stale);

        let row = self.rows.get_mut(slot);
        if let Some(reads) = record.wire(Node { table: self.at, part: ROWS, slot }, &row.reads, earlier) {
            self.counters.reads = self.counters.reads + reads.len() - row.reads.len();
            row.reads = reads;
        }
        if !is_same(&row.value, &new) {
            return self.replace(slot, new, failure_changed, differences, later);
        }
        if failure_changed {
            later.backlog.begin(self.fans_out);
            self.notify(slot, true, later);
        } else {
            self.counters.unchanged += 1;
        }
        None
    }

    /// What a row is computed from, by computing it once more: the records have only positions.
    pub(crate) fn reads_of(&self, key: &T::Key, earlier: &Tables, positions: &TablePositions) -> Vec<Read> {
        let Some(rule) = self.rule.as_ref().filter(|_| self.rows.find(key).is_some()) else { return Vec::new() };
        let mut reads = Reads::listing(earlier, positions, Reader { name: T::NAME, lane: self.lane });
        // A panic costs what would have been read after it, as it did the first time.
        let _value = catch_unwind(AssertUnwindSafe(|| (rule.compute)(&rule.table, key, &mut reads)));
        reads.into_list()
    }

    /// The last good value of a row: what is there before its next computation is done, unless a failure put it there.
    pub(super) fn good(&self, slot: u32) -> Option<Arc<T::Value>> {
        match self.panicked.get(&slot) {
            Some(stale) => stale.good.clone(),
            None => self.rows.get(slot).value.clone().or_else(|| self.given.get(self.rows.key(slot)).cloned()),
        }
    }

    fn failed(&self, slot: u32, message: &str) -> Option<Arc<T::Value>> {
        let rule = self.rule.as_ref()?;
        let (key, old) = (self.rows.key(slot), &self.rows.get(slot).value);
        let made = catch_unwind(AssertUnwindSafe(|| match ((rule.on_panic)(&rule.table, key, message), old) {
            (Some(new), Some(old)) if new == **old => Some(Arc::clone(old)),
            (new, _) => new.map(Arc::new),
        }));
        made.unwrap_or_default()
    }

    /// Removes a row that the table no longer has, with all that was recorded for it.
    fn forget(&mut self, slot: u32, earlier: &mut Tables, later: &mut Later<'_>) {
        self.leaving.remove(&slot);
        self.cancel(slot);
        let had_failed = self.set_stale(slot, None);
        let reads = std::mem::take(&mut self.rows.get_mut(slot).reads);
        self.counters.reads -= reads.len();
        for &node in &reads {
            earlier[usize::from(node.table)].drop_reader(node, Node { table: self.at, part: ROWS, slot });
        }
        if self.rows.get(slot).value.is_some() {
            drop(self.replace(slot, None, had_failed, None, later));
        } else if had_failed {
            later.backlog.begin(self.fans_out);
            self.notify(slot, true, later);
        }
        self.given.remove(self.rows.key(slot));
        self.free(slot);
    }
}
