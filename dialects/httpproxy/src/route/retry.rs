//! How long a request may take, and when it is tried again: after a failure, or because the backend sent a redirect
//! that the proxy follows itself.

use crate::{Rejection, duration::timeout, route::optional};
use kinds::{Checked, http_proxy::route as kind};
use model::{
    Code, FieldPath, Timeout,
    route::{CrossScheme, InternalRedirect, RetryPolicy, action::RetryOn},
};

/// Reads the policy. A count of −1 is "never"; 0 and nothing are "once".
pub(crate) fn retry_policy(
    policy: &Checked<Option<Box<kind::RetryPolicy>>>,
    field: &FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<Option<RetryPolicy>, Vec<Rejection>> {
    let Some(policy) = optional(policy).map_err(Rejection::from)? else { return Ok(None) };
    let field = field.field("retryPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyRetry, field.field(name), why);
    let mut rejections = Vec::new();
    let count = match policy.count {
        Some(-1) => None,
        None | Some(0) => Some(1),
        Some(count) => {
            let read = u32::try_from(count);
            read.map_err(|_| rejections.push(reject("count", format!("must be -1 or more, not {count}")))).ok()
        }
    };
    let per_try = timeout(policy.per_try_timeout.as_deref(), Code::ProxyRetry, field.field("perTryTimeout"), notes);
    let per_try = per_try.map_err(|rejection| rejections.push(rejection)).unwrap_or_default();
    let mut on = Vec::new();
    for word in &policy.retry_on {
        match RetryOn::ALL.iter().find(|known| known.word() == &**word) {
            Some(found) => on.push(*found),
            None => rejections.push(reject("retryOn", format!("unknown retry condition `{word}`"))),
        }
    }
    if on.is_empty() {
        on.push(RetryOn::ServerError);
    }
    let mut status_codes = Vec::new();
    for &code in &policy.retriable_status_codes {
        match u32::try_from(code).ok().filter(|code| (100..600).contains(code)) {
            Some(code) => status_codes.push(code),
            None => {
                let why = format!("must be a status code from 100 to 599, not {code}");
                rejections.push(reject("retriableStatusCodes", why));
            }
        }
    }
    if !status_codes.is_empty() && !on.contains(&RetryOn::RetriableStatusCodes) {
        let why = "the list has no effect without `retriable-status-codes` in retryOn";
        notes.push(Rejection::new(Code::ProxyIgnored, field.field("retriableStatusCodes"), why));
    }
    if !rejections.is_empty() {
        return Err(rejections);
    }
    Ok(count.map(|count| RetryPolicy { on, count, per_try, status_codes, backoff: None }))
}

/// Which redirects of a backend the proxy follows itself.
pub(crate) fn internal_redirect(
    policy: &Checked<Option<Box<kind::InternalRedirectPolicy>>>,
    field: &FieldPath,
) -> Result<Option<InternalRedirect>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(None) };
    let field = field.field("internalRedirectPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyInternalRedirect, field.field(name), why);
    let most = policy.max_internal_redirects.map(|most| u32::try_from(most).map_err(|_| most)).transpose();
    let most = most.map_err(|most| reject("maxInternalRedirects", format!("must be at least 0, not {most}")))?;
    let mut statuses = Vec::new();
    for &code in &policy.redirect_response_codes {
        match code {
            301 | 302 | 303 | 307 | 308 => statuses.push(code as u32),
            other => {
                let why = format!("must be 301, 302, 303, 307 or 308, not {other}");
                return Err(reject("redirectResponseCodes", why));
            }
        }
    }
    statuses.sort_unstable();
    statuses.dedup();
    let cross_scheme = match &policy.allow_cross_scheme_redirect {
        None | Some(kind::CrossScheme::Never) => CrossScheme::Never,
        Some(kind::CrossScheme::Always) => CrossScheme::Always,
        Some(kind::CrossScheme::SafeOnly) => CrossScheme::SafeOnly,
        Some(kind::CrossScheme::Unknown(word)) => {
            let why = format!("must be Always, Never or SafeOnly, not `{word}`");
            return Err(reject("allowCrossSchemeRedirect", why));
        }
    };
    Ok(Some(InternalRedirect { most, statuses, cross_scheme, no_repeats: policy.deny_repeated_route_redirect }))
}

/// The three spans.
#[derive(Default)]
pub(crate) struct Times {
    pub response: Timeout,
    pub idle: Timeout,
    pub idle_connection: Timeout,
}

/// How long things may take.
pub(crate) fn timeouts(
    policy: &Checked<Option<Box<kind::TimeoutPolicy>>>,
    field: &FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<Times, Vec<Rejection>> {
    let Some(policy) = optional(policy).map_err(Rejection::from)? else { return Ok(Times::default()) };
    let field = field.field("timeoutPolicy");
    let mut rejections = Vec::new();
    let mut read = |name: &str, text: &Option<Box<str>>| {
        let read = timeout(text.as_deref(), Code::ProxyTimeout, field.field(name), notes);
        read.map_err(|rejection| rejections.push(rejection)).unwrap_or_default()
    };
    let times = Times {
        response: read("response", &policy.response),
        idle: read("idle", &policy.idle),
        idle_connection: read("idleConnection", &policy.idle_connection),
    };
    if rejections.is_empty() { Ok(times) } else { Err(rejections) }
}
