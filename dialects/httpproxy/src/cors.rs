//! Which other sites may use a host.

use crate::{Rejection, duration::duration, route::optional};
use kinds::{Checked, http_proxy::virtual_host::CorsPolicy};
use model::{
    Code, FieldPath, HeaderValue, Regex,
    route::{
        Cors, StringMatch,
        cors::{AllowedOrigin, HeaderToken},
    },
};
use std::net::Ipv6Addr;

/// Reads the policy.
pub(crate) fn policy(
    policy: &Checked<Option<Box<CorsPolicy>>>,
    notes: &mut Vec<Rejection>,
) -> Result<Option<Cors>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(None) };
    let field = FieldPath::from("spec.virtualhost.corsPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyCors, field.field(name), why);
    if policy.allow_origin.is_empty() || policy.allow_methods.is_empty() {
        return Err(reject("allowOrigin", "allowOrigin and allowMethods must have at least one entry".to_owned()));
    }
    let mut origins = Vec::new();
    for (index, text) in policy.allow_origin.iter().enumerate() {
        if is_origin(text) && !is_sent(text) {
            let why = "no effect: it is compared as it is written, and no origin has such a host; \
                       begin a regular expression with `^`";
            notes.push(Rejection::new(Code::ProxyIgnored, field.field("allowOrigin").index(index), why));
        }
        origins.push(origin(text).map_err(|why| reject("allowOrigin", why))?);
    }
    let tokens = |name: &str, list: &[Box<str>]| {
        let tokens = list.iter().map(|text| HeaderToken::parse(text));
        tokens.collect::<Result<Vec<_>, _>>().map_err(|error| reject(name, error.to_string()))
    };
    let max_age = match policy.max_age.as_deref() {
        None | Some("") => None,
        Some(text) => Some(duration(text, Code::ProxyCors, field.field("maxAge"), notes)?),
    };
    Ok(Some(Cors {
        origins,
        methods: tokens("allowMethods", &policy.allow_methods)?,
        headers: tokens("allowHeaders", &policy.allow_headers)?,
        exposed: tokens("exposeHeaders", &policy.expose_headers)?,
        credentials: policy.allow_credentials,
        max_age,
        private_network: policy.allow_private_network,
        forwards_other_preflights: true,
    }))
}

/// `*`, an origin, or a pattern.
fn origin(text: &str) -> Result<AllowedOrigin, String> {
    if text == "*" {
        return Ok(AllowedOrigin::Any);
    }
    if is_origin(text) {
        return Ok(AllowedOrigin::Matching(StringMatch::Exact(text.into())));
    }
    HeaderValue::parse(text).map_err(|error| error.to_string())?;
    Regex::parse(text)
        .map(|regex| AllowedOrigin::Matching(StringMatch::Regex(regex)))
        .map_err(|error| error.to_string())
}

/// `scheme://host` or `scheme://host:port`. As in Contour, every URL of this form is one, whatever its host is.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.bytes().all(fits) && is_host(host)
}

/// A host of a URL, and its port.
fn is_host(text: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    let fits = |b: u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b"-_.~!$&'()*+,;=<>\"".contains(&b);
    !text.is_empty() && host.bytes().all(fits) && is_port(port)
}

/// Whether a browser may send an origin.
fn is_sent(origin: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.:[]".contains(&b);
    origin.split_once("://").is_some_and(|(_, host)| host.bytes().all(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_and_a_host_are_an_origin_and_all_else_is_a_pattern() {
        for exact in [
            "https://example.com",
            "https://Client.example.com",
            "http://localhost:3000",
            "https://my_app.example.com",
            "https://[::1]",
            "https://[::1]:8080",
            "https://192.0.2.1",
            "chrome-extension://abcdef",
            "https://*.example.com",
            "https://.*.example.com",
        ] {
            assert!(is_origin(exact), "{exact}");
        }
        for pattern in [
            "null",
            "https://",
            "HTTPS://example.com",
            "https://example.com/",
            "https://example.com?",
            "https://a@example.com",
            "https://example.com:port",
            r"https://.*\.example\.com",
            r"https://[a-z]+\.example\.org",
            "https://[a-z].example.org",
            "https://(a|b).example.com",
            "https://[a-z+.example.com",
            "^https://.*.example.com",
        ] {
            assert!(!is_origin(pattern), "{pattern}");
        }
    }

    #[test]
    fn hosts_that_no_browser_has_are_known() {
        for sent in ["https://my_app.example.com", "https://[::1]:8080", "http://a-b.example.com:80"] {
            assert!(is_sent(sent), "{sent}");
        }
        for never in ["https://*.example.com", "https://.+.example.com", "https://b\u{fc}cher.example"] {
            assert!(is_origin(never) && !is_sent(never), "{never}");
        }
    }
}
