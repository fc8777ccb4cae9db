//! Keys that wait, each with the moment from which it may be worked on.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    time::Instant,
};

/// A queue in which each key stands once.
#[derive(Debug)]
pub(crate) struct Due<K> {
    at: HashMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Due<K> {
    fn default() -> Self {
        Self { at: HashMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Clone + Ord + Hash> Due<K> {
    /// Queues a key, or moves it forward: one that is asked for again keeps its place.
    pub fn put(&mut self, key: &K, at: Instant) {
        if let Some(before) = self.at.get(key) {
            if *before <= at {
                return;
            }
            self.order.remove(&(*before, key.clone()));
        }
        self.at.insert(key.clone(), at);
        self.order.insert((at, key.clone()));
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &K) {
        if let Some(at) = self.at.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// Takes the key that has waited longest, if its moment has come.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }

    /// When the next key's moment comes.
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.at.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_key_waits_once_for_its_moment() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut due = Due::default();
        due.put(&"a", after(5));
        due.put(&"b", after(1));
        due.put(&"a", after(2));
        due.put(&"b", after(3));
        assert_eq!((due.len(), due.next()), (2, Some(after(1))));
        assert_eq!(due.pop(begin), None);
        assert_eq!((due.pop(after(9)), due.pop(after(9)), due.pop(after(9))), (Some("b"), Some("a"), None));
        due.put(&"a", begin);
        due.remove(&"a");
        assert_eq!((due.len(), due.next()), (0, None));
    }
}
