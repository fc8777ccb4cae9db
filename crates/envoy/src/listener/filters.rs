//! The HTTP filters, in the order a request goes through them.

use super::{
    ext_authz,
    jwt::{self, HttpChainId},
    slots::Slot,
};
use crate::route::{
    filters::{CORS, LOCAL_LIMIT, RBAC},
    framing, response_script,
};
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{GrpcMethodList, TypedExtensionConfig, grpc_method_list},
        extensions::{
            compression::{
                brotli::compressor::v3::Brotli,
                gzip::compressor::v3::{
                    Gzip,
                    gzip::{CompressionLevel, CompressionStrategy},
                },
                zstd::compressor::v3::Zstd,
            },
            filters::{
                http::{
                    buffer::v3::Buffer,
                    compressor::v3::{
                        Compressor,
                        compressor::{CommonDirectionConfig, ResponseDirectionConfig},
                    },
                    cors::v3::Cors,
                    grpc_http1_bridge::v3::Config as GrpcHttp1Bridge,
                    grpc_stats::v3::{FilterConfig as GrpcStats, filter_config::PerMethodStatSpecifier},
                    grpc_web::v3::GrpcWeb,
                    local_ratelimit::v3::LocalRateLimit,
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
    listener::{
        Compression, GrpcMethods, GrpcStats as GrpcStatsSettings, Gzip as GzipSettings, HttpSettings,
        settings::{GzipLevel, GzipStrategy},
    },
};
use std::sync::Arc;

/// The filters of a chain of a port.
pub fn http(port: &PortId, chain: &HttpChainId, http: &HttpSettings) -> Vec<HttpFilter> {
    let mut filters = Vec::new();
    filters.extend(compression(http));
    filters.extend(http.request_buffer.map(buffer));
    if http.grpc_http1_bridge {
        filters.push(filter("envoy.filters.http.grpc_http1_bridge", any(&GrpcHttp1Bridge::default())));
    }
    if http.grpc_web {
        filters.push(filter("envoy.filters.http.grpc_web", any(&GrpcWeb {})));
    }
    filters.push(filter("envoy.filters.http.grpc_stats", any(&grpc_stats(&http.grpc_stats))));
    // Routes tell these what to do; by themselves they do nothing.
    filters.push(filter(CORS, any(&Cors {})));
    let limit = LocalRateLimit { stat_prefix: "local_limit".to_owned(), ..Default::default() };
    filters.push(filter(LOCAL_LIMIT, any(&limit)));
    filters.push(filter(RBAC, any(&Rbac::default())));
    filters.push(jwt::verification(chain));
    filters.extend(http.runs_scripts.then(|| Slot::Script.filter(port)));
    // On either side of those that ask servers: these may not change where messages end.
    filters.push(filter(response_script::FILTER, any(&response_script::filter())));
    filters.push(ext_authz::authorization(port));
    filters.push(Slot::RateLimit.filter(port));
    filters.push(filter(framing::FILTER, any(&framing::filter())));
    let router = Router { suppress_envoy_headers: http.suppress_envoy_headers, ..Default::default() };
    filters.push(filter("envoy.filters.http.router", any(&router)));
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

/// Counts calls of gRPC, and keeps their status for the access log.
fn grpc_stats(settings: &GrpcStatsSettings) -> GrpcStats {
    let per_method_stat_specifier = match &settings.methods {
        GrpcMethods::Together => None,
        GrpcMethods::Each => Some(PerMethodStatSpecifier::StatsForAllMethods(true.into())),
        GrpcMethods::Listed(services) => {
            let service = |(name, methods): &(Arc<str>, Vec<Arc<str>>)| grpc_method_list::Service {
                name: name.to_string(),
                method_names: methods.iter().map(ToString::to_string).collect(),
            };
            let services = services.iter().map(service).collect();
            Some(PerMethodStatSpecifier::IndividualMethodStatsAllowlist(GrpcMethodList { services }))
        }
    };
    GrpcStats {
        emit_filter_state: true,
        enable_upstream_stats: settings.upstream,
        per_method_stat_specifier,
        ..Default::default()
    }
}

/// Holds requests back until they are there as a whole.
fn buffer(most: u32) -> HttpFilter {
    filter("envoy.filters.http.buffer", any(&Buffer { max_request_bytes: Some(most.into()) }))
}

/// The filter with this library. Envoys before 1.40 do not know the matcher, and compress the types that they have by default.
fn compressor(name: &str, library: Any, settings: &GzipSettings) -> HttpFilter {
    let types = settings.content_types.iter().map(|name| &**name);
    let types: Vec<&str> = if settings.content_types.is_empty() { TYPES.to_vec() } else { types.collect() };
    let compressor = Compressor {
        compressor_library: Some(TypedExtensionConfig { name: name.to_owned(), typed_config: Some(library) }),
        response_direction_config: Some(ResponseDirectionConfig {
            common_config: Some(CommonDirectionConfig {
                min_content_length: settings.min_length.map(Into::into),
                content_type_matcher: types.into_iter().map(content_type).collect(),
                ..Default::default()
            }),
            disable_on_etag_header: settings.skips_etag,
            remove_accept_encoding_header: settings.hides_accept_encoding,
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
fn compression(http: &HttpSettings) -> Option<HttpFilter> {
    let usual = GzipSettings::default();
    match http.compression {
        Compression::Off => None,
        Compression::Gzip => {
            let settings = http.gzip.as_deref().unwrap_or(&usual);
            Some(compressor("gzip", any(&gzip(settings)), settings))
        }
        Compression::Brotli => Some(compressor("brotli", any(&Brotli::default()), &usual)),
        Compression::Zstd => Some(compressor("zstd", any(&Zstd::default()), &usual)),
    }
}

fn gzip(settings: &GzipSettings) -> Gzip {
    Gzip {
        memory_level: settings.memory_level.map(Into::into),
        compression_level: match settings.level {
            GzipLevel::Usual => CompressionLevel::DefaultCompression,
            GzipLevel::Best => CompressionLevel::CompressionLevel9,
            GzipLevel::Speed => CompressionLevel::BestSpeed,
        }
        .into(),
        compression_strategy: match settings.strategy {
            GzipStrategy::Usual => CompressionStrategy::DefaultStrategy,
            GzipStrategy::Filtered => CompressionStrategy::Filtered,
            GzipStrategy::Huffman => CompressionStrategy::HuffmanOnly,
            GzipStrategy::Rle => CompressionStrategy::Rle,
        }
        .into(),
        window_bits: settings.window_bits.map(Into::into),
        ..Default::default()
    }
}
