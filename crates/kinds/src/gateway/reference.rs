//! References between objects of Gateway API: to parents, backends, Secrets and others.

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
