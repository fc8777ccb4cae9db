//! Answers of the proxy's own: the client is sent elsewhere, or told something.

use crate::Rejection;
use kinds::http_proxy::route::{DirectResponsePolicy, RequestRedirectPolicy};
use model::{
    Code, FieldPath, Fqdn,
    route::{DirectResponse, PathReplacement, PathRewrite, Redirect, Scheme, action::LONGEST_BODY},
};

/// The client is redirected. A `path` may have a query, which replaces that of the request, and a fragment; a `prefix` is followed by the
/// rest of the request's path and by its query, whatever it contains.
pub(crate) fn redirect(policy: &RequestRedirectPolicy, field: &FieldPath) -> Result<Redirect, Rejection> {
    let field = field.field("requestRedirectPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyRedirect, field.field(name), why);
    let scheme = match policy.scheme.as_deref() {
        None | Some("") => None,
        Some("http") => Some(Scheme::Http),
        Some("https") => Some(Scheme::Https),
        Some(other) => return Err(reject("scheme", format!("must be `http` or `https`, not `{other}`"))),
    };
    let host = policy.hostname.as_deref().filter(|host| !host.is_empty()).map(Fqdn::parse_or_ipv4).transpose();
    let host = host.map_err(|error| reject("hostname", error.to_string()))?;
    let port = policy.port.map(|port| u16::try_from(port).ok().filter(|&port| port != 0).ok_or(port)).transpose();
    let port = port.map_err(|port| reject("port", format!("must be a port number from 1 to 65535, not {port}")))?;
    let status = match policy.status_code.unwrap_or(302) {
        code @ (301 | 302 | 303 | 307 | 308) => code as u16,
        other => return Err(reject("statusCode", format!("must be 301, 302, 303, 307 or 308, not {other}"))),
    };
    let path =
        |name: &str, text: &str| PathReplacement::parse_absolute(text).map_err(|error| reject(name, error.to_string()));
    let path = match (&policy.path, &policy.prefix) {
        (Some(_), Some(_)) => return Err(reject("path", "path and prefix are mutually exclusive".to_owned())),
        (Some(whole), None) => Some(PathRewrite::Whole(path("path", whole)?)),
        (None, Some(prefix)) => Some(PathRewrite::Prefix(path("prefix", prefix)?)),
        (None, None) => None,
    };
    Ok(Redirect { scheme, host, port, path, status })
}

/// The proxy answers by itself.
pub(crate) fn respond(policy: &DirectResponsePolicy, field: &FieldPath) -> Result<DirectResponse, Rejection> {
    let field = field.field("directResponsePolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyDirectResponse, field.field(name), why);
    let status = u16::try_from(policy.status_code).ok().filter(|status| (200..600).contains(status));
    let status =
        status.ok_or_else(|| reject("statusCode", format!("must be from 200 to 599, not {}", policy.status_code)))?;
    let body = policy.body.as_deref().unwrap_or_default();
    if body.len() > LONGEST_BODY {
        return Err(reject("body", format!("the body has {} bytes; the limit is {LONGEST_BODY}", body.len())));
    }
    Ok(DirectResponse { status, body: body.into(), reason: None })
}
