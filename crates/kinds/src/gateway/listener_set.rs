//! ListenerSet, `gateway.networking.k8s.io/v1`.

use super::{listener::Listener, reference::ObjectReference};
use crate::{Checked, List, Meta, Status};
use serde::Deserialize;

/// More listeners of a Gateway, in an object of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListenerSet {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: ListenerSetSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a ListenerSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerSetSpec {
    /// The Gateway.
    #[serde(default)]
    pub parent_ref: Checked<Option<Box<ObjectReference>>>,
    /// The listeners.
    #[serde(default)]
    pub listeners: List<Listener>,
}
