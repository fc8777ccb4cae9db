//! Slots: places in the chain of HTTP filters for filters that are added while connections are open.
//!
//! A changed connection manager never reaches connections that are open, so a filter that protects cannot be added with one:
//! they would stay unprotected. A slot is a filter whose configuration comes by ECDS. Filled, it reaches open connections with
//! their next request. Nothing fills one yet: an empty one is published as a filter that does nothing, so that an Envoy that
//! returns has it and is sent nothing again. No listener waits for it: the same filter is its default.
//!
//! `removed` makes a slot empty again, that is, open: never while a host needs it.

pub mod rate_limit;

use crate::name;
use envoy_api::{
    Any, Name, any,
    envoy::{
        config::core::v3::{ExtensionConfigSource, TypedExtensionConfig},
        extensions::filters::{
            http::{
                ext_authz::v3::ExtAuthz, jwt_authn::v3::JwtAuthentication, ratelimit::v3::RateLimit, rbac::v3::Rbac,
            },
            network::http_connection_manager::v3::{HttpFilter, http_filter::ConfigType},
        },
    },
};
use model::PortId;
use std::fmt;

/// A place for a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// JWT verification.
    JwtAuthn,
    /// External authorization.
    ExtAuthz,
    /// Global rate limits.
    RateLimit,
}

impl Slot {
    /// All of them, in the order in which a request goes through them, which is Contour's.
    pub const ALL: [Slot; 3] = [Slot::JwtAuthn, Slot::ExtAuthz, Slot::RateLimit];

    /// What fills this slot of a port as long as nothing else does.
    pub fn empty(self, port: &PortId) -> TypedExtensionConfig {
        TypedExtensionConfig { name: name::slot(port, self), typed_config: Some(nothing()) }
    }

    /// The filter of this slot on a port, which does what a resource of its [name](name::slot) says.
    pub fn filter(self, port: &PortId) -> HttpFilter {
        let filled = match self {
            Slot::JwtAuthn => JwtAuthentication::type_url(),
            Slot::ExtAuthz => ExtAuthz::type_url(),
            Slot::RateLimit => RateLimit::type_url(),
        };
        let source = ExtensionConfigSource {
            config_source: Some(name::on_this_stream()),
            default_config: Some(nothing()),
            apply_default_config_without_warming: true,
            type_urls: vec![filled, Rbac::type_url()],
        };
        let config_type = Some(ConfigType::ConfigDiscovery(source));
        HttpFilter { name: name::slot(port, self), config_type, ..Default::default() }
    }
}

/// A filter without rules, which lets every request pass.
fn nothing() -> Any {
    any(&Rbac::default())
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Slot::JwtAuthn => "jwt_authn",
            Slot::ExtAuthz => "ext_authz",
            Slot::RateLimit => "ratelimit",
        })
    }
}
