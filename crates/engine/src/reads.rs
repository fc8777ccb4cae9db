//! The only door from a computation to other tables, and the record of what went through it.
//!
//! Four kinds of read, each as narrow as it can be: a row by its key (a miss is recorded too: the row may appear), the
//! membership of one index key, the parts that its members have for it, the membership of a whole table. What a computation did not ask cannot wake it. There is
//! no way to walk over the values of a table: read who is there, then get each by key.
//!
//! During a computation the tables are borrowed shared, so that several can run side by side one day.

use std::any::TypeId;
use std::sync::Arc;

use crate::erased::{Places, Tables, store};
use crate::node::{ABSENT, CONTENTS, MEMBERS, Node, ROWS};
use crate::store::{Row, Store};
use crate::table::{Index, PartIndex, Table};

/// Read access to the tables before the one that is computed. References live as long as the tables are borrowed, not
/// only as long as the `Reads`, so values may be kept while reading on.
pub struct Reads<'a> {
    tables: &'a Tables,
    places: &'a Places,
    reader: Reader,
    record: Vec<Node>,
    /// The same for people, if they asked.
    list: Option<Vec<Read>>,
    misuse: Option<String>,
    pending: bool,
}

/// On whose behalf is read.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) lane: bool,
}

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
    pub(crate) fn new(tables: &'a Tables, places: &'a Places, reader: Reader) -> Self {
        Self { tables, places, reader, record: Vec::new(), list: None, misuse: None, pending: false }
    }

    /// The same, and what is read is written down for people.
    pub(crate) fn listing(tables: &'a Tables, places: &'a Places, reader: Reader) -> Self {
        Self { list: Some(Vec::new()), ..Self::new(tables, places, reader) }
    }

    /// The row `key` of table `T`.
    pub fn get<T: Table>(&mut self, key: &T::Key) -> Option<&'a Arc<T::Value>> {
        self.row::<T>(key)?.1.value.as_ref()
    }

    /// Why the row `key` of table `T` is held, if its last computation panicked: for verdicts. Depends on that row.
    pub fn held<T: Table>(&mut self, key: &T::Key) -> Option<&'a str> {
        let (slot, _) = self.row::<T>(key)?;
        let (at, _) = self.open::<T, T>();
        store::<T>(&*self.tables[usize::from(at)]).holds.get(&slot)?.message()
    }

    /// Says that the value of this computation depends on something that is not known yet: the row keeps its last good
    /// value ([`Derived::while_pending`](crate::Derived::while_pending)); without one it is what the computation gives.
    pub fn set_pending(&mut self) {
        self.pending = true;
    }

    pub(crate) fn pending(&self) -> bool {
        self.pending
    }

    fn row<T: Table>(&mut self, key: &T::Key) -> Option<(u32, &'a Row<T::Value>)> {
        let (table, _) = self.open::<T, T>();
        let rows = &store::<T>(&*self.tables[usize::from(table)]).rows;
        let found = rows.find(key).map(|slot| (slot, rows.get(slot)));
        self.record.push(match found {
            Some((slot, row)) if row.value.is_some() => Node { table, part: ROWS, slot },
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
        let (store, members) = self.members::<I>(key, 0);
        members.iter().map(|&slot| store.rows.key(slot))
    }

    /// The parts that rows have for the index key `key`, with the keys of these rows, in order. Depends on which rows they
    /// are and on these parts, not on what the rows hold besides.
    pub fn parts<I: PartIndex>(&mut self, key: &I::Key) -> Vec<(&'a <I::Of as Table>::Key, I::Part<'a>)> {
        let (_, part) = self.open::<I::Of, I>();
        let (store, members) = self.members::<I>(key, CONTENTS);
        if !store.index::<I>(part).has_parts() {
            self.refuse(format!("{} reads parts of {}, which are not declared", self.reader.name, I::Of::NAME));
        }
        let part = |&slot: &u32| Some((store.rows.key(slot), I::part(key, store.rows.get(slot).value.as_deref()?)));
        members.iter().filter_map(part).collect()
    }

    /// The rows that have an index key; `contents` marks the record of a reader of their parts.
    fn members<I: Index>(&mut self, key: &I::Key, contents: u16) -> (&'a Store<I::Of>, &'a [u32]) {
        let (table, part) = self.open::<I::Of, I>();
        let store = store::<I::Of>(&*self.tables[usize::from(table)]);
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
        self.record.push(Node { table, part: MEMBERS, slot: 0 });
        self.list(|| Read { table: T::NAME, index: None, key: None });
        let rows = store::<T>(&*self.tables[usize::from(table)]).rows.sorted();
        rows.into_iter().filter(|(_, row)| row.value.is_some()).map(|(key, _)| key).collect()
    }

    fn list(&mut self, read: impl FnOnce() -> Read) {
        if let Some(list) = &mut self.list {
            list.push(read());
        }
    }

    /// The place of the table or index `W` (of table `T`), if the reader may read it.
    ///
    /// A wrong read is a mistake in the program, not in an input: it must not end as one more held row. So it is noted, and
    /// the engine panics with it once the computation is unwound.
    fn open<T: Table, W: 'static>(&mut self) -> (u16, u16) {
        let (reader, table) = (self.reader.name, T::NAME);
        let trouble = match self.places.get(&TypeId::of::<W>()) {
            None => format!("{reader} reads {}, which is not declared", std::any::type_name::<W>()),
            Some(&(at, part)) => match self.tables.get(usize::from(at)) {
                None => format!("{reader} reads {table}, which is not declared before it"),
                Some(it) if self.reader.lane && !it.is_lane() && !it.is_input() => {
                    format!("{reader} is in the lane and reads {table}, which is neither in it nor an input")
                }
                Some(_) => return (at, part),
            },
        };
        self.refuse(trouble)
    }

    fn refuse(&mut self, trouble: String) -> ! {
        self.misuse = Some(trouble.clone());
        panic!("{trouble}");
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
