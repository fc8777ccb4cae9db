//! The two static clusters, and the ADS stream over the first: the xDS server, and Envoy's own admin socket.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use envoy_api::envoy::config::cluster::v3 as cluster;
use envoy_api::envoy::config::core::v3 as core;
use envoy_api::envoy::config::endpoint::v3 as endpoint;
use envoy_api::envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter;
use envoy_api::envoy::extensions::upstreams::http::v3 as http;
use envoy_api::{any, seconds};

use super::text;
use crate::endpoints::socket;
use crate::name;

/// Reconnects wait a random time below this, doubled at each failure.
const RETRY_BASE: Duration = Duration::from_millis(100);
/// And never longer than this: a server that comes back has its proxies within seconds, and a thousand of them knock a few
/// hundred times a second at most while it is away.
const RETRY_MAX: Duration = Duration::from_secs(3);

/// Where the configuration comes from.
#[derive(Clone, Debug)]
pub struct XdsServer {
    /// A DNS name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Which addresses of a DNS name are used.
    pub dns_family: DnsFamily,
    /// The namespace the server runs in; part of the cluster's name in statistics.
    pub namespace: Option<String>,
}

/// Which addresses of a DNS name are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DnsFamily {
    /// IPv6, or IPv4 if there are none.
    #[default]
    Auto,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
    /// Both, tried one after the other.
    All,
}

impl DnsFamily {
    /// The same in Envoy's words.
    pub(crate) fn lookup(self) -> cluster::cluster::DnsLookupFamily {
        match self {
            DnsFamily::Auto => cluster::cluster::DnsLookupFamily::Auto,
            DnsFamily::V4 => cluster::cluster::DnsLookupFamily::V4Only,
            DnsFamily::V6 => cluster::cluster::DnsLookupFamily::V6Only,
            DnsFamily::All => cluster::cluster::DnsLookupFamily::All,
        }
    }
}

/// The stream that everything comes over.
pub(super) fn ads() -> core::ApiConfigSource {
    let back_off =
        core::BackoffStrategy { base_interval: Some(RETRY_BASE.into()), max_interval: Some(RETRY_MAX.into()) };
    let service = core::grpc_service::EnvoyGrpc {
        cluster_name: name::XDS_CLUSTER.to_owned(),
        retry_policy: Some(core::RetryPolicy { retry_back_off: Some(back_off), ..Default::default() }),
        ..Default::default()
    };
    core::ApiConfigSource {
        api_type: core::api_config_source::ApiType::DeltaGrpc.into(),
        transport_api_version: core::ApiVersion::V3.into(),
        set_node_on_first_message_only: true,
        grpc_services: vec![core::GrpcService {
            target_specifier: Some(core::grpc_service::TargetSpecifier::EnvoyGrpc(service)),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// What the xDS server is called in statistics.
pub(super) fn stat_name(server: &XdsServer) -> String {
    let namespaced = |namespace: &String| format!("{namespace}_{}_{}", name::XDS_CLUSTER, server.port);
    server.namespace.as_ref().map_or_else(|| name::XDS_CLUSTER.to_owned(), namespaced)
}

/// The xDS server.
pub(super) fn xds(
    server: &XdsServer,
    tls: Option<core::TransportSocket>,
    filters: Vec<HttpFilter>,
) -> cluster::Cluster {
    let is_address = server.host.parse::<IpAddr>().is_ok();
    let kind =
        if is_address { cluster::cluster::DiscoveryType::Static } else { cluster::cluster::DiscoveryType::StrictDns };
    cluster::Cluster {
        name: name::XDS_CLUSTER.to_owned(),
        alt_stat_name: stat_name(server),
        cluster_discovery_type: Some(cluster::cluster::ClusterDiscoveryType::Type(kind.into())),
        connect_timeout: Some(seconds(5)),
        dns_lookup_family: server.dns_family.lookup().into(),
        load_assignment: Some(assignment(name::XDS_CLUSTER, socket(&server.host, server.port))),
        circuit_breakers: Some(unlimited()),
        // A peer that vanished without a word (a node that lost power) is noticed below and above TCP.
        upstream_connection_options: Some(cluster::UpstreamConnectionOptions {
            tcp_keepalive: Some(core::TcpKeepalive {
                keepalive_probes: Some(3.into()),
                keepalive_time: Some(30.into()),
                keepalive_interval: Some(5.into()),
            }),
            ..Default::default()
        }),
        typed_extension_protocol_options: [(
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions".to_owned(),
            any(&http2(filters)),
        )]
        .into(),
        transport_socket: tls,
        ..Default::default()
    }
}

/// Envoy's own admin interface, for listeners that forward parts of it.
pub(super) fn admin(socket: &Path) -> cluster::Cluster {
    let address = pipe(&text(socket), 0);
    cluster::Cluster {
        name: name::ADMIN_CLUSTER.to_owned(),
        cluster_discovery_type: Some(cluster::cluster::ClusterDiscoveryType::Type(
            cluster::cluster::DiscoveryType::Static.into(),
        )),
        connect_timeout: Some(Duration::from_millis(250).into()),
        load_assignment: Some(assignment(name::ADMIN_CLUSTER, address)),
        ..Default::default()
    }
}

fn http2(filters: Vec<HttpFilter>) -> http::HttpProtocolOptions {
    use http::http_protocol_options::explicit_http_config::ProtocolConfig;
    use http::http_protocol_options::{ExplicitHttpConfig, UpstreamProtocolOptions};
    let options = core::Http2ProtocolOptions {
        connection_keepalive: Some(core::KeepaliveSettings {
            interval: Some(seconds(30)),
            timeout: Some(seconds(5)),
            ..Default::default()
        }),
        ..Default::default()
    };
    http::HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(ProtocolConfig::Http2ProtocolOptions(options)),
        })),
        http_filters: filters,
        ..Default::default()
    }
}

/// Circuit breakers that never open: what protects a backend from its clients must not cut a proxy off from its server.
fn unlimited() -> cluster::CircuitBreakers {
    let at = |priority: core::RoutingPriority| cluster::circuit_breakers::Thresholds {
        priority: priority.into(),
        max_connections: Some(100_000.into()),
        max_pending_requests: Some(100_000.into()),
        max_requests: Some(60_000_000.into()),
        max_retries: Some(50.into()),
        ..Default::default()
    };
    cluster::CircuitBreakers {
        thresholds: vec![at(core::RoutingPriority::High), at(core::RoutingPriority::Default)],
        ..Default::default()
    }
}

/// A Unix socket. A listener gives its file this mode; a client passes 0.
pub(super) fn pipe(path: &str, mode: u32) -> core::Address {
    core::Address { address: Some(core::address::Address::Pipe(core::Pipe { path: path.to_owned(), mode })) }
}

/// The load assignment of a cluster with one endpoint.
fn assignment(cluster: &str, address: core::Address) -> endpoint::ClusterLoadAssignment {
    let host = endpoint::Endpoint { address: Some(address), ..Default::default() };
    let host = endpoint::LbEndpoint {
        host_identifier: Some(endpoint::lb_endpoint::HostIdentifier::Endpoint(host)),
        ..Default::default()
    };
    let locality = endpoint::LocalityLbEndpoints { lb_endpoints: vec![host], ..Default::default() };
    endpoint::ClusterLoadAssignment {
        cluster_name: cluster.to_owned(),
        endpoints: vec![locality],
        ..Default::default()
    }
}
