//! A list that grows while references into it are held: what a computation on another thread has read.
//!
//! A computation keeps references to the values it reads while it reads on. In the tables those live as long as the tables
//! are borrowed; on another thread nothing is borrowed, so the values are kept here for as long as the computation runs.
//! The list consists of blocks, each twice as long as the one before, so that nothing in it ever moves.

use std::cell::{Cell, OnceCell};

/// The length of the first block, as a power of two.
const FIRST: u32 = 5;
/// Enough for 2^32 entries.
const BLOCKS: usize = 28;

type Block<T> = Box<[OnceCell<T>]>;

/// An append-only list with stable addresses.
pub(crate) struct Arena<T> {
    blocks: [OnceCell<Block<T>>; BLOCKS],
    len: Cell<usize>,
}

impl<T> Arena<T> {
    pub(crate) fn new() -> Self {
        Self { blocks: [const { OnceCell::new() }; BLOCKS], len: Cell::new(0) }
    }

    /// Adds an entry and says where it is.
    pub(crate) fn push(&self, entry: T) -> usize {
        let at = self.len.get();
        let (block, offset, length) = place(at);
        let block = self.blocks[block].get_or_init(|| (0..length).map(|_| OnceCell::new()).collect());
        assert!(block[offset].set(entry).is_ok(), "every place is filled once");
        self.len.set(at + 1);
        at
    }

    pub(crate) fn get(&self, at: usize) -> &T {
        let (block, offset, _) = place(at);
        self.blocks[block].get().and_then(|block| block[offset].get()).expect("a place that was given out is filled")
    }

    /// All entries, in the order in which they came.
    pub(crate) fn into_vec(self) -> Vec<T> {
        let blocks = self.blocks.into_iter().filter_map(OnceCell::into_inner);
        blocks.flat_map(|block| block.into_vec().into_iter().filter_map(OnceCell::into_inner)).collect()
    }
}

/// The block of an entry, its place there, and how long the block is.
fn place(at: usize) -> (usize, usize, usize) {
    let shifted = at + (1 << FIRST);
    let power = shifted.ilog2();
    ((power - FIRST) as usize, shifted - (1 << power), 1 << power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_are() {
        let arena = Arena::new();
        let first: &usize = arena.get(arena.push(0));
        for at in 1..10_000 {
            assert_eq!(arena.push(at), at);
        }
        assert_eq!(*first, 0);
        assert!((0..10_000).all(|at| *arena.get(at) == at));
        assert!(arena.into_vec().into_iter().eq(0..10_000));
    }
}
