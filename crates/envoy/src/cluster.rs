//! A Service port as Envoy's cluster: where its endpoints come from, how they are probed and eased in, and how much
//! they may be given at once.

pub mod holder;
pub mod protocol;

use crate::{
    bootstrap::DnsFamily,
    endpoints::socket,
    name,
    route::{headers_to_add, headers_to_remove},
};
use envoy_api::{
    any,
    envoy::{
        config::{
            cluster::v3::{
                CircuitBreakers as Breakers, Cluster, UpstreamConnectionOptions,
                circuit_breakers::Thresholds,
                cluster::{
                    ClusterDiscoveryType, CommonLbConfig, CustomClusterType, DiscoveryType, DnsLookupFamily,
                    EdsClusterConfig, LbConfig, LbPolicy, LeastRequestLbConfig, RoundRobinLbConfig, SlowStartConfig,
                    common_lb_config::{LocalityConfigSpecifier, LocalityWeightedLbConfig},
                },
            },
            core::v3::{
                HealthCheck, RoutingPriority, RuntimeDouble, TcpKeepalive,
                health_check::{GrpcHealthCheck, HealthChecker, HttpHealthCheck, TcpHealthCheck},
            },
            endpoint::v3::{ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint},
        },
        extensions::clusters::dns::v3::DnsCluster,
        r#type::v3::{CodecClientType, Int64Range, Percent},
    },
};
use model::{
    cluster::{
        CircuitBreakers, Discovery, DnsAddresses, DnsLookup, DnsTarget, Keepalive, LoadBalancing, Probe, SlowStart,
    },
    tls::TlsVersions,
};
use std::{sync::Arc, time::Duration};

/// Envoy takes no time limit of nothing here, and counts whole milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);

/// Where Envoy's images, and most distributions of Linux, have the CAs that are trusted by default.
pub const SYSTEM_CAS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What holds for every cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterSettings {
    /// How long a connection may take to stand.
    pub connect_timeout: Duration,
    /// Which addresses of a name in DNS are used.
    pub dns_family: DnsFamily,
    /// After how many requests a connection is closed.
    pub max_requests: Option<u32>,
    /// What a connection may hold in memory, in bytes; Envoy's default if not set.
    pub buffer: Option<u32>,
    /// What holds for Services that set no limits of their own.
    pub breakers: CircuitBreakers,
    /// Which TLS versions are spoken with backends.
    pub tls: TlsVersions,
    /// What TLS 1.2 may use with backends; Envoy's own if none is named.
    pub ciphers: Vec<Arc<str>>,
    /// The curves of key exchange with backends; Envoy's own if none is named.
    pub curves: Vec<Arc<str>>,
    /// The file with the CAs that the proxy's system trusts, on the proxy.
    pub system_cas: Arc<str>,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(2),
            dns_family: DnsFamily::default(),
            max_requests: None,
            buffer: None,
            breakers: CircuitBreakers::default(),
            tls: TlsVersions::default(),
            ciphers: Vec::new(),
            curves: Vec::new(),
            system_cas: SYSTEM_CAS.into(),
        }
    }
}

/// The cluster. An unhealthy backend is never given traffic in a panic: the threshold is off, as Contour has it.
#[allow(
    deprecated,
    reason = "Envoy's other form of a DNS cluster is another type of cluster, which would replace those in use"
)]
pub fn cluster(cluster: &model::Cluster, settings: &ClusterSettings) -> Cluster {
    let built = Cluster {
        name: name::cluster(&cluster.id),
        alt_stat_name: match &cluster.overrides.stats_name {
            Some(name) => name.to_string(),
            None => name::cluster_in_stats(&cluster.id),
        },
        connect_timeout: Some(
            cluster.overrides.connect_timeout.unwrap_or(settings.connect_timeout).max(SHORTEST).into(),
        ),
        per_connection_buffer_limit_bytes: settings.buffer.map(Into::into),
        lb_policy: balance(cluster.overrides.balance).into(),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            locality_config_specifier: (cluster.discovery == Discovery::WeightedEndpoints).then(weighted_localities),
            ..Default::default()
        }),
        health_checks: health_checks(cluster),
        ignore_health_on_host_removal: cluster.overrides.health.is_some(),
        lb_config: slow_start(cluster),
        circuit_breakers: thresholds(&breakers(cluster, settings), &cluster.overrides.high_breakers),
        transport_socket: protocol::transport_socket(cluster, settings),
        typed_extension_protocol_options: protocol::options(cluster, settings),
        upstream_connection_options: Some(UpstreamConnectionOptions {
            tcp_keepalive: Some(keepalive(cluster.overrides.keepalive)),
            ..Default::default()
        }),
        ..Default::default()
    };
    match &cluster.discovery {
        Discovery::Endpoints | Discovery::WeightedEndpoints => Cluster {
            cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
            eds_cluster_config: Some(EdsClusterConfig {
                eds_config: Some(name::on_this_stream()),
                service_name: name::cluster(&cluster.id),
            }),
            ..built
        },
        Discovery::Dns(targets) => Cluster {
            cluster_discovery_type: Some(dns_discovery(
                cluster.overrides.dns,
                targets,
                dns_family(cluster.overrides.dns, settings),
            )),
            dns_lookup_family: dns_family(cluster.overrides.dns, settings).into(),
            load_assignment: Some(ClusterLoadAssignment {
                cluster_name: name::cluster(&cluster.id),
                endpoints: vec![LocalityLbEndpoints {
                    lb_endpoints: targets.iter().map(dns_endpoint).collect(),
                    ..Default::default()
                }],
                ..Default::default()
            }),
            ..built
        },
    }
}

/// How a name is looked up. Envoy takes a single name where it looks at one address at a time.
fn dns_type(dns: DnsLookup, targets: &[DnsTarget]) -> DiscoveryType {
    match targets {
        [_] if dns.logical => DiscoveryType::LogicalDns,
        _ => DiscoveryType::StrictDns,
    }
}

/// How a cluster finds its addresses. Lookups that end with their records have a form of their own: Envoy has deprecated the
/// field of clusters.
fn dns_discovery(dns: DnsLookup, targets: &[DnsTarget], family: DnsLookupFamily) -> ClusterDiscoveryType {
    let kind = dns_type(dns, targets);
    if !dns.respect_ttl {
        return ClusterDiscoveryType::Type(kind.into());
    }
    let lookups = DnsCluster {
        respect_dns_ttl: true,
        // The same list after one more value, which leaves it to Envoy.
        dns_lookup_family: i32::from(family) + 1,
        all_addresses_in_single_endpoint: kind == DiscoveryType::LogicalDns,
        ..Default::default()
    };
    let name = "envoy.clusters.dns".to_owned();
    ClusterDiscoveryType::ClusterType(CustomClusterType { name, typed_config: Some(any(&lookups)) })
}

fn dns_family(dns: DnsLookup, settings: &ClusterSettings) -> DnsLookupFamily {
    match dns.addresses {
        None => settings.dns_family.lookup(),
        Some(DnsAddresses::V4) => DnsLookupFamily::V4Only,
        Some(DnsAddresses::V6) => DnsLookupFamily::V6Only,
        Some(DnsAddresses::Auto) => DnsLookupFamily::Auto,
    }
}

fn keepalive(keepalive: Keepalive) -> TcpKeepalive {
    TcpKeepalive {
        keepalive_probes: keepalive.probes.map(Into::into),
        keepalive_time: keepalive.idle_seconds.map(Into::into),
        keepalive_interval: keepalive.interval_seconds.map(Into::into),
    }
}

/// Localities have the shares that their weights say.
pub(crate) fn weighted_localities() -> LocalityConfigSpecifier {
    LocalityConfigSpecifier::LocalityWeightedLbConfig(LocalityWeightedLbConfig::default())
}

fn balance(balance: LoadBalancing) -> LbPolicy {
    match balance {
        LoadBalancing::RoundRobin => LbPolicy::RoundRobin,
        LoadBalancing::Random => LbPolicy::Random,
        LoadBalancing::LeastRequest => LbPolicy::LeastRequest,
        LoadBalancing::RingHash => LbPolicy::RingHash,
        LoadBalancing::Maglev => LbPolicy::Maglev,
    }
}

fn dns_endpoint(target: &DnsTarget) -> LbEndpoint {
    LbEndpoint {
        host_identifier: Some(lb_endpoint::HostIdentifier::Endpoint(Endpoint {
            address: Some(socket(&target.host, target.port)),
            ..Default::default()
        })),
        ..Default::default()
    }
}

/// The circuit breakers: those of the Service, then those of the operator, then what the routes need.
fn breakers(cluster: &model::Cluster, settings: &ClusterSettings) -> CircuitBreakers {
    let of_routes = CircuitBreakers { max_retries: cluster.overrides.max_retries, ..CircuitBreakers::default() };
    cluster.breakers.or(&settings.breakers).or(&of_routes)
}

/// How much a backend may be given at once, where any was set; what is left unset keeps Envoy's default.
fn thresholds(limits: &CircuitBreakers, high: &CircuitBreakers) -> Option<Breakers> {
    let none = CircuitBreakers::default();
    if *limits == none && *high == none {
        return None;
    }
    let of = |limits: &CircuitBreakers, priority: RoutingPriority| Thresholds {
        priority: priority.into(),
        max_connections: limits.max_connections.map(Into::into),
        max_pending_requests: limits.max_pending_requests.map(Into::into),
        max_requests: limits.max_requests.map(Into::into),
        max_retries: limits.max_retries.map(Into::into),
        track_remaining: true,
        ..Default::default()
    };
    let high = (*high != none).then(|| of(high, RoutingPriority::High));
    let each = limits.per_host_max_connections.map(|most| Thresholds {
        max_connections: Some(most.into()),
        track_remaining: true,
        ..Default::default()
    });
    let all = std::iter::once(of(limits, RoutingPriority::Default)).chain(high).collect();
    Some(Breakers { thresholds: all, per_host_thresholds: each.into_iter().collect() })
}

/// The probes of a cluster. Envoy refuses a cluster with gRPC probes that does not speak HTTP/2.
fn health_checks(cluster: &model::Cluster) -> Vec<HealthCheck> {
    let can_ask =
        |check: &&model::cluster::HealthCheck| cluster.protocol.is_h2() || !matches!(check.probe, Probe::Grpc { .. });
    let checks = cluster.overrides.health.iter().filter(can_ask).map(|check| HealthCheck {
        timeout: Some(check.timeout.into()),
        interval: Some(check.interval.into()),
        unhealthy_threshold: Some(check.unhealthy.into()),
        healthy_threshold: Some(check.healthy.into()),
        health_checker: Some(probe(&check.probe, cluster.protocol.is_h2())),
        ..Default::default()
    });
    checks.collect()
}

fn probe(probe: &Probe, h2: bool) -> HealthChecker {
    let (path, host, statuses, headers) = match probe {
        Probe::Http { path, host, statuses, headers } => (path, host, statuses, headers),
        Probe::Grpc { service, host } => {
            return HealthChecker::GrpcHealthCheck(GrpcHealthCheck {
                service_name: service.to_string(),
                authority: host.as_ref().map(|host| host.as_str().to_owned()).unwrap_or_default(),
                ..Default::default()
            });
        }
        Probe::Tcp => return HealthChecker::TcpHealthCheck(TcpHealthCheck::default()),
    };
    let codec = if h2 { CodecClientType::Http2 } else { CodecClientType::Http1 };
    let ranges = statuses.iter().map(|&(start, end)| Int64Range { start: start.into(), end: end.into() });
    HealthChecker::HttpHealthCheck(HttpHealthCheck {
        host: host.as_str().to_owned(),
        path: path.to_string(),
        expected_statuses: ranges.collect(),
        request_headers_to_add: headers_to_add(headers),
        request_headers_to_remove: headers_to_remove(headers),
        codec_client_type: codec.into(),
        ..Default::default()
    })
}

/// How new endpoints are eased in.
fn slow_start(cluster: &model::Cluster) -> Option<LbConfig> {
    let slow_start_config = Some(slow_start_config(cluster.overrides.slow_start.as_ref()?));
    match cluster.overrides.balance {
        LoadBalancing::RoundRobin => Some(LbConfig::RoundRobinLbConfig(RoundRobinLbConfig { slow_start_config })),
        LoadBalancing::LeastRequest => {
            Some(LbConfig::LeastRequestLbConfig(LeastRequestLbConfig { slow_start_config, ..Default::default() }))
        }
        LoadBalancing::Random | LoadBalancing::RingHash | LoadBalancing::Maglev => None,
    }
}

fn slow_start_config(slow: &SlowStart) -> SlowStartConfig {
    SlowStartConfig {
        slow_start_window: Some(slow.window.into()),
        aggression: Some(RuntimeDouble {
            default_value: slow.aggression.value(),
            runtime_key: "sesame.slow_start.aggression".to_owned(),
        }),
        min_weight_percent: Some(Percent { value: slow.least_percent.into() }),
    }
}
