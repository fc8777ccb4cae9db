//! The tables of one fleet at one moment, and what differs between two moments.
//!
//! A [`Snapshot`] is immutable and shared; its maps are persistent, so the next snapshot shares all that did not change.
//! A stream holds the snapshot up to which it has taken changes into account. In step, that is the very one everybody
//! holds and costs a pointer; behind, [`Table::changes`] skips what both share and yields only what differs, however
//! far behind it is. That is why there is no log of changes to fall off.

use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use crate::kind::Kind;
use crate::resource::{Entry, Name};

#[cfg(test)]
thread_local! {
    /// How often something was looked up by name, in all tables.
    pub(crate) static LOOKUPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// All resources of one kind.
#[derive(Clone, Default)]
pub struct Table {
    entries: OrdMap<Name, Arc<Entry>>,
    sum: u64,
    bytes: usize,
}

/// One name whose entry differs between two tables.
pub struct Change<'a> {
    /// The name.
    pub name: &'a Name,
    /// Its entry in the older table.
    pub old: Option<&'a Arc<Entry>>,
    /// Its entry in the newer table.
    pub new: Option<&'a Arc<Entry>>,
}

impl Table {
    /// The entry of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        #[cfg(test)]
        LOOKUPS.with(|count| count.set(count.get() + 1));
        self.entries.get(name)
    }

    /// Every entry, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The version of the whole table: equal for equal contents, whatever the order in which they came.
    pub fn version(&self) -> u64 {
        self.sum
    }

    /// How many bytes a response that carries all of it has, at most.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What must change in this table to make it the other.
    pub fn changes<'a>(&'a self, newer: &'a Table) -> impl Iterator<Item = Change<'a>> {
        self.entries.diff(&newer.entries).map(|item| match item {
            DiffItem::Add(name, new) => Change { name, old: None, new: Some(new) },
            DiffItem::Update { old: (_, old), new: (name, new) } => Change { name, old: Some(old), new: Some(new) },
            DiffItem::Remove(name, old) => Change { name, old: Some(old), new: None },
        })
    }

    pub(crate) fn put(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        self.sum = self.sum.wrapping_add(entry.weight());
        self.bytes += entry.bytes();
        let old = self.entries.insert(entry.name.clone(), entry);
        if let Some(old) = &old {
            self.sum = self.sum.wrapping_sub(old.weight());
            self.bytes -= old.bytes();
        }
        old
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Arc<Entry>> {
        let old = self.entries.remove(name)?;
        self.sum = self.sum.wrapping_sub(old.weight());
        self.bytes -= old.bytes();
        Some(old)
    }
}

/// All tables of one fleet at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Counts the publishes of this process. It says nothing to other replicas: compare versions with those.
    pub generation: u64,
    pub(crate) tables: [Table; Kind::COUNT],
}

impl Snapshot {
    /// The table of one kind.
    pub fn table(&self, kind: Kind) -> &Table {
        &self.tables[kind.index()]
    }

    /// The entry of that kind and name.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Arc<Entry>> {
        self.table(kind).get(name)
    }
}
