//! Large rows, computed on other threads.
//!
//! A row is never interrupted, so one that takes long would keep everybody else waiting. A table says which of its rows are
//! large ([`Derived::is_large`](crate::Derived::is_large)). While [offloading](crate::Engine::set_offloading) is on, such a row
//! is not computed by the task that owns the engine: it keeps its value, everything else moves on, and
//! [`Engine::next_job`](crate::Engine::next_job) hands out a [`Job`] for it. The job reads the tables while their owner has
//! nothing to do ([`Engine::share_tables`](crate::Engine::share_tables)), one read at a time, and keeps what it has read.
//! [`Engine::finish`](crate::Engine::finish) puts the result into the row. If anything that the job read has changed since,
//! the row is computed once more; the result is put in place nevertheless, so that whoever edits without end sees every
//! computation that was begun. When nothing changes any more, every row is what it would be without offloading.

use std::any::{Any, TypeId};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use hashbrown::HashMap;

use crate::arena::Arena;
use crate::erased::{AnyTable, TablePositions, Tables, store};
use crate::node::{ABSENT, CONTENTS, FAILURE, MEMBERS, Node, ROWS};
use crate::store::Store;
use crate::table::{Index, PartIndex, Table};

/// Where a large row is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Offload {
    /// It is not on another thread.
    #[default]
    None,
    /// It waits for a job.
    Queued,
    /// A job computes it.
    Running,
    /// A job computes it, and something it depends on has changed since it began.
    Outdated,
    /// A job computes it, and the result is not wanted any more.
    Cancelled,
}

/// The tables of an engine, while their owner shares them.
pub(crate) struct SharedTables {
    tables: Mutex<Option<Vec<Box<dyn AnyTable>>>>,
    /// The owner waits for its tables.
    wanted: AtomicBool,
    /// The engine is gone.
    closed: AtomicBool,
    changed: Condvar,
    pub(crate) positions: TablePositions,
}

impl SharedTables {
    pub(crate) fn new(positions: TablePositions) -> Self {
        let (tables, wanted, closed, changed) = Default::default();
        Self { tables, wanted, closed, changed, positions }
    }

    pub(crate) fn share_tables(&self, tables: Vec<Box<dyn AnyTable>>) {
        *self.tables.lock().unwrap_or_else(PoisonError::into_inner) = Some(tables);
        self.changed.notify_all();
    }

    /// Waits for no more than the one read that may be under way.
    pub(crate) fn reclaim_tables(&self) -> Option<Vec<Box<dyn AnyTable>>> {
        self.wanted.store(true, Ordering::SeqCst);
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.wanted.store(false, Ordering::SeqCst);
        tables
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Reads as soon as the tables are shared. When the engine is gone the computation is unwound: nobody waits for it.
    fn read<R>(&self, read: impl FnOnce(&Tables) -> R) -> R {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.closed.load(Ordering::SeqCst) {
                resume_unwind(Box::new("the engine is gone"));
            }
            if let Some(tables) = tables.as_deref()
                && !self.wanted.load(Ordering::SeqCst)
            {
                return read(tables);
            }
            tables = self.changed.wait(tables).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Computes a row from shared tables; what comes of it is for the table that it came from.
pub(crate) type Work = dyn FnOnce(&SharedTables) -> Box<dyn Any + Send> + Send;

/// The computation of a large row, to be run on any thread.
pub struct Job {
    pub(crate) at: u16,
    pub(crate) slot: u32,
    pub(crate) table: &'static str,
    pub(crate) shared: Arc<SharedTables>,
    pub(crate) work: Box<Work>,
}

impl Job {
    /// The name of the row's table.
    pub fn table(&self) -> &'static str {
        self.table
    }

    /// Computes the row. Waits whenever the owner of the engine does not share its tables.
    pub fn run(self) -> Finished {
        Finished { at: self.at, slot: self.slot, result: (self.work)(&self.shared) }
    }
}

/// What came of a [`Job`], for [`Engine::finish`](crate::Engine::finish).
pub struct Finished {
    pub(crate) at: u16,
    pub(crate) slot: u32,
    pub(crate) result: Box<dyn Any + Send>,
}

/// What a row was before it was replaced. Freeing something large takes its time, too: drop it on another thread.
#[must_use]
pub struct Replaced(#[allow(dead_code, reason = "held until it is dropped")] pub(crate) Option<Box<dyn Any + Send>>);

/// Something that a job has read.
pub(crate) trait Fetched: Any + Send {
    /// Where it stands in the tables now, and whether it is still the same.
    fn locate(&self, tables: &Tables, positions: &TablePositions) -> (Node, bool);
}

pub(crate) struct FetchedRow<T: Table> {
    key: T::Key,
    pub(crate) value: Option<Arc<T::Value>>,
}

impl<T: Table> Fetched for FetchedRow<T> {
    fn locate(&self, tables: &Tables, positions: &TablePositions) -> (Node, bool) {
        let (at, _) = positions[&TypeId::of::<T>()];
        let store = store::<T>(&*tables[usize::from(at)]);
        let now = store.get(&self.key);
        let same = match (now, &self.value) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (now, then) => now.is_none() && then.is_none(),
        };
        (row_node::<T>(at, store, &self.key, 0), same)
    }
}

/// What the panic of a row's last computation said, if it panicked, and whether the row exists.
pub(crate) struct FetchedPanickedRow<T: Table> {
    key: T::Key,
    is_there: bool,
    pub(crate) failure: Option<String>,
}

impl<T: Table> Fetched for FetchedPanickedRow<T> {
    fn locate(&self, tables: &Tables, positions: &TablePositions) -> (Node, bool) {
        let (at, _) = positions[&TypeId::of::<T>()];
        let store = store::<T>(&*tables[usize::from(at)]);
        let same =
            store.get(&self.key).is_some() == self.is_there && failure_of(store, &self.key) == self.failure.as_deref();
        (row_node::<T>(at, store, &self.key, FAILURE), same)
    }
}

/// The message of the panic of the row's last computation.
fn failure_of<'s, T: Table>(store: &'s Store<T>, key: &T::Key) -> Option<&'s str> {
    store.panicked.get(&store.rows.find(key)?)?.message()
}

fn row_node<T: Table>(table: u16, store: &Store<T>, key: &T::Key, marks: u16) -> Node {
    match store.rows.find(key).filter(|slot| store.rows.get(*slot).value.is_some()) {
        Some(slot) => Node { table, part: ROWS | marks, slot },
        None => Node { table, part: ROWS | ABSENT, slot: store.rows.trace(key) },
    }
}

pub(crate) struct FetchedProbe<I: Index> {
    key: I::Key,
    pub(crate) members: Vec<<I::Of as Table>::Key>,
}

impl<I: Index> Fetched for FetchedProbe<I> {
    fn locate(&self, tables: &Tables, positions: &TablePositions) -> (Node, bool) {
        let (at, part) = positions[&TypeId::of::<I>()];
        let store = store::<I::Of>(&*tables[usize::from(at)]);
        match store.index::<I>(part).members(&self.key) {
            Ok((slot, now)) => {
                let same = now.iter().map(|&slot| store.rows.key(slot)).eq(&self.members);
                (Node { table: at, part, slot }, same)
            }
            Err(slot) => (Node { table: at, part: part | ABSENT, slot }, self.members.is_empty()),
        }
    }
}

pub(crate) struct FetchedParts<I: PartIndex> {
    key: I::Key,
    /// The rows that have the key, as they were.
    pub(crate) members: Vec<Member<I>>,
}

type Member<I> = (<<I as Index>::Of as Table>::Key, Arc<<<I as Index>::Of as Table>::Value>);

impl<I: PartIndex> Fetched for FetchedParts<I> {
    fn locate(&self, tables: &Tables, positions: &TablePositions) -> (Node, bool) {
        let (at, part) = positions[&TypeId::of::<I>()];
        let store = store::<I::Of>(&*tables[usize::from(at)]);
        match store.index::<I>(part).members(&self.key) {
            Ok((slot, now)) => {
                let same = now.len() == self.members.len()
                    && now.iter().zip(&self.members).all(|(&slot, (key, then))| {
                        let now = store.rows.get(slot).value.as_ref();
                        // A panic is a difference: the row is computed once more, and fails if it sees it there.
                        let is_same_part = |now: &Arc<_>| {
                            let same = || I::part(&self.key, now) == I::part(&self.key, then);
                            Arc::ptr_eq(now, then) || catch_unwind(AssertUnwindSafe(same)).unwrap_or(false)
                        };
                        store.rows.key(slot) == key && now.is_some_and(is_same_part)
                    });
                (Node { table: at, part: part | CONTENTS, slot }, same)
            }
            Err(slot) => (Node { table: at, part: part | ABSENT, slot }, self.members.is_empty()),
        }
    }
}

pub(crate) struct FetchedScan<T: Table> {
    pub(crate) members: Vec<T::Key>,
}

impl<T: Table> Fetched for FetchedScan<T> {
    fn locate(&self, tables: &Tables, positions: &TablePositions) -> (Node, bool) {
        let (at, _) = positions[&TypeId::of::<T>()];
        let same = scan::<T>(&*tables[usize::from(at)]).eq(&self.members);
        (Node { table: at, part: MEMBERS, slot: 0 }, same)
    }
}

/// The keys of the rows of a table, in order.
pub(crate) fn scan<T: Table>(table: &dyn AnyTable) -> impl Iterator<Item = &T::Key> {
    let rows = store::<T>(table).rows.sorted();
    rows.into_iter().filter(|(_, row)| row.value.is_some()).map(|(key, _)| key)
}

/// Everything that a job has read so far. What is asked for again is not fetched again, so that a computation never sees
/// two states of one row.
pub(crate) struct FetchedReads<'a> {
    pub(crate) shared: &'a SharedTables,
    fetched: &'a Arena<Box<dyn Fetched>>,
    /// For each table and index, where each key is.
    known: HashMap<TypeId, Box<dyn Any>>,
}

impl<'a> FetchedReads<'a> {
    pub(crate) fn new(shared: &'a SharedTables, fetched: &'a Arena<Box<dyn Fetched>>) -> Self {
        Self { shared, fetched, known: HashMap::new() }
    }

    pub(crate) fn row<T: Table>(&mut self, at: u16, key: &T::Key) -> &'a FetchedRow<T> {
        self.once::<T, _, _>(key, |tables| {
            let value = store::<T>(&*tables[usize::from(at)]).get(key).cloned();
            FetchedRow { key: key.clone(), value }
        })
    }

    pub(crate) fn panicked_row<T: Table>(&mut self, at: u16, key: &T::Key) -> &'a FetchedPanickedRow<T> {
        self.once::<FetchedPanickedRow<T>, _, _>(key, |tables| {
            let store = store::<T>(&*tables[usize::from(at)]);
            let (is_there, failure) = (store.get(key).is_some(), failure_of(store, key).map(str::to_owned));
            FetchedPanickedRow { key: key.clone(), is_there, failure }
        })
    }

    pub(crate) fn probe<I: Index>(&mut self, at: u16, part: u16, key: &I::Key) -> &'a FetchedProbe<I> {
        self.once::<I, _, _>(key, |tables| {
            let store = store::<I::Of>(&*tables[usize::from(at)]);
            let members = store.index::<I>(part).members(key).map(|(_, members)| members).unwrap_or_default();
            let members = members.iter().map(|&slot| store.rows.key(slot).clone()).collect();
            FetchedProbe { key: key.clone(), members }
        })
    }

    pub(crate) fn parts<I: PartIndex>(&mut self, at: u16, part: u16, key: &I::Key) -> &'a FetchedParts<I> {
        self.once::<FetchedParts<I>, _, _>(key, |tables| {
            let store = store::<I::Of>(&*tables[usize::from(at)]);
            let members = store.index::<I>(part).members(key).map(|(_, members)| members).unwrap_or_default();
            let member = |&slot: &u32| Some((store.rows.key(slot).clone(), store.rows.get(slot).value.clone()?));
            FetchedParts { key: key.clone(), members: members.iter().filter_map(member).collect() }
        })
    }

    pub(crate) fn scan<T: Table>(&mut self, at: u16) -> &'a FetchedScan<T> {
        self.once::<FetchedScan<T>, _, _>(&(), |tables| FetchedScan {
            members: scan::<T>(&*tables[usize::from(at)]).cloned().collect(),
        })
    }

    /// What was fetched for the key of `W`, or what is fetched now.
    fn once<W: 'static, K: crate::Key, F: Fetched>(&mut self, key: &K, fetch: impl FnOnce(&Tables) -> F) -> &'a F {
        let known = self.known.entry(TypeId::of::<W>()).or_insert_with(|| Box::new(HashMap::<K, usize>::new()));
        let known: &mut HashMap<K, usize> = known.downcast_mut().expect("a table has one type of keys");
        let at = match known.get(key) {
            Some(&at) => at,
            None => {
                let at = self.fetched.push(Box::new(self.shared.read(fetch)));
                known.insert(key.clone(), at);
                at
            }
        };
        let fetched: &dyn Any = &**self.fetched.get(at);
        fetched.downcast_ref().expect("a key of a table is fetched in one form")
    }
}
