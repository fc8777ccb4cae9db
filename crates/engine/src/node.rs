//! The two ends of a dependency record: a [`Node`] that is read, and the set of [`Readers`] that read it.
//!
//! Records are kept both ways. Forward (row to what it read) is one sorted boxed slice per row. Reverse is a set per node,
//! because one settings row may have every unit as its reader and units come and go singly: a list would make that
//! quadratic, a tree for every node would cost a hundred bytes where one reader is the rule.

use std::collections::BTreeSet;

/// Something that can be read: a row, an index key, the membership of a whole table, or the absence of one of the former.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) table: u16,
    pub(crate) part: u16,
    /// The place of the row or index key; of one that is absent, its trace ([`crate::slots::Slots::trace`]).
    pub(crate) slot: u32,
}

/// The part that holds a table's rows; part `n + 1` is its index `n`.
pub(crate) const ROWS: u16 = 0;
/// The part that stands for which rows a table has.
pub(crate) const MEMBERS: u16 = CONTENTS - 1;
/// Added to the number of an index where the parts of its rows were read, not only which rows have the key; and to the part of
/// whoever read them.
pub(crate) const CONTENTS: u16 = 1 << 14;
/// Added to the part of a row where only whether it failed was read; and to the part of whoever read that.
pub(crate) const FAILURE: u16 = CONTENTS;
/// Added to the part where nothing was found.
pub(crate) const ABSENT: u16 = 1 << 15;

impl Node {
    /// The part, and whether nothing was found there.
    pub(crate) fn place(self) -> (u16, bool) {
        (self.part & !(ABSENT | CONTENTS), self.part & ABSENT != 0)
    }

    /// A reader of this row or index key, marked if it read a part of it: of rows for this key, or whether the row failed.
    pub(crate) fn marked(self, reader: Self) -> Self {
        Self { part: reader.part | (self.part & CONTENTS), ..reader }
    }

    /// Whether this reader is marked.
    pub(crate) fn is_marked(self) -> bool {
        self.part & CONTENTS != 0
    }
}

/// From this many readers on, a tree is cheaper than shifting a sorted list.
const MANY: usize = 64;

/// Who reads a node, in order. Most nodes have one reader or two, so the others are behind a pointer.
#[derive(Default)]
#[allow(clippy::box_collection, reason = "every row and every absence has one of these: 16 bytes instead of 32")]
pub(crate) enum Readers {
    #[default]
    None,
    One(Node),
    Two(Box<[Node; 2]>),
    Few(Box<Vec<Node>>),
    Many(Box<BTreeSet<Node>>),
}

impl Readers {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(crate) fn insert(&mut self, reader: Node) {
        match self {
            Self::None => *self = Self::One(reader),
            Self::One(first) if *first == reader => {}
            Self::One(first) => *self = Self::Two(Box::new([reader.min(*first), reader.max(*first)])),
            Self::Two(both) => {
                if let Err(place) = both.binary_search(&reader) {
                    let mut list = both.to_vec();
                    list.insert(place, reader);
                    *self = Self::Few(Box::new(list));
                }
            }
            Self::Few(list) => {
                if let Err(place) = list.binary_search(&reader) {
                    list.insert(place, reader);
                    if list.len() > MANY {
                        *self = Self::Many(Box::new(list.iter().copied().collect()));
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
            Self::Two(both) => match **both {
                [first, second] if first == reader => *self = Self::One(second),
                [first, second] if second == reader => *self = Self::One(first),
                _ => {}
            },
            Self::Few(list) => {
                if let Ok(place) = list.binary_search(&reader) {
                    list.remove(place);
                    if let [first, second] = list[..] {
                        *self = Self::Two(Box::new([first, second]));
                    }
                }
            }
            Self::Many(set) => {
                set.remove(&reader);
                // Well below the way up, so that a set at the edge does not change its form with every edit.
                if set.len() < MANY / 2 {
                    *self = Self::Few(Box::new(set.iter().copied().collect()));
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Node> + '_ {
        let (list, set): (&[Node], Option<&BTreeSet<Node>>) = match self {
            Self::None => (&[], None),
            Self::One(reader) => (std::slice::from_ref(reader), None),
            Self::Two(both) => (&**both, None),
            Self::Few(list) => (list, None),
            Self::Many(set) => (&[], Some(set)),
        };
        list.iter().chain(set.into_iter().flatten()).copied()
    }
}
