//! The rows of a table that wait in the [`crate::backlog`].

use super::Store;
use crate::backlog::Backlog;
use crate::offload::Offload;
use crate::table::Table;

impl<T: Table> Store<T> {
    /// A change reaches a row: says whether it waits in the backlog from now on, or waited there before.
    pub(super) fn defer(&mut self, slot: u32, backlog: &mut Backlog) -> bool {
        if backlog.is_idle() || self.lane {
            return false;
        }
        let row = self.rows.get(slot);
        // What a job computes is due again when that is done.
        let is_here = matches!(row.offload, Offload::None | Offload::Cancelled);
        let Some(partition) = self.partition(slot).filter(|_| is_here) else { return false };
        if self.sums_up && backlog.is_admitting {
            backlog.put_last(partition);
        } else if !backlog.reach(partition) {
            return false;
        }
        let (at, row) = (self.at, self.rows.get_mut(slot));
        // One that is about to be computed is added when its turn comes.
        if !row.deferred && !row.dirty {
            row.deferred = true;
            backlog.add(partition, at, slot);
        }
        true
    }

    /// The turn of a row has come: if its partition waits it waits with it, so that all of it is computed together.
    pub(super) fn defer_with_partition(&mut self, slot: u32, backlog: &mut Backlog) -> bool {
        if backlog.len() == 0 || self.lane {
            return false;
        }
        let Some(partition) = self.partition(slot).filter(|partition| backlog.is_waiting(*partition)) else {
            return false;
        };
        self.leaving.remove(&slot);
        if !std::mem::replace(&mut self.rows.get_mut(slot).deferred, true) {
            backlog.add(partition, self.at, slot);
        }
        true
    }

    /// What the row of a key belongs to.
    pub(crate) fn partition_of(&self, key: &T::Key) -> Option<u64> {
        if self.sums_up { self.partition(self.rows.find(key)?) } else { self.rule.as_ref()?.partition(key) }
    }

    /// What a row belongs to. One that sums up is its own.
    fn partition(&self, slot: u32) -> Option<u64> {
        if self.sums_up {
            return Some(u64::from(self.at) << 32 | u64::from(slot));
        }
        self.rule.as_ref()?.partition(self.rows.key(slot))
    }
}
