//! Slots: places in the chain of HTTP filters for filters that are added while connections are open.
//!
//! A changed connection manager never reaches connections that are open, so a filter that protects cannot be added with one:
//! they would stay unprotected. A slot is a filter whose configuration comes by ECDS. Filled, it reaches open connections with
//! their next request. An empty one is published as a filter that does nothing, so that an Envoy that returns has it and is sent
//! nothing again.
//!
//! The default of a slot that protects refuses what asks for it, so that nothing is open before its resource has come; and
//! a listener waits for the resource, so that nothing is refused either. It waits for ever if there is none: every slot of a port
//! that has chains is published. The slot of rate limits has the filter that does nothing as its default, and no listener waits for it.
//!
//! `removed` makes a slot what its default is. The slots of JWT verification belong to filter chains: see [`super::jwt`].

use super::ext_authz;
use crate::name;
use envoy_api::{
    Any, Name, any,
    envoy::{
        config::core::v3::{ExtensionConfigSource, TypedExtensionConfig},
        extensions::filters::{
            http::{ext_authz::v3::ExtAuthz, ratelimit::v3::RateLimit, rbac::v3::Rbac},
            network::http_connection_manager::v3::{HttpFilter, http_filter::ConfigType},
        },
    },
};
use model::{PortId, listener::AuthorizationService, route::Authorization};
use std::fmt;

/// A place for a filter of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// External authorization that refuses requests when nobody can be asked.
    ExtAuthz,
    /// External authorization that lets them pass.
    ExtAuthzFailOpen,
    /// External authorization by the server of the fleet, which the filter itself names.
    ExtAuthzOfFleet,
    /// Global rate limits.
    RateLimit,
}

impl Slot {
    /// All of them, in the order in which a request goes through them, which is Contour's.
    pub const ALL: [Slot; 4] = [Slot::ExtAuthz, Slot::ExtAuthzFailOpen, Slot::ExtAuthzOfFleet, Slot::RateLimit];

    /// The slot that asks an authorization server.
    pub fn ext_authz(fail_open: bool) -> Slot {
        if fail_open { Slot::ExtAuthzFailOpen } else { Slot::ExtAuthz }
    }

    /// The slot that asks about requests of a route, if one does.
    pub fn asking(authorization: &Authorization) -> Option<Slot> {
        match authorization {
            Authorization::Ask(check) => Some(Slot::ext_authz(check.server.fail_open)),
            Authorization::AskFleet(_) => Some(Slot::ExtAuthzOfFleet),
            Authorization::Unset | Authorization::AskDefault(_) | Authorization::Disabled => None,
        }
    }

    /// What fills this slot of a port as long as nothing else does.
    pub fn empty(self, port: &PortId) -> TypedExtensionConfig {
        TypedExtensionConfig { name: name::slot(port, self), typed_config: Some(nothing()) }
    }

    /// The filter of this slot on a port, which does what a resource of its [name](name::slot) says.
    pub fn filter(self, port: &PortId) -> HttpFilter {
        let (filled, default, is_default_closed) = match self {
            // It asks about marked requests, and about no others.
            Slot::ExtAuthz => (ExtAuthz::type_url(), any(&ext_authz::filter(false)), true),
            Slot::ExtAuthzFailOpen => (ExtAuthz::type_url(), any(&ext_authz::filter(true)), true),
            Slot::ExtAuthzOfFleet => {
                (ExtAuthz::type_url(), any(&ext_authz::of_fleet(&AuthorizationService::closed())), true)
            }
            Slot::RateLimit => (RateLimit::type_url(), nothing(), false),
        };
        let config_type =
            Some(ConfigType::ConfigDiscovery(source(vec![filled, Rbac::type_url()], default, is_default_closed)));
        HttpFilter { name: name::slot(port, self), config_type, ..Default::default() }
    }
}

/// What fills a slot comes by ECDS. A listener waits for what has a default that is closed.
pub(super) fn source(type_urls: Vec<String>, default: Any, is_default_closed: bool) -> ExtensionConfigSource {
    ExtensionConfigSource {
        config_source: Some(name::on_this_stream()),
        default_config: Some(default),
        // Else requests would be refused for a moment that the resource lets pass.
        apply_default_config_without_warming: !is_default_closed,
        type_urls,
    }
}

/// A filter without rules, which lets every request pass.
fn nothing() -> Any {
    any(&Rbac::default())
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::ExtAuthz => f.write_str("ext_authz"),
            Slot::ExtAuthzFailOpen => f.write_str("ext_authz-open"),
            Slot::ExtAuthzOfFleet => f.write_str("ext_authz-fleet"),
            Slot::RateLimit => f.write_str("ratelimit"),
        }
    }
}
