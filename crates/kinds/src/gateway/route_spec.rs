//! What HTTPRoutes, GRPCRoutes and TLSRoutes have in common.

use super::reference::ParentReference;
use crate::{Checked, List};
use serde::Deserialize;

/// The specification of a route with hostnames, and rules of this type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteSpec<R> {
    /// What it attaches to.
    #[serde(default)]
    pub parent_refs: List<ParentReference>,
    /// Whether it attaches to default Gateways (experimental).
    #[serde(default)]
    pub use_default_gateways: Checked<Option<Box<str>>>,
    /// The hostnames; those of the listener if empty.
    #[serde(default)]
    pub hostnames: List<Box<str>>,
    /// The rules; of a TLSRoute exactly one.
    #[serde(default)]
    pub rules: List<R>,
}
