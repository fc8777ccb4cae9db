//! An extension as a filter calls it: a service that answers proxies, not clients.

use super::{Backend, ClusterId};
use crate::{ObjectRef, Timeout};
use std::sync::Arc;

/// An extension as a filter calls it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extension {
    /// Its cluster.
    pub cluster: ClusterId,
    /// The `:authority` of calls.
    pub authority: Arc<str>,
    /// How long a call may take, if the extension says so.
    pub response_timeout: Timeout,
}

impl Extension {
    /// The extension that an object describes, called by its server name, or else by the name of its cluster.
    pub fn of(object: ObjectRef, server_name: Option<Arc<str>>, response_timeout: Timeout) -> Self {
        let cluster = ClusterId { backend: Backend::Extension(object), overrides: None };
        let is_replaced = |character: char| character == '/' || character.is_control();
        let authority = server_name.unwrap_or_else(|| cluster.to_string().replace(is_replaced, ".").into());
        Self { cluster, authority, response_timeout }
    }

    /// One that does not exist or cannot be used: no proxy has its cluster, so every call fails at once.
    pub fn absent(object: ObjectRef) -> Self {
        Self::of(object, None, Timeout::Default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointsId;
    use kinds::kind::{CONTOUR_EXTENSION_SERVICE, SESAME_EXTENSION_SERVICE};
    use std::collections::BTreeSet;

    #[test]
    fn no_two_clusters_have_one_name() {
        let extension = |kind, name: &str| Extension::absent(ObjectRef::new(kind, "x", name)).cluster;
        let clusters = [
            extension(CONTOUR_EXTENSION_SERVICE, "auth"),
            extension(SESAME_EXTENSION_SERVICE, "auth"),
            extension(CONTOUR_EXTENSION_SERVICE, "80"),
            EndpointsId::tcp("extension", "x", 80).into(),
        ];
        let names: BTreeSet<String> = clusters.iter().map(ClusterId::to_string).collect();
        assert_eq!(names.len(), clusters.len(), "{names:?}");
        assert_eq!(clusters[0].to_string(), "extension/x/auth");
        let auth = Extension::absent(ObjectRef::new(CONTOUR_EXTENSION_SERVICE, "x", "auth"));
        assert_eq!(&*auth.authority, "extension.x.auth");
    }
}
