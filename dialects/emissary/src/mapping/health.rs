//! Health checks of a Mapping's endpoints.

use super::Work;
use crate::{EmissaryView, Problem};
use kinds::emissary::mapping::health_check::{HealthCheck as Written, HttpHealthCheck};
use model::{
    Code, HeaderValue,
    cluster::{HealthCheck, Probe},
    route::PathAndQuery,
    timeout::parse_duration,
};
use std::time::Duration;

/// The longest interval and timeout.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The check that is made: the first over HTTP. Checks that are not are told; endpoints count as healthy without them.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<HealthCheck> {
    let checks = &work.object.spec.health_checks;
    for fault in checks.faults() {
        work.problems.tell(Problem::new(Code::MappingPolicy, "health_checks", fault.to_string()));
    }
    let mut found = None;
    for (index, written) in checks.good() {
        let field = format!("health_checks[{index}]");
        match one(&field, written) {
            Ok(_) if found.is_some() => {
                let why = "one health check is made; this one is not served yet";
                work.problems.tell(Problem::new(Code::EmissaryNotServed, &field, why));
            }
            Ok(check) => found = Some(check),
            Err(problem) => work.problems.tell(problem),
        }
    }
    found
}

fn one(field: &str, written: &Written) -> Result<HealthCheck, Problem> {
    let no = |name: &str, why: String| Problem::new(Code::MappingPolicy, &format!("{field}.{name}"), why);
    let request = written.health_check.get().map_err(|fault| no("health_check", fault.why.to_string()))?;
    let http = match request.as_deref().map(|request| (&request.http, &request.grpc)) {
        Some((Some(http), None)) => http,
        Some((None, Some(_))) => {
            let why = "health checks over gRPC are not served yet";
            return Err(Problem::new(Code::EmissaryNotServed, &format!("{field}.health_check.grpc"), why));
        }
        _ => return Err(no("health_check", "must have exactly one of http and grpc".to_owned())),
    };
    let span = |name: &str, text: Option<&str>, default: u64| match text.filter(|text| !text.is_empty()) {
        None => Ok(Duration::from_secs(default)),
        Some(text) => match parse_duration(text) {
            Ok(span) if span.is_zero() || span > LONGEST => {
                Err(no(name, "must be above 0 and at most a day".to_owned()))
            }
            Ok(span) => Ok(span),
            Err(error) => Err(no(name, error.to_string())),
        },
    };
    let count = |name: &str, value: Option<i64>, default: u32| match value {
        None | Some(0) => Ok(default),
        Some(value) => u32::try_from(value).map_err(|_| no(name, format!("must be above 0, not {value}"))),
    };
    Ok(HealthCheck {
        probe: probe(field, http)?,
        interval: span("interval", written.interval.as_deref(), 5)?.max(Duration::from_secs(1)),
        timeout: span("timeout", written.timeout.as_deref(), 3)?,
        unhealthy: count("unhealthy_threshold", written.unhealthy_threshold, 2)?,
        healthy: count("healthy_threshold", written.healthy_threshold, 1)?,
    })
}

fn probe(field: &str, http: &HttpHealthCheck) -> Result<Probe, Problem> {
    let at = |name: &str| format!("{field}.health_check.http.{name}");
    let no = |name: &str, why: String| Problem::new(Code::MappingPolicy, &at(name), why);
    if !http.add_request_headers.is_empty() || !http.remove_request_headers.is_empty() {
        let why = "headers of health checks are not served yet, so the check is not made";
        return Err(Problem::new(Code::EmissaryNotServed, &at("add_request_headers"), why));
    }
    let path = http.path.as_deref().unwrap_or_default();
    let path = PathAndQuery::parse(path).map_err(|error| no("path", error.to_string()))?;
    let host = http.hostname.as_deref().filter(|host| !host.is_empty()).unwrap_or("sesame-health-check");
    let host = HeaderValue::parse(host).map_err(|error| no("hostname", error.to_string()))?;
    let statuses = http.expected_statuses.iter().map(|range| {
        let bound = |value: i64| u16::try_from(value).ok().filter(|value| (100..600).contains(value));
        match (bound(range.min), bound(range.max)) {
            (Some(min), Some(max)) if min <= max => Ok((min, max + 1)),
            _ => Err(no("expected_statuses", format!("{} to {} is no range from 100 to 599", range.min, range.max))),
        }
    });
    Ok(Probe::Http { path, host, statuses: statuses.collect::<Result<_, _>>()? })
}
