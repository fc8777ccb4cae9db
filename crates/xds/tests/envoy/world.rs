//! What is published in these tests: a listener, a route table, and for each host a cluster with its endpoints.

use std::net::SocketAddr;

use envoy_api::envoy::config::cluster::v3::{Cluster, cluster as of_cluster};
use envoy_api::envoy::config::core::v3 as core;
use envoy_api::envoy::config::endpoint::v3 as endpoint;
use envoy_api::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use envoy_api::envoy::config::route::v3 as route;
use envoy_api::envoy::extensions::filters::http::router::v3::Router;
use envoy_api::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
use envoy_api::{Message, any, seconds};
use xds::{Kind, Resource};

/// The one route table.
pub const TABLE: &str = "table";

/// A listener at an address that asks for the route table.
pub fn listener(at: SocketAddr) -> Resource {
    let name = format!("http-{at}");
    let manager = hcm::HttpConnectionManager {
        stat_prefix: "http".to_owned(),
        route_specifier: Some(hcm::http_connection_manager::RouteSpecifier::Rds(hcm::Rds {
            config_source: Some(on_this_stream()),
            route_config_name: TABLE.to_owned(),
        })),
        http_filters: vec![hcm::HttpFilter {
            name: "envoy.filters.http.router".to_owned(),
            config_type: Some(hcm::http_filter::ConfigType::TypedConfig(any(&Router::default()))),
            ..Default::default()
        }],
        ..Default::default()
    };
    let chain = FilterChain {
        filters: vec![Filter {
            name: "envoy.filters.network.http_connection_manager".to_owned(),
            config_type: Some(filter::ConfigType::TypedConfig(any(&manager))),
        }],
        ..Default::default()
    };
    let message =
        Listener { name: name.clone(), address: Some(socket(at)), filter_chains: vec![chain], ..Default::default() };
    Resource::new(Kind::Listener, name, message.encode_to_vec()).refers_to(Kind::Route, TABLE)
}

/// The route table: each host to the cluster of its name.
pub fn routes<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Resource {
    let mut table = route::RouteConfiguration { name: TABLE.to_owned(), ..Default::default() };
    let mut clusters = Vec::new();
    for host in hosts {
        let to = route::RouteAction {
            cluster_specifier: Some(route::route_action::ClusterSpecifier::Cluster(host.to_owned())),
            ..Default::default()
        };
        let path = route::route_match::PathSpecifier::Prefix("/".to_owned());
        let every = route::Route {
            r#match: Some(route::RouteMatch { path_specifier: Some(path), ..Default::default() }),
            action: Some(route::route::Action::Route(to)),
            ..Default::default()
        };
        table.virtual_hosts.push(route::VirtualHost {
            name: host.to_owned(),
            domains: vec![host.to_owned()],
            routes: vec![every],
            ..Default::default()
        });
        clusters.push(host.to_owned());
    }
    let resource = Resource::new(Kind::Route, TABLE, table.encode_to_vec());
    clusters.into_iter().fold(resource, |resource, cluster| resource.refers_to(Kind::Cluster, cluster))
}

/// A cluster whose endpoints have its name.
pub fn cluster(name: &str) -> Resource {
    cluster_with(name, |_| ())
}

/// The same, changed before it is encoded.
pub fn cluster_with(name: &str, change: impl FnOnce(&mut Cluster)) -> Resource {
    let mut message = Cluster {
        name: name.to_owned(),
        connect_timeout: Some(seconds(2)),
        cluster_discovery_type: Some(of_cluster::ClusterDiscoveryType::Type(of_cluster::DiscoveryType::Eds.into())),
        eds_cluster_config: Some(of_cluster::EdsClusterConfig {
            eds_config: Some(on_this_stream()),
            service_name: String::new(),
        }),
        ..Default::default()
    };
    change(&mut message);
    Resource::new(Kind::Cluster, name, message.encode_to_vec()).refers_to(Kind::Endpoints, name)
}

/// The endpoints of a cluster.
pub fn endpoints(name: &str, at: SocketAddr) -> Resource {
    let host = endpoint::Endpoint { address: Some(socket(at)), ..Default::default() };
    let host = endpoint::LbEndpoint {
        host_identifier: Some(endpoint::lb_endpoint::HostIdentifier::Endpoint(host)),
        ..Default::default()
    };
    let message = endpoint::ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: vec![endpoint::LocalityLbEndpoints { lb_endpoints: vec![host], ..Default::default() }],
        ..Default::default()
    };
    Resource::new(Kind::Endpoints, name, message.encode_to_vec())
}

/// Everything that serves these hosts from one backend.
pub fn serving(at: SocketAddr, hosts: &[String], backend: SocketAddr) -> Vec<Resource> {
    let per_host = hosts.iter().flat_map(|host| [cluster(host), endpoints(host, backend)]);
    per_host.chain([routes(hosts.iter().map(String::as_str)), listener(at)]).collect()
}

/// Names of hosts: `h0.example.com` and so on.
pub fn hosts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("h{number}.example.com")).collect()
}

pub fn socket(at: SocketAddr) -> core::Address {
    core::Address {
        address: Some(core::address::Address::SocketAddress(core::SocketAddress {
            address: at.ip().to_string(),
            port_specifier: Some(core::socket_address::PortSpecifier::PortValue(at.port().into())),
            ..Default::default()
        })),
    }
}

pub fn on_this_stream() -> core::ConfigSource {
    core::ConfigSource {
        resource_api_version: core::ApiVersion::V3.into(),
        config_source_specifier: Some(core::config_source::ConfigSourceSpecifier::Ads(Default::default())),
        ..Default::default()
    }
}
