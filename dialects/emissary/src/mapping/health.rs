//! Health checks of a Mapping's endpoints.

use super::Work;
use crate::{EmissaryView, Problem};
use kinds::emissary::mapping::health_check::{GrpcHealthCheck, HealthCheck as Written, HttpHealthCheck};
use model::{
    Code, HeaderValue, MutableHeader,
    cluster::{HealthCheck, Probe},
    header::HeaderFormat,
    route::{HeaderChanges, PathAndQuery},
    timeout::parse_duration,
};
use std::time::Duration;

/// The longest interval and timeout.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The host of checks that name none. Names of clusters, which Envoy would take, are no hosts.
const HOST: &str = "sesame-health-check";

/// The longest name of a gRPC service.
const LONGEST_SERVICE: usize = 1024;

/// The check that is made: the first that is valid, since Envoy makes one. Those that are not made are told; endpoints count as healthy
/// without them.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>, is_grpc: bool) -> Option<HealthCheck> {
    let checks = &work.object.spec.health_checks;
    for fault in checks.faults() {
        work.problems.add(Problem::new(Code::MappingPolicy, "health_checks", fault.to_string()));
    }
    let mut found = None;
    for (index, written) in checks.good() {
        let field = format!("health_checks[{index}]");
        match one(&field, written, is_grpc) {
            Ok(_) if found.is_some() => {
                let why = "a proxy makes one health check of a service: this one is not made";
                work.problems.add(Problem::new(Code::MappingPolicy, &field, why));
            }
            Ok(check) => found = Some(check),
            Err(problem) => work.problems.add(problem),
        }
    }
    found
}

fn one(field: &str, written: &Written, is_grpc: bool) -> Result<HealthCheck, Problem> {
    let reject = |name: &str, why: String| Problem::new(Code::MappingPolicy, &format!("{field}.{name}"), why);
    let request = written.health_check.get().map_err(|fault| reject("health_check", fault.why.to_string()))?;
    let probe = match request.as_deref().map(|request| (&request.http, &request.grpc)) {
        Some((Some(http), None)) => over_http(field, http)?,
        Some((None, Some(_))) if !is_grpc => {
            let why = "a health check over gRPC needs `grpc: true`, since gRPC is HTTP/2; it is not made".to_owned();
            return Err(reject("health_check.grpc", why));
        }
        Some((None, Some(grpc))) => over_grpc(field, grpc)?,
        _ => return Err(reject("health_check", "must have exactly one of http and grpc".to_owned())),
    };
    let span = |name: &str, text: Option<&str>, default: u64| match text.filter(|text| !text.is_empty()) {
        None => Ok(Duration::from_secs(default)),
        Some(text) => match parse_duration(text) {
            Ok(span) if span.is_zero() || span > LONGEST => {
                Err(reject(name, "must be above 0 and at most a day".to_owned()))
            }
            Ok(span) => Ok(span),
            Err(error) => Err(reject(name, error.to_string())),
        },
    };
    let count = |name: &str, value: Option<i64>, default: u32| match value {
        None | Some(0) => Ok(default),
        Some(value) => u32::try_from(value).map_err(|_| reject(name, format!("must be above 0, not {value}"))),
    };
    Ok(HealthCheck {
        probe,
        interval: span("interval", written.interval.as_deref(), 5)?.max(Duration::from_secs(1)),
        timeout: span("timeout", written.timeout.as_deref(), 3)?,
        unhealthy: count("unhealthy_threshold", written.unhealthy_threshold, 2)?,
        healthy: count("healthy_threshold", written.healthy_threshold, 1)?,
    })
}

/// The question whether a service is serving. Without a name it would be about the server as a whole.
fn over_grpc(field: &str, grpc: &GrpcHealthCheck) -> Result<Probe, Problem> {
    let reject =
        |name: &str, why: String| Problem::new(Code::MappingPolicy, &format!("{field}.health_check.grpc.{name}"), why);
    let service = grpc.upstream_name.as_deref().filter(|name| !name.is_empty());
    let service = service.ok_or_else(|| reject("upstream_name", "upstream_name is missing".to_owned()))?;
    if service.len() > LONGEST_SERVICE {
        return Err(reject("upstream_name", format!("must have at most {LONGEST_SERVICE} bytes")));
    }
    let host = grpc.authority.as_deref().filter(|host| !host.is_empty()).unwrap_or(HOST);
    let host = HeaderValue::parse(host).map_err(|error| reject("authority", error.to_string()))?;
    Ok(Probe::Grpc { service: service.into(), host: Some(host) })
}

fn over_http(field: &str, http: &HttpHealthCheck) -> Result<Probe, Problem> {
    let at = |name: &str| format!("{field}.health_check.http.{name}");
    let reject = |name: &str, why: String| Problem::new(Code::MappingPolicy, &at(name), why);
    let path = http.path.as_deref().unwrap_or_default();
    let path = PathAndQuery::parse(path).map_err(|error| reject("path", error.to_string()))?;
    let host = http.hostname.as_deref().filter(|host| !host.is_empty()).unwrap_or(HOST);
    let host = HeaderValue::parse(host).map_err(|error| reject("hostname", error.to_string()))?;
    let statuses = http.expected_statuses.iter().map(|range| {
        let bound = |value: i64| u16::try_from(value).ok().filter(|value| (100..600).contains(value));
        match (bound(range.min), bound(range.max)) {
            (Some(min), Some(max)) if min <= max => Ok((min, max + 1)),
            _ => {
                Err(reject("expected_statuses", format!("{} to {} is no range from 100 to 599", range.min, range.max)))
            }
        }
    });
    Ok(Probe::Http { path, host, statuses: statuses.collect::<Result<_, _>>()?, headers: headers(&at, http)? })
}

/// Changes of the headers of the request.
fn headers(at: &impl Fn(&str) -> String, http: &HttpHealthCheck) -> Result<HeaderChanges, Problem> {
    let mut changes = HeaderChanges::default();
    for (list, count) in [
        ("add_request_headers", http.add_request_headers.len()),
        ("remove_request_headers", http.remove_request_headers.len()),
    ] {
        HeaderChanges::check_count(count).map_err(|why| Problem::new(Code::MappingPolicy, &at(list), why))?;
    }
    for (name, header) in &http.add_request_headers {
        let reject = |why: String| Problem::new(Code::MappingPolicy, &at(&format!("add_request_headers.{name}")), why);
        let parsed = MutableHeader::parse(name).map_err(|error| reject(error.to_string()))?;
        let value = HeaderFormat::read(&header.value, &[]).map_err(|error| reject(error.to_string()))?;
        let list = if header.append.unwrap_or(true) { &mut changes.add } else { &mut changes.set };
        list.push((parsed, value.format));
    }
    for name in &http.remove_request_headers {
        let parsed = MutableHeader::parse(name);
        changes
            .remove
            .push(parsed.map_err(|error| {
                Problem::new(Code::MappingPolicy, &at("remove_request_headers"), error.to_string())
            })?);
    }
    Ok(changes)
}
