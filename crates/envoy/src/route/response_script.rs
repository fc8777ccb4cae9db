//! The script that runs on responses: it rewrites the cookies of backends, and restores what servers that are asked about requests have
//! written over. For rate limit services it also notes the length of requests: see [`super::framing`].
//!
//! Before an authorization server that is sent whole bodies it refuses requests that say that theirs is too long: the filter that asks
//! the server does not count the frame that ends a request, and would cut a body that comes in one frame of HTTP/2.
//!
//! In: the cookie rewrites of a route or of a backend's share, and which servers are asked about its requests. Out: what the filter is
//! told there. Envoy has no filter for either, so it is a script: of fixed text, which the filter has once and the routes that need it
//! name, with what to change as data in its context. Nothing that a tenant wrote is ever in the text.
//!
//! It is one filter for both, because each filter costs every request, also one that has nothing to do. Envoy reads what the share of a
//! backend says instead of what its route says, so a share says both.

use super::{cookies, framing};
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{DataSource, data_source::Specifier},
        extensions::filters::http::lua::v3::{Lua, LuaPerRoute, lua_per_route::Override},
    },
    google::protobuf::{Struct, Value, value},
};
use model::route::{CookieRewrite, Policy};

/// The filter that runs the script.
pub const FILTER: &str = "sesame.response";
/// What it runs, and the name of it in the filter.
const SCRIPT: (&str, &str) = ("rewrite", include_str!("response_script/rewrite.lua"));

/// The filter, with its script, which it runs for no route that does not name it.
pub fn filter() -> Lua {
    let (name, text) = SCRIPT;
    let text = format!("{}{text}", framing::PROTECTED);
    let source = DataSource { specifier: Some(Specifier::InlineString(text)), ..Default::default() };
    Lua { source_codes: [(name.to_owned(), source)].into(), ..Default::default() }
}

/// What a route tells the filter, where it has something to tell.
pub fn of_route(policy: &Policy) -> Option<(String, Any)> {
    (framing::restores_responses(policy) || !policy.cookies.is_empty()).then(|| per_route(&policy.cookies, policy))
}

/// What the share of a backend tells it, where it has cookies of its own.
pub fn of_share(cookies: &[CookieRewrite], policy: &Policy) -> Option<(String, Any)> {
    (!cookies.is_empty()).then(|| per_route(cookies, policy))
}

/// The script, and its context under the names that it looks for.
fn per_route(cookies: &[CookieRewrite], policy: &Policy) -> (String, Any) {
    let mut context = Struct::default();
    if !cookies.is_empty() {
        context.fields.insert("cookies".to_owned(), cookies::changes(cookies));
    }
    if framing::restores_responses(policy) {
        let noted = Value { kind: Some(value::Kind::StringValue(framing::METADATA.to_owned())) };
        context.fields.insert("noted".to_owned(), noted);
    }
    if framing::notes_requests(policy) {
        context.fields.insert("notes".to_owned(), Value { kind: Some(value::Kind::BoolValue(true)) });
    }
    if let Some(most) = longest_body(policy) {
        let most = Value { kind: Some(value::Kind::NumberValue(most.into())) };
        context.fields.insert("max_request_bytes".to_owned(), most);
    }
    let per_route = LuaPerRoute {
        r#override: Some(Override::Name(SCRIPT.0.to_owned())),
        filter_context: Some(context),
        ..Default::default()
    };
    (FILTER.to_owned(), any(&per_route))
}

/// The most bytes that a request may have, where its authorization server is sent bodies and none of them may be cut.
fn longest_body(policy: &Policy) -> Option<u32> {
    let body = policy.authorization.check()?.server.body?;
    (!body.partial).then_some(body.most)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use envoy_api::Message;
    use model::{
        Timeout,
        route::{
            AuthCheck, AuthServer, Authorization, Descriptor, DescriptorEntry, GlobalRateLimit,
            authorization::{AuthBody, AuthProtocol},
            cookies::CookieName,
        },
    };
    use std::sync::Arc;

    fn cookie() -> CookieRewrite {
        let name = CookieName::parse("a").unwrap();
        CookieRewrite { name, path: None, domain: None, secure: Some(true), same_site: None }
    }

    /// What the script finds in its context.
    fn context((filter, per_route): (String, Any)) -> Vec<String> {
        assert_eq!(filter, FILTER);
        let per_route = LuaPerRoute::decode(per_route.value).unwrap();
        assert_eq!(per_route.r#override, Some(Override::Name(SCRIPT.0.to_owned())));
        per_route.filter_context.unwrap().fields.into_keys().collect()
    }

    /// A route with an authorization server of its own, which is sent so much of bodies.
    fn authorized(body: Option<AuthBody>) -> Policy {
        let server = AuthServer {
            extension: None,
            protocol: AuthProtocol::Grpc,
            timeout: Timeout::Default,
            fail_open: false,
            body,
        };
        let own = AuthCheck { server: Arc::new(server), context: Default::default() };
        Policy { authorization: Authorization::Ask(Arc::new(own)), ..Policy::default() }
    }

    /// Routes whose requests an authorization server of their own, that of the fleet, and a rate limit service is asked about.
    fn asked() -> [Policy; 3] {
        let descriptors = vec![Descriptor { entries: vec![DescriptorEntry::RemoteAddress] }];
        [
            authorized(None),
            Policy { authorization: Authorization::AskFleet(Default::default()), ..Policy::default() },
            Policy { global_limit: Some(Arc::new(GlobalRateLimit { descriptors })), ..Policy::default() },
        ]
    }

    /// A share with cookies replaces what its route says, and must not open what that closes.
    #[test]
    fn a_share_with_cookies_restores_what_its_route_restores() {
        for policy in asked() {
            let mut restored = context(of_route(&policy).unwrap());
            assert!(of_share(&[], &policy).is_none(), "the route's own is in force");
            restored.insert(0, "cookies".to_owned());
            assert_eq!(context(of_share(&[cookie()], &policy).unwrap()), restored);
        }
    }

    #[test]
    fn headers_of_requests_are_noted_where_a_rate_limit_service_may_be_asked() {
        let [own, fleet, limited] = asked().map(|policy| context(of_route(&policy).unwrap()));
        assert_eq!(own, ["noted"]);
        assert_eq!(fleet, ["noted", "notes"]);
        assert_eq!(limited, ["noted", "notes"]);
        assert!(of_route(&Policy::default()).is_none());
    }

    #[test]
    fn a_body_that_may_not_be_cut_has_a_limit() {
        let body = |partial| authorized(Some(AuthBody { most: 10, partial, as_bytes: false }));
        assert_eq!(context(of_route(&body(false)).unwrap()), ["max_request_bytes", "noted"]);
        assert_eq!(context(of_route(&body(true)).unwrap()), ["noted"]);
        let of_share = of_share(&[cookie()], &body(false)).unwrap();
        assert_eq!(context(of_share), ["cookies", "max_request_bytes", "noted"]);
    }
}
