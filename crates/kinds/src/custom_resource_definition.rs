//! CustomResourceDefinition, `apiextensions.k8s.io/v1`: read for its annotations, which say what release of an API is installed.

use crate::Meta;
use serde::Deserialize;

/// A kind of the API server that is not built in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CustomResourceDefinition {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
}

impl CustomResourceDefinition {
    /// The API group of a definition by its name, `<plural>.<group>`.
    pub fn group(name: &str) -> &str {
        name.split_once('.').map_or("", |(_, group)| group)
    }
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("CustomResourceDefinition", &["spec", "status"])];
