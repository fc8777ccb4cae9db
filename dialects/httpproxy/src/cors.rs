//! Which other sites may use a host.

use crate::{Rejection, route::optional};
use kinds::{Checked, http_proxy::virtual_host::CorsPolicy};
use model::{
    Code, FieldPath, HeaderValue, Regex,
    route::{
        Cors, StringMatch,
        cors::{AllowedOrigin, HeaderToken},
    },
    timeout::parse_duration,
};

/// Reads the policy.
pub(crate) fn policy(policy: &Checked<Option<Box<CorsPolicy>>>) -> Result<Option<Cors>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(None) };
    let field = FieldPath::from("spec.virtualhost.corsPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyCors, field.field(name), why);
    if policy.allow_origin.is_empty() || policy.allow_methods.is_empty() {
        return Err(reject("allowOrigin", "allowOrigin and allowMethods must have at least one entry".to_owned()));
    }
    let origins = policy.allow_origin.iter().map(|text| origin(text));
    let origins = origins.collect::<Result<_, _>>().map_err(|why| reject("allowOrigin", why))?;
    let tokens = |name: &str, list: &[Box<str>]| {
        let tokens = list.iter().map(|text| HeaderToken::parse(text));
        tokens.collect::<Result<Vec<_>, _>>().map_err(|error| reject(name, error.to_string()))
    };
    let max_age = match policy.max_age.as_deref() {
        None | Some("") => None,
        Some(text) => Some(parse_duration(text).map_err(|error| reject("maxAge", error.to_string()))?),
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

/// `*`, an origin as browsers write it, or a pattern.
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

/// `scheme://host` or `scheme://host:port`.
fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().is_ok()),
        None => (rest, true),
    };
    let letters = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let scheme_fits = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    scheme_fits && port && !host.is_empty() && host.bytes().all(letters)
}
