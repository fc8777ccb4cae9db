//! All that one replica knows of the others.

use crate::message::{Question, Shared};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xds::Tallies;

/// What a follower has said.
#[derive(Default)]
pub(crate) struct Follower {
    pub holds: Shared,
    pub answers: HashMap<Question, Tallies>,
}

#[derive(Default)]
pub(crate) struct State {
    /// What this replica withholds.
    pub own: Shared,
    /// What the holder says that others withhold.
    pub from_holder: Shared,
    pub followers: BTreeMap<u64, Follower>,
    /// What this replica's status wants to know.
    pub asked: BTreeSet<Question>,
    /// What must be known to decide cases, and for how many.
    pub cases: BTreeMap<Question, usize>,
}

impl State {
    /// What others than `but` withhold; without one, others than this replica.
    pub fn others(&self, but: Option<u64>) -> Shared {
        let mut all = if but.is_some() { self.own.clone() } else { self.from_holder.clone() };
        let others = self.followers.iter().filter(|(id, _)| Some(**id) != but);
        others.for_each(|(_, follower)| all.add(&follower.holds));
        all
    }

    /// All that followers are asked.
    pub fn questions(&self) -> Vec<Question> {
        self.asked.union(&self.cases.keys().cloned().collect()).cloned().collect()
    }
}
