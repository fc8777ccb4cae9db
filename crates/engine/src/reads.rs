//! The only access of a computation to other tables, and the record of what went through it.
//!
//! Four kinds of read, each as narrow as it can be: a row by its key (a miss is recorded too: the row may appear), the
//! membership of one index key, the parts that its members have for it, the membership of a whole table. What a computation did not ask cannot wake it. There is
//! no way to walk over the values of a table: read who is there, then get each by key.
//!
//! A computation reads the tables themselves, which are borrowed shared meanwhile, or on another thread fetches what it reads
//! ([`crate::offload`]).

use std::any::TypeId;
use std::sync::Arc;

use crate::erased::{AnyTable, TablePositions, Tables, store};
use crate::node::{ABSENT, CONTENTS, FAILURE, MEMBERS, Node, ROWS};
use crate::offload::{FetchedReads, scan};
use crate::store::{Row, Store};
use crate::table::{Index, PartIndex, Table};

/// Read access to the tables before the one that is computed. References live as long as the tables are borrowed, not
/// only as long as the `Reads`, so values may be kept while reading on.
pub struct Reads<'a> {
    source: Source<'a>,
    positions: &'a TablePositions,
    reader: Reader,
    record: Vec<Node>,
    /// The same for people, if they asked.
    list: Option<Vec<Read>>,
    misuse: Option<String>,
    pending: bool,
}

/// Where values come from.
enum Source<'a> {
    /// The tables before the reader's own.
    Tables(&'a Tables),
    /// Another thread, which shares the tables; those before this one may be read.
    Fetched(FetchedReads<'a>, u16),
}

/// On whose behalf is read.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) lane: bool,
}

/// The keys of an index, wherever they come from.
enum Members<A, B> {
    Stored(A),
    Fetched(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Members<A, B> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Members::Stored(keys) => keys.next(),
            Members::Fetched(keys) => keys.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Members::Stored(keys) => keys.size_hint(),
            Members::Fetched(keys) => keys.size_hint(),
        }
    }
}

impl<T, A: ExactSizeIterator<Item = T>, B: ExactSizeIterator<Item = T>> ExactSizeIterator for Members<A, B> {}

/// What a computation read.
pub(crate) struct Record {
    nodes: Vec<Node>,
    pub(crate) misuse: Option<String>,
    pub(crate) pending: bool,
}

/// One read of a row, for debug pages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Read {
    /// The name of the table that was read.
    pub table: &'static str,
    /// The name of the index, when it was probed.
    pub index: Option<&'static str>,
    /// The key, as `Debug` prints it; none for a scan of the whole table.
    pub key: Option<String>,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(tables: &'a Tables, positions: &'a TablePositions, reader: Reader) -> Self {
        Self::from(Source::Tables(tables), positions, reader)
    }

    /// Read access for a row of table number `at` on another thread.
    pub(crate) fn fetched(fetched: FetchedReads<'a>, at: u16, reader: Reader) -> Self {
        let positions = &fetched.shared.positions;
        Self::from(Source::Fetched(fetched, at), positions, reader)
    }

    fn from(source: Source<'a>, positions: &'a TablePositions, reader: Reader) -> Self {
        Self { source, positions, reader, record: Vec::new(), list: None, misuse: None, pending: false }
    }

    /// The same, and what is read is written down for people.
    pub(crate) fn listing(tables: &'a Tables, positions: &'a TablePositions, reader: Reader) -> Self {
        Self { list: Some(Vec::new()), ..Self::new(tables, positions, reader) }
    }

    /// The row `key` of table `T`.
    pub fn get<T: Table>(&mut self, key: &T::Key) -> Option<&'a Arc<T::Value>> {
        let (at, _) = self.open::<T, T>();
        match &mut self.source {
            Source::Tables(tables) => {
                let tables = *tables;
                self.row::<T>(tables, at, key, 0)?.1.value.as_ref()
            }
            Source::Fetched(fetched, _) => fetched.row::<T>(at, key).value.as_ref(),
        }
    }

    /// Why the last computation of the row `key` of table `T` panicked, if it did: for verdicts. Depends on that, and on
    /// whether there is such a row, not on what it holds.
    pub fn failure<T: Table>(&mut self, key: &T::Key) -> Option<&'a str> {
        let (at, _) = self.open::<T, T>();
        match &mut self.source {
            Source::Tables(tables) => {
                let tables = *tables;
                let (slot, _) = self.row::<T>(tables, at, key, FAILURE)?;
                store::<T>(&*tables[usize::from(at)]).panicked.get(&slot)?.message()
            }
            Source::Fetched(fetched, _) => fetched.panicked_row::<T>(at, key).failure.as_deref(),
        }
    }

    /// Says that the value of this computation depends on something that is not known yet: the row keeps its last good
    /// value ([`Derived::while_pending`](crate::Derived::while_pending)); without one it is what the computation gives.
    pub fn set_pending(&mut self) {
        self.pending = true;
    }

    pub(crate) fn pending(&self) -> bool {
        self.pending
    }

    pub(crate) fn misuse(&self) -> Option<String> {
        self.misuse.clone()
    }

    /// A row; `marks` is [`FAILURE`] where only whether it failed is read.
    fn row<T: Table>(
        &mut self,
        tables: &'a Tables,
        table: u16,
        key: &T::Key,
        marks: u16,
    ) -> Option<(u32, &'a Row<T::Value>)> {
        let rows = &store::<T>(&*tables[usize::from(table)]).rows;
        let found = rows.find(key).map(|slot| (slot, rows.get(slot)));
        self.record.push(match found {
            Some((slot, row)) if row.value.is_some() => Node { table, part: ROWS | marks, slot },
            _ => Node { table, part: ROWS | ABSENT, slot: rows.trace(key) },
        });
        self.list(|| Read { table: T::NAME, index: None, key: Some(format!("{key:?}")) });
        found
    }

    /// The keys of the rows that have the index key `key`, in order. Depends on which they are, not on what they hold.
    pub fn probe<I: Index>(
        &mut self,
        key: &I::Key,
    ) -> impl ExactSizeIterator<Item = &'a <I::Of as Table>::Key> + use<'a, I> {
        let (table, part) = self.open::<I::Of, I>();
        let tables = match &mut self.source {
            Source::Tables(tables) => *tables,
            Source::Fetched(fetched, _) => {
                return Members::Fetched(fetched.probe::<I>(table, part, key).members.iter());
            }
        };
        let (store, members) = self.members::<I>(tables, (table, part), key, 0);
        Members::Stored(members.iter().map(|&slot| store.rows.key(slot)))
    }

    /// The parts that rows have for the index key `key`, with the keys of these rows, in order. Depends on which rows they
    /// are and on these parts, not on what the rows hold besides.
    pub fn parts<I: PartIndex>(&mut self, key: &I::Key) -> Vec<(&'a <I::Of as Table>::Key, I::Part<'a>)> {
        let (table, part) = self.open::<I::Of, I>();
        let tables = match &mut self.source {
            Source::Tables(tables) => *tables,
            Source::Fetched(fetched, _) => {
                let members = &fetched.parts::<I>(table, part, key).members;
                return members.iter().map(|(member, value)| (member, I::part(key, value))).collect();
            }
        };
        let (store, members) = self.members::<I>(tables, (table, part), key, CONTENTS);
        if !store.index::<I>(part).has_parts() {
            self.refuse(format!("{} reads parts of {}, which are not declared", self.reader.name, I::Of::NAME));
        }
        let part = |&slot: &u32| Some((store.rows.key(slot), I::part(key, store.rows.get(slot).value.as_deref()?)));
        members.iter().filter_map(part).collect()
    }

    /// The rows that have an index key; `contents` marks the record of a reader of their parts.
    fn members<I: Index>(
        &mut self,
        tables: &'a Tables,
        (table, part): (u16, u16),
        key: &I::Key,
        contents: u16,
    ) -> (&'a Store<I::Of>, &'a [u32]) {
        let store = store::<I::Of>(&*tables[usize::from(table)]);
        let (node, members) = match store.index::<I>(part).members(key) {
            Ok((slot, members)) => (Node { table, part: part | contents, slot }, members),
            Err(slot) => (Node { table, part: part | ABSENT, slot }, &[][..]),
        };
        self.record.push(node);
        self.list(|| Read { table: I::Of::NAME, index: Some(I::NAME), key: Some(format!("{key:?}")) });
        (store, members)
    }

    /// The keys of all rows of table `T`, in order. Depends on which they are: any row that comes or goes wakes the
    /// reader, and each scan costs the whole table. For small tables only (classes, listeners); else use an index.
    pub fn scan<T: Table>(&mut self) -> Vec<&'a T::Key> {
        let (table, _) = self.open::<T, T>();
        let tables = match &mut self.source {
            Source::Tables(tables) => *tables,
            Source::Fetched(fetched, _) => return fetched.scan::<T>(table).members.iter().collect(),
        };
        self.record.push(Node { table, part: MEMBERS, slot: 0 });
        self.list(|| Read { table: T::NAME, index: None, key: None });
        scan::<T>(&*tables[usize::from(table)]).collect()
    }

    fn list(&mut self, read: impl FnOnce() -> Read) {
        if let Some(list) = &mut self.list {
            list.push(read());
        }
    }

    /// The place of the table or index `W` (of table `T`), if the reader may read it.
    ///
    /// A wrong read is a mistake in the program, not in an input: it must not end as one more failed row. So it is noted, and
    /// the engine panics with it once the computation is unwound.
    fn open<T: Table, W: 'static>(&mut self) -> (u16, u16) {
        let (reader, table) = (self.reader.name, T::NAME);
        let misuse = match self.positions.get(&TypeId::of::<W>()) {
            None => format!("{reader} reads {}, which is not declared", std::any::type_name::<W>()),
            Some(&(at, part)) => {
                let (is_before, is_open) = match &self.source {
                    Source::Tables(tables) => {
                        let found = tables.get(usize::from(at)).map(|table| &**table);
                        let is_open = |table: &dyn AnyTable| table.is_lane() || table.is_input();
                        (found.is_some(), !self.reader.lane || found.is_some_and(is_open))
                    }
                    // What the lane may read is checked where the owner of the tables computes, as in the first build.
                    Source::Fetched(_, own) => (at < *own, true),
                };
                match (is_before, is_open) {
                    (false, _) => format!("{reader} reads {table}, which is not declared before it"),
                    (_, false) => {
                        format!("{reader} is in the lane and reads {table}, which is neither in it nor an input")
                    }
                    _ => return (at, part),
                }
            }
        };
        self.refuse(misuse)
    }

    fn refuse(&mut self, misuse: String) -> ! {
        self.misuse = Some(misuse.clone());
        panic!("{misuse}");
    }

    pub(crate) fn finish(self) -> Record {
        Record { nodes: self.record, misuse: self.misuse, pending: self.pending }
    }

    /// What was read, in order, each once.
    pub(crate) fn into_list(self) -> Vec<Read> {
        let mut list = self.list.unwrap_or_default();
        list.sort_unstable();
        list.dedup();
        list
    }
}

impl Record {
    /// What a job read, by where it stands now.
    pub(crate) fn of(nodes: Vec<Node>, misuse: Option<String>, pending: bool) -> Self {
        Self { nodes, misuse, pending }
    }

    /// Replaces the records of `reader`: what it read before against what it read now. Only the difference is touched.
    pub(crate) fn wire(mut self, reader: Node, old: &[Node], earlier: &mut Tables) -> Option<Box<[Node]>> {
        self.nodes.sort_unstable();
        self.nodes.dedup();
        if self.nodes == old {
            return None;
        }
        for &node in self.nodes.iter().filter(|node| old.binary_search(node).is_err()) {
            earlier[usize::from(node.table)].add_reader(node, reader);
        }
        for &node in old.iter().filter(|node| self.nodes.binary_search(node).is_err()) {
            earlier[usize::from(node.table)].drop_reader(node, reader);
        }
        Some(self.nodes.into_boxed_slice())
    }
}
