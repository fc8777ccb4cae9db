//! ConfigMap, `v1`.

use crate::{Meta, TextMap};
use serde::Deserialize;

/// Settings and CA bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ConfigMap {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is in it.
    #[serde(default)]
    pub data: TextMap,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("ConfigMap", &["binaryData", "immutable"])];
