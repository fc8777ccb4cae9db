//! The running engine: inputs go in, tables run in order, changes of the output tables come out.
//!
//! A *batch* begins with the first change of an input and ends when nothing waits. Work always goes on in the first table
//! that has any, so a row is computed once per batch and never sees an earlier table half done; an input that changes in
//! the middle of a batch joins it. No threads, no timers: one task owns the engine and decides when it runs.
//!
//! Large rows: see [`crate::offload`]. They are no part of a batch, which ends without them; nor are those of the
//! [`crate::backlog`].
//!
//! Slices: [`Engine::run`] stops when its budget is used up. Between slices the owner may set inputs, bring the lane up to
//! date with [`Engine::drain_lane`] and publish its changes; removals are told at the end of the batch only, because a key
//! that goes in one slice may be back in the next (a host that moves from one object to another).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::backlog::Backlog;
use crate::changes::Changes;
use crate::counters::{Batch, TableCounters};
use crate::erased::{AnyTable, Later, Mode, Offloads, Step, TablePositions, around, store, store_mut};
use crate::node::ROWS;
use crate::offload::{Finished, Job, Offload, Replaced, SharedTables};
use crate::oracle::{self, Divergence};
use crate::panicked::PanickedRow;
use crate::reads::{Read, Reader, Reads};
use crate::store::Store;
use crate::table::{Index, Input, Table};

/// The tables of a [`Pipeline`](crate::Pipeline), kept up to date.
pub struct Engine {
    tables: Vec<Box<dyn AnyTable>>,
    positions: TablePositions,
    batch: Batch,
    last_batch: Batch,
    /// See [`Engine::outside_reads`].
    outside_reads: AtomicU64,
    offloading: Offloading,
    /// How many rows were left to jobs, and how many jobs are done.
    queued: u64,
    jobs: u64,
    /// The last job was for a row of the lane.
    is_lane_served: bool,
    shared: Owner,
    backlog: Backlog,
}

/// Which rows are computed by [jobs](Engine::next_job).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloading {
    /// None.
    #[default]
    Off,
    /// Those that their tables call [large](crate::Derived::is_large).
    Large,
    /// All of them: for tests.
    All,
}

/// Ends the waiting of jobs with the engine.
struct Owner(Arc<SharedTables>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
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
    pub(crate) fn new(tables: Vec<Box<dyn AnyTable>>, positions: TablePositions) -> Self {
        let (batch, last_batch, outside_reads, shared) =
            (Batch::default(), Batch::default(), AtomicU64::default(), SharedTables::new(positions.clone()));
        Self {
            tables,
            positions,
            batch,
            last_batch,
            outside_reads,
            offloading: Offloading::Off,
            queued: 0,
            jobs: 0,
            is_lane_served: false,
            shared: Owner(Arc::new(shared)),
            backlog: Backlog::default(),
        }
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
        let (_, table, mut later) = around(&mut self.tables, at, &mut self.backlog);
        let changed = store_mut::<T>(table).set(key, value, &mut later);
        self.batch.changes += u64::from(changed);
        changed
    }

    /// Works until nothing waits or `budget` is used up, at least one row. A row is never interrupted; while offloading is
    /// on, large ones are left to [jobs](Self::next_job), and are not waited for.
    pub fn run(&mut self, budget: Duration) -> Progress {
        let mode = Mode { drains: false, offloads: self.offloads() };
        self.work(Instant::now().checked_add(budget), mode)
    }

    fn offloads(&self) -> Option<Offloads> {
        let is_on = self.offloading != Offloading::Off;
        is_on.then_some(Offloads { number: self.queued, all: self.offloading == Offloading::All })
    }

    /// Works until nothing waits, and nothing is left to jobs or in the backlog.
    pub fn settle(&mut self) {
        self.recall();
        let limit = self.backlog.limit();
        self.limit_fan_out(None);
        let _ = self.work(None, Mode { drains: false, offloads: None });
        self.limit_fan_out(limit);
    }

    /// How many partitions a change of one row reaches at once from now on, where its table [fans
    /// out](crate::Declared::fans_out); the others wait until they are [admitted](Self::admit). Without a limit none waits.
    pub fn limit_fan_out(&mut self, limit: Option<usize>) {
        self.backlog.set_limit(limit);
        if limit.is_none() {
            self.admit(usize::MAX);
            self.backlog.is_admitting = false;
        }
    }

    /// How many partitions wait to be admitted.
    pub fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// So many partitions that wait are to be computed by the next [runs](Self::run), those that have waited for longest. Until
    /// nothing else waits, rows that [sum up](crate::Declared::sums_up) wait instead.
    pub fn admit(&mut self, partitions: usize) {
        for (table, slot) in self.backlog.take(partitions) {
            self.backlog.is_admitting = true;
            self.tables[usize::from(table)].admit(slot);
        }
    }

    /// How many partitions were admitted.
    pub fn admitted(&self) -> u64 {
        self.backlog.admitted()
    }

    /// Whether the partition of a row waits to be admitted: its value is about what it was computed from before.
    pub fn is_deferred<T: Table>(&self, key: &T::Key) -> bool {
        let partition = || self.store::<T>().partition_of(key);
        self.backlog.len() > 0 && partition().is_some_and(|partition| self.backlog.is_waiting(partition))
    }

    /// Brings the tables of the lane up to date, in the middle of a batch or not, within `budget`. Removes nothing. Large rows
    /// are left to jobs, as [`Self::run`] does.
    pub fn drain_lane(&mut self, budget: Duration) -> Progress {
        let mode = Mode { drains: true, offloads: self.offloads() };
        self.work(Instant::now().checked_add(budget), mode)
    }

    fn work(&mut self, deadline: Option<Instant>, mut mode: Mode) -> Progress {
        let started = Instant::now();
        let mut worked = false;
        'work: for at in 0..self.tables.len() {
            let (earlier, table, mut later) = around(&mut self.tables, at, &mut self.backlog);
            if mode.drains && !table.is_lane() {
                continue;
            }
            // Work in one table makes work in later ones only, so one pass does it all.
            loop {
                match table.step(earlier, &mut later, &self.positions, mode) {
                    Step::Nothing => break,
                    Step::Computed => self.batch.computed += 1,
                    Step::Offloaded => {
                        self.queued += 1;
                        mode.offloads = mode.offloads.map(|offloads| Offloads { number: self.queued, ..offloads });
                    }
                    Step::Removed | Step::Deferred => {}
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
        self.backlog.is_admitting &= !settled;
        if settled && self.batch != Batch::default() {
            self.last_batch = std::mem::take(&mut self.batch);
            tracing::debug!(batch = ?self.last_batch, "settled");
        }
        let drained = || !self.tables.iter().any(|table| table.is_lane() && table.is_dirty());
        let done = settled || mode.drains && drained();
        if done { Progress::Settled } else { Progress::More }
    }

    /// Which rows are left to [jobs](Self::next_job) from now on.
    pub fn set_offloading(&mut self, offloading: Offloading) {
        self.offloading = offloading;
    }

    /// The computation of the large row that has waited for a thread for longest. A row that is large again and again comes
    /// after all others that wait meanwhile. Rows of the lane have every second turn, however many others wait.
    pub fn next_job(&mut self) -> Option<Job> {
        let is_lanes_turn = !self.is_lane_served;
        let tables = self.tables.iter().enumerate();
        let queued =
            tables.filter_map(|(at, table)| Some((table.is_lane() != is_lanes_turn, table.first_queued()?, at)));
        let (_, _, at) = queued.min()?;
        self.is_lane_served = self.tables[at].is_lane();
        self.tables[at].next_job(&self.shared.0)
    }

    /// Takes what came of a job: its row is put in place, and its readers wait to be computed.
    pub fn finish(&mut self, finished: Finished) -> Replaced {
        let Finished { at, slot, result } = finished;
        let (earlier, table, mut later) = around(&mut self.tables, usize::from(at), &mut self.backlog);
        self.batch.computed += 1;
        self.jobs += 1;
        table.finish(slot, result, earlier, &mut later, &self.positions)
    }

    /// Rows that are left to jobs wait to be computed like any other: what the jobs make of them is not wanted any more.
    pub fn recall(&mut self) {
        for table in &mut self.tables {
            table.recall();
        }
    }

    /// How many jobs were finished.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Lets jobs read the tables. Until they are [reclaimed](Self::reclaim_tables) the engine must not be used.
    pub fn share_tables(&mut self) {
        self.shared.0.share_tables(std::mem::take(&mut self.tables));
    }

    /// Ends that. Waits for one read at most.
    pub fn reclaim_tables(&mut self) {
        if let Some(tables) = self.shared.0.reclaim_tables() {
            self.tables = tables;
        }
    }

    /// Whether a row is computed on another thread, or waits for that: its value is about what it was computed from before.
    pub fn is_offloaded<T: Table>(&self, key: &T::Key) -> bool {
        let rows = &self.store::<T>().rows;
        rows.find(key).is_some_and(|slot| rows.get(slot).offload != Offload::None)
    }

    /// How many rows of a table are computed on other threads, or wait for that.
    pub fn offloaded_of<T: Table>(&self) -> usize {
        self.store::<T>().offloaded()
    }

    /// How many rows are computed on other threads, or wait for that.
    pub fn offloaded(&self) -> usize {
        self.tables.iter().map(|table| table.offloaded()).sum()
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
        let at = self.place::<T>();
        // Whether all tables are done is looked at only where that makes a difference: most have nothing to tell.
        let settled = self.store::<T>().has_changes() && self.is_settled();
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
        read(&mut Reads::new(&self.tables, &self.positions, Reader { name: "the outside", lane: false }))
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
    pub fn failed_rows(&self) -> Vec<PanickedRow> {
        self.tables.iter().flat_map(|table| table.failed_rows()).collect()
    }

    /// Whether the last computation of a row was [pending](Reads::set_pending).
    pub fn is_pending<T: Table>(&self, key: &T::Key) -> bool {
        let store = self.store::<T>();
        store.rows.find(key).is_some_and(|slot| store.is_pending(slot))
    }

    /// What the row `key` of table `T` is computed from, in order.
    pub fn reads_of<T: Table>(&self, key: &T::Key) -> Vec<Read> {
        let at = self.place::<T>();
        self.store::<T>().reads_of(key, &self.tables[..at], &self.positions)
    }

    /// A new engine, built from nothing: the same declaration, inputs and last good values. It is not settled.
    pub fn fresh(&self) -> Self {
        let mut fresh = Self::new(self.tables.iter().map(|table| table.fresh()).collect(), self.positions.clone());
        for table in &mut fresh.tables {
            table.claim_roots();
        }
        for (at, from) in self.tables.iter().enumerate().filter(|(_, table)| table.is_input()) {
            let (_, table, mut later): (_, _, Later<'_>) = around(&mut fresh.tables, at, &mut fresh.backlog);
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
        match self.positions.get(&std::any::TypeId::of::<T>()) {
            Some(&(at, ROWS)) => usize::from(at),
            _ => panic!("table {} is not declared", T::NAME),
        }
    }

    fn store<T: Table>(&self) -> &Store<T> {
        store(&*self.tables[self.place::<T>()])
    }
}
