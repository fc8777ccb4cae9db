//! The script that runs on responses: it rewrites the cookies of backends, and restores what an authorization server has written over.
//!
//! In: the cookie rewrites of a route or of a backend's share, and whether a server is asked about its requests. Out: what the filter is
//! told there. Envoy has no filter for either, so it is a script: of fixed text, which the filter has once and the routes that need it
//! name, with what to change as data in its context. Nothing that a tenant wrote is ever in the text.
//!
//! It is one filter for both, because each filter costs every request, also one that has nothing to do. Envoy reads what the share of a
//! backend says instead of what its route says, so a share says both.

use super::{auth_response, cookies};
use crate::listener::ext_authz::AuthorizationFilter;
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{DataSource, data_source::Specifier},
        extensions::filters::http::lua::v3::{Lua, LuaPerRoute, lua_per_route::Override},
    },
    google::protobuf::{Struct, Value, value},
};
use model::route::{Authorization, CookieRewrite, Policy};

/// The filter that runs the script.
pub const FILTER: &str = "sesame.response";
/// What it runs, and the name of it in the filter.
const SCRIPT: (&str, &str) = ("rewrite", include_str!("response_script/rewrite.lua"));

/// The filter, with its script, which it runs for no route that does not name it.
pub fn filter() -> Lua {
    let (name, text) = SCRIPT;
    let source = DataSource { specifier: Some(Specifier::InlineString(text.to_owned())), ..Default::default() };
    Lua { source_codes: [(name.to_owned(), source)].into(), ..Default::default() }
}

/// What a route tells the filter, where it has something to tell.
pub fn of_route(policy: &Policy) -> Option<(String, Any)> {
    let is_authorized = AuthorizationFilter::of(&policy.authorization).is_some();
    (is_authorized || !policy.cookies.is_empty()).then(|| per_route(&policy.cookies, is_authorized))
}

/// What the share of a backend tells it, where it has cookies of its own.
pub fn of_share(cookies: &[CookieRewrite], authorization: &Authorization) -> Option<(String, Any)> {
    let is_authorized = AuthorizationFilter::of(authorization).is_some();
    (!cookies.is_empty()).then(|| per_route(cookies, is_authorized))
}

/// The script, and its context under the names that it looks for.
fn per_route(cookies: &[CookieRewrite], is_authorized: bool) -> (String, Any) {
    let mut context = Struct::default();
    if !cookies.is_empty() {
        context.fields.insert("cookies".to_owned(), cookies::changes(cookies));
    }
    if is_authorized {
        let noted = Value { kind: Some(value::Kind::StringValue(auth_response::METADATA.to_owned())) };
        context.fields.insert("noted".to_owned(), noted);
    }
    let told = LuaPerRoute {
        r#override: Some(Override::Name(SCRIPT.0.to_owned())),
        filter_context: Some(context),
        ..Default::default()
    };
    (FILTER.to_owned(), any(&told))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use envoy_api::Message;
    use model::route::cookies::CookieName;

    /// A share with cookies replaces what its route says, and must not open what that closes.
    #[test]
    fn a_share_with_cookies_restores_what_its_route_restores() {
        let name = CookieName::parse("a").unwrap();
        let cookie = CookieRewrite { name, path: None, domain: None, secure: Some(true), same_site: None };
        let asked = Authorization::AskFleet(Default::default());
        let (name, told) = of_share(&[cookie], &asked).unwrap();
        let told = LuaPerRoute::decode(told.value).unwrap();
        let context: Vec<String> = told.filter_context.unwrap().fields.into_keys().collect();
        assert_eq!((name.as_str(), context), (FILTER, vec!["cookies".to_owned(), "noted".to_owned()]));
        assert!(of_share(&[], &asked).is_none(), "the route's own is in force");
    }
}
