//! Namespace, `v1`: read for its labels, which routes and grants select by.

use crate::Meta;
use serde::Deserialize;

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Namespace {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("Namespace", &["spec", "status"])];
