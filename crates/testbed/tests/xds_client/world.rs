//! A server with a small world: clusters with endpoints, a listener with routes and a certificate.

use std::net::SocketAddr;

use envoy_api::envoy::config::cluster::v3::Cluster;
use envoy_api::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_api::envoy::config::core::v3::{AggregatedConfigSource, ConfigSource, TransportSocket};
use envoy_api::envoy::config::core::v3::{config_source::ConfigSourceSpecifier, transport_socket};
use envoy_api::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_api::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use envoy_api::envoy::config::route::v3::RouteConfiguration;
use envoy_api::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, Rds, http_connection_manager::RouteSpecifier,
};
use envoy_api::envoy::extensions::transport_sockets::tls::v3::{
    CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, Secret,
};
use envoy_api::{Message, any};
use testbed::xds_client::Builder;
use testbed::{Client, Net, XdsClient};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use xds::{Batch, Changes, Config, Fleet, Kind, Resource, Security, Server};

pub struct World {
    pub server: Server,
    pub addr: SocketAddr,
    _task: JoinHandle<()>,
}

impl World {
    /// A server without TLS that has published these.
    pub async fn with(resources: Vec<Resource>) -> World {
        let world = World::secured(Security::Insecure).await;
        world.publish(resources);
        world
    }

    pub async fn secured(security: Security) -> World {
        let server = Server::new(Config::default());
        let listener = TcpListener::bind(Net::here().unwrap().socket(8001)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let serving = server.clone();
        let task =
            tokio::spawn(async move { serving.serve(listener, security, std::future::pending()).await.unwrap() });
        World { server, addr, _task: task }
    }

    pub fn publish(&self, upserts: Vec<Resource>) {
        self.change(Changes { upserts, removes: vec![] });
    }

    pub fn remove(&self, kind: Kind, name: &str) {
        self.change(Changes { upserts: vec![], removes: vec![(kind, name.into())] });
    }

    fn change(&self, changes: Changes) {
        self.server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    }

    pub fn client(&self) -> Builder {
        XdsClient::to(Client::new(self.addr))
    }
}

/// A cluster with endpoints.
pub fn cluster(name: &str) -> Vec<Resource> {
    let cluster = Cluster {
        name: name.into(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        ..Default::default()
    };
    let cluster = Resource::new(Kind::Cluster, name, cluster.encode_to_vec()).refers_to(Kind::Endpoints, name);
    let endpoints = ClusterLoadAssignment { cluster_name: name.into(), ..Default::default() };
    vec![cluster, Resource::new(Kind::Endpoints, name, endpoints.encode_to_vec())]
}

/// A TLS listener with its routes and certificate, all of one name.
pub fn listener(name: &str) -> Vec<Resource> {
    let ads = ConfigSourceSpecifier::Ads(AggregatedConfigSource {});
    let ads = ConfigSource { config_source_specifier: Some(ads), ..Default::default() };
    let rds = Rds { route_config_name: name.into(), config_source: Some(ads.clone()) };
    let manager = HttpConnectionManager { route_specifier: Some(RouteSpecifier::Rds(rds)), ..Default::default() };
    let sds = SdsSecretConfig { name: name.into(), sds_config: Some(ads) };
    let common = CommonTlsContext { tls_certificate_sds_secret_configs: vec![sds], ..Default::default() };
    let tls = DownstreamTlsContext { common_tls_context: Some(common), ..Default::default() };
    let socket = transport_socket::ConfigType::TypedConfig(any(&tls));
    let chain = FilterChain {
        transport_socket: Some(TransportSocket { name: "tls".into(), config_type: Some(socket) }),
        filters: vec![Filter {
            name: "http".into(),
            config_type: Some(filter::ConfigType::TypedConfig(any(&manager))),
        }],
        ..Default::default()
    };
    let listener = Listener { name: name.into(), filter_chains: vec![chain], ..Default::default() };
    let listener = Resource::new(Kind::Listener, name, listener.encode_to_vec())
        .refers_to(Kind::Route, name)
        .refers_to(Kind::Secret, name);
    let secret = Secret { name: name.into(), ..Default::default() };
    vec![listener, route(name, false), Resource::new(Kind::Secret, name, secret.encode_to_vec())]
}

/// A route configuration, of two that differ.
pub fn route(name: &str, other: bool) -> Resource {
    let route = RouteConfiguration { name: name.into(), ignore_port_in_host_matching: other, ..Default::default() };
    Resource::new(Kind::Route, name, route.encode_to_vec())
}
