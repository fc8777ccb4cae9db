//! A fleet: a set of Envoys that get the same configuration.

use std::{fmt, sync::Arc};

/// The name of a fleet: the shared one, or that of a Gateway whose proxies Sesame provisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetId {
    /// Where the fleet's proxies live.
    pub namespace: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

impl FleetId {
    /// A fleet by its two names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for FleetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
