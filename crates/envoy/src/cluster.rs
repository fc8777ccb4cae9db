//! A Service port as Envoy's cluster.

pub mod breakers;
pub mod health;
pub mod protocol;

use crate::{bootstrap::DnsFamily, endpoints::socket, name};
use envoy_api::envoy::{
    config::{
        cluster::v3::{
            Cluster, UpstreamConnectionOptions,
            cluster::{ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig, LbPolicy},
        },
        core::v3::TcpKeepalive,
        endpoint::v3::{ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint},
    },
    r#type::v3::Percent,
};
use model::{
    cluster::{Balance, CircuitBreakers, Discovery, DnsTarget},
    tls::TlsVersions,
};
use std::{sync::Arc, time::Duration};

/// Envoy takes no time limit of nothing here, and counts whole milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);

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
        }
    }
}

/// The cluster. An unhealthy backend is never given traffic in a panic: the threshold is off, as Contour has it.
pub fn cluster(cluster: &model::Cluster, settings: &ClusterSettings) -> Cluster {
    let built = Cluster {
        name: name::cluster(&cluster.id),
        alt_stat_name: name::cluster_in_stats(&cluster.id),
        connect_timeout: Some(settings.connect_timeout.max(SHORTEST).into()),
        per_connection_buffer_limit_bytes: settings.buffer.map(Into::into),
        lb_policy: balance(cluster.balance).into(),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            ..Default::default()
        }),
        health_checks: health::checks(cluster),
        ignore_health_on_host_removal: cluster.health.is_some(),
        lb_config: health::slow_start(cluster),
        circuit_breakers: breakers::thresholds(&cluster.breakers.or(&settings.breakers)),
        transport_socket: protocol::transport_socket(cluster, settings),
        typed_extension_protocol_options: protocol::options(cluster, settings),
        upstream_connection_options: Some(UpstreamConnectionOptions {
            tcp_keepalive: Some(TcpKeepalive::default()),
            ..Default::default()
        }),
        ..Default::default()
    };
    match &cluster.discovery {
        Discovery::Endpoints => Cluster {
            cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
            eds_cluster_config: Some(EdsClusterConfig {
                eds_config: Some(name::on_this_stream()),
                service_name: name::cluster(&cluster.id),
            }),
            ..built
        },
        Discovery::Dns(targets) => Cluster {
            cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::StrictDns.into())),
            dns_lookup_family: settings.dns_family.lookup().into(),
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

fn balance(balance: Balance) -> LbPolicy {
    match balance {
        Balance::RoundRobin => LbPolicy::RoundRobin,
        Balance::Random => LbPolicy::Random,
        Balance::LeastRequest => LbPolicy::LeastRequest,
        Balance::RingHash => LbPolicy::RingHash,
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
