//! The HTTP filters, in the order a request goes through them.

use super::compression;
use envoy_api::{
    Any, any,
    envoy::extensions::filters::{
        http::{grpc_stats::v3::FilterConfig as GrpcStats, grpc_web::v3::GrpcWeb, router::v3::Router},
        network::http_connection_manager::v3::{HttpFilter, http_filter::ConfigType},
    },
};
use model::listener::HttpSettings;

/// The filters of every listener.
pub fn http(http: &HttpSettings) -> Vec<HttpFilter> {
    let mut filters = Vec::new();
    filters.extend(compression::filter(http.compression));
    filters.push(filter("envoy.filters.http.grpc_web", any(&GrpcWeb {})));
    let stats = GrpcStats { emit_filter_state: true, enable_upstream_stats: true, ..Default::default() };
    filters.push(filter("envoy.filters.http.grpc_stats", any(&stats)));
    filters.push(filter("envoy.filters.http.router", any(&Router::default())));
    filters
}

/// A filter by its name in Envoy.
pub(crate) fn filter(name: &str, config: Any) -> HttpFilter {
    HttpFilter { name: name.to_owned(), config_type: Some(ConfigType::TypedConfig(config)), ..Default::default() }
}
