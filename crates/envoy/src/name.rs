//! The names of resources: from identity, never from an index, an order or a time.

use envoy_api::envoy::config::core::v3::{
    AggregatedConfigSource, ApiVersion, ConfigSource, config_source::ConfigSourceSpecifier,
};
use model::{ClusterId, RouteTableId, SecretId};

/// The cluster of the bootstrap that leads to Envoy's own admin interface.
pub const ADMIN_CLUSTER: &str = "envoy-admin";

/// A cluster, and the endpoint set that belongs to it: `namespace/service/port`.
pub fn cluster(id: &ClusterId) -> String {
    id.to_string()
}

/// A cluster in statistics: `namespace_service_port`, as Contour has it.
pub fn cluster_in_stats(id: &ClusterId) -> String {
    let model::EndpointsId { namespace, service, port } = &id.backend;
    format!("{namespace}_{service}_{port}")
}

/// A route configuration: the listener, and the chain's certificate and settings under TLS.
pub fn route_table(id: &RouteTableId) -> String {
    id.to_string()
}

/// A certificate: the Secret it stands in. A rotated certificate keeps its name, so that no listener changes.
pub fn secret(id: &SecretId) -> String {
    id.to_string()
}

/// "Ask for it on the stream that you have."
pub fn on_this_stream() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..Default::default()
    }
}
