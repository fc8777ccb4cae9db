//! The running engine: inputs go in, tables run in order, changes of the output tables come out.
//!
//! A *batch* begins with the first change of an input and ends when nothing waits. Work always goes on in the first table
//! that has any, so a row is computed once per batch and never sees an earlier table half done; an input that changes in
//! the middle of a batch joins it. No threads, no timers, no locks: one task owns the engine and decides when it runs.
//!
//! Slices: [`Engine::run`] stops when its budget is used up. Between slices the owner may set inputs, bring the lane up to
//! date with [`Engine::drain_lane`] and publish its changes; removals are told at the end of the batch only, because a key
//! that goes in one slice may be back in the next (a host that moves from one object to another).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::changes::Changes;
use crate::counters::{Batch, TableCounters};
use crate::erased::{AnyTable, Later, Places, Step, around, store, store_mut};
use crate::node::ROWS;
use crate::oracle::{self, Divergence};
use crate::panicked::Held;
use crate::reads::{Read, Reader, Reads};
use crate::store::Store;
use crate::table::{Index, Input, Table};

/// The tables of a [`Pipeline`](crate::Pipeline), kept up to date.
pub struct Engine {
    tables: Vec<Box<dyn AnyTable>>,
    places: Places,
    batch: Batch,
    last_batch: Batch,
    /// See [`Engine::outside_reads`].
    outside_reads: AtomicU64,
}

/// Whether anything waits after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// Nothing waits: the batch is done, or the lane is drained.
    Settled,
    /// The budget was used up first.
    More,
}

impl Engine {
    pub(crate) fn new(tables: Vec<Box<dyn AnyTable>>, places: Places) -> Self {
        let (batch, last_batch, outside_reads) = Default::default();
        Self { tables, places, batch, last_batch, outside_reads }
    }

    /// Sets a row of an input table; says whether that changed anything.
    pub fn set<T: Input>(&mut self, key: &T::Key, value: impl Into<Arc<T::Value>>) -> bool {
        self.put::<T>(key, Some(value.into()))
    }

    /// Removes a row of an input table; says whether it was there.
    pub fn remove<T: Input>(&mut self, key: &T::Key) -> bool {
        self.put::<T>(key, None)
    }

    fn put<T: Input>(&mut self, key: &T::Key, value: Option<Arc<T::Value>>) -> bool {
        let at = self.place::<T>();
        let (_, table, mut later) = around(&mut self.tables, at);
        let changed = store_mut::<T>(table).set(key, value, &mut later);
        self.batch.changes += u64::from(changed);
        changed
    }

    /// Works until nothing waits or `budget` is used up, at least one row. A row is never interrupted.
    pub fn run(&mut self, budget: Duration) -> Progress {
        self.work(Instant::now().checked_add(budget), false)
    }

    /// Works until nothing waits.
    pub fn settle(&mut self) {
        let _ = self.work(None, false);
    }

    /// Brings the tables of the lane up to date, in the middle of a batch or not, within `budget`. Removes nothing.
    pub fn drain_lane(&mut self, budget: Duration) -> Progress {
        self.work(Instant::now().checked_add(budget), true)
    }

    fn work(&mut self, deadline: Option<Instant>, draining: bool) -> Progress {
        let started = Instant::now();
        let mut worked = false;
        'work: for at in 0..self.tables.len() {
            let (earlier, table, mut later) = around(&mut self.tables, at);
            if draining && !table.is_lane() {
                continue;
            }
            // Work in one table makes work in later ones only, so one pass does it all.
            loop {
                match table.step(earlier, &mut later, &self.places, draining) {
                    Step::Nothing => break,
                    Step::Computed => self.batch.computed += 1,
                    Step::Removed => {}
                }
                worked = true;
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    break 'work;
                }
            }
        }
        if worked {
            self.batch.slices += 1;
            self.batch.busy += started.elapsed();
        }
        let settled = self.is_settled();
        if settled && self.batch != Batch::default() {
            self.last_batch = std::mem::take(&mut self.batch);
            tracing::debug!(batch = ?self.last_batch, "settled");
        }
        let done = settled || draining && !self.tables.iter().any(|table| table.is_lane() && table.is_dirty());
        if done { Progress::Settled } else { Progress::More }
    }

    /// Nothing waits.
    pub fn is_settled(&self) -> bool {
        !self.tables.iter().any(|table| table.has_work())
    }

    /// What changed in the output table `T` since the last call. In the middle of a batch rows that are gone are kept back.
    ///
    /// # Panics
    /// When `T` was not declared as [`output`](crate::Declared::output).
    pub fn changes<T: Table>(&mut self) -> Changes<T> {
        let (at, settled) = (self.place::<T>(), self.is_settled());
        store_mut::<T>(&mut *self.tables[at]).take_changes(settled)
    }

    /// One row, as it is now.
    pub fn get<T: Table>(&self, key: &T::Key) -> Option<&Arc<T::Value>> {
        self.count_reads(1);
        self.store::<T>().get(key)
    }

    /// All rows of a table as they are now, in key order. It sorts the whole table: nothing that runs with every change may
    /// call it (see [`Engine::outside_reads`]).
    pub fn rows<T: Table>(&self) -> impl Iterator<Item = (&T::Key, &Arc<T::Value>)> {
        self.count_reads(self.store::<T>().rows.len());
        self.store::<T>().rows.sorted().into_iter().filter_map(|(key, row)| Some((key, row.value.as_ref()?)))
    }

    /// How many rows and index keys the owner has read by [`Engine::get`], [`Engine::rows`] and [`Engine::probe`]: for tests
    /// that assert that a change costs what it reaches, outside of the engine, too.
    pub fn outside_reads(&self) -> u64 {
        self.outside_reads.load(Ordering::Relaxed)
    }

    fn count_reads(&self, count: usize) {
        self.outside_reads.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// The keys of the rows that have an index key now, in order.
    pub fn probe<I: Index>(&self, key: &I::Key) -> Vec<&<I::Of as Table>::Key> {
        self.count_reads(1);
        self.read(|reads| reads.probe::<I>(key).collect())
    }

    /// Reads as a computation would, without a record: for debug pages, and to test a `compute` by itself.
    pub fn read<'a, R>(&'a self, read: impl FnOnce(&mut Reads<'a>) -> R) -> R {
        read(&mut Reads::new(&self.tables, &self.places, Reader { name: "the outside", lane: false }))
    }

    /// The figures of every table, in order.
    pub fn counters(&self) -> Vec<TableCounters> {
        self.tables.iter().map(|table| table.counters()).collect()
    }

    /// The figures of one table.
    pub fn counters_of<T: Table>(&self) -> TableCounters {
        self.store::<T>().counters()
    }

    /// The figures of the last batch that was done.
    pub fn last_batch(&self) -> Batch {
        self.last_batch
    }

    /// The rows whose last computation panicked, table by table, in key order.
    pub fn held(&self) -> Vec<Held> {
        self.tables.iter().flat_map(|table| table.held()).collect()
    }

    /// Whether the last computation of a row was [pending](Reads::set_pending).
    pub fn is_pending<T: Table>(&self, key: &T::Key) -> bool {
        let store = self.store::<T>();
        store.rows.find(key).is_some_and(|slot| store.is_pending(slot))
    }

    /// What the row `key` of table `T` is computed from, in order.
    pub fn reads_of<T: Table>(&self, key: &T::Key) -> Vec<Read> {
        let at = self.place::<T>();
        self.store::<T>().reads_of(key, &self.tables[..at], &self.places)
    }

    /// A new engine, built from nothing: the same declaration, inputs and last good values. It is not settled.
    pub fn fresh(&self) -> Self {
        let mut fresh = Self::new(self.tables.iter().map(|table| table.fresh()).collect(), self.places.clone());
        for table in &mut fresh.tables {
            table.claim_roots();
        }
        for (at, from) in self.tables.iter().enumerate().filter(|(_, table)| table.is_input()) {
            let (_, table, mut later): (_, _, Later<'_>) = around(&mut fresh.tables, at);
            table.load(&**from, &mut later);
        }
        fresh
    }

    /// The oracle: finishes the batch, builds everything from nothing, and compares table by table.
    ///
    /// # Errors
    /// The first row that differs: a computation is not pure, or the engine is wrong.
    pub fn self_check(&mut self) -> Result<(), Divergence> {
        self.settle();
        let mut fresh = self.fresh();
        fresh.settle();
        oracle::compare_all(&self.tables, &fresh.tables)
    }

    fn place<T: Table>(&self) -> usize {
        match self.places.get(&std::any::TypeId::of::<T>()) {
            Some(&(at, ROWS)) => usize::from(at),
            _ => panic!("table {} is not declared", T::NAME),
        }
    }

    fn store<T: Table>(&self) -> &Store<T> {
        store(&*self.tables[self.place::<T>()])
    }
}
