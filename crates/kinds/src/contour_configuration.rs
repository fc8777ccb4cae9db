//! ContourConfiguration, `projectcontour.io/v1alpha1` and `projectsesame.io/v1alpha1`.

use crate::{Meta, Status};
use serde::Deserialize;

/// The operator's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ContourConfiguration {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is set, as it is written: whoever knows the settings reads it.
    #[serde(default)]
    pub spec: serde_json::Value,
    /// What became of it.
    #[serde(default)]
    pub status: Status,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD];
