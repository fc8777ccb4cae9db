//! Whose messages are whose: requests and responses that servers are asked about end where they ended, and go where they went.
//!
//! An authorization server may add headers to a response, and a rate limit service to both messages; Envoy has rules only for what
//! authorization adds to requests. With a length or a status that does not fit the body, Envoy would write what the other side takes for the
//! next message of the connection, which may be somebody else's. So two filters stand on either side of those that ask, in every chain;
//! each does nothing for routes that do not name it:
//!
//! - Behind them, the filter of this module notes length and status of a response before headers are added to it, and gives a request back the
//!   headers that the other filter has noted.
//! - Before them, [the other one](super::response_script) notes headers of a request, and writes length and status of a response back. It
//!   also rewrites cookies.
//!
//! The connection manager removes what else would matter in a response: `transfer-encoding`, `connection` and `upgrade`.

use crate::listener::ext_authz::AuthorizationFilter;
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{DataSource, data_source::Specifier},
        extensions::filters::http::lua::v3::{Lua, LuaPerRoute, lua_per_route::Override},
    },
    google::protobuf::{Struct, Value, value},
};
use model::route::{Authorization, Policy};

/// The filter behind those that ask.
pub const FILTER: &str = "sesame.framing";
/// What it runs, and the name of it in the filter.
const SCRIPT: (&str, &str) =
    ("restore", concat!(include_str!("framing/protected.lua"), include_str!("framing/restore.lua")));

/// The headers of requests that are noted, for the script of the filter before those that ask.
pub(super) const PROTECTED: &str = include_str!("framing/protected.lua");

/// Where length and status of a response are noted, in the metadata of the request; the other script reads them there.
pub(super) const METADATA: &str = "sesame.response";

/// The filter, with its script, which it runs for no route that does not name it.
pub fn filter() -> Lua {
    let (name, text) = SCRIPT;
    let source = DataSource { specifier: Some(Specifier::InlineString(text.to_owned())), ..Default::default() };
    // The route stays the one whose protection the request has passed.
    Lua {
        source_codes: [(name.to_owned(), source)].into(),
        clear_route_cache: Some(false.into()),
        ..Default::default()
    }
}

/// What a route tells the filter, if a server is asked about its requests.
pub fn of(policy: &Policy) -> Option<(String, Any)> {
    let limited = ("limited".to_owned(), Value { kind: Some(value::Kind::BoolValue(true)) });
    let fields = if policy.descriptors().is_empty() { None } else { Some(limited) };
    let per_route = LuaPerRoute {
        r#override: Some(Override::Name(SCRIPT.0.to_owned())),
        filter_context: Some(Struct { fields: fields.into_iter().collect() }),
        ..Default::default()
    };
    restores_responses(policy).then(|| (FILTER.to_owned(), any(&per_route)))
}

/// Whether a server that is asked about requests of this route may add headers to responses.
pub(super) fn restores_responses(policy: &Policy) -> bool {
    AuthorizationFilter::of(&policy.authorization).is_some() || !policy.descriptors().is_empty()
}

/// Whether headers of requests are noted: a rate limit service may be asked. The authorization server of a fleet may lead a request to
/// another route, whose requests it is asked about.
pub(super) fn notes_requests(policy: &Policy) -> bool {
    !policy.descriptors().is_empty() || matches!(policy.authorization, Authorization::AskFleet(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::{admission, redirects};
    use model::header::FRAMING;

    #[test]
    fn headers_of_framing_of_routing_and_of_our_own_are_protected() {
        let own = [redirects::KEY, admission::CHAIN, admission::SERVER_NAME];
        let pseudo = [":method", ":scheme", ":authority", ":path"];
        for name in FRAMING.iter().chain(&own).chain(&pseudo) {
            assert!(PROTECTED.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
