//! The rows of a table that are computed on other threads: from the queue to a job, and back with its result.

use std::any::Any;
use std::sync::Arc;

use super::compute::Evaluated;
use super::{Differences, Store, is_same};
use crate::arena::Arena;
use crate::erased::{AnyTable, Later, TablePositions, Tables};
use crate::index::Differ;
use crate::node::Node;
use crate::offload::{Fetched, FetchedReads, Job, Offload, Replaced, SharedTables};
use crate::reads::{Reader, Reads, Record};
use crate::table::Table;

/// What came of a job.
struct Outcome<V> {
    result: Evaluated<V>,
    differences: Option<Differences<V>>,
    fetched: Vec<Box<dyn Fetched>>,
    misuse: Option<String>,
    pending: bool,
}

impl<T: Table> Store<T> {
    /// A large row waits for a job. One that a cancelled job still computes waits for the end of that first.
    pub(super) fn queue(&mut self, slot: u32, number: u64) {
        let row = self.rows.get_mut(slot);
        if row.offload == Offload::None {
            row.offload = Offload::Queued;
            self.queued.push_back((number, slot));
            self.counters.offloaded += 1;
        }
    }

    /// A row goes: what a job makes of it is not wanted any more.
    pub(super) fn cancel(&mut self, slot: u32) {
        match self.rows.get(slot).offload {
            Offload::None | Offload::Cancelled => {}
            Offload::Queued => {
                self.queued.retain(|(_, queued)| *queued != slot);
                self.set_idle(slot);
            }
            Offload::Running | Offload::Outdated => self.rows.get_mut(slot).offload = Offload::Cancelled,
        }
    }

    fn set_idle(&mut self, slot: u32) {
        self.rows.get_mut(slot).offload = Offload::None;
        self.counters.offloaded -= 1;
    }

    /// The computation of the row that has waited longest.
    pub(super) fn job(&mut self, shared: &Arc<SharedTables>) -> Option<Job> {
        let (_, slot) = self.queued.pop_front()?;
        let rule = self.rule.clone().expect("only rows of derived tables are offloaded");
        self.rows.get_mut(slot).offload = Offload::Running;
        let (key, old, good) = (self.rows.key(slot).clone(), self.rows.get(slot).value.clone(), self.good(slot));
        let (at, differs): (u16, Vec<_>) = (self.at, self.indexes.iter().map(|index| index.differ()).collect());
        let reader = Reader { name: T::NAME, lane: self.lane };
        let work = move |shared: &SharedTables| -> Box<dyn Any + Send> {
            let arena = Arena::new();
            let mut reads = Reads::fetched(FetchedReads::new(shared, &arena), at, reader);
            let result = rule.evaluate(&key, old.as_ref(), || good, &mut reads);
            let (misuse, pending) = (reads.misuse(), reads.pending());
            drop(reads);
            let new = result.as_ref().ok().filter(|new| !is_same(&old, new)).cloned();
            let differences = new.map(|new| {
                let of_index = |differ: Differ<T>| differ(&key, old.as_deref(), new.as_deref());
                Differences { of_indexes: differs.into_iter().map(of_index).collect(), old, new }
            });
            Box::new(Outcome { result, differences, fetched: arena.into_vec(), misuse, pending })
        };
        Some(Job { at, slot, table: T::NAME, shared: Arc::clone(shared), work: Box::new(work) })
    }

    pub(super) fn take_result(
        &mut self,
        slot: u32,
        result: Box<dyn Any + Send>,
        earlier: &mut Tables,
        later: &mut Later<'_>,
        positions: &TablePositions,
    ) -> Replaced {
        let Outcome { result, differences, fetched, misuse, pending } =
            *result.downcast::<Outcome<T::Value>>().expect("a result goes to the table that its job came from");
        let was = self.rows.get(slot).offload;
        self.set_idle(slot);
        self.counters.jobs += 1;
        if was == Offload::Cancelled {
            if self.rows.get(slot).claims > 0 {
                self.mark(slot);
            }
            self.free(slot);
            return Replaced(Some(Box::new((result.ok(), differences, fetched))));
        }
        let mut is_current = was == Offload::Running;
        let mut nodes = Vec::with_capacity(fetched.len());
        for read in &fetched {
            let (node, same): (Node, bool) = read.locate(earlier, positions);
            nodes.push(node);
            is_current &= same;
        }
        let old = self.put(slot, result, differences, Record::of(nodes, misuse, pending), earlier, later);
        if !is_current {
            self.mark(slot);
        }
        Replaced(Some(Box::new((old, fetched))))
    }

    /// Rows that are on another thread, or wait for one, are to be computed here.
    pub(super) fn recall_rows(&mut self) {
        if self.counters.offloaded == 0 {
            return;
        }
        for (_, slot) in std::mem::take(&mut self.queued) {
            self.set_idle(slot);
            self.mark(slot);
        }
        let is_running = |slot: &u32| {
            let row = self.rows.occupied(*slot);
            row.is_some_and(|row| row.offload != Offload::None && row.claims > 0)
        };
        let running: Vec<u32> = (0..self.rows.slots()).filter(is_running).collect();
        for slot in running {
            self.rows.get_mut(slot).offload = Offload::Cancelled;
            self.mark(slot);
        }
    }
}
