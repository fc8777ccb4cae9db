//! The kinds of resources, and the service that hands each out.

use clap::ValueEnum;
use envoy_api::Name;
use envoy_api::envoy::config::cluster::v3::Cluster;
use envoy_api::envoy::config::core::v3::TypedExtensionConfig;
use envoy_api::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_api::envoy::config::listener::v3::Listener;
use envoy_api::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration};
use envoy_api::envoy::extensions::transport_sockets::tls::v3::Secret;
use envoy_api::envoy::service::runtime::v3::Runtime;

/// A kind of resource, by the name of its discovery service.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Kind {
    /// Listeners
    Lds,
    /// Route configurations
    Rds,
    /// Clusters
    Cds,
    /// Endpoints
    Eds,
    /// Secrets: certificates and CAs
    Sds,
    /// Scoped routes: a host each, where --packing is scoped
    Srds,
    /// Extension configurations: filters that routes share
    Ecds,
    /// Runtime layers
    Rtds,
}

impl Kind {
    /// The type of its messages.
    pub fn type_url(self) -> String {
        match self {
            Kind::Lds => Listener::type_url(),
            Kind::Rds => RouteConfiguration::type_url(),
            Kind::Cds => Cluster::type_url(),
            Kind::Eds => ClusterLoadAssignment::type_url(),
            Kind::Sds => Secret::type_url(),
            Kind::Srds => ScopedRouteConfiguration::type_url(),
            Kind::Ecds => TypedExtensionConfig::type_url(),
            Kind::Rtds => Runtime::type_url(),
        }
    }

    /// The gRPC method for the state of the world.
    pub fn stream_method(self) -> &'static str {
        match self {
            Kind::Lds => "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
            Kind::Rds => "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
            Kind::Cds => "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
            Kind::Eds => "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
            Kind::Sds => "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets",
            Kind::Srds => "/envoy.service.route.v3.ScopedRoutesDiscoveryService/StreamScopedRoutes",
            Kind::Ecds => "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs",
            Kind::Rtds => "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime",
        }
    }

    /// The gRPC method for changes.
    pub fn delta_method(self) -> &'static str {
        match self {
            Kind::Lds => "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners",
            Kind::Rds => "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
            Kind::Cds => "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
            Kind::Eds => "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
            Kind::Sds => "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
            Kind::Srds => "/envoy.service.route.v3.ScopedRoutesDiscoveryService/DeltaScopedRoutes",
            Kind::Ecds => "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs",
            Kind::Rtds => "/envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime",
        }
    }
}
