//! One table: its rows, its indexes, and the rows that wait.
//!
//! A row has a slot while it has a value, is claimed (some declaration says that the table has this key), is about to be
//! removed because it lost its claim, or somebody who read its value has not been computed since it went. When none of these
//! holds the slot is taken back, with every record that named it. Whoever finds no value is recorded by the trace of the
//! key, slot or no slot, so that the records depend on what the tables hold and not on how they came to it. What happens to
//! a derived row stands in [`compute`]; setting an input, claims, and telling those behind are here.

mod compute;
mod deferred;
mod jobs;

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::backlog::Backlog;
use crate::changes::{Changes, Pending};
use crate::counters::TableCounters;
use crate::erased::{AnyTable, Claimer, Later, Mode, Step, TablePositions, Tables};
use crate::index::{Difference, Entries, IndexOn};
use crate::node::{MEMBERS, Node, ROWS, Readers};
use crate::offload::{Job, Offload, Replaced, SharedTables};
use crate::oracle::Divergence;
use crate::panicked::{Cause, PanickedRow, StaleRow};
use crate::slots::Slots;
use crate::table::{Derived, Index, Table};
use compute::Rule;

pub(crate) struct Row<V> {
    pub(crate) value: Option<Arc<V>>,
    /// What the last computation read, sorted.
    pub(crate) reads: Box<[Node]>,
    readers: Readers,
    /// How many declarations give the table this key.
    claims: u32,
    dirty: bool,
    pub(crate) offload: Offload,
    /// It waits in the backlog.
    pub(crate) deferred: bool,
}

impl<V> Default for Row<V> {
    fn default() -> Self {
        Self {
            value: None,
            reads: Box::default(),
            readers: Readers::None,
            claims: 0,
            dirty: false,
            offload: Offload::None,
            deferred: false,
        }
    }
}

/// What a job found to be different for the indexes of a table.
struct Differences<V> {
    old: Option<Arc<V>>,
    new: Option<Arc<V>>,
    /// For each index.
    of_indexes: Vec<Difference>,
}

impl<V> Differences<V> {
    fn is_between(&self, old: &Option<Arc<V>>, new: &Option<Arc<V>>) -> bool {
        is_same(&self.old, old) && is_same(&self.new, new)
    }
}

/// Whether both are one value, or nothing.
fn is_same<V>(a: &Option<Arc<V>>, b: &Option<Arc<V>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

pub(crate) struct Store<T: Table> {
    at: u16,
    rule: Option<Rule<T>>,
    pub(crate) lane: bool,
    /// See [`crate::backlog`].
    pub(crate) fans_out: bool,
    pub(crate) sums_up: bool,
    pub(crate) roots: Vec<T::Key>,
    pub(crate) rows: Slots<T::Key, Row<T::Value>>,
    indexes: Vec<Box<dyn IndexOn<T>>>,
    /// Later tables that have a row for each row here.
    pub(crate) followers: Vec<Claimer<T::Key>>,
    /// Readers of the membership.
    scanners: Readers,
    /// Rows to compute, first come, first served. In key order it would read nicer in a log, but sorting all rows of a
    /// large table takes longer than a slice, and nothing that leaves the engine depends on it.
    dirty: VecDeque<u32>,
    /// Rows that wait for a job, in order, each with its number among those of all tables.
    queued: VecDeque<(u64, u32)>,
    /// Rows that lost their last claim.
    leaving: BTreeSet<u32>,
    pub(crate) panicked: HashMap<u32, StaleRow<T::Value>>,
    /// Last good values handed over by the engine of which this is a fresh copy.
    given: HashMap<T::Key, Arc<T::Value>>,
    /// For an output table: what the outside has not heard yet.
    pub(crate) pending: Option<Pending<T>>,
    counters: TableCounters,
}

impl<T: Table> Store<T> {
    pub(crate) fn input(at: u16) -> Self {
        Self::with_rule(at, None)
    }

    pub(crate) fn derived(at: u16, table: T) -> Self
    where
        T: Derived,
    {
        Self::with_rule(at, Some(Rule::new(table)))
    }

    fn with_rule(at: u16, rule: Option<Rule<T>>) -> Self {
        Self {
            at,
            rule,
            lane: false,
            fans_out: false,
            sums_up: false,
            roots: Vec::new(),
            rows: Slots::new(),
            indexes: Vec::new(),
            followers: Vec::new(),
            scanners: Readers::None,
            dirty: VecDeque::new(),
            queued: VecDeque::new(),
            leaving: BTreeSet::new(),
            panicked: HashMap::new(),
            given: HashMap::new(),
            pending: None,
            counters: TableCounters { name: T::NAME, ..TableCounters::default() },
        }
    }

    /// Adds an index and says which part it is.
    pub(crate) fn add_index<I: Index<Of = T>>(&mut self) -> u16 {
        self.indexes.push(Box::new(Entries::<I>::new()));
        u16::try_from(self.indexes.len()).expect("a table has a few indexes")
    }

    pub(crate) fn index<I: Index<Of = T>>(&self, part: u16) -> &Entries<I> {
        let index: &dyn Any = &*self.indexes[usize::from(part) - 1];
        index.downcast_ref().expect("a part is the index that was declared there")
    }

    pub(crate) fn index_mut<I: Index<Of = T>>(&mut self, part: u16) -> &mut Entries<I> {
        let index: &mut dyn Any = &mut *self.indexes[usize::from(part) - 1];
        index.downcast_mut().expect("a part is the index that was declared there")
    }

    pub(crate) fn get(&self, key: &T::Key) -> Option<&Arc<T::Value>> {
        self.rows.get(self.rows.find(key)?).value.as_ref()
    }

    pub(crate) fn is_pending(&self, slot: u32) -> bool {
        self.panicked.get(&slot).is_some_and(|stale| stale.message().is_none())
    }

    /// The rows that keep their last good value, in key order.
    pub(crate) fn stale_rows(&self) -> Vec<(&T::Key, &StaleRow<T::Value>)> {
        let mut rows: Vec<_> = self.panicked.iter().map(|(&slot, stale)| (self.rows.key(slot), stale)).collect();
        rows.sort_unstable_by_key(|&(key, _)| key);
        rows
    }

    /// Marks a row as stale, or as no longer stale; whether the cause has changed.
    fn set_stale(&mut self, slot: u32, stale: Option<StaleRow<T::Value>>) -> bool {
        let cause = |stale: &StaleRow<T::Value>| stale.cause.clone();
        let is = stale.as_ref().map(cause);
        let was = match stale {
            Some(stale) => self.panicked.insert(slot, stale),
            None => self.panicked.remove(&slot),
        };
        let was = was.as_ref().map(cause);
        let pending = |cause: &Option<Cause>| usize::from(*cause == Some(Cause::Pending));
        self.counters.pending = self.counters.pending + pending(&is) - pending(&was);
        self.counters.resolved += u64::from(pending(&is) < pending(&was));
        was != is
    }

    /// Sets or removes a row of an input table; says whether that changed anything.
    pub(crate) fn set(&mut self, key: &T::Key, value: Option<Arc<T::Value>>, later: &mut Later<'_>) -> bool {
        self.counters.computed += 1;
        let slot = match (self.rows.find(key), &value) {
            (Some(slot), _) => slot,
            (None, Some(_)) => self.rows.intern(key),
            (None, None) => return false,
        };
        let same = match (&self.rows.get(slot).value, &value) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old == new,
            (old, new) => old.is_none() && new.is_none(),
        };
        if same {
            self.counters.unchanged += 1;
            return false;
        }
        drop(self.replace(slot, value, false, None, later));
        self.free(slot);
        true
    }

    /// A declaration gives the table a key, or no longer.
    pub(crate) fn claim(&mut self, key: &T::Key, on: bool, backlog: &mut Backlog) {
        let slot = self.rows.intern(key);
        let row = self.rows.get_mut(slot);
        if on {
            row.claims += 1;
            if row.claims == 1 {
                self.leaving.remove(&slot);
                self.reach(slot, backlog);
            }
        } else {
            row.claims -= 1;
            if row.claims == 0 && !self.defer(slot, backlog) {
                self.leaving.insert(slot);
            }
        }
    }

    /// Puts a value in place that differs from the old one, and tells all who depend on it, or on its failure if that is
    /// another. Gives the old value back. A job may have found out already what that is for the indexes.
    fn replace(
        &mut self,
        slot: u32,
        new: Option<Arc<T::Value>>,
        failure_changed: bool,
        differences: Option<Differences<T::Value>>,
        later: &mut Later<'_>,
    ) -> Option<Arc<T::Value>> {
        later.backlog.begin(self.fans_out);
        let old = std::mem::replace(&mut self.rows.get_mut(slot).value, new.clone());
        match differences.filter(|differences| differences.is_between(&old, &new)) {
            Some(differences) => {
                for (index, difference) in self.indexes.iter_mut().zip(differences.of_indexes) {
                    index.apply(difference, &self.rows, slot, later);
                }
            }
            None => {
                for index in &mut self.indexes {
                    index.update(&self.rows, slot, old.as_deref(), new.as_deref(), later);
                }
            }
        }
        let key = self.rows.key(slot);
        let came_or_went = old.is_some() != new.is_some();
        if came_or_went {
            later.mark(self.scanners.iter());
            later.claim(&self.followers, key, new.is_some());
            self.counters.rows = self.counters.rows + usize::from(new.is_some()) - usize::from(old.is_some());
        }
        if let Some(pending) = &mut self.pending {
            pending.note(key, &old);
        }
        self.notify(slot, failure_changed || came_or_went, later);
        old
    }

    /// Tells all who read a row, or asked for it when it was not there; those who read only whether it failed if they are meant, too.
    fn notify(&self, slot: u32, with_failure: bool, later: &mut Later<'_>) {
        later.mark(self.rows.get(slot).readers.iter().filter(|reader| with_failure || !reader.is_marked()));
        later.mark(self.rows.missed(self.rows.key(slot)));
    }

    /// Takes the slot back when nothing speaks of it.
    fn free(&mut self, slot: u32) {
        let row = self.rows.get(slot);
        let is_idle = !row.dirty && !row.deferred && matches!(row.offload, Offload::None);
        let is_gone = row.value.is_none() && row.claims == 0 && row.readers.is_empty();
        // One that is about to be removed has what it read still recorded: in the lane it may lose its value and its readers
        // before that.
        if is_gone && is_idle && !self.leaving.contains(&slot) {
            debug_assert!(row.reads.is_empty(), "a row without a claim has read nothing");
            self.rows.remove(slot);
        }
    }

    /// Whether anything may have changed since the last call.
    pub(crate) fn has_changes(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| !pending.is_empty())
    }

    /// What changed since the last call; removals only when `all`, else they wait for a later one.
    pub(crate) fn take_changes(&mut self, all: bool) -> Changes<T> {
        let pending = self.pending.as_mut().expect("changes are taken of tables declared as output");
        pending.take(all, |key| self.rows.get(self.rows.find(key)?).value.as_ref())
    }
}

impl<T: Table> AnyTable for Store<T> {
    fn is_input(&self) -> bool {
        self.rule.is_none()
    }

    fn is_lane(&self) -> bool {
        self.lane
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn has_work(&self) -> bool {
        !self.dirty.is_empty() || !self.leaving.is_empty()
    }

    fn mark(&mut self, slot: u32) {
        let row = self.rows.get_mut(slot);
        match row.offload {
            Offload::None | Offload::Cancelled if row.dirty || row.deferred => {}
            Offload::None | Offload::Cancelled => {
                row.dirty = true;
                self.dirty.push_back(slot);
            }
            Offload::Running => row.offload = Offload::Outdated,
            Offload::Queued | Offload::Outdated => {}
        }
    }

    fn reach(&mut self, slot: u32, backlog: &mut Backlog) {
        if !self.defer(slot, backlog) {
            self.mark(slot);
        }
    }

    fn admit(&mut self, slot: u32) {
        let row = self.rows.get_mut(slot);
        row.deferred = false;
        if row.claims > 0 {
            self.mark(slot);
        } else {
            self.leaving.insert(slot);
        }
    }

    fn add_reader(&mut self, node: Node, reader: Node) {
        match node.place() {
            (ROWS, true) => self.rows.add_missed(node.slot, reader),
            (ROWS, false) => self.rows.get_mut(node.slot).readers.insert(node.marked(reader)),
            (MEMBERS, _) => self.scanners.insert(reader),
            (part, _) => self.indexes[usize::from(part) - 1].add_reader(node, reader),
        }
    }

    fn drop_reader(&mut self, node: Node, reader: Node) {
        match node.place() {
            (ROWS, true) => self.rows.drop_missed(node.slot, reader),
            (ROWS, false) => {
                self.rows.get_mut(node.slot).readers.remove(node.marked(reader));
                self.free(node.slot);
            }
            (MEMBERS, _) => self.scanners.remove(reader),
            (part, _) => self.indexes[usize::from(part) - 1].drop_reader(node, reader),
        }
    }

    fn step(&mut self, earlier: &mut Tables, later: &mut Later<'_>, positions: &TablePositions, mode: Mode) -> Step {
        self.next(earlier, later, positions, mode)
    }

    fn first_queued(&self) -> Option<u64> {
        self.queued.front().map(|(number, _)| *number)
    }

    fn next_job(&mut self, shared: &Arc<SharedTables>) -> Option<Job> {
        self.job(shared)
    }

    fn finish(
        &mut self,
        slot: u32,
        result: Box<dyn Any + Send>,
        earlier: &mut Tables,
        later: &mut Later<'_>,
        positions: &TablePositions,
    ) -> Replaced {
        self.take_result(slot, result, earlier, later, positions)
    }

    fn recall(&mut self) {
        self.recall_rows();
    }

    fn offloaded(&self) -> usize {
        self.counters.offloaded
    }

    fn claim_roots(&mut self) {
        for key in self.roots.clone() {
            self.claim(&key, true, &mut Backlog::default());
        }
    }

    fn fresh(&self) -> Box<dyn AnyTable> {
        let good =
            self.panicked.iter().filter_map(|(&slot, stale)| Some((self.rows.key(slot).clone(), stale.good.clone()?)));
        Box::new(Self {
            lane: self.lane,
            fans_out: self.fans_out,
            sums_up: self.sums_up,
            roots: self.roots.clone(),
            rows: self.rows.fresh(),
            indexes: self.indexes.iter().map(|index| index.fresh()).collect(),
            followers: self.followers.clone(),
            given: good.collect(),
            pending: self.pending.as_ref().map(|_| Pending::new()),
            ..Self::with_rule(self.at, self.rule.clone())
        })
    }

    fn load(&mut self, from: &dyn AnyTable, later: &mut Later<'_>) {
        for (key, row) in crate::erased::store::<T>(from).rows.sorted() {
            self.set(key, row.value.clone(), later);
        }
    }

    fn compare(&self, fresh: &dyn AnyTable) -> Result<(), Divergence> {
        crate::oracle::compare(self, crate::erased::store::<T>(fresh))
    }

    fn counters(&self) -> TableCounters {
        TableCounters {
            keys: self.rows.len(),
            index_keys: self.indexes.iter().map(|index| index.len()).sum(),
            failed: self.panicked.len() - self.counters.pending,
            ..self.counters
        }
    }

    fn failed_rows(&self) -> Vec<PanickedRow> {
        let failed = self.stale_rows().into_iter().filter_map(|(key, stale)| {
            let (message, last_good) = (stale.message()?.to_owned(), stale.good.is_some());
            Some(PanickedRow { table: T::NAME, key: format!("{key:?}"), message, last_good })
        });
        failed.collect()
    }
}
