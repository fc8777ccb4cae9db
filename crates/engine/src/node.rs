//! The two ends of a dependency record: a [`Node`] that is read, and the set of [`Readers`] that read it.
//!
//! Records are kept both ways. Forward (row to what it read) is one sorted boxed slice per row. Reverse is a set per node,
//! because one settings row may have every unit as its reader and units come and go singly: a list would make that
//! quadratic, a tree for every node would cost a hundred bytes where one reader is the rule.

use std::collections::BTreeSet;

/// Something that can be read: a row, an index key, or the membership of a whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) table: u16,
    pub(crate) part: u16,
    pub(crate) slot: u32,
}

/// The part that holds a table's rows; part `n + 1` is its index `n`.
pub(crate) const ROWS: u16 = 0;
/// The part that stands for which rows a table has.
pub(crate) const MEMBERS: u16 = u16::MAX;

/// From this many readers on, a tree is cheaper than shifting a sorted list.
const MANY: usize = 64;

/// Who reads a node, in order.
#[derive(Default)]
pub(crate) enum Readers {
    #[default]
    None,
    One(Node),
    Few(Vec<Node>),
    Many(BTreeSet<Node>),
}

impl Readers {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(crate) fn insert(&mut self, reader: Node) {
        match self {
            Self::None => *self = Self::One(reader),
            Self::One(first) if *first == reader => {}
            Self::One(first) => *self = Self::Few(vec![reader.min(*first), reader.max(*first)]),
            Self::Few(list) => {
                if let Err(place) = list.binary_search(&reader) {
                    list.insert(place, reader);
                    if list.len() > MANY {
                        *self = Self::Many(list.iter().copied().collect());
                    }
                }
            }
            Self::Many(set) => _ = set.insert(reader),
        }
    }

    pub(crate) fn remove(&mut self, reader: Node) {
        match self {
            Self::None => {}
            Self::One(first) => {
                if *first == reader {
                    *self = Self::None;
                }
            }
            Self::Few(list) => {
                if let Ok(place) = list.binary_search(&reader) {
                    list.remove(place);
                    if let [last] = list[..] {
                        *self = Self::One(last);
                    }
                }
            }
            Self::Many(set) => {
                set.remove(&reader);
                // Well below the way up, so that a set at the edge does not change its form with every edit.
                if set.len() < MANY / 2 {
                    *self = Self::Few(set.iter().copied().collect());
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Node> + '_ {
        let (list, set): (&[Node], _) = match self {
            Self::None => (&[], None),
            Self::One(reader) => (std::slice::from_ref(reader), None),
            Self::Few(list) => (list, None),
            Self::Many(set) => (&[], Some(set)),
        };
        list.iter().chain(set.into_iter().flatten()).copied()
    }
}
