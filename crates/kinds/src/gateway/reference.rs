//! References between objects of Gateway API: to parents, backends, Secrets and others.

use crate::{List, TextMap, open_enum::open_enum};
use serde::Deserialize;

/// The Gateway or ListenerSet that a route attaches to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// The group; `gateway.networking.k8s.io` if absent.
    pub group: Option<Box<str>>,
    /// The kind; `Gateway` if absent.
    pub kind: Option<Box<str>>,
    /// The namespace; that of the route if absent.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Box<str>,
    /// The listener, by name; all of them if absent.
    pub section_name: Option<Box<str>>,
    /// The listeners on this port; all of them if absent.
    pub port: Option<i64>,
}

/// An object in a namespace that may be another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct ObjectReference {
    /// The group; the default depends on the field.
    pub group: Option<Box<str>>,
    /// The kind; the default depends on the field.
    pub kind: Option<Box<str>>,
    /// The namespace; that of the referring object if absent.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Box<str>,
}

/// An object in the namespace of the referring one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct LocalReference {
    /// The group.
    pub group: Box<str>,
    /// The kind.
    pub kind: Box<str>,
    /// The name.
    pub name: Box<str>,
}

/// A port of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct BackendReference {
    /// The group; the core group if absent.
    pub group: Option<Box<str>>,
    /// The kind; `Service` if absent.
    pub kind: Option<Box<str>>,
    /// The namespace; that of the referring object if absent.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Box<str>,
    /// The port; required for a Service.
    pub port: Option<i64>,
}

/// A port of a backend, with its share of the requests or connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct WeightedBackend {
    /// The group; the core group if absent.
    pub group: Option<Box<str>>,
    /// The kind; `Service` if absent.
    pub kind: Option<Box<str>>,
    /// The namespace; that of the route if absent.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Box<str>,
    /// The port; required for a Service.
    pub port: Option<i64>,
    /// The share; 1 if absent.
    pub weight: Option<i64>,
}

/// Objects by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that an object must have.
    #[serde(default)]
    pub match_labels: TextMap,
    /// Requirements that an object must meet.
    #[serde(default)]
    pub match_expressions: List<LabelRequirement>,
}

/// A requirement of a label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LabelRequirement {
    /// The label.
    pub key: Box<str>,
    /// How its value is compared.
    pub operator: Option<LabelOperator>,
    /// The values, for `In` and `NotIn`.
    #[serde(default)]
    pub values: Box<[Box<str>]>,
}

open_enum! {
    /// How the value of a label is compared.
    LabelOperator {
        /// The value is one of the list.
        In = "In",
        /// The value is not in the list, or the label is absent.
        NotIn = "NotIn",
        /// The label is present.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
    }
}
