//! What fills the slot for scripts: a Lua filter that runs nothing by itself.
//!
//! In: the script of the fleet. Out: a filter that has it under a name. A route that wants it run says that name ([`of_route`]), so the script
//! stands in one resource and an edit of it is no edit of routes. Where there is no script, or none that proxies accept, the name
//! leads to one that answers 503: what a script keeps away does not pass without it.

use super::slots::Slot;
use crate::name;
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{DataSource, TypedExtensionConfig, data_source::Specifier},
        extensions::filters::http::lua::v3::{Lua, LuaPerRoute, lua_per_route::Override},
    },
};
use model::{PortId, route::Policy};
use std::collections::BTreeMap;

/// The name of the script in the filter.
const NAME: &str = "script";
/// Answers every request with 503.
const CLOSED: &str = "function envoy_on_request(handle) handle:respond({[':status'] = '503'}, '') end";

/// The slot of a port, filled.
pub fn filled(port: &PortId, script: &str) -> TypedExtensionConfig {
    TypedExtensionConfig { name: name::slot(port, Slot::Script), typed_config: Some(any(&filter(script))) }
}

/// The filter without a script: it refuses what asks for one.
pub(super) fn closed() -> Lua {
    filter(CLOSED)
}

fn filter(script: &str) -> Lua {
    let script = DataSource { specifier: Some(Specifier::InlineString(script.to_owned())), ..Default::default() };
    Lua { source_codes: BTreeMap::from([(NAME.to_owned(), script)]), ..Default::default() }
}

/// What a route tells the slot, if it wants the script run.
pub(crate) fn of_route(port: &PortId, policy: &Policy) -> Option<(String, Any)> {
    let per_route = LuaPerRoute { r#override: Some(Override::Name(NAME.to_owned())), ..Default::default() };
    policy.runs_script.then(|| (name::slot(port, Slot::Script), any(&per_route)))
}
