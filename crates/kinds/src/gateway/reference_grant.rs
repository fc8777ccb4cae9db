//! ReferenceGrant, `gateway.networking.k8s.io/v1beta1` and `v1`.

use crate::{List, Meta};
use serde::Deserialize;

/// Permission for objects of other namespaces to refer to objects of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ReferenceGrant {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: ReferenceGrantSpec,
}

/// The specification of a ReferenceGrant: each of `from` may refer to each of `to`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ReferenceGrantSpec {
    /// Who may refer.
    #[serde(default)]
    pub from: List<GrantFrom>,
    /// To what.
    #[serde(default)]
    pub to: List<GrantTo>,
}

/// Objects of a kind in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GrantFrom {
    /// The group; empty for the core group.
    #[serde(default)]
    pub group: Box<str>,
    /// The kind.
    pub kind: Box<str>,
    /// The namespace.
    pub namespace: Box<str>,
}

/// Objects of a kind in the grant's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GrantTo {
    /// The group; empty for the core group.
    #[serde(default)]
    pub group: Box<str>,
    /// The kind.
    pub kind: Box<str>,
    /// The name; every one if absent.
    pub name: Option<Box<str>>,
}
