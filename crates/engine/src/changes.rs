//! What an output table tells the outside, and the note it keeps until it is asked.
//!
//! The note holds what the outside last heard of each key that changed since, so that a value that went and came back, or
//! a row that came and went, is no change at all.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::table::Table;

/// What changed in an output table since it was last asked, in key order.
pub struct Changes<T: Table> {
    /// Rows that are new or have another value.
    pub set: Vec<(T::Key, Arc<T::Value>)>,
    /// Rows that are gone; empty in the middle of a batch.
    pub gone: Vec<T::Key>,
}

impl<T: Table> Changes<T> {
    /// Nothing changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.gone.is_empty()
    }
}

/// Keys that changed since changes were last taken, and their value then.
pub(crate) struct Pending<T: Table>(HashMap<T::Key, Option<Arc<T::Value>>>);

impl<T: Table> Pending<T> {
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn note(&mut self, key: &T::Key, before: &Option<Arc<T::Value>>) {
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), before.clone());
        }
    }

    /// The changes, given what each key holds `now`. Removals wait for a later call unless `all` may be told.
    pub(crate) fn take<'a>(&mut self, all: bool, now: impl Fn(&T::Key) -> Option<&'a Arc<T::Value>>) -> Changes<T> {
        let mut changes = Changes::<T> { set: Vec::new(), gone: Vec::new() };
        for (key, before) in std::mem::take(&mut self.0) {
            match (before, now(&key)) {
                (Some(before), Some(now)) if Arc::ptr_eq(&before, now) || before == *now => {}
                (_, Some(now)) => changes.set.push((key, Arc::clone(now))),
                (Some(_), None) if all => changes.gone.push(key),
                (Some(before), None) => _ = self.0.insert(key, Some(before)),
                (None, None) => {}
            }
        }
        changes.set.sort_unstable_by(|(a, _), (b, _)| T::Key::cmp(a, b));
        changes.gone.sort_unstable();
        changes
    }
}
