//! How a pipeline is declared: which tables there are, in which order they run, and which keys each has.
//!
//! The order of declaration is the order of the data: a table may read only tables declared before it. Reads are checked
//! when they happen, keys and indexes here; a wrong declaration panics, because it is a mistake in the program. Each crate
//! that owns tables offers one function that declares them, and the binary calls these in order.

use std::any::TypeId;
use std::marker::PhantomData;

use hashbrown::HashMap;

use crate::Engine;
use crate::changes::Pending;
use crate::erased::{AnyTable, Claimer, TablePositions, store_mut};
use crate::node::ROWS;
use crate::store::Store;
use crate::table::{Derived, Index, Input, PartIndex, Table};

/// The declaration of the tables of an [`Engine`].
#[derive(Default)]
pub struct Pipeline {
    tables: Vec<Box<dyn AnyTable>>,
    positions: TablePositions,
    /// Derived tables of which nothing says yet which keys they have.
    keyless: HashMap<u16, &'static str>,
}

/// A table that was just declared, to say more about it.
pub struct Declared<'p, T> {
    pipeline: &'p mut Pipeline,
    at: u16,
    table: PhantomData<fn() -> T>,
}

impl Pipeline {
    /// A pipeline without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a table that is set from outside.
    pub fn input<T: Input>(&mut self) -> Declared<'_, T> {
        let at = self.next_place();
        self.add(Store::<T>::input(at))
    }

    /// Declares a computed table; `table` carries what its computation knows besides its reads, and never changes.
    ///
    /// # Panics
    /// When a table of this type was declared before.
    pub fn derived<T: Derived>(&mut self, table: T) -> Declared<'_, T> {
        let at = self.next_place();
        self.keyless.insert(at, T::NAME);
        self.add(Store::derived(at, table))
    }

    /// Declares an index. Several crates may declare the same one.
    ///
    /// # Panics
    /// When its table is not declared yet.
    pub fn index<I: Index>(&mut self) -> &mut Self {
        self.index_place::<I>();
        self
    }

    /// Declares an index of which [`Reads::parts`](crate::Reads::parts) are read.
    ///
    /// # Panics
    /// When its table is not declared yet.
    pub fn parts<I: PartIndex>(&mut self) -> &mut Self {
        let (table, part) = self.index_place::<I>();
        store_mut::<I::Of>(&mut *self.tables[usize::from(table)]).index_mut::<I>(part).compare_parts();
        self
    }

    /// The engine, with nothing in it. Rows that exist in any case wait for the first run.
    ///
    /// # Panics
    /// When nothing says which keys a derived table has.
    pub fn build(mut self) -> Engine {
        assert!(self.keyless.is_empty(), "nothing says which keys these tables have: {:?}", self.keyless.values());
        for table in &mut self.tables {
            table.claim_roots();
        }
        Engine::new(self.tables, self.positions)
    }

    fn next_place(&self) -> u16 {
        u16::try_from(self.tables.len()).expect("a pipeline has fewer than 2^16 tables")
    }

    fn add<T: Table>(&mut self, store: Store<T>) -> Declared<'_, T> {
        let at = self.next_place();
        let before = self.positions.insert(TypeId::of::<T>(), (at, ROWS));
        assert!(before.is_none(), "table {} is declared twice", T::NAME);
        self.tables.push(Box::new(store));
        Declared { pipeline: self, at, table: PhantomData }
    }

    fn place<T: Table>(&self) -> u16 {
        let place = self.positions.get(&TypeId::of::<T>());
        place.unwrap_or_else(|| panic!("table {} is not declared yet", T::NAME)).0
    }

    fn index_place<I: Index>(&mut self) -> (u16, u16) {
        let table = self.place::<I::Of>();
        let store = store_mut::<I::Of>(&mut *self.tables[usize::from(table)]);
        *self.positions.entry(TypeId::of::<I>()).or_insert_with(|| (table, store.add_index::<I>()))
    }
}

impl<T: Table> Declared<'_, T> {
    /// A change of one row may reach many: while the fan-out is [limited](Engine::limit_fan_out), that is worked off in parts.
    pub fn fans_out(mut self) -> Self {
        self.store().fans_out = true;
        self
    }

    /// What changes in this table is for the outside: [`Engine::changes`] tells it.
    pub fn output(mut self) -> Self {
        self.store().pending = Some(Pending::new());
        self
    }

    fn store(&mut self) -> &mut Store<T> {
        store_mut(&mut *self.pipeline.tables[usize::from(self.at)])
    }
}

impl<T: Derived> Declared<'_, T> {
    /// The table has a row for each row of `S`, by the same key.
    pub fn each<S: Table<Key = T::Key>>(self) -> Self {
        let source = self.earlier::<S>();
        let claimer = Claimer::to::<T>(self.at);
        store_mut::<S>(&mut *self.pipeline.tables[usize::from(source)]).followers.push(claimer);
        self.keyed()
    }

    /// The table has a row for each key of the index `I`, while at least one row of its table names it.
    pub fn per<I: Index<Key = T::Key>>(self) -> Self {
        self.earlier::<I::Of>();
        let (source, part) = self.pipeline.index_place::<I>();
        let claimer = Claimer::to::<T>(self.at);
        let store = store_mut::<I::Of>(&mut *self.pipeline.tables[usize::from(source)]);
        store.index_mut::<I>(part).claimers.push(claimer);
        self.keyed()
    }

    /// The table has this row whatever the inputs are.
    pub fn always(mut self, key: T::Key) -> Self {
        self.store().roots.push(key);
        self.keyed()
    }

    /// The table is in the lane: [`Engine::drain_lane`] brings it up to date in the middle of a batch.
    ///
    /// It may read only inputs and other tables of the lane, so that what it publishes early is what the end of the batch
    /// would give. Its keys may come from any table.
    pub fn lane(mut self) -> Self {
        self.store().lane = true;
        self
    }

    /// A row may be about many partitions, and would be computed with each of them: while these are [admitted](Engine::admit) it
    /// waits until all are.
    pub fn sums_up(mut self) -> Self {
        self.store().sums_up = true;
        self
    }

    fn earlier<S: Table>(&self) -> u16 {
        let source = self.pipeline.place::<S>();
        assert!(source < self.at, "{} cannot get its keys from {}, which is not before it", T::NAME, S::NAME);
        source
    }

    fn keyed(self) -> Self {
        self.pipeline.keyless.remove(&self.at);
        self
    }
}
