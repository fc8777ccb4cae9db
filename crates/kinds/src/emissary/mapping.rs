//! Mapping: which requests go to a service, and how.

pub mod cluster;
pub mod headers;
pub mod health_check;
pub mod labels;
pub mod policy;

use super::{AmbassadorId, Map};
use crate::{Checked, List, Meta, Status};
use serde::Deserialize;

pub use cluster::{CircuitBreaker, Keepalive, LoadBalancer};
pub use headers::{AddedHeader, Cors};
pub use health_check::HealthCheck;
pub use labels::Labels;
pub use policy::{RegexRewrite, RetryPolicy};

/// Which requests go to a service, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Mapping {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: MappingSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a Mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MappingSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// What the path begins with; required.
    pub prefix: Checked<Option<Box<str>>>,
    /// `prefix` is a regular expression for the whole path.
    pub prefix_regex: Checked<Option<bool>>,
    /// `prefix` is the whole path.
    pub prefix_exact: Checked<Option<bool>>,
    /// Upper and lower case differ in the path; true if absent.
    pub case_sensitive: Checked<Option<bool>>,
    /// The host, or a glob of hosts.
    pub hostname: Checked<Option<Box<str>>>,
    /// The host; deprecated.
    pub host: Checked<Option<Box<str>>>,
    /// `host` is a regular expression; deprecated.
    pub host_regex: Checked<Option<bool>>,
    /// The method.
    pub method: Checked<Option<Box<str>>>,
    /// `method` is a regular expression.
    pub method_regex: Checked<Option<bool>>,
    /// Headers and their values.
    pub headers: Checked<Map<Box<str>>>,
    /// Headers and regular expressions for their values.
    pub regex_headers: Checked<Map<Box<str>>>,
    /// Query parameters and their values.
    pub query_parameters: Checked<Map<Box<str>>>,
    /// Query parameters and regular expressions for their values.
    pub regex_query_parameters: Checked<Map<Box<str>>>,
    /// Mappings of higher precedence are tried first; 0 if absent.
    pub precedence: Checked<Option<i64>>,
    /// The share of requests in percent.
    pub weight: Checked<Option<i64>>,
    /// The service; required.
    pub service: Checked<Option<Box<str>>>,
    /// The TLSContext of connections to the service.
    pub tls: Checked<Option<Box<str>>>,
    /// The resolver that finds the endpoints of the service.
    pub resolver: Checked<Option<Box<str>>>,
    /// What `prefix` is replaced with; `/` if absent, unchanged if empty.
    pub rewrite: Checked<Option<Box<str>>>,
    /// A rewrite of the path by a regular expression; used in place of `rewrite`.
    pub regex_rewrite: Checked<Option<Box<RegexRewrite>>>,
    /// The host that the service sees.
    pub host_rewrite: Checked<Option<Box<str>>>,
    /// The service sees the DNS name of its endpoint as the host.
    pub auto_host_rewrite: Checked<Option<bool>>,
    /// Requests are redirected to `service`.
    pub host_redirect: Checked<Option<bool>>,
    /// The path of the redirect.
    pub path_redirect: Checked<Option<Box<str>>>,
    /// What `prefix` is replaced with in the redirect.
    pub prefix_redirect: Checked<Option<Box<str>>>,
    /// A rewrite of the path of the redirect.
    pub regex_redirect: Checked<Option<Box<RegexRewrite>>>,
    /// The status of the redirect: 301, 302, 303, 307 or 308; 301 if absent.
    pub redirect_response_code: Checked<Option<i64>>,
    /// Requests are mirrored to `service`, whose responses are ignored.
    pub shadow: Checked<Option<bool>>,
    /// Milliseconds that a response may take; 0 for no limit.
    pub timeout_ms: Checked<Option<i64>>,
    /// Milliseconds that a stream may be idle.
    pub idle_timeout_ms: Checked<Option<i64>>,
    /// Milliseconds that a connection to the service may take; 3000 if absent.
    pub connect_timeout_ms: Checked<Option<i64>>,
    /// Milliseconds that a connection to the service may be idle.
    pub cluster_idle_timeout_ms: Checked<Option<i64>>,
    /// Milliseconds that a connection to the service may be used.
    pub cluster_max_connection_lifetime_ms: Checked<Option<i64>>,
    /// Which requests are tried again.
    pub retry_policy: Checked<Option<Box<RetryPolicy>>>,
    /// Limits of connections and requests.
    pub circuit_breakers: Checked<Option<Box<[CircuitBreaker]>>>,
    /// How an endpoint is chosen.
    pub load_balancer: Checked<Option<Box<LoadBalancer>>>,
    /// TCP keepalive of connections to the service.
    pub keepalive: Checked<Option<Box<Keepalive>>>,
    /// Cross-origin requests.
    pub cors: Checked<Option<Box<Cors>>>,
    /// Headers added to requests; those of the Module if absent, none if empty.
    pub add_request_headers: Checked<Option<Map<AddedHeader>>>,
    /// Headers added to responses; those of the Module if absent, none if empty.
    pub add_response_headers: Checked<Option<Map<AddedHeader>>>,
    /// Headers removed from requests.
    pub remove_request_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Headers removed from responses.
    pub remove_response_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Requests carry `l5d-dst-override`.
    pub add_linkerd_headers: Checked<Option<bool>>,
    /// The service speaks HTTP/2.
    pub grpc: Checked<Option<bool>>,
    /// Protocols that a connection may be upgraded to.
    pub allow_upgrade: Checked<Option<Box<[Box<str>]>>>,
    /// The same as `allow_upgrade: [websocket]`; deprecated.
    pub use_websocket: Checked<Option<bool>>,
    /// Requests are not authorized.
    pub bypass_auth: Checked<Option<bool>>,
    /// What the authorization service is told besides the request.
    pub auth_context_extensions: Checked<Map<Box<str>>>,
    /// Rate limit labels by domain.
    pub labels: Checked<Labels>,
    /// Health checks of endpoints.
    pub health_checks: List<HealthCheck>,
    /// How the DNS name of the service is resolved: `strict_dns` or `logical_dns`.
    pub dns_type: Checked<Option<Box<str>>>,
    /// The TTL of DNS answers is respected.
    pub respect_dns_ttl: Checked<Option<bool>>,
    /// IPv4 addresses are used.
    pub enable_ipv4: Checked<Option<bool>>,
    /// IPv6 addresses are used.
    pub enable_ipv6: Checked<Option<bool>>,
    /// Keeps the cluster apart from those of other Mappings to the same service.
    pub cluster_tag: Checked<Option<Box<str>>>,
    /// The name of the cluster in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
    /// The priority of requests: `default` or `high`.
    pub priority: Checked<Option<Box<str>>>,
    /// API documentation; no effect.
    pub docs: Checked<Option<serde_json::Value>>,
    /// No effect.
    pub modules: Checked<Option<serde_json::Value>>,
    /// No effect.
    pub envoy_override: Checked<Option<serde_json::Value>>,
    /// Replacements of error responses; not supported.
    pub error_response_overrides: Checked<Option<serde_json::Value>>,
    /// No effect.
    pub bypass_error_response_overrides: Checked<Option<bool>>,
    /// Not supported.
    pub outlier_detection: Checked<Option<serde_json::Value>>,
}
