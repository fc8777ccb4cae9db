//! Equal facts for the status of objects, kept once: thousands of routes of one Gateway say the same.
//!
//! In: facts as the translation of an object has decided them. Out: the same, shared with every translation that has equal ones. It is
//! no input of anything: whether facts are shared shows in nothing but the memory that they take. Facts that nobody has any more are
//! forgotten.

use model::status::StatusFacts;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Weak},
};

/// How many facts there may be before those that nobody has any more are looked for.
const FEW: usize = 64;

/// All facts that somebody has.
#[derive(Debug, Default)]
pub struct EqualFacts {
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By their hash; of several with one hash, the last.
    by_hash: HashMap<u64, Weak<StatusFacts>>,
    /// How many there were that somebody has, when it was last looked at.
    in_use: usize,
}

impl EqualFacts {
    /// Facts that are equal to these, from whoever had them first.
    pub fn shared(&self, facts: Arc<StatusFacts>) -> Arc<StatusFacts> {
        let hash = self.hasher.hash_one(&facts);
        let mut known = self.known.lock();
        if let Some(equal) = known.by_hash.get(&hash).and_then(Weak::upgrade).filter(|equal| *equal == facts) {
            return equal;
        }
        known.by_hash.insert(hash, Arc::downgrade(&facts));
        if known.by_hash.len() > 2 * known.in_use.max(FEW) {
            known.by_hash.retain(|_, facts| facts.strong_count() > 0);
            known.in_use = known.by_hash.len();
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::status::{Condition, Scope, Truth};

    fn facts(message: &str) -> Arc<StatusFacts> {
        let conditions = vec![Condition::new("Accepted", Truth::True, "Accepted", message)];
        Arc::new(StatusFacts { object: Scope { conditions, ..Scope::default() }, lists: Vec::new() })
    }

    #[test]
    fn equal_facts_are_kept_once_and_others_apart() {
        let all = EqualFacts::default();
        let (first, second, other) = (all.shared(facts("a")), all.shared(facts("a")), all.shared(facts("b")));
        assert!(Arc::ptr_eq(&first, &second) && *first != *other);
        drop((first, second));
        assert_eq!(*all.shared(facts("a")), *facts("a"), "those that are gone are made anew");
    }

    #[test]
    fn what_nobody_has_is_forgotten() {
        let all = EqualFacts::default();
        let kept: Vec<_> = (0..100).map(|number| all.shared(facts(&format!("kept {number}")))).collect();
        for number in 0..10_000 {
            all.shared(facts(&number.to_string()));
        }
        let known = all.known.lock();
        assert!(known.by_hash.len() <= 4 * kept.len(), "{}", known.by_hash.len());
        assert!(known.by_hash.values().filter(|facts| facts.strong_count() > 0).count() == kept.len());
    }
}
