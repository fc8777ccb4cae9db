//! The face that all tables show to the engine, whatever their key and value are.
//!
//! Here the types end: a dependency record is a [`Node`], a table is a place in a list. `Any` is used in one function,
//! [`store`], to come back from a place to the typed table that was declared there; users never see it.

use std::any::{Any, TypeId};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::backlog::Backlog;
use crate::counters::TableCounters;
use crate::node::Node;
use crate::offload::{Job, Replaced, SharedTables};
use crate::oracle::Divergence;
use crate::panicked::PanickedRow;
use crate::store::Store;
use crate::table::Table;

/// The tables of a pipeline, in the order in which they run.
pub(crate) type Tables = [Box<dyn AnyTable>];

/// Where each declared table and index stands: table number and part.
pub(crate) type TablePositions = HashMap<TypeId, (u16, u16)>;

pub(crate) trait AnyTable: Any + Send + Sync {
    fn is_input(&self) -> bool;
    fn is_lane(&self) -> bool;
    /// Rows wait to be computed.
    fn is_dirty(&self) -> bool;
    /// Rows wait to be computed or removed.
    fn has_work(&self) -> bool;

    /// A row has to be computed anew.
    fn mark(&mut self, slot: u32);
    /// The same, unless its partition waits in the backlog, or has to from now on.
    fn reach(&mut self, slot: u32, backlog: &mut Backlog);
    /// A row was in the backlog, and has to be computed or removed now.
    fn admit(&mut self, slot: u32);
    fn add_reader(&mut self, node: Node, reader: Node);
    fn drop_reader(&mut self, node: Node, reader: Node);
    /// Computes, offloads or removes the next row that waits.
    fn step(&mut self, earlier: &mut Tables, later: &mut Later<'_>, positions: &TablePositions, mode: Mode) -> Step;
    /// The number of the row that has waited for a thread for longest.
    fn first_queued(&self) -> Option<u64>;
    /// The computation of that row.
    fn next_job(&mut self, shared: &Arc<SharedTables>) -> Option<Job>;
    /// Puts the result of a job in place; gives back what was there before.
    fn finish(
        &mut self,
        slot: u32,
        result: Box<dyn Any + Send>,
        earlier: &mut Tables,
        later: &mut Later<'_>,
        positions: &TablePositions,
    ) -> Replaced;
    /// Rows that are on another thread, or wait for one, are computed here after all.
    fn recall(&mut self);
    /// How many rows are on other threads, or wait for one.
    fn offloaded(&self) -> usize;

    /// The keys that the table has whatever its inputs are get their claim.
    fn claim_roots(&mut self);
    /// An empty table of the same declaration, with the last good values that this one holds on to.
    fn fresh(&self) -> Box<dyn AnyTable>;
    /// Sets every row that `from` has; for input tables.
    fn load(&mut self, from: &dyn AnyTable, later: &mut Later<'_>);
    fn compare(&self, fresh: &dyn AnyTable) -> Result<(), Divergence>;
    fn counters(&self) -> TableCounters;
    fn failed_rows(&self) -> Vec<PanickedRow>;
}

/// How a step works.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Only the lane is brought up to date, and nothing is removed.
    pub(crate) drains: bool,
    /// Which rows wait for another thread; without any, every row is computed.
    pub(crate) offloads: Option<Offloads>,
}

/// Large rows, or all of them; the next one gets this number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offloads {
    pub(crate) number: u64,
    pub(crate) all: bool,
}

/// What a step did.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// One row was computed.
    Computed,
    /// One row waits for another thread from now on.
    Offloaded,
    /// One row was removed.
    Removed,
    /// One row waits in the backlog from now on.
    Deferred,
    /// There is nothing to do.
    Nothing,
}

/// The tables after the one that changes: where its readers are.
pub(crate) struct Later<'a> {
    pub(crate) first: u16,
    pub(crate) tables: &'a mut Tables,
    pub(crate) backlog: &'a mut Backlog,
}

impl Later<'_> {
    pub(crate) fn mark(&mut self, readers: impl Iterator<Item = Node>) {
        for reader in readers {
            self.tables[usize::from(reader.table - self.first)].reach(reader.slot, self.backlog);
        }
    }

    pub(crate) fn claim<K>(&mut self, claimers: &[Claimer<K>], key: &K, on: bool) {
        for claimer in claimers {
            let table = &mut *self.tables[usize::from(claimer.target - self.first)];
            (claimer.claim)(table, key, on, self.backlog);
        }
    }
}

/// The way from a key to the later table that has a row for it.
pub(crate) struct Claimer<K> {
    pub(crate) target: u16,
    pub(crate) claim: fn(&mut dyn AnyTable, &K, bool, &mut Backlog),
}

impl<K> Clone for Claimer<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Claimer<K> {}

impl<K: crate::Key> Claimer<K> {
    pub(crate) fn to<T: Table<Key = K>>(target: u16) -> Self {
        Self { target, claim: |table, key, on, backlog| store_mut::<T>(table).claim(key, on, backlog) }
    }
}

/// The tables before one, that table, and those after it.
pub(crate) fn around<'t>(
    tables: &'t mut Tables,
    at: usize,
    backlog: &'t mut Backlog,
) -> (&'t mut Tables, &'t mut dyn AnyTable, Later<'t>) {
    let (earlier, rest) = tables.split_at_mut(at);
    let (this, after) = rest.split_first_mut().expect("a table is at its place");
    let first = u16::try_from(at + 1).expect("a pipeline has fewer than 2^16 tables");
    (earlier, &mut **this, Later { first, tables: after, backlog })
}

pub(crate) fn store<T: Table>(table: &dyn AnyTable) -> &Store<T> {
    (table as &dyn Any).downcast_ref().expect("a place holds the table that was declared there")
}

pub(crate) fn store_mut<T: Table>(table: &mut dyn AnyTable) -> &mut Store<T> {
    (table as &mut dyn Any).downcast_mut().expect("a place holds the table that was declared there")
}
