//! GatewayClass, `gateway.networking.k8s.io/v1` and `v1beta1`.

use super::reference::ObjectReference;
use crate::{Checked, Meta, Status};
use serde::Deserialize;

/// Which controller owns the Gateways of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GatewayClass {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: GatewayClassSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a GatewayClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayClassSpec {
    /// The controller.
    #[serde(default)]
    pub controller_name: Checked<Option<Box<str>>>,
    /// Configuration of the controller for this class.
    #[serde(default)]
    pub parameters_ref: Checked<Option<Box<ObjectReference>>>,
}
