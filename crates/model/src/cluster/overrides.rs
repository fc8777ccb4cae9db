//! What a route overrides of the cluster of its backend: part of the cluster's identity.
//!
//! Two routes that ask for different things of one Service port have two clusters, and two that ask for the same share
//! one. The name contains a hash of a text that lists every setting by name, so that it is equal on every replica, and a
//! setting that a later version adds changes no name of today.

use super::{
    CircuitBreakers, DnsAddresses, DnsLookup, HealthCheck, Keepalive, Probe, Protocol, SlowStart, SubjectAltName,
    TrustedCa, Validation,
};
use crate::{
    ObjectRef, Timeout,
    route::HeaderChanges,
    tls::{TlsParameters, TlsVersions},
};
use std::{
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

/// The load balancing policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadBalancing {
    /// Round robin.
    #[default]
    RoundRobin,
    /// Random.
    Random,
    /// Least request, of two random choices.
    LeastRequest,
    /// Ring hash.
    RingHash,
    /// Maglev.
    Maglev,
}

/// What a route overrides of the cluster of its backend; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterOverrides {
    /// The protocol, if it is not that of the Service.
    pub protocol: Option<Protocol>,
    /// The server name (SNI) of the TLS handshake; at most [`super::LONGEST_SERVER_NAME`] bytes.
    pub server_name: Option<Arc<str>>,
    /// The idle timeout of connections.
    pub idle: Timeout,
    /// The load balancing policy.
    pub balance: LoadBalancing,
    /// Active health checks.
    pub health: Option<HealthCheck>,
    /// The Service port that health checks use, if it is another.
    pub health_port: Option<u16>,
    /// Slow start of new endpoints.
    pub slow_start: Option<SlowStart>,
    /// How the certificate of the backend is validated.
    pub validation: Option<Validation>,
    /// The Secret with the certificate that the backend is presented over TLS.
    pub client_certificate: Option<ObjectRef>,
    /// The TLS versions that are spoken, if not those of the settings.
    pub tls_versions: Option<TlsVersions>,
    /// Ciphers and curves, where they are not those of the settings.
    pub tls_parameters: Option<Arc<TlsParameters>>,
    /// How many retries may be in flight, where no circuit breaker says so.
    pub max_retries: Option<u32>,
    /// The circuit breakers, where they are set.
    pub breakers: CircuitBreakers,
    /// The circuit breakers of requests of high priority.
    pub high_breakers: CircuitBreakers,
    /// How long a connection may take to stand.
    pub connect_timeout: Option<Duration>,
    /// How long a connection may live.
    pub max_connection: Option<Duration>,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// How its name in DNS is looked up.
    pub dns: DnsLookup,
    /// Its name in statistics: letters, digits and `_`.
    pub stats_name: Option<Arc<str>>,
    /// A text that tells clusters apart that are otherwise the same.
    pub tag: Option<Arc<str>>,
}

impl ClusterOverrides {
    /// `None` if nothing is overridden.
    pub fn shared(self) -> Option<Arc<ClusterOverrides>> {
        (self != ClusterOverrides::default()).then(|| Arc::new(self))
    }

    /// All of it as a text; what is not overridden is left out.
    pub fn canonical(&self) -> String {
        let Self { protocol, server_name, idle, balance, health, slow_start, validation, health_port, .. } = self;
        let Self { client_certificate, max_retries, breakers, high_breakers, connect_timeout, .. } = self;
        let Self { max_connection, keepalive, dns, stats_name, tag, tls_versions, tls_parameters, .. } = self;
        let mut out = String::new();
        let mut put = |name: &str, value: fmt::Arguments<'_>| {
            let _infallible = writeln!(out, "{name}={value}");
        };
        if let Some(protocol) = protocol {
            put("protocol", format_args!("{}", protocol.word()));
        }
        if let Some(name) = server_name {
            put("server-name", format_args!("{name}"));
        }
        match idle {
            Timeout::Default => {}
            Timeout::Infinite => put("idle", format_args!("infinite")),
            Timeout::After(span) => put("idle", format_args!("{}ns", span.as_nanos())),
        }
        match balance {
            LoadBalancing::RoundRobin => {}
            LoadBalancing::Random => put("balance", format_args!("random")),
            LoadBalancing::LeastRequest => put("balance", format_args!("least-request")),
            LoadBalancing::RingHash => put("balance", format_args!("ring-hash")),
            LoadBalancing::Maglev => put("balance", format_args!("maglev")),
        }
        if let Some(HealthCheck { probe, interval, timeout, unhealthy, healthy }) = health {
            match probe {
                Probe::Http { path, host, .. } => {
                    put("health-path", format_args!("{path}"));
                    put("health-host", format_args!("{}", host.as_str()));
                }
                Probe::Grpc { service, host } => {
                    put("health-grpc", format_args!("{service}"));
                    if let Some(host) = host {
                        put("health-host", format_args!("{}", host.as_str()));
                    }
                }
                Probe::Tcp => put("health", format_args!("tcp")),
            }
            put("health-times", format_args!("{}ns {}ns", interval.as_nanos(), timeout.as_nanos()));
            put("health-counts", format_args!("{unhealthy} {healthy}"));
            if let Probe::Http { statuses, headers, .. } = probe {
                put("health-statuses", format_args!("{statuses:?}"));
                let HeaderChanges { set, add, remove } = headers;
                set.iter().for_each(|(name, value)| put("health-set", format_args!("{name}: {}", value.as_str())));
                add.iter().for_each(|(name, value)| put("health-add", format_args!("{name}: {}", value.as_str())));
                remove.iter().for_each(|name| put("health-remove", format_args!("{name}")));
            }
        }
        if let Some(port) = health_port {
            put("health-port", format_args!("{port}"));
        }
        if let Some(SlowStart { window, aggression, least_percent }) = slow_start {
            let aggression = aggression.value();
            put("slow-start", format_args!("{}ns {aggression} {least_percent}", window.as_nanos()));
        }
        if let Some(Validation { ca, names }) = validation {
            match ca {
                TrustedCa::Bundle(bundle) => {
                    bundle.objects().for_each(|object| match object.kind.plural() {
                        "secrets" => put("ca", format_args!("{}/{}", object.namespace, object.name)),
                        _ => put("ca", format_args!("{object}")),
                    });
                    if let Some(crl) = bundle.crl() {
                        put("crl", format_args!("{}/{}", crl.namespace, crl.name));
                    }
                }
                TrustedCa::System => put("ca", format_args!("system")),
            }
            names.iter().for_each(|name| match name {
                SubjectAltName::Dns(name) => put("subject", format_args!("{name}")),
                SubjectAltName::Uri(uri) => put("uri", format_args!("{uri}")),
            });
        }
        if let Some(ObjectRef { namespace, name, .. }) = client_certificate {
            put("client-certificate", format_args!("{namespace}/{name}"));
        }
        if let Some(TlsVersions { lowest, highest }) = tls_versions {
            put("tls-versions", format_args!("{lowest} {highest}"));
        }
        if let Some(parameters) = tls_parameters {
            put("tls-parameters", format_args!("{parameters}"));
        }
        if let Some(most) = max_retries {
            put("max-retries", format_args!("{most}"));
        }
        for (name, limits) in [("breakers", breakers), ("high-breakers", high_breakers)] {
            if *limits != CircuitBreakers::default() {
                let CircuitBreakers { max_connections, max_pending_requests, max_requests, max_retries, .. } = limits;
                let of_host = limits.per_host_max_connections;
                let limits = [max_connections, max_pending_requests, max_requests, max_retries, &of_host];
                put(name, format_args!("{limits:?}"));
            }
        }
        for (name, span) in [("connect-timeout", connect_timeout), ("max-connection", max_connection)] {
            if let Some(span) = span {
                put(name, format_args!("{}ns", span.as_nanos()));
            }
        }
        if *keepalive != Keepalive::default() {
            let Keepalive { probes, idle_seconds, interval_seconds } = keepalive;
            put("keepalive", format_args!("{probes:?} {idle_seconds:?} {interval_seconds:?}"));
        }
        if *dns != DnsLookup::default() {
            let DnsLookup { logical, respect_ttl, addresses } = dns;
            let addresses = match addresses {
                None => "",
                Some(DnsAddresses::V4) => "v4",
                Some(DnsAddresses::V6) => "v6",
                Some(DnsAddresses::Auto) => "auto",
            };
            put("dns", format_args!("{logical} {respect_ttl} {addresses}"));
        }
        for (name, text) in [("stats-name", stats_name), ("tag", tag)] {
            if let Some(text) = text {
                put(name, format_args!("{text:?}"));
            }
        }
        out
    }
}

/// The hash, as it stands in the name of a cluster.
impl fmt::Display for ClusterOverrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", xxhash_rust::xxh3::xxh3_64(self.canonical().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HeaderValue,
        cluster::{Aggression, CaBundle},
        route::Path,
        tls::TlsVersion,
    };
    use std::time::Duration;

    fn http(statuses: Vec<(u16, u16)>) -> Probe {
        let host = HeaderValue::parse("a").expect("a value");
        Probe::Http { path: Path::root().into(), host, statuses, headers: HeaderChanges::default() }
    }

    fn grpc(service: &str, host: Option<&str>) -> Probe {
        Probe::Grpc { service: service.into(), host: host.map(|host| HeaderValue::parse(host).expect("a value")) }
    }

    fn health() -> HealthCheck {
        HealthCheck {
            probe: http(Vec::new()),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            unhealthy: 2,
            healthy: 2,
        }
    }

    fn trusted(ca: &str, names: &[&str]) -> Validation {
        let names = names.iter().map(|&name| SubjectAltName::Dns(name.into())).collect();
        Validation { ca: TrustedCa::Bundle(ObjectRef::new(kinds::kind::SECRET, "ns", ca).into()), names }
    }

    fn limits(max_connections: Option<u32>, max_requests: Option<u32>) -> CircuitBreakers {
        CircuitBreakers { max_connections, max_requests, ..CircuitBreakers::default() }
    }

    fn secret(namespace: &str, name: &str) -> ObjectRef {
        ObjectRef::new(kinds::kind::SECRET, namespace, name)
    }

    fn parameters(ciphers: &[&str], curves: &[&str]) -> Option<Arc<TlsParameters>> {
        let words = |words: &[&str]| words.iter().map(|&word| Arc::from(word)).collect();
        TlsParameters { ciphers: words(ciphers), curves: words(curves), alpn: Vec::new() }.shared()
    }

    fn slow(aggression: &str, least_percent: u32) -> SlowStart {
        let aggression = Aggression::parse(aggression).expect("a number");
        SlowStart { window: Duration::from_secs(1), aggression, least_percent }
    }

    #[test]
    fn every_setting_is_part_of_the_name() {
        let plain = ClusterOverrides::default();
        let variants = [
            ClusterOverrides { protocol: Some(Protocol::H2), ..plain.clone() },
            ClusterOverrides { protocol: Some(Protocol::Tls), ..plain.clone() },
            ClusterOverrides { server_name: Some("a".into()), ..plain.clone() },
            ClusterOverrides { idle: Timeout::Infinite, ..plain.clone() },
            ClusterOverrides { idle: Timeout::After(Duration::from_secs(1)), ..plain.clone() },
            ClusterOverrides { balance: LoadBalancing::Random, ..plain.clone() },
            ClusterOverrides { balance: LoadBalancing::LeastRequest, ..plain.clone() },
            ClusterOverrides { balance: LoadBalancing::RingHash, ..plain.clone() },
            ClusterOverrides { balance: LoadBalancing::Maglev, ..plain.clone() },
            ClusterOverrides { breakers: limits(Some(1), None), ..plain.clone() },
            ClusterOverrides { breakers: limits(None, Some(1)), ..plain.clone() },
            ClusterOverrides { high_breakers: limits(Some(1), None), ..plain.clone() },
            ClusterOverrides { connect_timeout: Some(Duration::from_secs(1)), ..plain.clone() },
            ClusterOverrides { max_connection: Some(Duration::from_secs(1)), ..plain.clone() },
            ClusterOverrides { keepalive: Keepalive { probes: Some(1), ..Keepalive::default() }, ..plain.clone() },
            ClusterOverrides { dns: DnsLookup { logical: true, ..DnsLookup::default() }, ..plain.clone() },
            ClusterOverrides { dns: DnsLookup { respect_ttl: true, ..DnsLookup::default() }, ..plain.clone() },
            ClusterOverrides {
                dns: DnsLookup { addresses: Some(DnsAddresses::V6), ..DnsLookup::default() },
                ..plain.clone()
            },
            ClusterOverrides { stats_name: Some("a".into()), ..plain.clone() },
            ClusterOverrides { tag: Some("a".into()), ..plain.clone() },
            ClusterOverrides { health: Some(health()), ..plain.clone() },
            ClusterOverrides {
                health: Some(HealthCheck { probe: http(vec![(200, 300)]), ..health() }),
                ..plain.clone()
            },
            ClusterOverrides { health: Some(HealthCheck { probe: Probe::Tcp, ..health() }), ..plain.clone() },
            ClusterOverrides { health: Some(HealthCheck { probe: grpc("", None), ..health() }), ..plain.clone() },
            ClusterOverrides { health: Some(HealthCheck { probe: grpc("a", None), ..health() }), ..plain.clone() },
            ClusterOverrides { health: Some(HealthCheck { probe: grpc("a", Some("b")), ..health() }), ..plain.clone() },
            ClusterOverrides { health_port: Some(81), ..plain.clone() },
            ClusterOverrides { max_retries: Some(81), ..plain.clone() },
            ClusterOverrides { tls_versions: Some(TlsVersions::default()), ..plain.clone() },
            ClusterOverrides {
                tls_versions: Some(TlsVersions { lowest: TlsVersion::V1_3, ..TlsVersions::default() }),
                ..plain.clone()
            },
            ClusterOverrides { tls_parameters: parameters(&["AES128-SHA"], &[]), ..plain.clone() },
            ClusterOverrides { tls_parameters: parameters(&[], &["P-256"]), ..plain.clone() },
            ClusterOverrides { client_certificate: Some(secret("a", "b")), ..plain.clone() },
            ClusterOverrides { client_certificate: Some(secret("a", "c")), ..plain.clone() },
            ClusterOverrides { client_certificate: Some(secret("c", "b")), ..plain.clone() },
            ClusterOverrides { health: Some(HealthCheck { healthy: 3, ..health() }), ..plain.clone() },
            ClusterOverrides { slow_start: Some(slow("1.0", 10)), ..plain.clone() },
            ClusterOverrides { slow_start: Some(slow("1.5", 10)), ..plain.clone() },
            ClusterOverrides { slow_start: Some(slow("1.0", 20)), ..plain.clone() },
            ClusterOverrides { validation: Some(trusted("a", &["x"])), ..plain.clone() },
            ClusterOverrides { validation: Some(trusted("b", &["x"])), ..plain.clone() },
            ClusterOverrides { validation: Some(trusted("a", &["x", "y"])), ..plain.clone() },
        ];
        let config_map = ObjectRef::new(kinds::kind::CONFIG_MAP, "ns", "a");
        let both = [ObjectRef::new(kinds::kind::SECRET, "ns", "a"), config_map.clone()];
        let both = TrustedCa::Bundle(CaBundle::of(both).expect("two objects"));
        let of_config_map = TrustedCa::Bundle(config_map.into());
        let revoked = TrustedCa::Bundle(CaBundle::from(secret("ns", "a")).revoked_by(Some(secret("ns", "b"))));
        let uri = vec![SubjectAltName::Uri("x".into())];
        let validations = [
            Validation { ca: of_config_map, ..trusted("a", &["x"]) },
            Validation { ca: both, ..trusted("a", &["x"]) },
            Validation { ca: revoked, ..trusted("a", &["x"]) },
            Validation { ca: TrustedCa::System, ..trusted("a", &["x"]) },
            Validation { names: uri, ..trusted("a", &["x"]) },
        ];
        let validations =
            validations.map(|validation| ClusterOverrides { validation: Some(validation), ..plain.clone() });
        let variants: Vec<_> = variants.into_iter().chain(validations).collect();
        let names: std::collections::BTreeSet<String> = variants.iter().map(ClusterOverrides::to_string).collect();
        assert_eq!(names.len(), variants.len());
        assert_eq!(plain.canonical(), "");
        assert_eq!(plain.shared(), None);
    }
}
