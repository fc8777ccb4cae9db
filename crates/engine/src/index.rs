//! The rows of a table by something in their value: index keys, who has them, and who asked.
//!
//! An index belongs to its table and is brought up to date with each row, so a probe never sees a half-done one. Members
//! are slots in the order of their keys. The index keys of a row are not stored: the old value is at hand when a row
//! changes, and [`Index::keys`] is pure. Neither are the parts of a [`PartIndex`]: those of the old and the new value are
//! compared, and a part that differs wakes those who read it. Of a large row both are looked at by its job ([`IndexOn::differ`]), so
//! that its owner only does what is different.

use std::any::Any;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::erased::{Claimer, Later};
use crate::node::{Node, Readers};
use crate::panicked::message_of;
use crate::slots::Slots;
use crate::store::Row;
use crate::table::{Index, PartIndex, Table};

type Rows<T> = Slots<<T as Table>::Key, Row<<T as Table>::Value>>;

/// An index as its table sees it.
pub(crate) trait IndexOn<T: Table>: Any + Send + Sync {
    fn len(&self) -> usize;
    fn update(
        &mut self,
        rows: &Rows<T>,
        row: u32,
        old: Option<&T::Value>,
        new: Option<&T::Value>,
        later: &mut Later<'_>,
    );
    /// Finds out on another thread what an update has to do.
    fn differ(&self) -> Differ<T>;
    /// The same as an update, with what was found out for these values.
    fn apply(&mut self, difference: Difference, rows: &Rows<T>, row: u32, later: &mut Later<'_>);
    fn add_reader(&mut self, node: Node, reader: Node);
    fn drop_reader(&mut self, node: Node, reader: Node);
    fn fresh(&self) -> Box<dyn IndexOn<T>>;
}

/// What is different between the old and the new value of a row, as the index that it is for has it.
pub(crate) type Difference = Box<dyn Any + Send>;
/// Finds it, given the key of the row, its old and its new value.
pub(crate) type Differ<T> = Box<
    dyn FnOnce(&<T as Table>::Key, Option<&<T as Table>::Value>, Option<&<T as Table>::Value>) -> Difference + Send,
>;

/// What becomes of a row's index key.
#[derive(Clone, Copy)]
enum Move {
    Left,
    Joined,
    /// It has another part.
    Changed,
}

/// One index key.
#[derive(Default)]
struct Entry {
    members: Vec<u32>,
    readers: Readers,
}

/// The entries of one index, and the later tables that have a row for each of its keys.
pub(crate) struct Entries<I: Index> {
    slots: Slots<I::Key, Entry>,
    pub(crate) claimers: Vec<Claimer<I::Key>>,
    /// How the parts of two values are compared, where parts are read.
    same_part: Option<SamePart<I>>,
}

type SamePart<I> = fn(&<I as Index>::Key, &ValueOf<I>, &ValueOf<I>) -> bool;
type ValueOf<I> = <<I as Index>::Of as Table>::Value;

impl<I: Index> Entries<I> {
    pub(crate) fn new() -> Self {
        Self { slots: Slots::new(), claimers: Vec::new(), same_part: None }
    }

    /// Whether the parts of rows are compared, so that they may be read.
    pub(crate) fn has_parts(&self) -> bool {
        self.same_part.is_some()
    }

    /// The rows that have a key, and their place, or the trace of a key that none has.
    pub(crate) fn members(&self, key: &I::Key) -> Result<(u32, &[u32]), u32> {
        let slot = self.slots.find(key).filter(|&slot| !self.slots.get(slot).members.is_empty());
        let slot = slot.ok_or_else(|| self.slots.trace(key))?;
        Ok((slot, &self.slots.get(slot).members))
    }

    fn join(&mut self, key: &I::Key, rows: &Rows<I::Of>, row: u32, later: &mut Later<'_>) {
        let slot = self.slots.intern(key);
        let entry = self.slots.get_mut(slot);
        let place = entry.members.partition_point(|&other| rows.key(other) < rows.key(row));
        if entry.members.is_empty() {
            entry.members.reserve_exact(1);
            later.claim(&self.claimers, key, true);
        }
        entry.members.insert(place, row);
        later.mark(entry.readers.iter());
        later.mark(self.slots.missed(key));
    }

    fn leave(&mut self, key: &I::Key, rows: &Rows<I::Of>, row: u32, later: &mut Later<'_>) {
        let Some(slot) = self.slots.find(key) else { return };
        let entry = self.slots.get_mut(slot);
        let place = entry.members.partition_point(|&other| rows.key(other) < rows.key(row));
        debug_assert_eq!(entry.members.get(place), Some(&row), "{}: keys() is not pure", I::NAME);
        entry.members.remove(place);
        later.mark(entry.readers.iter());
        if entry.members.is_empty() {
            later.claim(&self.claimers, key, false);
        }
        self.free(slot);
    }

    /// Whoever reads the parts that the rows have for a key is woken if that of a row differs.
    fn compare(&self, key: &I::Key, old: &ValueOf<I>, new: &ValueOf<I>, later: &mut Later<'_>) {
        let (Some(same), Some(slot)) = (self.same_part, self.slots.find(key)) else { return };
        let mut readers = self.slots.get(slot).readers.iter().filter(|reader| reader.is_marked()).peekable();
        // A panic is a difference: the readers see it themselves, and fail.
        if readers.peek().is_some() && !catch_unwind(AssertUnwindSafe(|| same(key, old, new))).unwrap_or(false) {
            later.mark(readers);
        }
    }

    /// Those who read the parts that rows have for a key are woken.
    fn wake(&self, key: &I::Key, later: &mut Later<'_>) {
        let Some(slot) = self.slots.find(key) else { return };
        later.mark(self.slots.get(slot).readers.iter().filter(|reader| reader.is_marked()));
    }

    fn free(&mut self, slot: u32) {
        let entry = self.slots.get(slot);
        if entry.members.is_empty() && entry.readers.is_empty() {
            self.slots.remove(slot);
        }
    }
}

impl<I: PartIndex> Entries<I> {
    /// From now on the parts of rows are compared.
    pub(crate) fn compare_parts(&mut self) {
        self.same_part = Some(|key, old, new| I::part(key, old) == I::part(key, new));
    }
}

impl<I: Index> IndexOn<I::Of> for Entries<I> {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn update(
        &mut self,
        rows: &Rows<I::Of>,
        row: u32,
        old: Option<&<I::Of as Table>::Value>,
        new: Option<&<I::Of as Table>::Value>,
        later: &mut Later<'_>,
    ) {
        walk::<I>(rows.key(row), old, new, |key, is| match (is, old, new) {
            (Move::Left, ..) => self.leave(&key, rows, row, later),
            (Move::Joined, ..) => self.join(&key, rows, row, later),
            (Move::Changed, Some(old), Some(new)) => self.compare(&key, old, new, later),
            (Move::Changed, ..) => {}
        });
    }

    fn differ(&self) -> Differ<I::Of> {
        let same_part = self.same_part;
        Box::new(move |key, old, new| {
            let mut moves: Vec<(I::Key, Move)> = Vec::new();
            walk::<I>(key, old, new, |key, is| {
                let is_same = match (is, same_part, old, new) {
                    (Move::Changed, Some(same), Some(old), Some(new)) => {
                        // A panic is a difference: the readers see it themselves, and fail.
                        catch_unwind(AssertUnwindSafe(|| same(&key, old, new))).unwrap_or(false)
                    }
                    (is, ..) => matches!(is, Move::Changed),
                };
                if !is_same {
                    moves.push((key, is));
                }
            });
            Box::new(moves)
        })
    }

    fn apply(&mut self, difference: Difference, rows: &Rows<I::Of>, row: u32, later: &mut Later<'_>) {
        let moves: Box<Vec<(I::Key, Move)>> =
            difference.downcast().expect("a difference goes to the index that it is for");
        for (key, is) in *moves {
            match is {
                Move::Left => self.leave(&key, rows, row, later),
                Move::Joined => self.join(&key, rows, row, later),
                Move::Changed => self.wake(&key, later),
            }
        }
    }

    fn add_reader(&mut self, node: Node, reader: Node) {
        match node.place() {
            (_, true) => self.slots.add_missed(node.slot, reader),
            (_, false) => self.slots.get_mut(node.slot).readers.insert(node.marked(reader)),
        }
    }

    fn drop_reader(&mut self, node: Node, reader: Node) {
        match node.place() {
            (_, true) => self.slots.drop_missed(node.slot, reader),
            (_, false) => {
                self.slots.get_mut(node.slot).readers.remove(node.marked(reader));
                self.free(node.slot);
            }
        }
    }

    fn fresh(&self) -> Box<dyn IndexOn<I::Of>> {
        Box::new(Self { slots: self.slots.fresh(), claimers: self.claimers.clone(), same_part: self.same_part })
    }
}

/// What becomes of each index key of a row, in order; those that it keeps may have another part.
fn walk<I: Index>(
    row: &<I::Of as Table>::Key,
    old: Option<&ValueOf<I>>,
    new: Option<&ValueOf<I>>,
    mut notify: impl FnMut(I::Key, Move),
) {
    let before = old.map(|value| keys_of::<I>(row, value)).unwrap_or_default();
    let after = new.map(|value| keys_of::<I>(row, value)).unwrap_or_default();
    let (mut before, mut after) = (before.into_iter().peekable(), after.into_iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (Some(left), Some(joined)) => left.cmp(joined),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        match (before.next_if(|_| order.is_le()), after.next_if(|_| order.is_ge())) {
            (Some(key), Some(_)) => notify(key, Move::Changed),
            (Some(key), None) => notify(key, Move::Left),
            (None, Some(key)) => notify(key, Move::Joined),
            (None, None) => {}
        }
    }
}

/// The index keys of one row, sorted. A panic gives none, now and when the row goes: the function is pure.
fn keys_of<I: Index>(key: &<I::Of as Table>::Key, value: &<I::Of as Table>::Value) -> Vec<I::Key> {
    let keys = catch_unwind(AssertUnwindSafe(|| I::keys(key, value).into_iter().collect::<Vec<_>>()));
    let mut keys = keys.unwrap_or_else(|panic| {
        tracing::error!(
            index = I::NAME,
            ?key,
            panic = message_of(&*panic),
            "the index skips a row: its key function panicked"
        );
        Vec::new()
    });
    keys.sort_unstable();
    keys.dedup();
    keys
}
