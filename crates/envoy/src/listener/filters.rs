//! The HTTP filters, in the order a request goes through them.

use super::slots::Slot;
use crate::route::{
    cookies::COOKIES,
    filters::{CLIENTS, CORS, LOCAL_LIMIT},
};
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::TypedExtensionConfig,
        extensions::{
            compression::{brotli::compressor::v3::Brotli, gzip::compressor::v3::Gzip, zstd::compressor::v3::Zstd},
            filters::{
                http::{
                    compressor::v3::{
                        Compressor,
                        compressor::{CommonDirectionConfig, ResponseDirectionConfig},
                    },
                    cors::v3::Cors,
                    grpc_stats::v3::FilterConfig as GrpcStats,
                    grpc_web::v3::GrpcWeb,
                    local_ratelimit::v3::LocalRateLimit,
                    lua::v3::Lua,
                    rbac::v3::Rbac,
                    router::v3::Router,
                },
                network::http_connection_manager::v3::{HttpFilter, http_filter::ConfigType},
            },
        },
        r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
    },
};
use model::{
    PortId,
    listener::{Compression, HttpSettings},
};

/// The filters of a port.
pub fn http(port: &PortId, http: &HttpSettings) -> Vec<HttpFilter> {
    let mut filters = Vec::new();
    filters.extend(compression(http.compression));
    filters.push(filter("envoy.filters.http.grpc_web", any(&GrpcWeb {})));
    let stats = GrpcStats { emit_filter_state: true, enable_upstream_stats: true, ..Default::default() };
    filters.push(filter("envoy.filters.http.grpc_stats", any(&stats)));
    // Routes tell these what to do; by themselves they do nothing.
    filters.push(filter(CORS, any(&Cors {})));
    let limit = LocalRateLimit { stat_prefix: "local_limit".to_owned(), ..Default::default() };
    filters.push(filter(LOCAL_LIMIT, any(&limit)));
    filters.push(filter(COOKIES, any(&Lua::default())));
    filters.push(filter(CLIENTS, any(&Rbac::default())));
    filters.extend(Slot::ALL.map(|slot| slot.filter(port)));
    filters.push(filter("envoy.filters.http.router", any(&Router::default())));
    filters
}

/// A filter by its name in Envoy.
pub(crate) fn filter(name: &str, config: Any) -> HttpFilter {
    HttpFilter { name: name.to_owned(), config_type: Some(ConfigType::TypedConfig(config)), ..Default::default() }
}

/// What is worth compressing: text of every kind, and nothing that is compressed already.
const TYPES: [&str; 16] = [
    "text/html",
    "text/plain",
    "text/css",
    "text/xml",
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/problem+json",
    "application/xhtml+xml",
    "application/xml",
    "application/rss+xml",
    "application/wasm",
    "image/svg+xml",
];

/// The filter with this library. Envoys before 1.40 do not know the matcher, and compress the types that they have by default.
fn compressor(name: &str, library: Any) -> HttpFilter {
    let compressor = Compressor {
        compressor_library: Some(TypedExtensionConfig { name: name.to_owned(), typed_config: Some(library) }),
        response_direction_config: Some(ResponseDirectionConfig {
            common_config: Some(CommonDirectionConfig {
                content_type_matcher: TYPES.map(content_type).to_vec(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    filter("envoy.filters.http.compressor", any(&compressor))
}

fn content_type(name: &str) -> StringMatcher {
    StringMatcher { ignore_case: true, match_pattern: Some(MatchPattern::Exact(name.to_owned())) }
}

/// Compresses answers for clients that ask for it, unless that is off.
fn compression(compression: Compression) -> Option<HttpFilter> {
    match compression {
        Compression::Off => None,
        Compression::Gzip => Some(compressor("gzip", any(&Gzip::default()))),
        Compression::Brotli => Some(compressor("brotli", any(&Brotli::default()))),
        Compression::Zstd => Some(compressor("zstd", any(&Zstd::default()))),
    }
}
