//! What holds for every request of a listener; the defaults are Contour's where it has one.

use super::AccessLog;
use crate::{Timeout, tls::client_validation::ForwardedDetails};
use std::{sync::Arc, time::Duration};

/// How answers are compressed for clients that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// gzip
    #[default]
    Gzip,
    /// Brotli
    Brotli,
    /// Zstandard
    Zstd,
    /// Not at all.
    Off,
}

/// How gzip compresses; Envoy's own values where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gzip {
    /// Memory, from 1 to 9.
    pub memory_level: Option<u32>,
    /// How hard it tries.
    pub level: GzipLevel,
    /// How it looks for what repeats.
    pub strategy: GzipStrategy,
    /// The size of the window, from 9 to 15.
    pub window_bits: Option<u32>,
    /// Bytes that a response must have.
    pub min_length: Option<u32>,
    /// The content types that are compressed; the usual ones if none is named.
    pub content_types: Vec<Arc<str>>,
    /// Whether responses with an `etag` are left as they are.
    pub skips_etag: bool,
    /// Whether backends do not see `accept-encoding`.
    pub hides_accept_encoding: bool,
}

/// How hard gzip tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GzipLevel {
    /// As zlib does by itself.
    #[default]
    Usual,
    /// For the smallest responses.
    Best,
    /// For the least time.
    Speed,
}

/// How gzip looks for what repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GzipStrategy {
    /// As zlib does by itself.
    #[default]
    Usual,
    /// For data of a filter.
    Filtered,
    /// By Huffman codes alone.
    Huffman,
    /// By run lengths.
    Rle,
}

/// What becomes of the `server` header of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServerHeader {
    /// It says `envoy`.
    #[default]
    Overwrite,
    /// It says `envoy` where the backend said nothing.
    AppendIfAbsent,
    /// It is left as the backend sent it.
    PassThrough,
}

/// What becomes of a request with a header whose name has a `_`. Such a name may slip past whoever checks the one with a `-`,
/// where a backend takes both for the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HeadersWithUnderscores {
    /// It is passed on.
    #[default]
    Allow,
    /// It is answered with 400.
    Reject,
    /// It is passed on without the header.
    Drop,
}

/// What becomes of `x-forwarded-client-cert` where a proxy in front is believed about it. Otherwise it is removed, and written by what
/// the chain of a host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientCertHeader {
    /// It is passed on if the connection has a client certificate.
    ForwardOnly,
    /// It is passed on if the connection has a client certificate, which is added.
    AppendForward(ForwardedDetails),
    /// It is passed on.
    AlwaysForwardOnly,
}

/// Which statistics of gRPC are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrpcStats {
    /// Of which methods.
    pub methods: GrpcMethods,
    /// Whether the time that backends take is among them.
    pub upstream: bool,
}

/// The methods of which statistics are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GrpcMethods {
    /// All together.
    Together,
    /// Each that a client calls.
    Each,
    /// Each of these, by service; no list is empty. All others together.
    Listed(Vec<(Arc<str>, Vec<Arc<str>>)>),
}

/// What stands in the body of an answer that the proxy makes because there is nothing to serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LocalReplyBody {
    /// The error code and its meaning, in one line.
    #[default]
    Code,
    /// Nothing.
    Empty,
}

/// Which versions of HTTP clients may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersions {
    /// HTTP/1.1 and HTTP/2.
    #[default]
    Both,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
}

/// A rate limit service that proxies ask about requests, whatever it is reached at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimitService {
    /// The domain that its limits stand in.
    pub domain: Arc<str>,
    /// Whether requests are let through when it does not answer.
    pub fail_open: bool,
    /// Whether answers tell how much is left, in `x-ratelimit` headers.
    pub response_headers: bool,
    /// Whether a gRPC request over the limit is RESOURCE_EXHAUSTED; otherwise it is UNAVAILABLE.
    pub resource_exhausted: bool,
}

impl Default for RateLimitService {
    fn default() -> Self {
        Self { domain: "contour".into(), fail_open: false, response_headers: false, resource_exhausted: false }
    }
}

/// What holds for all requests of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpSettings {
    /// Where requests are written down.
    pub access_log: AccessLog,
    /// What stands in the body of answers that are the proxy's own.
    pub local_reply_body: LocalReplyBody,
    /// Whether routes may have a script run: the filter for it is there.
    pub runs_scripts: bool,
    /// How answers are compressed.
    pub compression: Compression,
    /// How gzip compresses.
    pub gzip: Option<Arc<Gzip>>,
    /// What becomes of the `server` header.
    pub server_header: ServerHeader,
    /// What it says in place of `envoy`.
    pub server_name: Option<Arc<str>>,
    /// Whether connections begin with a PROXY protocol preamble.
    pub proxy_protocol: bool,
    /// How many proxies in front of us may be believed about the client's address.
    pub trusted_hops: u32,
    /// Whether whoever connects is believed about the client's address and the scheme.
    pub believes_peers: bool,
    /// What becomes of `x-forwarded-client-cert`, if whoever connects is believed about it.
    pub client_cert_header: Option<ClientCertHeader>,
    /// How long a connection may be idle.
    pub connection_idle: Timeout,
    /// How long a stream may be idle.
    pub stream_idle: Timeout,
    /// How long a whole request may take to arrive.
    pub request: Timeout,
    /// How long the headers of a request may take to arrive.
    pub request_headers: Timeout,
    /// How long a connection may live.
    pub max_connection: Timeout,
    /// How long a connection that is to close waits for the client.
    pub delayed_close: Timeout,
    /// How long a connection is warned before it is closed on drain.
    pub drain: Timeout,
    /// Whether `//` in a path is one `/`.
    pub merge_slashes: bool,
    /// Whether a request may say both how long it is and that it comes in chunks; the chunks count.
    pub chunked_length: bool,
    /// What becomes of headers with a `_` in their names.
    pub underscores: HeadersWithUnderscores,
    /// Which versions are spoken.
    pub versions: HttpVersions,
    /// After how many requests a connection is closed.
    pub max_requests: Option<u32>,
    /// How many requests one HTTP/2 or HTTP/3 connection may have in flight.
    pub max_streams: u32,
    /// What the names of its statistics begin with; the name of its port where nothing is said.
    pub stats_prefix: Option<Arc<str>>,
    /// The most bytes of a request that is buffered as a whole before a backend sees it; none is where nothing is said.
    pub request_buffer: Option<u32>,
    /// The most kilobytes of the headers of a request.
    pub header_kilobytes: Option<u32>,
    /// Whether requests with an escaped slash in the path are refused.
    pub reject_escaped_slashes: bool,
    /// Whether a port in Host is removed if it is that of the listener.
    pub strip_matching_port: bool,
    /// Whether a client's `x-request-id` is kept.
    pub keep_request_id: bool,
    /// Whether clients and backends see no `x-envoy-*` headers of ours.
    pub suppress_envoy_headers: bool,
    /// Whether HTTP/1.0 is served.
    pub http10: bool,
    /// Whether header names of HTTP/1.1 are written in title case.
    pub title_case: bool,
    /// Whether gRPC-Web is served.
    pub grpc_web: bool,
    /// Whether gRPC is served to clients of HTTP/1.1, which know no trailers: responses are held until they are complete.
    pub grpc_http1_bridge: bool,
    /// Which statistics of gRPC are kept.
    pub grpc_stats: Arc<GrpcStats>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            access_log: AccessLog::default(),
            local_reply_body: LocalReplyBody::default(),
            runs_scripts: false,
            compression: Compression::default(),
            gzip: None,
            server_header: ServerHeader::default(),
            server_name: None,
            proxy_protocol: false,
            trusted_hops: 0,
            believes_peers: false,
            client_cert_header: None,
            connection_idle: Timeout::After(Duration::from_secs(60)),
            stream_idle: Timeout::Default,
            request: Timeout::Default,
            request_headers: Timeout::After(Duration::from_secs(10)),
            max_connection: Timeout::Default,
            delayed_close: Timeout::Default,
            drain: Timeout::Default,
            merge_slashes: true,
            chunked_length: true,
            underscores: HeadersWithUnderscores::default(),
            versions: HttpVersions::default(),
            max_requests: None,
            max_streams: 100,
            stats_prefix: None,
            request_buffer: None,
            header_kilobytes: None,
            reject_escaped_slashes: false,
            strip_matching_port: false,
            keep_request_id: true,
            suppress_envoy_headers: false,
            http10: true,
            title_case: false,
            grpc_web: true,
            grpc_http1_bridge: false,
            grpc_stats: Arc::new(GrpcStats { methods: GrpcMethods::Together, upstream: true }),
        }
    }
}
