//! How backends are probed.

use crate::{Rejection, route::optional};
use kinds::{
    Checked,
    http_proxy::{route::HttpHealthCheckPolicy, virtual_host::TcpHealthCheckPolicy},
};
use model::{
    Code, FieldPath, HeaderValue,
    cluster::{HealthCheck, Probe},
    route::{HeaderChanges, PathAndQuery},
};
use std::time::Duration;

/// The host that Contour asks for where nothing is set; backends may know it.
const HOST: &str = "contour-envoy-healthcheck";

/// How many ranges of status codes may be expected: each service of a route has them.
const MOST_RANGES: usize = 100;

/// Reads the policy. Zero is as good as nothing: the default.
pub(crate) fn policy(
    policy: &Checked<Option<Box<HttpHealthCheckPolicy>>>,
    field: &FieldPath,
) -> Result<Option<HealthCheck>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(None) };
    let field = field.field("healthCheckPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyHealthCheck, field.field(name), why);
    let count = policy.expected_statuses.len();
    if count > MOST_RANGES {
        return Err(reject("expectedStatuses", format!("must have at most {MOST_RANGES} ranges, not {count}")));
    }
    let mut statuses = Vec::new();
    for range in &policy.expected_statuses {
        let bound = |value: i64| u16::try_from(value).ok().filter(|value| (100..=600).contains(value));
        match (bound(range.start), bound(range.end)) {
            (Some(start), Some(end)) if start < end => statuses.push((start, end)),
            _ => {
                let why = format!("{} to {} is not a valid range of status codes", range.start, range.end);
                return Err(reject("expectedStatuses", why));
            }
        }
    }
    let host = policy.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(HOST);
    let probe = Probe::Http {
        path: PathAndQuery::parse(&policy.path).map_err(|error| reject("path", error.to_string()))?,
        host: HeaderValue::parse(host).map_err(|error| reject("host", error.to_string()))?,
        statuses,
        headers: HeaderChanges::default(),
    };
    let numbers = [policy.interval_seconds, policy.timeout_seconds];
    let counts = [policy.unhealthy_threshold_count, policy.healthy_threshold_count];
    check(&field, probe, numbers, counts).map(Some)
}

/// Reads the policy of a TCP proxy.
pub(crate) fn tcp(
    policy: &Checked<Option<Box<TcpHealthCheckPolicy>>>,
    field: &FieldPath,
) -> Result<Option<HealthCheck>, Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(None) };
    let numbers = [policy.interval_seconds, policy.timeout_seconds];
    let counts = [policy.unhealthy_threshold_count, policy.healthy_threshold_count];
    check(&field.field("healthCheckPolicy"), Probe::Tcp, numbers, counts).map(Some)
}

fn check(
    field: &FieldPath,
    probe: Probe,
    [interval, timeout]: [Option<i64>; 2],
    [unhealthy, healthy]: [Option<i64>; 2],
) -> Result<HealthCheck, Rejection> {
    let number = |name: &str, value: Option<i64>, default: u32| match value {
        None | Some(0) => Ok(default),
        Some(value) => u32::try_from(value).ok().filter(|&value| value <= 60 * 60 * 24).ok_or_else(|| {
            Rejection::new(Code::ProxyHealthCheck, field.field(name), format!("must be from 0 to 86400, not {value}"))
        }),
    };
    let seconds = |name: &str, value, default| number(name, value, default).map(|n| Duration::from_secs(n.into()));
    Ok(HealthCheck {
        probe,
        interval: seconds("intervalSeconds", interval, 10)?,
        timeout: seconds("timeoutSeconds", timeout, 2)?,
        unhealthy: number("unhealthyThresholdCount", unhealthy, 3)?,
        healthy: number("healthyThresholdCount", healthy, 2)?,
    })
}
