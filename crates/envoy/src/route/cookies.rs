//! What is changed about the cookies that backends set.
//!
//! Envoy has no filter for it, so it is a script: of fixed text, the same on every route, with what to change as data in its
//! context. Nothing that a tenant wrote is ever in the text. It stands on the routes that need it; in a filter chain it is
//! empty, so that nobody else pays for it.

use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{DataSource, data_source},
        extensions::filters::http::lua::v3::{LuaPerRoute, lua_per_route::Override},
    },
    google::protobuf::{Struct, Value, value},
};
use model::route::CookieRewrite;

/// The filter that runs the script.
pub const COOKIES: &str = "sesame.cookies";
/// What it runs.
pub const SCRIPT: &str = include_str!("cookies/rewrite.lua");

/// What a route or a backend's share tells the filter, where it has something to tell.
pub fn of(cookies: &[CookieRewrite]) -> Option<(String, Any)> {
    if cookies.is_empty() {
        return None;
    }
    let script =
        DataSource { specifier: Some(data_source::Specifier::InlineString(SCRIPT.to_owned())), ..Default::default() };
    let changes = cookies.iter().map(|cookie| (cookie.name.as_str().to_owned(), change(cookie)));
    let told = LuaPerRoute {
        r#override: Some(Override::SourceCode(script)),
        filter_context: Some(Struct { fields: changes.collect() }),
        ..Default::default()
    };
    Some((COOKIES.to_owned(), any(&told)))
}

/// The attributes under the names that the script looks for.
fn change(cookie: &CookieRewrite) -> Value {
    let CookieRewrite { name: _, path, domain, secure, same_site } = cookie;
    let text = |text: &str| Value::from(text);
    let fields = [
        ("path", path.as_ref().map(|path| text(path.as_str()))),
        ("domain", domain.as_ref().map(|domain| text(domain.as_str()))),
        ("secure", secure.map(|secure| Value { kind: Some(value::Kind::BoolValue(secure)) })),
        ("samesite", same_site.map(|same_site| text(&same_site.to_string()))),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Value { kind: Some(value::Kind::StructValue(Struct { fields })) }
}
