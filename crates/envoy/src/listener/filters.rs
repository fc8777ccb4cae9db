//! The HTTP filters, in the order a request goes through them.

use super::compression;
use crate::route::{
    cookies::COOKIES,
    filters::{CLIENTS, CORS, LOCAL_LIMIT},
};
use envoy_api::{
    Any, any,
    envoy::extensions::filters::{
        http::{
            cors::v3::Cors, grpc_stats::v3::FilterConfig as GrpcStats, grpc_web::v3::GrpcWeb,
            local_ratelimit::v3::LocalRateLimit, lua::v3::Lua, rbac::v3::Rbac, router::v3::Router,
        },
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
    // Routes tell these what to do; by themselves they do nothing.
    filters.push(filter(CORS, any(&Cors {})));
    let limit = LocalRateLimit { stat_prefix: "local_limit".to_owned(), ..Default::default() };
    filters.push(filter(LOCAL_LIMIT, any(&limit)));
    filters.push(filter(COOKIES, any(&Lua::default())));
    filters.push(filter(CLIENTS, any(&Rbac::default())));
    filters.push(filter("envoy.filters.http.router", any(&Router::default())));
    filters
}

/// A filter by its name in Envoy.
pub(crate) fn filter(name: &str, config: Any) -> HttpFilter {
    HttpFilter { name: name.to_owned(), config_type: Some(ConfigType::TypedConfig(config)), ..Default::default() }
}
