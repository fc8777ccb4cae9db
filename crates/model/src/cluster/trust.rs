//! Whom a proxy trusts behind a TLS connection.

use crate::SecretId;
use std::sync::Arc;

/// What a route asks: the CA's Secret, and the names of which the backend's certificate must have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Validation {
    /// The Secret with the CA.
    pub ca: SecretId,
    /// The DNS names; never empty.
    pub names: Vec<Arc<str>>,
}

/// The same with the CA itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trust {
    /// The CA's certificates, PEM.
    pub bundle: Arc<str>,
    /// The DNS names; never empty.
    pub names: Vec<Arc<str>>,
}
