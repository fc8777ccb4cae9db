//! What an object may say about the HTTP of listeners on ports of their own, over the settings of the fleet.

use super::{
    AccessLog, AccessLogFormat, ClientCertHeader, Compression, GrpcStats, Gzip, HeadersWithUnderscores, HttpSettings,
};
use crate::Timeout;
use std::sync::Arc;

/// Settings of HTTP that an object has; where it says nothing, those of the fleet hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpOverrides {
    /// What `server` of responses says.
    pub server_name: Option<Arc<str>>,
    /// How responses are compressed.
    pub gzip: Option<Arc<Gzip>>,
    /// How long a connection may be idle.
    pub connection_idle: Option<Timeout>,
    /// What a connection may hold in memory in each direction, in bytes.
    pub connection_buffer: Option<u32>,
    /// The most bytes of a request that is buffered as a whole.
    pub request_buffer: Option<u32>,
    /// The most kilobytes of the headers of a request.
    pub header_kilobytes: Option<u32>,
    /// Whether `//` in a path is one `/`.
    pub merge_slashes: Option<bool>,
    /// Whether requests with an escaped slash in the path are refused.
    pub reject_escaped_slashes: Option<bool>,
    /// Whether a port in Host is removed if it is that of the listener.
    pub strip_matching_port: Option<bool>,
    /// Whether a client's `x-request-id` is kept.
    pub keep_request_id: Option<bool>,
    /// Whether `x-envoy-*` headers are left out.
    pub suppress_envoy_headers: Option<bool>,
    /// Whether a request may have both a length and chunks.
    pub chunked_length: Option<bool>,
    /// Whether HTTP/1.0 is served.
    pub http10: Option<bool>,
    /// Whether header names of HTTP/1.1 are written in title case.
    pub title_case: Option<bool>,
    /// Whether gRPC-Web is served.
    pub grpc_web: Option<bool>,
    /// Whether gRPC is served to clients of HTTP/1.1.
    pub grpc_http1_bridge: Option<bool>,
    /// What becomes of headers with a `_` in their names.
    pub underscores: Option<HeadersWithUnderscores>,
    /// The form of the access log.
    pub access_log_format: Option<AccessLogFormat>,
    /// The file of the access log.
    pub access_log_path: Option<Arc<str>>,
    /// Which statistics of gRPC are kept.
    pub grpc_stats: Option<Arc<GrpcStats>>,
    /// Whether whoever connects is believed about the client's address and the scheme.
    pub believes_peers: Option<bool>,
    /// What becomes of `x-forwarded-client-cert` that whoever connects has written.
    pub client_cert_header: Option<ClientCertHeader>,
}

impl HttpOverrides {
    /// The settings of a port with these.
    #[must_use]
    pub fn applied(&self, settings: HttpSettings) -> HttpSettings {
        HttpSettings {
            server_name: self.server_name.clone().or(settings.server_name),
            compression: if self.gzip.is_some() { Compression::Gzip } else { settings.compression },
            gzip: self.gzip.clone().or(settings.gzip),
            connection_idle: self.connection_idle.unwrap_or(settings.connection_idle),
            request_buffer: self.request_buffer.or(settings.request_buffer),
            header_kilobytes: self.header_kilobytes.or(settings.header_kilobytes),
            merge_slashes: self.merge_slashes.unwrap_or(settings.merge_slashes),
            reject_escaped_slashes: self.reject_escaped_slashes.unwrap_or(settings.reject_escaped_slashes),
            strip_matching_port: self.strip_matching_port.unwrap_or(settings.strip_matching_port),
            keep_request_id: self.keep_request_id.unwrap_or(settings.keep_request_id),
            suppress_envoy_headers: self.suppress_envoy_headers.unwrap_or(settings.suppress_envoy_headers),
            chunked_length: self.chunked_length.unwrap_or(settings.chunked_length),
            http10: self.http10.unwrap_or(settings.http10),
            title_case: self.title_case.unwrap_or(settings.title_case),
            grpc_web: self.grpc_web.unwrap_or(settings.grpc_web),
            grpc_http1_bridge: self.grpc_http1_bridge.unwrap_or(settings.grpc_http1_bridge),
            underscores: self.underscores.unwrap_or(settings.underscores),
            access_log: AccessLog {
                format: self.access_log_format.clone().unwrap_or(settings.access_log.format),
                path: self.access_log_path.clone().unwrap_or(settings.access_log.path),
                ..settings.access_log
            },
            grpc_stats: self.grpc_stats.clone().unwrap_or(settings.grpc_stats),
            believes_peers: self.believes_peers.unwrap_or(settings.believes_peers),
            client_cert_header: self.client_cert_header.or(settings.client_cert_header),
            ..settings
        }
    }
}
