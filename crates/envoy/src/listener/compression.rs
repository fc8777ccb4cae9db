//! Answers compressed for clients that ask for it.

use super::filters;
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::TypedExtensionConfig,
        extensions::{
            compression::{brotli::compressor::v3::Brotli, gzip::compressor::v3::Gzip, zstd::compressor::v3::Zstd},
            filters::{
                http::compressor::v3::{
                    Compressor,
                    compressor::{CommonDirectionConfig, ResponseDirectionConfig},
                },
                network::http_connection_manager::v3::HttpFilter,
            },
        },
    },
};
use model::listener::Compression;

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

/// The filter with this library.
#[allow(deprecated, reason = "the field that replaces `content_type` is unknown to Envoys before 1.40")]
fn compressor(name: &str, library: Any) -> HttpFilter {
    let compressor = Compressor {
        compressor_library: Some(TypedExtensionConfig { name: name.to_owned(), typed_config: Some(library) }),
        response_direction_config: Some(ResponseDirectionConfig {
            common_config: Some(CommonDirectionConfig {
                content_type: TYPES.map(str::to_owned).to_vec(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    filters::filter("envoy.filters.http.compressor", any(&compressor))
}

/// The filter of a listener, unless compression is off.
pub fn filter(compression: Compression) -> Option<HttpFilter> {
    match compression {
        Compression::Off => None,
        Compression::Gzip => Some(compressor("gzip", any(&Gzip::default()))),
        Compression::Brotli => Some(compressor("brotli", any(&Brotli::default()))),
        Compression::Zstd => Some(compressor("zstd", any(&Zstd::default()))),
    }
}
