//! TLS towards a service: `v2` has it in `tls` or in the scheme of the service, `v3alpha1` in the scheme alone unless there is a
//! TLSContext.

use super::fields::{Entries, field, take};
use crate::Value;

/// Folds a `tls` that is no name of a TLSContext into the scheme of the service.
pub fn fold<'a>(spec: &mut Entries<'a>, service: &str) {
    let is_wanted = match field(spec, "tls").map(|tls| &tls.value) {
        Some(Value::Bool(is_wanted)) => *is_wanted,
        Some(Value::Text(context)) if context.is_empty() => false,
        _ => return,
    };
    drop(take(spec, "tls"));
    if let Some(service) = field(spec, service)
        && let Some(text) = service.text()
        && is_wanted
        && scheme(text) != Some("https")
    {
        let bare = scheme(text).map_or(text, |scheme| &text[scheme.len() + "://".len()..]);
        service.value = Value::Text(format!("https://{bare}").into());
    }
}

/// The scheme of a service, in lower case.
fn scheme(service: &str) -> Option<&'static str> {
    ["https", "http"].into_iter().find(|scheme| {
        let is_scheme = |start: &str| start.eq_ignore_ascii_case(scheme);
        service.get(..scheme.len()).is_some_and(is_scheme) && service[scheme.len()..].starts_with("://")
    })
}
