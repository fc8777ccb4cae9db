//! The version in which each kind is served.
//!
//! In: the version of every list that succeeds. Out: the version that a request about an object of the kind must name. Of the versions
//! that Sesame reads, an API server may serve any one, and another after its CRDs have changed: whoever writes asks here each time.

use kinds::Kind;
use parking_lot::RwLock;
use std::{collections::BTreeMap, sync::Arc};

/// The version in which each kind was read last. Clones are handles of the same one.
#[derive(Clone, Debug, Default)]
pub struct ServedVersions(Arc<RwLock<BTreeMap<Kind, &'static str>>>);

impl ServedVersions {
    /// The version of a kind; the preferred one before the kind was read.
    pub fn of(&self, kind: Kind) -> &'static str {
        self.0.read().get(&kind).copied().unwrap_or(kind.version())
    }

    /// A kind was read in a version.
    pub(super) fn found(&self, kind: Kind, version: &'static str) {
        if self.of(kind) != version {
            self.0.write().insert(kind, version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind::TCP_ROUTE;

    #[test]
    fn a_kind_has_the_version_that_it_was_read_in_last() {
        let versions = ServedVersions::default();
        let handle = versions.clone();
        let mut seen = vec![handle.of(TCP_ROUTE)];
        for version in ["v1alpha2", "v1"] {
            versions.found(TCP_ROUTE, version);
            seen.push(handle.of(TCP_ROUTE));
        }
        assert_eq!(seen, ["v1", "v1alpha2", "v1"]);
    }
}
