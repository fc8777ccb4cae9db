//! The oracle: tables after any script of edits must equal those of a build from nothing.
//!
//! Compared are the values, which rows failed, and the size of the records (keys, index keys, dependency records): a
//! record that was not cleaned up shows as a difference too.

use std::fmt;

use crate::erased::{AnyTable, Tables};
use crate::panicked::StaleRow;
use crate::store::Store;
use crate::table::Table;

/// Where the tables differ from a build from nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The table's name.
    pub table: &'static str,
    /// The row's key, as `Debug` prints it; none when it is the table as a whole.
    pub key: Option<String>,
    /// How it differs.
    pub difference: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "table {}, row {key}: {}", self.table, self.difference),
            None => write!(f, "table {}: {}", self.table, self.difference),
        }
    }
}

impl std::error::Error for Divergence {}

pub(crate) fn compare_all(kept: &Tables, fresh: &Tables) -> Result<(), Divergence> {
    kept.iter().zip(fresh).try_for_each(|(kept, fresh)| kept.compare(&**fresh))
}

pub(crate) fn compare<T: Table>(kept: &Store<T>, fresh: &Store<T>) -> Result<(), Divergence> {
    let diverges = |key: Option<&T::Key>, difference: String| {
        Err(Divergence { table: T::NAME, key: key.map(|key| format!("{key:?}")), difference })
    };
    for (key, row) in kept.rows.sorted() {
        match (&row.value, fresh.get(key)) {
            (Some(kept), Some(fresh)) if kept != fresh => {
                return diverges(Some(key), "the value is not the one a fresh build gives".into());
            }
            (Some(_), None) => return diverges(Some(key), "a fresh build has no such row".into()),
            (None, Some(_)) => return diverges(Some(key), "only a fresh build has this row".into()),
            _ => {}
        }
    }
    for (key, row) in fresh.rows.sorted() {
        if row.value.is_some() && kept.get(key).is_none() {
            return diverges(Some(key), "only a fresh build has this row".into());
        }
    }
    let names = |store: &Store<T>| {
        let rows = store.stale_rows().into_iter();
        let name = |(key, stale): (&T::Key, &StaleRow<T::Value>)| {
            (format!("{key:?}"), stale.message().is_none(), stale.good.is_some())
        };
        rows.map(name).collect::<Vec<_>>()
    };
    let (failed, failed_fresh) = (names(kept), names(fresh));
    if failed != failed_fresh {
        return diverges(None, format!("failed rows {failed:?}, of a fresh build {failed_fresh:?}"));
    }
    let sizes_of = |store: &Store<T>| {
        let counters = store.counters();
        (counters.rows, counters.keys, counters.index_keys, counters.reads)
    };
    let (sizes, sizes_fresh) = (sizes_of(kept), sizes_of(fresh));
    if sizes != sizes_fresh {
        return diverges(
            None,
            format!("(rows, keys, index keys, reads) are {sizes:?}, in a fresh build {sizes_fresh:?}"),
        );
    }
    Ok(())
}
