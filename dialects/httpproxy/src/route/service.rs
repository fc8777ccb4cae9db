//! The backends of a route and their shares, and whom to trust behind the TLS connection to one.
//!
//! A service that is not there, or of which something cannot be used, is left out and told; the others share what is
//! left by their weights. Where none is left, or only services with a weight of zero, although another is written with more, the route
//! answers 503.

use crate::{
    HttpProxyView, Rejection, Work,
    duration::duration,
    route::{FieldContext, cookies, headers, optional},
    tls::secret_id,
};
use kinds::http_proxy::{Route, Service, service::UpstreamValidation};
use model::{
    ClusterId, Code, FieldPath, HeaderValue, Timeout,
    cluster::{
        Aggression, ClusterOverrides, HealthCheck, LONGEST_SERVER_NAME, LoadBalancing, Protocol, SlowStart,
        SubjectAltName, TrustedCa, Validation,
    },
    route::{CookieRewrite, HostRewrite, Mirror, WeightedCluster},
};
use resolve::{PortRef, View};

/// What the route says about the way to all its backends.
pub(crate) struct UpstreamOptions {
    pub idle: Timeout,
    pub host: Option<HostRewrite>,
    pub balance: LoadBalancing,
    pub health: Option<HealthCheck>,
    /// What the route changes about cookies.
    pub cookies: Vec<CookieRewrite>,
}

/// The backends of a route.
#[derive(Default)]
pub(super) struct Backends {
    pub clusters: Vec<WeightedCluster>,
    pub mirrors: Vec<Mirror>,
    /// What the only backend sees as the host, where that is a header of the request.
    pub host: Option<HostRewrite>,
}

/// How many services a route may have: what holds for the route is copied to each.
const MOST_SERVICES: usize = 1_000;

/// All of them; an error where the route as a whole cannot be used.
pub(super) fn backends(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    route: &Route,
    way: UpstreamOptions,
) -> Result<Backends, Vec<Rejection>> {
    let mut rejections = Vec::new();
    let count = route.services.good().count();
    if count > MOST_SERVICES {
        let why = format!("must have at most {MOST_SERVICES} services, not {count}");
        return Err(vec![Rejection::new(Code::ProxyExpansionLimit, place.field.field("services"), why)]);
    }
    for fault in route.services.faults() {
        work.report(place.subject, fault.into());
    }
    let mut backends = Backends::default();
    let (mut total, mut mirrors) = (0_u64, 0);
    let count = route.services.good().filter(|(_, service)| !service.mirror).count();
    for (index, service) in route.services.good() {
        let field = place.field.field("services").index(index);
        let here = FieldContext { object: place.object, subject: place.subject, field };
        let weight = u64::try_from(service.weight.unwrap_or_default()).unwrap_or_else(|_| {
            rejections.push(Rejection::new(Code::ProxyServiceWeight, here.field.field("weight"), "must be at least 0"));
            0
        });
        if service.mirror {
            mirrors += 1;
            if mirrors > 1 {
                let why = "another service of the route is already the mirror";
                rejections.push(Rejection::new(Code::ProxyMirrors, here.field.field("mirror"), why));
            }
        } else {
            total = total.saturating_add(weight);
        }
        match backend(work, &here, service, &way) {
            Err(rejection) => work.report(place.subject, rejection),
            Ok(found) if service.mirror => {
                let percent = if weight == 0 { 100 } else { weight.min(100) as u32 };
                backends.mirrors.push(Mirror {
                    cluster: found.share.cluster,
                    per_million: percent * 10_000,
                    keeps_host: false,
                });
            }
            Ok(Found { share, host: Some(HostRewrite::Header(name)) }) if count == 1 => {
                backends.host = Some(HostRewrite::Header(name));
                backends.clusters.push(WeightedCluster { weight: weight.min(u64::from(u32::MAX)) as u32, ..share });
            }
            Ok(Found { host: Some(HostRewrite::Header(_)), .. }) => {
                let why =
                    "a Host header that is copied from a request header requires a route with exactly one service";
                let field = here.field.field("requestHeadersPolicy");
                work.report(place.subject, Rejection::new(Code::ProxyServiceRequestHeaders, field, why));
            }
            Ok(Found { share, .. }) => {
                backends.clusters.push(WeightedCluster { weight: weight.min(u64::from(u32::MAX)) as u32, ..share });
            }
        }
    }
    if total > u64::from(u32::MAX) {
        let why = format!("the sum of the weights is {total}; the limit is {}", u32::MAX);
        rejections.push(Rejection::new(Code::ProxyServiceWeight, place.field.field("services"), why));
    }
    if !rejections.is_empty() {
        return Err(rejections);
    }
    if total == 0 {
        backends.clusters.iter_mut().for_each(|share| share.weight = 1);
    } else if backends.clusters.iter().all(|share| share.weight == 0) {
        // None of the services with a weight can be used, and the others get no requests.
        backends.clusters.clear();
    }
    Ok(backends)
}

/// A backend that can be used.
pub(crate) struct Found {
    pub share: WeightedCluster,
    pub host: Option<HostRewrite>,
}

/// One backend, or what is in its way.
pub(crate) fn backend(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    service: &Service,
    way: &UpstreamOptions,
) -> Result<Found, Rejection> {
    let own = cookies::policies(&service.cookie_rewrite_policies, &place.field)?;
    let cookies = cookies::of_service(own, &way.cookies);
    let (request_headers, response_headers, host) = headers::service(work, place, service)?;
    let port = u16::try_from(service.port).ok().filter(|&port| port != 0).ok_or_else(|| {
        Rejection::new(
            Code::ProxyServicePort,
            place.field.field("port"),
            format!("must be a port number from 1 to 65535, not {}", service.port),
        )
    })?;
    let namespace = &place.object.meta.namespace;
    let port = PortRef::Number(port);
    let id = resolve::backend(work.view, namespace, &service.name, &port).map_err(|rejection| {
        let name =
            if matches!(rejection.code, Code::ServicePortNotFound | Code::ServicePortNotTcp) { "port" } else { "name" };
        Rejection::resolved(rejection, place.field.field(name))
    })?;
    let protocol = match service.protocol.as_deref() {
        None | Some("") => None,
        Some("h2") => Some(Protocol::H2),
        Some("h2c") => Some(Protocol::H2c),
        Some("tls") => Some(Protocol::Tls),
        Some(other) => {
            let why = format!("must be h2, h2c or tls, not `{other}`");
            return Err(Rejection::new(Code::ProxyServiceProtocol, place.field.field("protocol"), why));
        }
    };
    let of_service = work.view.service(namespace, &service.name);
    let of_service = of_service.and_then(|found| Some(found.port(&port).ok()?.protocol));
    let spoken = protocol.or(of_service).unwrap_or_default();
    let literal = |host: &Option<HostRewrite>| match host {
        Some(HostRewrite::Literal(text)) => Some(text.clone()),
        _ => None,
    };
    let own = literal(&host);
    let server_name = own.clone().or_else(|| literal(&way.host)).filter(|_| spoken.is_tls());
    if let Some(name) = server_name.as_ref().filter(|name| name.as_str().len() > LONGEST_SERVER_NAME) {
        let length = name.as_str().len();
        let why =
            format!("the Host header has {length} bytes; the limit of the server name in TLS is {LONGEST_SERVER_NAME}");
        return Err(Rejection::new(Code::ProxyServiceRequestHeaders, place.field.field("requestHeadersPolicy"), why));
    }
    let overrides = ClusterOverrides {
        protocol: protocol.filter(|protocol| Some(*protocol) != of_service),
        server_name: server_name.map(|name| name.as_str().into()),
        idle: way.idle,
        balance: way.balance,
        health: way.health.clone(),
        health_port: health_port(work, place, service, way)?,
        slow_start: slow_start(work, place, service, way.balance)?,
        validation: validation(work, place, service, spoken)?,
        ..ClusterOverrides::default()
    };
    let cluster = ClusterId { overrides: overrides.shared(), ..id };
    let cluster = resolve::presenting(work.view, cluster, work.settings.client_certificate.as_ref())
        .map_err(|rejection| Rejection::resolved(rejection, place.field.clone()))?;
    Ok(Found {
        share: WeightedCluster {
            request_headers: request_headers.into(),
            response_headers: response_headers.into(),
            host: own,
            cookies,
            ..WeightedCluster::new(cluster, 0)
        },
        host,
    })
}

/// The port at which endpoints are probed; one that nobody probes is told.
fn health_port(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    service: &Service,
    way: &UpstreamOptions,
) -> Result<Option<u16>, Rejection> {
    let Some(number) = service.health_port.filter(|&number| number != service.port) else { return Ok(None) };
    let field = place.field.field("healthPort");
    let port = u16::try_from(number).ok().filter(|&port| port != 0);
    let port = port.ok_or_else(|| {
        Rejection::new(
            Code::ProxyServicePort,
            field.clone(),
            format!("must be a port number from 1 to 65535, not {number}"),
        )
    })?;
    if way.health.is_none() {
        let why = "no effect: the route has no healthCheckPolicy";
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, field, why));
        return Ok(None);
    }
    let namespace = &place.object.meta.namespace;
    resolve::backend(work.view, namespace, &service.name, &PortRef::Number(port))
        .map_err(|rejection| Rejection::resolved(rejection, field))?;
    Ok(Some(port))
}

/// How new endpoints are eased in: not at all, where the time for it is zero.
fn slow_start<V>(
    work: &mut Work<'_, V>,
    place: &FieldContext<'_>,
    service: &Service,
    balance: LoadBalancing,
) -> Result<Option<SlowStart>, Rejection> {
    let Some(policy) = optional(&service.slow_start_policy)? else { return Ok(None) };
    let field = place.field.field("slowStartPolicy");
    let reject = |name: &str, why: String| Rejection::new(Code::ProxySlowStart, field.field(name), why);
    if !matches!(balance, LoadBalancing::RoundRobin | LoadBalancing::LeastRequest) {
        let why = "requires the load balancing strategy RoundRobin or WeightedLeastRequest";
        return Err(Rejection::new(Code::ProxySlowStart, field, why));
    }
    let mut notes = Vec::new();
    let window = duration(&policy.window, Code::ProxySlowStart, field.field("window"), &mut notes)?;
    notes.into_iter().for_each(|note| work.report(place.subject, note));
    let text = policy.aggression.as_deref().filter(|text| !text.is_empty()).unwrap_or("1.0");
    let aggression = Aggression::parse(text);
    let aggression =
        aggression.ok_or_else(|| reject("aggression", format!("must be a number above 0, not `{text}`")))?;
    let percent = policy.min_weight_percent.unwrap_or(10);
    let least_percent = u32::try_from(percent).ok().filter(|&percent| percent <= 100);
    let least_percent =
        least_percent.ok_or_else(|| reject("minWeightPercent", format!("must be from 0 to 100, not {percent}")))?;
    Ok((!window.is_zero()).then_some(SlowStart { window, aggression, least_percent }))
}

/// The longest name that a certificate can be asked for.
const LONGEST_SUBJECT: usize = 250;
/// The most names.
const MOST_SUBJECTS: usize = 8;

/// Reads the policy. Without TLS there is nobody to trust or not: that is told.
fn validation(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &FieldContext<'_>,
    service: &Service,
    spoken: Protocol,
) -> Result<Option<Validation>, Rejection> {
    let Some(policy) = optional(&service.validation)? else { return Ok(None) };
    let field = place.field.field("validation");
    if !spoken.is_tls() {
        let why = "no effect: the connection to the service does not use TLS";
        work.report(place.subject, Rejection::new(Code::ProxyIgnored, field, why));
        return Ok(None);
    }
    upstream_validation(work.view, &place.object.meta.namespace, &field, policy).map(Some)
}

/// Whom to trust behind a TLS connection of an object of this namespace.
pub(crate) fn upstream_validation(
    view: &mut impl View,
    namespace: &str,
    field: &FieldPath,
    policy: &UpstreamValidation,
) -> Result<Validation, Rejection> {
    let reject = |name: &str, why: String| Rejection::new(Code::ProxyUpstreamValidation, field.field(name), why);
    let names = subject_names(policy).map_err(|(name, why)| reject(name, why))?;
    let ca = secret_id(namespace, &policy.ca_secret);
    resolve::trusted(view, namespace, &ca).map_err(|found| {
        let code = match found.code {
            Code::DelegationMissing => Code::ProxyCaNotDelegated,
            Code::SecretPending | Code::SecretReserved => found.code,
            _ => Code::ProxyUpstreamValidation,
        };
        Rejection::resolved(found, field.field("caSecret")).coded(code)
    })?;
    let names = names.into_iter().map(|name| SubjectAltName::Dns(name.into())).collect();
    Ok(Validation { ca: TrustedCa::Bundle(ca.into()), names })
}

/// The names of which the certificate of a server must have one, or the field that is wrong, and why.
pub(crate) fn subject_names(policy: &UpstreamValidation) -> Result<Vec<&str>, (&'static str, String)> {
    let names: Vec<&str> = match &policy.subject_names[..] {
        [] => vec![&policy.subject_name],
        [first, ..] if !policy.subject_name.is_empty() && **first != *policy.subject_name => {
            return Err(("subjectNames", "the first entry must equal subjectName".to_owned()));
        }
        names => names.iter().map(|name| &**name).collect(),
    };
    let fits = |name: &&str| (1..=LONGEST_SUBJECT).contains(&name.len()) && HeaderValue::parse(name).is_ok();
    if names.len() > MOST_SUBJECTS || !names.iter().all(fits) {
        let why = format!("must have 1 to {MOST_SUBJECTS} names of 1 to {LONGEST_SUBJECT} characters");
        return Err(("subjectName", why));
    }
    Ok(names)
}
