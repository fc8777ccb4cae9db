//! What is withheld because clients rejected it, in the form in which replicas tell each other.
//!
//! The server itself withholds nothing; whoever publishes does, and this is how it says what.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// What can be withheld by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuarantineTarget {
    /// The type of the resource.
    pub kind: Kind,
    /// Its name; the listener's for a host.
    pub name: Arc<str>,
    /// The host, where the resource is one that many hosts share.
    pub host: Option<Arc<str>>,
}

impl QuarantineTarget {
    /// A whole resource.
    pub fn resource(kind: Kind, name: Arc<str>) -> Self {
        Self { kind, name, host: None }
    }
}

/// One version of something that is withheld.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quarantined {
    /// What is withheld.
    pub target: QuarantineTarget,
    /// The hash of its content.
    pub hash: u64,
    /// The error with which a client rejected it.
    pub text: Arc<str>,
}
