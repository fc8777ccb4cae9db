//! How many requests are taken: by each proxy for itself, and by a [service](global) that all of them ask.

pub mod global;

use crate::{Rejection, route::optional};
use kinds::{
    Checked,
    http_proxy::rate_limit::{RateLimitPolicy, Unit},
};
use model::{
    Code, FieldPath, HeaderValue, MutableHeader,
    header::HeaderFormat,
    route::{LocalRateLimitPolicy, policy::is_status},
};
use std::time::Duration;

/// How many headers Envoy adds to a response that is limited.
const MOST_HEADERS: usize = 10;

/// Reads the local limit of a route or, with another code, of a host.
pub(crate) fn local(
    policy: &Checked<Option<Box<RateLimitPolicy>>>,
    field: &FieldPath,
    code: Code,
) -> Result<Option<LocalRateLimitPolicy>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(None) };
    let field = field.field("rateLimitPolicy");
    let Some(local) = &policy.local else { return Ok(None) };
    let field = field.field("local");
    let reject = |name: &str, why: String| Rejection::new(code, field.field(name), why);
    let requests = u32::try_from(local.requests).ok().filter(|&requests| requests > 0);
    let requests = requests.ok_or_else(|| reject("requests", format!("must be at least 1, not {}", local.requests)))?;
    let burst = local.burst.unwrap_or_default();
    let burst = u32::try_from(burst).map_err(|_| reject("burst", format!("must be at least 0, not {burst}")))?;
    let interval = match &local.unit {
        Some(Unit::Second) => Duration::from_secs(1),
        Some(Unit::Minute) => Duration::from_secs(60),
        Some(Unit::Hour) => Duration::from_secs(60 * 60),
        other => {
            let word = other.as_ref().map_or("", |unit| unit.as_str());
            return Err(reject("unit", format!("must be second, minute or hour, not `{word}`")));
        }
    };
    let status = local.response_status_code.filter(|&status| status != 0).unwrap_or(429);
    let known = u16::try_from(status).ok().filter(|&status| is_status(status));
    let status = known.ok_or_else(|| {
        reject("responseStatusCode", format!("must be a registered HTTP error status code, not {status}"))
    })?;
    let count = local.response_headers_to_add.len();
    if count > MOST_HEADERS {
        return Err(reject("responseHeadersToAdd", format!("must have at most {MOST_HEADERS} headers, not {count}")));
    }
    let mut headers = Vec::new();
    for (index, entry) in local.response_headers_to_add.iter().enumerate() {
        let at = |name: &str| field.field("responseHeadersToAdd").index(index).field(name);
        let wrong = |name: &str, error: model::header::HeaderError| Rejection::new(code, at(name), error.to_string());
        let name = MutableHeader::parse(&entry.name).map_err(|error| wrong("name", error))?;
        if headers.iter().any(|(other, _)| *other == name) {
            return Err(Rejection::new(code, at("name"), format!("header {name} is set more than once")));
        }
        // Envoy reads operators here, too; what was written is what is sent.
        let value = HeaderValue::parse(&entry.value).and_then(|value| HeaderFormat::plain(&value));
        headers.push((name, value.map_err(|error| wrong("value", error))?));
    }
    Ok(Some(LocalRateLimitPolicy { requests, interval, burst, status, headers }))
}
