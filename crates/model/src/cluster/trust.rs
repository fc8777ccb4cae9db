//! Whom a proxy trusts behind a TLS connection.

use crate::SecretId;
use std::sync::Arc;

/// The CA, by the Secret that holds it, and the names of which the backend's certificate must have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Validation {
    /// The Secret with the CA.
    pub ca: SecretId,
    /// The DNS names; never empty.
    pub names: Vec<Arc<str>>,
}
