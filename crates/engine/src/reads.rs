//! The only door from a computation to other tables, and the record of what went through it.
//!
//! Three kinds of read, each as narrow as it can be: a row by its key (a miss is recorded too: the row may appear), the
//! membership of one index key, the membership of a whole table. What a computation did not ask cannot wake it. There is
//! no way to walk over the values of a table: read who is there, then get each by key.
//!
//! During a computation the tables are borrowed shared, so that several can run side by side one day; keys that were
//! missed and have no slot yet get it afterwards.

use std::any::TypeId;
use std::sync::Arc;

use crate::erased::{Places, Tables, store, store_mut};
use crate::node::{MEMBERS, Node, ROWS};
use crate::table::{Index, Table};

/// Gives a key that was missed its slot, so that the record of the miss can name it.
type Miss = Box<dyn FnOnce(&mut Tables) -> Node + Send>;

/// Read access to the tables before the one that is computed. References live as long as the tables are borrowed, not
/// only as long as the `Reads`, so values may be kept while reading on.
pub struct Reads<'a> {
    tables: &'a Tables,
    places: &'a Places,
    reader: Reader,
    record: Vec<Node>,
    misses: Vec<Miss>,
    misuse: Option<String>,
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
    misses: Vec<Miss>,
    pub(crate) misuse: Option<String>,
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
        Self { tables, places, reader, record: Vec::new(), misses: Vec::new(), misuse: None }
    }

    /// The row `key` of table `T`.
    pub fn get<T: Table>(&mut self, key: &T::Key) -> Option<&'a Arc<T::Value>> {
        let at = self.open::<T, T>();
        let store = store::<T>(&*self.tables[usize::from(at.0)]);
        let slot = self.note_row::<T>(at.0, store.rows.find(key), key)?;
        store.rows.get(slot).value.as_ref()
    }

    /// Why the row `key` of table `T` is held, if its last computation panicked: for verdicts. Depends on that row.
    pub fn held<T: Table>(&mut self, key: &T::Key) -> Option<&'a str> {
        let at = self.open::<T, T>();
        let store = store::<T>(&*self.tables[usize::from(at.0)]);
        let slot = self.note_row::<T>(at.0, store.rows.find(key), key)?;
        store.holds.get(&slot).map(|hold| hold.message.as_str())
    }

    /// The keys of the rows that have the index key `key`, in order. Depends on which they are, not on what they hold.
    pub fn probe<I: Index>(
        &mut self,
        key: &I::Key,
    ) -> impl ExactSizeIterator<Item = &'a <I::Of as Table>::Key> + use<'a, I> {
        let (table, part) = self.open::<I::Of, I>();
        let store = store::<I::Of>(&*self.tables[usize::from(table)]);
        let entries = store.index::<I>(part);
        let members = match entries.find(key) {
            Some(slot) => {
                self.record.push(Node { table, part, slot });
                entries.members(slot)
            }
            None => {
                let key = key.clone();
                self.misses.push(Box::new(move |tables| {
                    let store = store_mut::<I::Of>(&mut *tables[usize::from(table)]);
                    Node { table, part, slot: store.index_mut::<I>(part).intern(&key) }
                }));
                &[]
            }
        };
        members.iter().map(|&slot| store.rows.key(slot))
    }

    /// The keys of all rows of table `T`, in order. Depends on which they are: any row that comes or goes wakes the
    /// reader, and each scan costs the whole table. For small tables only (classes, listeners); else use an index.
    pub fn scan<T: Table>(&mut self) -> Vec<&'a T::Key> {
        let (table, _) = self.open::<T, T>();
        self.record.push(Node { table, part: MEMBERS, slot: 0 });
        let rows = store::<T>(&*self.tables[usize::from(table)]).rows.sorted();
        rows.into_iter().filter(|(_, row)| row.value.is_some()).map(|(key, _)| key).collect()
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
        self.misuse = Some(trouble.clone());
        panic!("{trouble}");
    }

    fn note_row<T: Table>(&mut self, table: u16, slot: Option<u32>, key: &T::Key) -> Option<u32> {
        match slot {
            Some(slot) => self.record.push(Node { table, part: ROWS, slot }),
            None => {
                let key = key.clone();
                self.misses.push(Box::new(move |tables| {
                    let slot = store_mut::<T>(&mut *tables[usize::from(table)]).rows.intern(&key);
                    Node { table, part: ROWS, slot }
                }));
            }
        }
        slot
    }

    pub(crate) fn finish(self) -> Record {
        Record { nodes: self.record, misses: self.misses, misuse: self.misuse }
    }
}

impl Record {
    /// Replaces the records of `reader`: what it read before against what it read now. Only the difference is touched.
    pub(crate) fn wire(mut self, reader: Node, old: &[Node], earlier: &mut Tables) -> Option<Box<[Node]>> {
        self.nodes.extend(self.misses.into_iter().map(|miss| miss(earlier)));
        self.nodes.sort_unstable();
        self.nodes.dedup();
        if self.nodes == old {
            return None;
        }
        // New readers first: a slot that was just given to a miss must not be taken back.
        for &node in self.nodes.iter().filter(|node| old.binary_search(node).is_err()) {
            earlier[usize::from(node.table)].add_reader(node, reader);
        }
        for &node in old.iter().filter(|node| self.nodes.binary_search(node).is_err()) {
            earlier[usize::from(node.table)].drop_reader(node, reader);
        }
        Some(self.nodes.into_boxed_slice())
    }
}
