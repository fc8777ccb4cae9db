//! Slots: places in the chain of HTTP filters for filters that are added while connections are open.
//!
//! A changed connection manager never reaches connections that are open, so a filter that protects cannot be added with one:
//! they would stay unprotected. A slot is a filter whose configuration comes by ECDS. Filled, it reaches open connections with
//! their next request. An empty one is published as its default, so that an Envoy that returns has it and is sent nothing again.
//!
//! A listener waits for the resources of its slots, for 15 s at most, so that requests are neither open nor refused before these have
//! come. Every slot of a port that has chains is published. The default of a slot that only marked requests pass refuses them. That of the
//! slot of rate limits, which every request passes, does nothing: an Envoy whose controller ends just then serves without it.
//!
//! The slot of scripts stands only where the operator has scripts run. It is never open: see [`super::script`].
//!
//! `removed` makes a slot what its default is. The slots of JWT verification belong to filter chains: see [`super::jwt`].

use super::{ext_authz, script};
use crate::name;
use envoy_api::{
    Any, Name, any,
    envoy::{
        config::core::v3::{ExtensionConfigSource, TypedExtensionConfig},
        extensions::filters::{
            http::{ext_authz::v3::ExtAuthz, lua::v3::Lua, ratelimit::v3::RateLimit, rbac::v3::Rbac},
            network::http_connection_manager::v3::{HttpFilter, http_filter::ConfigType},
        },
    },
};
use model::{
    PortId,
    listener::{AuthorizationService, HttpSettings},
};
use std::fmt;

/// A place for a filter of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The script of the fleet.
    Script,
    /// External authorization by the server of the fleet, which the filter itself names. Only requests that are marked for it come here.
    ExtAuthzOfFleet,
    /// Global rate limits.
    RateLimit,
}

impl Slot {
    /// Those that every port has.
    pub const ON_EVERY_PORT: [Slot; 2] = [Slot::ExtAuthzOfFleet, Slot::RateLimit];

    /// Those of a port with these settings.
    pub fn of(http: &HttpSettings) -> impl Iterator<Item = Slot> {
        http.runs_scripts.then_some(Slot::Script).into_iter().chain(Slot::ON_EVERY_PORT)
    }

    /// What fills this slot of a port as long as nothing else does.
    pub fn empty(self, port: &PortId) -> TypedExtensionConfig {
        TypedExtensionConfig { name: name::slot(port, self), typed_config: Some(self.default_filter()) }
    }

    /// The filter of an empty slot.
    fn default_filter(self) -> Any {
        match self {
            Slot::Script => any(&script::closed()),
            // It refuses every request.
            Slot::ExtAuthzOfFleet => any(&ext_authz::of_fleet(&AuthorizationService::closed())),
            Slot::RateLimit => nothing(),
        }
    }

    /// Where the filter of this slot comes from.
    pub(super) fn source(self) -> ExtensionConfigSource {
        match self {
            Slot::Script => source(vec![Lua::type_url()], self.default_filter()),
            Slot::ExtAuthzOfFleet => source(vec![ExtAuthz::type_url()], self.default_filter()),
            Slot::RateLimit => source(vec![RateLimit::type_url(), Rbac::type_url()], self.default_filter()),
        }
    }

    /// This slot on a port as a filter of its own, which does what a resource of its [name](name::slot) says.
    pub(super) fn filter(self, port: &PortId) -> HttpFilter {
        let config_type = Some(ConfigType::ConfigDiscovery(self.source()));
        HttpFilter { name: name::slot(port, self), config_type, ..Default::default() }
    }
}

/// What fills a slot comes by ECDS.
pub(super) fn source(type_urls: Vec<String>, default: Any) -> ExtensionConfigSource {
    ExtensionConfigSource {
        config_source: Some(name::on_this_stream()),
        default_config: Some(default),
        // Else requests would be refused, or not be counted, until the resource has come.
        apply_default_config_without_warming: false,
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
            Slot::Script => f.write_str("lua"),
            Slot::ExtAuthzOfFleet => f.write_str("ext_authz-fleet"),
            Slot::RateLimit => f.write_str("ratelimit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_waits_for_every_slot() {
        for slot in [Slot::Script, Slot::ExtAuthzOfFleet, Slot::RateLimit] {
            assert!(!slot.source().apply_default_config_without_warming, "{slot}");
        }
    }
}
