//! What one replica knows of what the others withhold.
//!
//! The control loop writes to it, so nothing else is under the same lock.

use crate::message::Shared;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Withheld {
    /// What this replica withholds.
    pub own: Shared,
    /// What others withhold, according to the leader.
    pub from_leader: Shared,
    /// What each follower withholds.
    pub followers: BTreeMap<u64, Shared>,
}

impl Withheld {
    /// What others than `but` withhold; without one, others than this replica.
    pub fn others(&self, but: Option<u64>) -> Shared {
        let mut all = if but.is_some() { self.own.clone() } else { self.from_leader.clone() };
        let others = self.followers.iter().filter(|(id, _)| Some(**id) != but);
        others.for_each(|(_, holds)| all.add(holds));
        all
    }
}
