//! The client is sent elsewhere.

use crate::No;
use kinds::http_proxy::route::RequestRedirectPolicy;
use model::{
    Code, FieldPath, Fqdn,
    route::{Path, Redirect, RedirectPath, Scheme},
};

/// Reads the policy.
pub(crate) fn action(policy: &RequestRedirectPolicy, field: &FieldPath) -> Result<Redirect, No> {
    let field = field.field("requestRedirectPolicy");
    let no = |name: &str, why: String| No::new(Code::ProxyRedirect, field.field(name), why);
    let scheme = match policy.scheme.as_deref() {
        None | Some("") => None,
        Some("http") => Some(Scheme::Http),
        Some("https") => Some(Scheme::Https),
        Some(other) => return Err(no("scheme", format!("`{other}` is neither `http` nor `https`"))),
    };
    let host = policy.hostname.as_deref().filter(|host| !host.is_empty()).map(Fqdn::parse).transpose();
    let host = host.map_err(|error| no("hostname", error.to_string()))?;
    let port = policy.port.map(|port| u16::try_from(port).ok().filter(|&port| port != 0).ok_or(port)).transpose();
    let port = port.map_err(|port| no("port", format!("{port} is not a port number")))?;
    let status = match policy.status_code.unwrap_or(302) {
        code @ (301 | 302 | 303 | 307 | 308) => code as u16,
        other => return Err(no("statusCode", format!("{other} is not one of 301, 302, 303, 307 and 308"))),
    };
    let path = |name: &str, text: &str| Path::parse(text).map_err(|error| no(name, error.to_string()));
    let path = match (&policy.path, &policy.prefix) {
        (Some(_), Some(_)) => return Err(no("path", "path and prefix exclude each other".to_owned())),
        (Some(whole), None) => Some(RedirectPath::Whole(path("path", whole)?)),
        (None, Some(prefix)) => Some(RedirectPath::Prefix(path("prefix", prefix)?)),
        (None, None) => None,
    };
    Ok(Redirect { scheme, host, port, path, status })
}
