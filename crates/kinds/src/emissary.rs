//! Emissary-ingress, `getambassador.io`: every kind of releases 3.9 to 4.1, in the shape of `v3alpha1`.
//!
//! Objects that are written as `v1` or `v2` are [converted](convert) before they are read, so there is one type for each kind.
//! Every field is here, also those that nothing serves: what is not supported must be seen to be refused. A field of `spec` is
//! [`Checked`] by itself; inside a policy a bad value spoils the policy. A missing value is kept as `None`: the defaults
//! depend on the `Module`, and the dialect applies them.

pub mod annotation;
pub mod auth_service;
pub mod convert;
pub mod dev_portal;
pub mod host;
pub mod listener;
pub mod log_service;
pub mod mapping;
pub mod module;
pub mod rate_limit_service;
pub mod resolver;
pub mod selector;
pub mod tcp_mapping;
pub mod tls_context;
pub mod tracing_service;

use crate::Checked;
use serde::Deserialize;
use std::collections::BTreeMap;

pub use auth_service::AuthService;
pub use dev_portal::DevPortal;
pub use host::Host;
pub use listener::Listener;
pub use log_service::LogService;
pub use mapping::Mapping;
pub use module::Module;
pub use rate_limit_service::RateLimitService;
pub use resolver::{ConsulResolver, KubernetesEndpointResolver, KubernetesServiceResolver};
pub use selector::Selector;
pub use tcp_mapping::TcpMapping;
pub use tls_context::TlsContext;
pub use tracing_service::TracingService;

/// The API group.
pub const GROUP: &str = "getambassador.io";

/// The id of objects that name none.
pub const DEFAULT_ID: &str = "default";

/// The id of objects that every instance reads.
pub const AUTOMATIC_ID: &str = "_automatic_";

/// The annotation with the ids of objects that have no field for them: Ingresses and IngressClasses.
pub const ID_ANNOTATION: &str = "getambassador.io/ambassador-id";

/// The fields of the API that nothing reads: what the conversion of Emissary keeps in order to restore the `v2` spelling.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[
    crate::meta::UNREAD,
    ("MappingSpec", &["v2ExplicitTLS", "v2BoolHeaders", "v2BoolQueryParameters"]),
    ("TcpMappingSpec", &["v2ExplicitTLS"]),
    ("AuthServiceSpec", &["v2ExplicitTLS"]),
    ("RateLimitServiceSpec", &["v2ExplicitTLS"]),
    ("AddedHeader", &["v2Representation"]),
    ("Cors", &["v2CommaSeparatedOrigins"]),
    ("GenericKey", &["v2Shorthand"]),
    ("DevPortalSpec", &["content", "default", "docs", "naming_scheme", "preserve_servers", "search", "selector"]),
];

/// Entries by name.
pub type Map<T> = BTreeMap<Box<str>, T>;

/// Which instances an object is for: `ambassador_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AmbassadorId(Box<[Box<str>]>);

impl AmbassadorId {
    /// The ids in the text of an annotation: one, or a list as JSON or YAML writes it.
    pub fn of_annotation(text: &str) -> Self {
        let text = text.trim();
        let in_brackets = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let ids: Vec<&str> = match in_brackets {
            Some(list) => list.split(',').collect(),
            None => text.lines().map(|line| line.trim_start().strip_prefix("- ").unwrap_or(line)).collect(),
        };
        let ids = ids.into_iter().map(|id| id.trim().trim_matches(['"', '\'']));
        Self(ids.filter(|id| !id.is_empty()).map(Into::into).collect())
    }

    /// Whether an instance with this id reads the object. An object without an id is for `default`; `_automatic_` is for all.
    pub fn includes(&self, id: &str) -> bool {
        match &*self.0 {
            [] => id == DEFAULT_ID,
            ids => ids.iter().any(|one| **one == *id || **one == *AUTOMATIC_ID),
        }
    }
}

/// Whether an object is for the instance with this id. One whose id cannot be read is for nobody: it may be another's.
pub fn is_for(ambassador_id: &Checked<AmbassadorId>, id: &str) -> bool {
    ambassador_id.ok().is_some_and(|ids| ids.includes(id))
}

/// An object that says which instances it is for.
pub trait HasAmbassadorId {
    /// Its ids.
    fn ambassador_id(&self) -> &Checked<AmbassadorId>;
}

/// Gives the types of all kinds of Emissary that have an id to another macro, as a list with commas.
#[macro_export]
macro_rules! emissary_types {
    ($give_to:ident) => {
        $give_to!(
            $crate::emissary::AuthService,
            $crate::emissary::ConsulResolver,
            $crate::emissary::DevPortal,
            $crate::emissary::Host,
            $crate::emissary::KubernetesEndpointResolver,
            $crate::emissary::KubernetesServiceResolver,
            $crate::emissary::Listener,
            $crate::emissary::LogService,
            $crate::emissary::Mapping,
            $crate::emissary::Module,
            $crate::emissary::RateLimitService,
            $crate::emissary::TcpMapping,
            $crate::emissary::TlsContext,
            $crate::emissary::TracingService,
        );
    };
}

macro_rules! has_ambassador_id {
    ($($type:ty),* $(,)?) => {$(
        impl HasAmbassadorId for $type {
            fn ambassador_id(&self) -> &Checked<AmbassadorId> {
                &self.spec.ambassador_id
            }
        }
    )*};
}

emissary_types!(has_ambassador_id);

#[cfg(test)]
mod tests;
