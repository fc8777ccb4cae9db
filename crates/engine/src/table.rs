//! What a table is: the traits that the users of the engine implement.
//!
//! A table is a type. Its key and value are the type's, so that a read is `reads.get::<Services>(&key)` and the compiler
//! knows what comes back; there are no handles to pass around, and a crate that declares tables needs to know only the
//! tables it reads. The alternatives were a struct of all tables made by a macro (one crate would have to know them all,
//! and no dialect could be left out) and string names with values of any type (errors at run time).

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use crate::Reads;

/// What can be a key: ordered (all output is in key order), hashed (how a row is found), and cheap to clone.
///
/// A key is kept once per table that has or misses it; `Arc<str>` inside is better than `String`.
pub trait Key: Ord + Hash + Clone + Debug + Send + Sync + 'static {}

impl<K: Ord + Hash + Clone + Debug + Send + Sync + 'static> Key for K {}

/// A map from key to value that the engine keeps. It is either an [`Input`] or [`Derived`].
pub trait Table: Send + Sync + 'static {
    /// What a row is found by.
    type Key: Key;
    /// What a row holds. Equality is the cut-off: an equal value wakes no reader.
    type Value: PartialEq + Send + Sync + 'static;
    /// The name in counters, logs and debug pages: lower case, plural, unique in a pipeline.
    const NAME: &'static str;
}

/// A table whose rows are set from outside, by [`Engine::set`](crate::Engine::set).
pub trait Input: Table {}

/// A table whose rows are computed from earlier tables.
///
/// Which keys it has is said where it is declared: [`each`](crate::Declared::each), [`per`](crate::Declared::per),
/// [`always`](crate::Declared::always).
pub trait Derived: Table {
    /// The value of the row `key`, or `None` when there is to be no such row.
    ///
    /// Must be pure: a function of `self` (which never changes), `key` and what `reads` answers. No clocks, no
    /// randomness, no iteration over hash maps: the same reads give the same value, on every replica and every rebuild.
    fn compute(&self, key: &Self::Key, reads: &mut Reads<'_>) -> Option<Self::Value>;

    /// What the row is while `compute` [is pending](Reads::set_pending) and there is a last good value: that value. A table
    /// whose rows say something that must be heard meanwhile (what they refer to) adds it from what was `computed`.
    fn while_pending(&self, good: &Arc<Self::Value>, _computed: Option<Self::Value>) -> Arc<Self::Value> {
        Arc::clone(good)
    }

    /// Whether the row takes long to compute: a millisecond is long. Such rows are computed on another thread while the
    /// engine [offloads](crate::Engine::set_offloading). Must be quick itself; what it reads is not recorded.
    fn is_large(&self, _key: &Self::Key, _reads: &mut Reads<'_>) -> bool {
        false
    }

    /// What the row belongs to, where many that a single change reaches are computed in parts: all rows of one partition, in
    /// whichever tables, are computed together ([`Engine::limit_fan_out`](crate::Engine::limit_fan_out)). A row without one is
    /// always computed at once. Must be pure. Not asked of tables in the lane.
    fn partition(&self, _key: &Self::Key) -> Option<u64> {
        None
    }

    /// What the row is when `compute` panicked with `message` and there is no last good value to keep.
    fn on_panic(&self, _key: &Self::Key, _message: &str) -> Option<Self::Value> {
        None
    }
}

/// A way to find the rows of a table by something in their value: by namespace, by host, by target.
///
/// Two uses: [`Reads::probe`] asks which rows have an index key, and [`per`](crate::Declared::per) makes a later table
/// have one row for each index key that at least one row names (contributions keyed by their target).
pub trait Index: 'static {
    /// The table that is indexed.
    type Of: Table;
    /// What it is indexed by.
    type Key: Key;
    /// The name in debug pages.
    const NAME: &'static str;

    /// The index keys of one row; duplicates do not matter. Must be pure, as [`Derived::compute`].
    ///
    /// The engine does not store them: it asks again with the old value when a row changes. A row on which this panics
    /// has none.
    fn keys(key: &<Self::Of as Table>::Key, value: &<Self::Of as Table>::Value) -> impl IntoIterator<Item = Self::Key>;
}

/// An index whose keys stand for parts of a row: an object with a thousand hosts has a part for each of them.
///
/// [`Reads::parts`] gives the parts that all rows have for one key, and depends on nothing else of these rows, so that a
/// change of one part reaches the readers of that part only. A table of parts would do the same with a row for each;
/// this keeps nothing, since the old value is at hand when a row changes.
pub trait PartIndex: Index {
    /// What is read of a row. Equality is the cut-off.
    type Part<'v>: PartialEq;

    /// The part of a row for one of its keys. Must be pure, as [`Index::keys`].
    fn part<'v>(key: &Self::Key, value: &'v <Self::Of as Table>::Value) -> Self::Part<'v>;
}
