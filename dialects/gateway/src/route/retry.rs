//! Timeouts and retries of an HTTPRoute.
//!
//! Only what a backend has not processed is tried again: no connection, a refused stream, or a response with a listed code.

use super::{Rejection, Wrong, rule};
use kinds::{
    Checked,
    gateway::http_route::{Retry, Timeouts},
};
use model::{
    ClusterId, Code, FieldPath, Timeout,
    cluster::ClusterOverrides,
    route::{RetryPolicy, action::RetryOn},
    timeout::parse_duration,
};
use std::time::Duration;

/// The most retries: what one request may cost backends.
const MOST: i64 = 100;

/// How many retries of a backend may be in flight. Envoy's own default is 3 for all requests together, so that a few requests at
/// once would not be retried as the route says.
const IN_FLIGHT: u32 = 1024;

/// A cluster with room for retries.
pub(crate) fn with_room(cluster: &ClusterId) -> ClusterId {
    let overrides = cluster.overrides.as_deref().cloned().unwrap_or_default();
    let overrides = ClusterOverrides { max_retries: Some(IN_FLIGHT), ..overrides };
    ClusterId { overrides: overrides.shared(), ..cluster.clone() }
}

/// The timeout of the whole request, and when it is retried. Without a timeout there is none: Envoy's own default is not the
/// API's.
pub(crate) fn read(
    timeouts: Option<&Checked<Option<Box<Timeouts>>>>,
    retry: Option<&Checked<Option<Box<Retry>>>>,
    field: &FieldPath,
    wrong: &mut Wrong,
) -> (Timeout, Option<RetryPolicy>) {
    let (request, each) = match timeouts {
        Some(timeouts) if rule::is_set(timeouts) => spans(timeouts, &field.field("timeouts"), wrong),
        _ => (None, None),
    };
    let retry = match retry {
        Some(retry) if rule::is_set(retry) => policy(retry, each, &field.field("retry"), wrong),
        _ => None,
    };
    // Without retries there is one try, so the shorter of both holds.
    let whole = match (&retry, each) {
        (None, Some(each)) => Some(request.filter(|request| !request.is_zero()).map_or(each, |own| shorter(own, each))),
        _ => request,
    };
    (timeout(whole), retry)
}

/// The shorter of two times; zero is none.
fn shorter(one: Duration, other: Duration) -> Duration {
    if other.is_zero() { one } else { one.min(other) }
}

fn timeout(span: Option<Duration>) -> Timeout {
    match span {
        None | Some(Duration::ZERO) => Timeout::Infinite,
        Some(span) => Timeout::After(span),
    }
}

fn rejection(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection::new(Code::GatewayRouteRule, field.clone(), why)
}

fn value<T>(field: &Checked<Option<Box<T>>>) -> Result<Option<&T>, Rejection> {
    match field.get() {
        Ok(value) => Ok(value.as_deref()),
        Err(fault) => Err(Rejection::fault(Code::GatewayRouteRule, fault)),
    }
}

fn span(text: Option<&str>, field: &FieldPath) -> Result<Option<Duration>, Rejection> {
    let span = text.map(parse_duration).transpose();
    span.map_err(|error| rejection(field, error.to_string()))
}

fn spans(
    written: &Checked<Option<Box<Timeouts>>>,
    field: &FieldPath,
    wrong: &mut Wrong,
) -> (Option<Duration>, Option<Duration>) {
    let Some(written) = wrong.take(value(written)).flatten() else { return (None, None) };
    let request = wrong.take(span(written.request.as_deref(), &field.field("request"))).flatten();
    let each = wrong.take(span(written.backend_request.as_deref(), &field.field("backendRequest"))).flatten();
    if let (Some(request), Some(each)) = (request, each)
        && !request.is_zero()
        && each > request
    {
        wrong.add(rejection(&field.field("backendRequest"), "must not be longer than request"));
    }
    (request, each)
}

fn policy(
    written: &Checked<Option<Box<Retry>>>,
    each: Option<Duration>,
    field: &FieldPath,
    wrong: &mut Wrong,
) -> Option<RetryPolicy> {
    let written = wrong.take(value(written))??;
    let attempts = written.attempts.unwrap_or(1);
    if !(0..=MOST).contains(&attempts) {
        wrong.add(rejection(&field.field("attempts"), format!("must be from 0 to {MOST}, not {attempts}")));
    }
    let mut status_codes = Vec::new();
    for (index, &code) in written.codes.iter().enumerate() {
        let fits = u32::try_from(code).ok().filter(|code| (400..600).contains(code));
        let reject = || rejection(&field.field("codes").index(index), format!("must be from 400 to 599, not {code}"));
        status_codes.extend(wrong.take(fits.ok_or_else(reject)));
    }
    let backoff = wrong.take(span(written.backoff.as_deref(), &field.field("backoff"))).flatten();
    let backoff = backoff.filter(|span| !span.is_zero());
    let mut on = vec![RetryOn::ConnectFailure, RetryOn::RefusedStream];
    if !status_codes.is_empty() {
        on.push(RetryOn::RetriableStatusCodes);
    }
    let count = u32::try_from(attempts).unwrap_or_default();
    let per_try = each.filter(|span| !span.is_zero()).map_or(Timeout::Default, Timeout::After);
    (count > 0).then_some(RetryPolicy { on, count, per_try, status_codes, backoff })
}
