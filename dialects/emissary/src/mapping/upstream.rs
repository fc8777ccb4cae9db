//! Connections to the service of a Mapping: protocol, limits, load balancing, keepalive, timeouts, DNS.

use super::{Work, forward::milliseconds, health, service::Target};
use crate::{EmissaryView, Problem, Problems, duration, tls_context::Context};
use kinds::{
    Checked,
    emissary::mapping::{
        CircuitBreaker, Keepalive as Written, LoadBalancer, MappingSpec,
        cluster::{LoadBalancerPolicy, Priority},
    },
};
use model::{
    ClusterId, Code, EndpointsId, HeaderName, Timeout,
    cluster::{
        Backend, CaBundle, CircuitBreakers, ClusterOverrides, Discovery, DnsAddresses, DnsLookup, Keepalive,
        LoadBalancing, Protocol, TrustedCa, Validation,
    },
    route::{Hash, HashOf, Path},
};
use std::{net::IpAddr, sync::Arc, time::Duration};

/// How long a connection may take to stand where nothing is said.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(3000);

/// The longest name in statistics.
const LONGEST_STATS_NAME: usize = 128;

/// The most seconds or probes of TCP keepalive: what Linux takes.
const MOST_KEEPALIVE: i64 = 32767;

/// Where requests go, and by what an endpoint is chosen.
pub(super) struct Upstream {
    pub cluster: ClusterId,
    pub hash: Vec<Hash>,
}

/// Reads what a Mapping says about connections; nothing where it has no service.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>, target: Option<&Target>) -> Option<Upstream> {
    let spec = &work.object.spec;
    let defaults = Arc::clone(&work.defaults);
    let problems = &mut *work.problems;
    let connect = milliseconds(problems, "connect_timeout_ms", &spec.connect_timeout_ms);
    let idle = milliseconds(problems, "cluster_idle_timeout_ms", &spec.cluster_idle_timeout_ms);
    let idle = idle.map(|own| own.or(defaults.idle));
    let lifetime = &spec.cluster_max_connection_lifetime_ms;
    let lifetime = milliseconds(problems, "cluster_max_connection_lifetime_ms", lifetime);
    let lifetime = lifetime.map(|own| own.or(defaults.lifetime));
    let is_grpc = work.problems.optional("grpc", &spec.grpc).copied().unwrap_or_default();
    let own = breakers(work.problems, Code::MappingPolicy, &spec.circuit_breakers);
    let (breakers, high_breakers) = own.or(defaults.breakers).unwrap_or_default();
    let balancer = work.problems.optional("load_balancer", &spec.load_balancer);
    let own = balancer.map(|balancer| balance(work.problems, balancer));
    let (balance, hash) = own.or_else(|| defaults.balance.clone()).unwrap_or_default();
    let keepalive = keepalive(work.problems, &spec.keepalive).or(defaults.keepalive).unwrap_or_default();
    let health = health::read(work, is_grpc);
    let (stats_name, tag) = names(work);
    let target = target?;
    let dns = dns(work, target);
    let connection = connection(&target.backend, target.is_tls, is_grpc, target.context.as_ref(), work.view);
    let overrides = ClusterOverrides {
        idle: idle?.unwrap_or_default(),
        balance,
        health,
        breakers,
        high_breakers,
        connect_timeout: Some(match connect? {
            Some(Timeout::After(span)) => span,
            Some(Timeout::Infinite | Timeout::Default) | None => CONNECT_TIMEOUT,
        }),
        max_connection: match lifetime? {
            Some(Timeout::After(span)) => Some(span),
            Some(Timeout::Infinite | Timeout::Default) | None => None,
        },
        keepalive,
        dns,
        stats_name,
        tag,
        ..connection
    };
    Some(Upstream { cluster: ClusterId { backend: target.backend.clone(), overrides: overrides.shared() }, hash })
}

/// What is spoken with a backend, and how its certificate is verified.
pub(crate) fn connection(
    backend: &Backend,
    is_tls: bool,
    is_h2: bool,
    context: Option<&Context>,
    view: &mut impl EmissaryView,
) -> ClusterOverrides {
    let protocol = match (is_tls, is_h2) {
        (false, false) => Protocol::Http1,
        (false, true) => Protocol::H2c,
        (true, false) => Protocol::Tls,
        (true, true) => Protocol::H2,
    };
    let of_service = match backend {
        Backend::Service(id) => {
            let service = view.service(&id.namespace, &id.service);
            service.and_then(|service| Some(service.cluster(id.port, id.transport)?.protocol))
        }
        Backend::Services(_) | Backend::Extension(_) | Backend::Outside(_) => Some(Protocol::Http1),
    };
    let server_name = match backend {
        _ if context.is_some_and(|context| context.server_name.is_some()) => {
            context.and_then(|context| context.server_name.clone())
        }
        Backend::Outside(outside) if is_tls && outside.address().is_none() => Some(outside.host().clone()),
        _ => None,
    };
    let ca = context.and_then(|context| Some(CaBundle::from(context.ca.clone()?).revoked_by(context.crl.clone())));
    ClusterOverrides {
        protocol: Some(protocol).filter(|protocol| Some(*protocol) != of_service),
        server_name,
        validation: ca.map(|ca| Validation { ca: TrustedCa::Bundle(ca), names: Vec::new() }),
        client_certificate: context.and_then(|context| context.secret.clone()),
        tls_versions: context.and_then(|context| context.upstream_versions),
        tls_parameters: context.and_then(Context::upstream_parameters),
        ..ClusterOverrides::default()
    }
}

/// The limits of requests of each priority, if some are set.
pub(crate) fn breakers(
    problems: &mut Problems<'_>,
    code: Code,
    written: &Checked<Option<Box<[CircuitBreaker]>>>,
) -> Option<(CircuitBreakers, CircuitBreakers)> {
    let (mut usual, mut high) = (CircuitBreakers::default(), CircuitBreakers::default());
    for (index, breaker) in problems.optional("circuit_breakers", written)?.iter().enumerate() {
        let limits = match &breaker.priority {
            None | Some(Priority::Default) => &mut usual,
            Some(Priority::High) => &mut high,
            Some(Priority::Unknown(word)) => {
                let why = format!("must be default or high, not `{}`", word.escape_debug());
                problems.refuse(Problem::new(code, &format!("circuit_breakers[{index}].priority"), why));
                continue;
            }
        };
        let CircuitBreaker { max_connections, max_pending_requests, max_requests, max_retries, .. } = breaker;
        let fields = [
            ("max_connections", max_connections, &mut limits.max_connections),
            ("max_pending_requests", max_pending_requests, &mut limits.max_pending_requests),
            ("max_requests", max_requests, &mut limits.max_requests),
            ("max_retries", max_retries, &mut limits.max_retries),
        ];
        for (name, value, limit) in fields {
            let Some(value) = value else { continue };
            match u32::try_from(*value) {
                Ok(value) => *limit = Some(value),
                Err(_) => {
                    let why = format!("must be from 0 to {}, not {value}", u32::MAX);
                    problems.refuse(Problem::new(code, &format!("circuit_breakers[{index}].{name}"), why));
                }
            }
        }
    }
    Some((usual, high))
}

/// How an endpoint is chosen, and by what hash.
pub(crate) fn balance(problems: &mut Problems<'_>, written: &LoadBalancer) -> (LoadBalancing, Vec<Hash>) {
    let reject = |why: &str| {
        let why = format!("Invalid load_balancer specified: {why}");
        Problem::new(Code::MappingPolicy, "load_balancer", why)
    };
    let LoadBalancer { policy, cookie, header, source_ip } = written;
    let is_by_address = source_ip.unwrap_or_default();
    let keys = usize::from(cookie.is_some()) + usize::from(header.is_some()) + usize::from(is_by_address);
    let (balance, needed) = match policy {
        None | Some(LoadBalancerPolicy::RoundRobin) => (LoadBalancing::RoundRobin, 0),
        Some(LoadBalancerPolicy::LeastRequest) => (LoadBalancing::LeastRequest, 0),
        Some(LoadBalancerPolicy::RingHash) => (LoadBalancing::RingHash, 1),
        Some(LoadBalancerPolicy::Maglev) => (LoadBalancing::Maglev, 1),
        Some(LoadBalancerPolicy::Unknown(word)) => {
            problems.refuse(reject(&format!("the policy `{}` is not known", word.escape_debug())));
            return Default::default();
        }
    };
    if keys != needed {
        let why = match needed {
            0 => "only ring_hash and maglev have cookie, header or source_ip",
            _ => "ring_hash and maglev need exactly one of cookie, header and source_ip",
        };
        problems.refuse(reject(why));
        return Default::default();
    }
    let of = if let Some(cookie) = cookie {
        let path = cookie.path.as_deref().filter(|path| !path.is_empty());
        let path = path.map(|path| Path::parse(path).map_err(|error| reject(&error.to_string()))).transpose();
        let lifetime = cookie.ttl.as_deref().filter(|ttl| !ttl.is_empty());
        let lifetime = lifetime.map(|ttl| duration::parse(problems, "load_balancer.cookie.ttl", ttl)).transpose();
        let lifetime = lifetime.map_err(|error| reject(&error.to_string()));
        let name = HeaderName::parse(&cookie.name).map(|_| (&*cookie.name).into());
        let name = name.map_err(|error| reject(&error.to_string()));
        let found = name.and_then(|name| Ok(HashOf::LastingCookie { name, path: path?, lifetime: lifetime? }));
        problems.parsed(found)
    } else if let Some(header) = header {
        problems.parsed(HeaderName::parse(header).map(HashOf::Header).map_err(|error| reject(&error.to_string())))
    } else {
        is_by_address.then_some(HashOf::SourceIp)
    };
    (balance, of.map(|of| Hash { of, terminal: false }).into_iter().collect())
}

/// TCP keepalive, if it is set.
pub(crate) fn keepalive(problems: &mut Problems<'_>, written: &Checked<Option<Box<Written>>>) -> Option<Keepalive> {
    let written = problems.optional("keepalive", written)?;
    let fields = [("probes", written.probes), ("idle_time", written.idle_time), ("interval", written.interval)];
    let [probes, idle_seconds, interval_seconds] = fields.map(|(name, value)| {
        let value = value?;
        let found = u32::try_from(value).ok().filter(|_| (1..=MOST_KEEPALIVE).contains(&value));
        problems.parsed(found.ok_or_else(|| {
            let why = format!("must be from 1 to {MOST_KEEPALIVE}, not {value}");
            Problem::new(Code::MappingPolicy, &format!("keepalive.{name}"), why)
        }))
    });
    Some(Keepalive { probes, idle_seconds, interval_seconds })
}

/// A name as it stands in statistics.
pub(crate) fn in_stats(name: &str) -> Arc<str> {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    plain.take(LONGEST_STATS_NAME).collect::<String>().into()
}

/// The name in statistics, and what keeps the cluster apart.
fn names(work: &mut Work<'_, '_, impl EmissaryView>) -> (Option<Arc<str>>, Option<Arc<str>>) {
    let MappingSpec { stats_name, cluster_tag, .. } = &work.object.spec;
    let own = work.problems.optional("stats_name", stats_name).filter(|name| !name.is_empty());
    let tag = work.problems.optional("cluster_tag", cluster_tag).filter(|tag| !tag.is_empty());
    let stats_name = own.map(|name| in_stats(name)).or_else(|| work.defaults.stats_name.clone());
    (stats_name, tag.map(|tag| (&**tag).into()))
}

/// The address that a Service of type ExternalName is, if it is not a name in DNS; nothing for other Services.
fn external_name(id: &EndpointsId, view: &mut impl EmissaryView) -> Option<Option<IpAddr>> {
    let service = view.service(&id.namespace, &id.service)?;
    match service.cluster(id.port, id.transport)?.discovery {
        Discovery::Dns(targets) => Some(targets.first().and_then(|target| target.host.parse().ok())),
        Discovery::Endpoints | Discovery::WeightedEndpoints => None,
    }
}

/// How a name in DNS is looked up. The endpoints of a Service are known without DNS, unless it leads to a name itself.
fn dns(work: &mut Work<'_, '_, impl EmissaryView>, target: &Target) -> DnsLookup {
    let MappingSpec { dns_type, respect_dns_ttl, enable_ipv4, enable_ipv6, .. } = &work.object.spec;
    let kind = work.problems.optional("dns_type", dns_type);
    let respect_ttl = work.problems.optional("respect_dns_ttl", respect_dns_ttl).copied();
    let v4 = work.problems.optional("enable_ipv4", enable_ipv4).copied();
    let v6 = work.problems.optional("enable_ipv6", enable_ipv6).copied();
    let logical = match kind.map(|kind| &**kind) {
        None | Some("" | "strict_dns") => false,
        Some("logical_dns") => true,
        Some(other) => {
            let why = format!("must be strict_dns or logical_dns, not `{}`; strict_dns is used", other.escape_debug());
            work.problems.no_effect("dns_type", &why);
            false
        }
    };
    let defaults = &work.defaults;
    let address = match &target.backend {
        Backend::Outside(outside) => Some(outside.address()),
        Backend::Service(id) => external_name(id, work.view),
        Backend::Services(_) | Backend::Extension(_) => None,
    };
    let Some(address) = address else {
        let set = [("dns_type", kind.is_some()), ("respect_dns_ttl", respect_ttl.is_some())];
        let families = [("enable_ipv4", v4.is_some()), ("enable_ipv6", v6.is_some())];
        for (field, _) in set.into_iter().chain(families).filter(|(_, is_set)| *is_set) {
            work.problems.no_effect(field, "the endpoints of a Service are known without DNS");
        }
        return DnsLookup::default();
    };
    let addresses = match (address, v4.unwrap_or(defaults.ipv4), v6.unwrap_or(defaults.ipv6)) {
        (Some(IpAddr::V4(_)), ..) => DnsAddresses::V4,
        (Some(IpAddr::V6(_)), ..) => DnsAddresses::V6,
        (None, true, true) => DnsAddresses::Auto,
        (None, false, true) => DnsAddresses::V6,
        (None, ..) => DnsAddresses::V4,
    };
    DnsLookup { logical, respect_ttl: respect_ttl.unwrap_or_default(), addresses: Some(addresses) }
}
