//! What is changed about the cookies that backends set, as data for [the script](super::response_script) that changes it.

use envoy_api::google::protobuf::{Struct, Value, value};
use model::route::CookieRewrite;

/// What the script changes, by the names of cookies.
pub(super) fn changes(cookies: &[CookieRewrite]) -> Value {
    let changes = cookies.iter().map(|cookie| (cookie.name.as_str().to_owned(), change(cookie)));
    Value { kind: Some(value::Kind::StructValue(Struct { fields: changes.collect() })) }
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
