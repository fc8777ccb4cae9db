//! The settings of the Module `ambassador`: every key that Emissary has, and those that have lost their effect.

use super::{
    Ignored, Map,
    filters::{
        AccessLogType, Buffer, BuiltInMapping, ClientCertDetails, DefaultLabels, ForwardClientCert, GrpcStats, Gzip,
        Principals, UnderscoresAction,
    },
};
use crate::{
    Checked,
    emissary::mapping::{AddedHeader, CircuitBreaker, Cors, Keepalive, LoadBalancer, RetryPolicy},
};
use serde::Deserialize;

/// The settings of the Module `ambassador`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ModuleSettings {
    /// Requests carry `l5d-dst-override`, unless a Mapping says otherwise.
    pub add_linkerd_headers: Checked<Option<bool>>,
    /// The port of Envoy's admin interface; 8001 if absent.
    pub admin_port: Checked<Option<i64>>,
    /// Requests may have both `content-length` and `transfer-encoding: chunked`.
    pub allow_chunked_length: Checked<Option<bool>>,
    /// HTTP/1.0 is served.
    pub enable_http10: Checked<Option<bool>>,
    /// Header names of HTTP/1.1 are written in title case.
    pub proper_case: Checked<Option<bool>>,
    /// Header names of HTTP/1.1 that are written as here.
    pub header_case_overrides: Checked<Option<Box<[Box<str>]>>>,
    /// Requests are buffered.
    pub buffer: Checked<Option<Box<Buffer>>>,
    /// Bytes that a connection may have in buffers.
    pub buffer_limit_bytes: Checked<Option<i64>>,
    /// Limits of connections and requests, unless a Mapping says otherwise.
    pub circuit_breakers: Checked<Option<Box<[CircuitBreaker]>>>,
    /// How an endpoint is chosen, unless a Mapping says otherwise.
    pub load_balancer: Checked<Option<Box<LoadBalancer>>>,
    /// TCP keepalive, unless a Mapping says otherwise; `time` may stand for `idle_time` here.
    pub keepalive: Checked<Option<Box<Keepalive>>>,
    /// Which requests are tried again, unless a Mapping says otherwise.
    pub retry_policy: Checked<Option<Box<RetryPolicy>>>,
    /// Cross-origin requests, unless a Mapping says otherwise.
    pub cors: Checked<Option<Box<Cors>>>,
    /// The resolver, unless a Mapping says otherwise; `kubernetes-service` if absent.
    pub resolver: Checked<Option<Box<str>>>,
    /// Milliseconds that a response may take, unless a Mapping says otherwise; 3000 if absent.
    pub cluster_request_timeout_ms: Checked<Option<i64>>,
    /// Milliseconds that a connection to a service may be idle, unless a Mapping says otherwise.
    pub cluster_idle_timeout_ms: Checked<Option<i64>>,
    /// Milliseconds that a connection to a service may be used, unless a Mapping says otherwise.
    pub cluster_max_connection_lifetime_ms: Checked<Option<i64>>,
    /// The domain of rate limits, unless a RateLimitService says otherwise; `ambassador` if absent.
    pub default_label_domain: Checked<Option<Box<str>>>,
    /// Rate limit labels that every request has.
    pub default_labels: Checked<DefaultLabels>,
    /// Defaults of fields of Mappings and TLSContexts.
    pub defaults: Checked<Option<Box<Defaults>>>,
    /// The built-in Mapping to the diagnostics.
    pub diagnostics: Checked<Option<Box<BuiltInMapping>>>,
    /// The built-in Mapping to the liveness probe.
    pub liveness_probe: Checked<Option<Box<BuiltInMapping>>>,
    /// The built-in Mapping to the readiness probe.
    pub readiness_probe: Checked<Option<Box<BuiltInMapping>>>,
    /// gRPC is bridged to HTTP/1.1.
    pub enable_grpc_http11_bridge: Checked<Option<bool>>,
    /// gRPC-Web is served.
    pub enable_grpc_web: Checked<Option<bool>>,
    /// Statistics of gRPC.
    pub grpc_stats: Checked<Option<Box<GrpcStats>>>,
    /// Compression of responses.
    pub gzip: Checked<Option<Box<Gzip>>>,
    /// A script that sees every request.
    pub lua_scripts: Checked<Option<Box<str>>>,
    /// The only addresses that are served.
    pub ip_allow: Checked<Option<Principals>>,
    /// The addresses that are not served.
    pub ip_deny: Checked<Option<Principals>>,
    /// IPv4 addresses of services are used, unless a Mapping says otherwise; true if absent.
    pub enable_ipv4: Checked<Option<bool>>,
    /// IPv6 addresses of services are used, unless a Mapping says otherwise; false if absent.
    pub enable_ipv6: Checked<Option<bool>>,
    /// The form of the access log; `text` if absent.
    pub envoy_log_type: Checked<Option<AccessLogType>>,
    /// The file of the access log; `/dev/fd/1` if absent.
    pub envoy_log_path: Checked<Option<Box<str>>>,
    /// The format of the access log: text, or a map for JSON.
    pub envoy_log_format: Checked<Option<serde_json::Value>>,
    /// What becomes of `x-forwarded-client-cert`.
    pub forward_client_cert_details: Checked<Option<ForwardClientCert>>,
    /// What `x-forwarded-client-cert` says.
    pub set_current_client_cert_details: Checked<Option<Box<ClientCertDetails>>>,
    /// What happens to headers with underscores in their name.
    pub headers_with_underscores_action: Checked<Option<UnderscoresAction>>,
    /// Milliseconds that a connection of a client may be idle.
    pub listener_idle_timeout_ms: Checked<Option<i64>>,
    /// Kilobytes that the headers of a request may have.
    pub max_request_headers_kb: Checked<Option<i64>>,
    /// Several slashes in a path are one.
    pub merge_slashes: Checked<Option<bool>>,
    /// Requests with an escaped slash in the path are refused.
    pub reject_requests_with_escaped_slashes: Checked<Option<bool>>,
    /// The port in `host` is ignored if it is that of the listener.
    pub strip_matching_host_port: Checked<Option<bool>>,
    /// A client's `x-request-id` is kept.
    pub preserve_external_request_id: Checked<Option<bool>>,
    /// The client's address is that of the connection; true if absent.
    pub use_remote_address: Checked<Option<bool>>,
    /// The `server` header of responses; `envoy` if absent.
    pub server_name: Checked<Option<Box<str>>>,
    /// Services and clients see no `x-envoy-*` headers.
    pub suppress_envoy_headers: Checked<Option<bool>>,
    /// The size of a regular expression; 200 if absent.
    pub regex_max_size: Checked<Option<i64>>,
    /// Flags of Envoy's runtime.
    pub runtime_flags: Checked<Option<serde_json::Value>>,
    /// Names of services without a namespace are looked for in Emissary's own.
    pub use_ambassador_namespace_for_service_resolution: Checked<Option<bool>>,
    /// Replacements of error responses: not supported.
    pub error_response_overrides: Checked<Option<serde_json::Value>>,
    /// No effect here: nothing is validated by a process that could take long.
    pub envoy_validation_timeout: Ignored,
    /// No effect.
    pub auth_enabled: Ignored,
    /// No effect.
    pub debug_mode: Ignored,
    /// No effect.
    pub prune_unreachable_routes: Ignored,
    /// No effect.
    pub regex_type: Ignored,
    /// No effect: the port is that of a Listener.
    pub service_port: Ignored,
    /// No effect: the environment decides.
    pub statsd: Ignored,
    /// No effect: `tls` is a Module of its own.
    pub tls: Ignored,
    /// No effect: the protocol is that of a Listener.
    pub use_proxy_proto: Ignored,
    /// No effect: a Listener decides.
    pub x_forwarded_proto_redirect: Ignored,
    /// No effect: a Listener has `l7Depth`.
    pub xff_num_trusted_hops: Ignored,
}

impl ModuleSettings {
    /// The keys that are written and have no effect, each with what to use in its place, if there is something.
    pub fn dead_keys(&self) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
        [
            (self.auth_enabled, "auth_enabled", Some("an AuthService")),
            (self.debug_mode, "debug_mode", None),
            (self.envoy_validation_timeout, "envoy_validation_timeout", None),
            (self.prune_unreachable_routes, "prune_unreachable_routes", None),
            (self.regex_type, "regex_type", None),
            (self.service_port, "service_port", Some("`port` of a Listener")),
            (self.statsd, "statsd", None),
            (self.tls, "tls", Some("a TLSContext or a Host")),
            (self.use_proxy_proto, "use_proxy_proto", Some("`protocolStack` of a Listener")),
            (self.x_forwarded_proto_redirect, "x_forwarded_proto_redirect", Some("`requestPolicy` of a Host")),
            (self.xff_num_trusted_hops, "xff_num_trusted_hops", Some("`l7Depth` of a Listener")),
        ]
        .into_iter()
        .filter_map(|(key, name, instead)| key.is_written().then_some((name, instead)))
    }
}

/// Defaults of fields, for every kind or for Mappings alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Defaults {
    /// For Mappings: these count first.
    pub httpmapping: Checked<Option<Box<FieldDefaults>>>,
    /// Headers added to requests.
    pub add_request_headers: Checked<Option<Map<AddedHeader>>>,
    /// Headers added to responses.
    pub add_response_headers: Checked<Option<Map<AddedHeader>>>,
    /// Headers removed from requests.
    pub remove_request_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Headers removed from responses.
    pub remove_response_headers: Checked<Option<Box<[Box<str>]>>>,
    /// The name of clusters in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
    /// The name of a Secret may end in its namespace, after a dot; true if absent.
    pub tls_secret_namespacing: Checked<Option<bool>>,
}

/// Defaults of fields of Mappings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FieldDefaults {
    /// Headers added to requests.
    pub add_request_headers: Checked<Option<Map<AddedHeader>>>,
    /// Headers added to responses.
    pub add_response_headers: Checked<Option<Map<AddedHeader>>>,
    /// Headers removed from requests.
    pub remove_request_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Headers removed from responses.
    pub remove_response_headers: Checked<Option<Box<[Box<str>]>>>,
    /// The name of clusters in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
}
