//! Keys to small numbers: the map under every table and every index.
//!
//! Dependency records name a row by a `u32` slot instead of by its key, which makes them 8 bytes each and free of
//! reference counts. A slot is given when a key is first set or claimed, and taken back when nothing speaks of it. The key
//! stands once, beside its payload; the hash table holds slot numbers only.
//!
//! Most questions of a computation find nothing: is this withheld, has that host another owner. Whoever asked is remembered
//! by a trace of the key, half of its hash, instead of a slot: a tenth of the memory. Nearly every such key has one reader, so
//! those stand in a table of their own without a list of readers. Two keys with the same trace wake each other's readers in
//! vain, and nothing else.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::node::{Node, Readers};

/// A slab of payloads `P`, found by key or by slot.
pub(crate) struct Slots<K, P> {
    by_key: HashTable<u32>,
    entries: Vec<Option<(K, P)>>,
    free: Vec<u32>,
    /// Who asked for keys in vain, by their traces: one reader, or several.
    missed_by_one: HashTable<(u32, Node)>,
    missed_by_many: HashMap<u32, Readers>,
    hasher: DefaultHashBuilder,
}

impl<K: crate::Key, P: Default> Slots<K, P> {
    pub(crate) fn new() -> Self {
        Self {
            by_key: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            missed_by_one: HashTable::new(),
            missed_by_many: HashMap::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// An empty one in which every key has the trace that it has here.
    pub(crate) fn fresh(&self) -> Self {
        Self { hasher: self.hasher.clone(), ..Self::new() }
    }

    /// How many keys are known, be it that they were asked for in vain.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len() + self.missed_by_one.len() + self.missed_by_many.len()
    }

    /// What stands for a key that is not there.
    pub(crate) fn trace(&self, key: &K) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    /// Who asked for a key in vain.
    pub(crate) fn missed(&self, key: &K) -> impl Iterator<Item = Node> + '_ {
        let trace = self.trace(key);
        let one = self.missed_by_one.find(spread(trace), |(known, _)| *known == trace).map(|(_, reader)| *reader);
        let many = self.missed_by_many.get(&trace).into_iter().flat_map(Readers::iter);
        one.into_iter().chain(many)
    }

    pub(crate) fn add_missed(&mut self, trace: u32, reader: Node) {
        if let Some(readers) = self.missed_by_many.get_mut(&trace) {
            readers.insert(reader);
            return;
        }
        match self.missed_by_one.entry(spread(trace), |(known, _)| *known == trace, |(known, _)| spread(*known)) {
            Entry::Vacant(vacant) => _ = vacant.insert((trace, reader)),
            Entry::Occupied(occupied) if occupied.get().1 == reader => {}
            Entry::Occupied(occupied) => {
                let ((_, first), _) = occupied.remove();
                let readers = self.missed_by_many.entry(trace).or_default();
                readers.insert(first);
                readers.insert(reader);
            }
        }
    }

    pub(crate) fn drop_missed(&mut self, trace: u32, reader: Node) {
        if let Some(readers) = self.missed_by_many.get_mut(&trace) {
            readers.remove(reader);
            if readers.is_empty() {
                self.missed_by_many.remove(&trace);
            }
        } else if let Ok(found) = self.missed_by_one.find_entry(spread(trace), |known| *known == (trace, reader)) {
            found.remove();
        }
    }

    pub(crate) fn find(&self, key: &K) -> Option<u32> {
        self.by_key.find(self.hasher.hash_one(key), |&slot| self.key(slot) == key).copied()
    }

    /// The slot of `key`, made with an empty payload when there is none.
    pub(crate) fn intern(&mut self, key: &K) -> u32 {
        if let Some(slot) = self.find(key) {
            return slot;
        }
        let entry = Some((key.clone(), P::default()));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("a table has fewer than 2^32 rows")
            }
        };
        let Self { by_key, entries, hasher, .. } = self;
        let hash = |&slot: &u32| hasher.hash_one(&entry_of(entries, slot).0);
        by_key.insert_unique(hasher.hash_one(key), slot, hash);
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let hash = self.hasher.hash_one(self.key(slot));
        if let Ok(found) = self.by_key.find_entry(hash, |&other| other == slot) {
            found.remove();
        }
        self.entries[slot as usize] = None;
        self.free.push(slot);
    }

    pub(crate) fn key(&self, slot: u32) -> &K {
        &entry_of(&self.entries, slot).0
    }

    pub(crate) fn get(&self, slot: u32) -> &P {
        &entry_of(&self.entries, slot).1
    }

    /// How many slots there are, in use or not.
    pub(crate) fn slots(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("a table has fewer than 2^32 rows")
    }

    /// The payload of a slot, if it is in use.
    pub(crate) fn occupied(&self, slot: u32) -> Option<&P> {
        self.entries.get(slot as usize)?.as_ref().map(|(_, payload)| payload)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut P {
        &mut self.entries[slot as usize].as_mut().expect("a slot that is spoken of is in use").1
    }

    /// Everything, in key order.
    pub(crate) fn sorted(&self) -> Vec<(&K, &P)> {
        let mut all: Vec<_> = self.entries.iter().flatten().map(|(key, payload)| (key, payload)).collect();
        all.sort_unstable_by_key(|&(key, _)| key);
        all
    }
}

/// The hash of a trace, which is half a hash: the table looks at its upper bits, too.
fn spread(trace: u32) -> u64 {
    u64::from(trace) << 32 | u64::from(trace)
}

fn entry_of<K, P>(entries: &[Option<(K, P)>], slot: u32) -> &(K, P) {
    entries[slot as usize].as_ref().expect("a slot that is spoken of is in use")
}
