//! DevPortal: has no effect in Emissary, and none here.

use super::AmbassadorId;
use crate::{Checked, Meta};
use serde::Deserialize;

/// A developer portal: no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DevPortal {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: DevPortalSpec,
}

/// The specification of a DevPortal; what it says is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DevPortalSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
}
