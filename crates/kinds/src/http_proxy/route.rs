//! A route: which requests, and what is done with them.

use super::{
    Condition, Service,
    rate_limit::RateLimitPolicy,
    security::{AuthPolicy, IpFilter, JwtVerificationPolicy},
};
use crate::{Checked, List, open_enum::open_enum};
use serde::Deserialize;

/// A route; one of `services`, `request_redirect_policy` and `direct_response_policy` should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Which requests.
    #[serde(default)]
    pub conditions: List<Condition>,
    /// The backends and their shares.
    #[serde(default)]
    pub services: List<Service>,
    /// The client is sent elsewhere.
    #[serde(default)]
    pub request_redirect_policy: Checked<Option<Box<RequestRedirectPolicy>>>,
    /// The proxy answers by itself.
    #[serde(default)]
    pub direct_response_policy: Checked<Option<Box<DirectResponsePolicy>>>,
    /// The connection may become a WebSocket.
    #[serde(default)]
    pub enable_websockets: Checked<bool>,
    /// Served over HTTP though the host has TLS.
    #[serde(default)]
    pub permit_insecure: Checked<bool>,
    /// How the authorization server is asked.
    #[serde(default)]
    pub auth_policy: Checked<Option<Box<AuthPolicy>>>,
    /// Which token is asked for.
    #[serde(default)]
    pub jwt_verification_policy: Checked<Option<Box<JwtVerificationPolicy>>>,
    /// The only clients that may.
    #[serde(default, rename = "ipAllowPolicy")]
    pub ip_allow: Checked<Option<Box<[IpFilter]>>>,
    /// The clients that may not.
    #[serde(default, rename = "ipDenyPolicy")]
    pub ip_deny: Checked<Option<Box<[IpFilter]>>>,
    /// How long things may take.
    #[serde(default)]
    pub timeout_policy: Checked<Option<Box<TimeoutPolicy>>>,
    /// When a request is tried again.
    #[serde(default)]
    pub retry_policy: Checked<Option<Box<RetryPolicy>>>,
    /// How backends are probed.
    #[serde(default)]
    pub health_check_policy: Checked<Option<Box<HttpHealthCheckPolicy>>>,
    /// How an endpoint is chosen.
    #[serde(default)]
    pub load_balancer_policy: Checked<Option<Box<LoadBalancerPolicy>>>,
    /// What the backend sees as the path.
    #[serde(default)]
    pub path_rewrite_policy: Checked<Option<Box<PathRewritePolicy>>>,
    /// What is changed about the headers of a request.
    #[serde(default)]
    pub request_headers_policy: Checked<Option<Box<HeadersPolicy>>>,
    /// What is changed about the headers of an answer.
    #[serde(default)]
    pub response_headers_policy: Checked<Option<Box<HeadersPolicy>>>,
    /// What is changed about the cookies of an answer.
    #[serde(default)]
    pub cookie_rewrite_policies: Checked<Option<Box<[CookieRewritePolicy]>>>,
    /// How many requests are taken.
    #[serde(default)]
    pub rate_limit_policy: Checked<Option<Box<RateLimitPolicy>>>,
    /// Redirects of the backend that the proxy follows itself.
    #[serde(default)]
    pub internal_redirect_policy: Checked<Option<Box<InternalRedirectPolicy>>>,
}

/// The client is sent elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRedirectPolicy {
    /// `http` or `https`; as it was if absent.
    pub scheme: Option<Box<str>>,
    /// The host; as it was if absent.
    pub hostname: Option<Box<str>>,
    /// The port; that of the scheme if absent.
    pub port: Option<i64>,
    /// The status; 302 if absent.
    pub status_code: Option<i64>,
    /// The whole path.
    pub path: Option<Box<str>>,
    /// What stands for the prefix that the route matched.
    pub prefix: Option<Box<str>>,
}

/// The proxy answers by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectResponsePolicy {
    /// The status.
    pub status_code: i64,
    /// The text.
    pub body: Option<Box<str>>,
}

/// How long things may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutPolicy {
    /// The whole answer.
    pub response: Option<Box<str>>,
    /// A stream on which nothing moves.
    pub idle: Option<Box<str>>,
    /// A connection to a backend without requests.
    pub idle_connection: Option<Box<str>>,
}

/// When a request is tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// How often at most; −1 for never, 0 and absent for once.
    pub count: Option<i64>,
    /// How long each try may take.
    pub per_try_timeout: Option<Box<str>>,
    /// The conditions.
    #[serde(default)]
    pub retry_on: Box<[Box<str>]>,
    /// The answers that are tried again where a condition says so.
    #[serde(default)]
    pub retriable_status_codes: Box<[i64]>,
}

/// How backends are probed over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHealthCheckPolicy {
    /// The path that is asked for.
    #[serde(default)]
    pub path: Box<str>,
    /// The host that is asked for.
    pub host: Option<Box<str>>,
    /// Seconds between probes.
    pub interval_seconds: Option<i64>,
    /// Seconds that an answer may take.
    pub timeout_seconds: Option<i64>,
    /// Failures after which a backend is not used.
    pub unhealthy_threshold_count: Option<i64>,
    /// Successes after which it is used again.
    pub healthy_threshold_count: Option<i64>,
    /// The answers that are good.
    #[serde(default)]
    pub expected_statuses: Box<[StatusRange]>,
}

/// Statuses from `start` to before `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StatusRange {
    /// The first.
    pub start: i64,
    /// The first that is no longer meant.
    pub end: i64,
}

/// How an endpoint is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerPolicy {
    /// The way; in turn if absent.
    pub strategy: Option<Strategy>,
    /// What a hash is made of.
    #[serde(default)]
    pub request_hash_policies: Box<[RequestHashPolicy]>,
}

open_enum! {
    /// A way to choose an endpoint.
    Strategy {
        /// In turn.
        RoundRobin = "RoundRobin",
        /// By chance.
        Random = "Random",
        /// That with the fewest requests.
        WeightedLeastRequest = "WeightedLeastRequest",
        /// Always the same for the holder of a cookie.
        Cookie = "Cookie",
        /// Always the same for requests with the same hash.
        RequestHash = "RequestHash",
    }
}

/// What a hash is made of: one of the three should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHashPolicy {
    /// Nothing after this counts where this gives something.
    #[serde(default)]
    pub terminal: bool,
    /// A header.
    pub header_hash_options: Option<HeaderHashOptions>,
    /// A query parameter.
    pub query_parameter_hash_options: Option<QueryParameterHashOptions>,
    /// The client's address.
    #[serde(default, rename = "hashSourceIP")]
    pub hash_source_ip: bool,
}

/// A header that a hash is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderHashOptions {
    /// The header.
    #[serde(default)]
    pub header_name: Box<str>,
}

/// A query parameter that a hash is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryParameterHashOptions {
    /// The parameter.
    #[serde(default)]
    pub parameter_name: Box<str>,
}

/// What the backend sees as the path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathRewritePolicy {
    /// What stands for the prefix that the route matched.
    #[serde(default)]
    pub replace_prefix: Box<[ReplacePrefix]>,
}

/// What stands for a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ReplacePrefix {
    /// The prefix, with those of includes; every one if absent.
    pub prefix: Option<Box<str>>,
    /// What stands for it.
    #[serde(default)]
    pub replacement: Box<str>,
}

/// What is changed about headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HeadersPolicy {
    /// Headers that are given a value, whatever they had.
    #[serde(default)]
    pub set: Box<[HeaderValue]>,
    /// Headers that are taken away.
    #[serde(default)]
    pub remove: Box<[Box<str>]>,
}

/// A header and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HeaderValue {
    /// The header.
    #[serde(default)]
    pub name: Box<str>,
    /// The value.
    #[serde(default)]
    pub value: Box<str>,
}

/// What is changed about a cookie that a backend sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CookieRewritePolicy {
    /// The cookie.
    #[serde(default)]
    pub name: Box<str>,
    /// Its path.
    pub path_rewrite: Option<CookieValue>,
    /// Its domain.
    pub domain_rewrite: Option<CookieValue>,
    /// Whether it is sent over HTTPS only.
    pub secure: Option<bool>,
    /// Whether it is sent with requests from other sites.
    pub same_site: Option<Box<str>>,
}

/// The value of an attribute of a cookie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CookieValue {
    /// The value.
    #[serde(default)]
    pub value: Box<str>,
}

/// Redirects of the backend that the proxy follows itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternalRedirectPolicy {
    /// How many in a row.
    pub max_internal_redirects: Option<i64>,
    /// Which statuses.
    #[serde(default)]
    pub redirect_response_codes: Box<[i64]>,
    /// Whether from HTTPS to HTTP or back.
    pub allow_cross_scheme_redirect: Option<CrossScheme>,
    /// Not to a route that was taken before.
    #[serde(default)]
    pub deny_repeated_route_redirect: bool,
}

open_enum! {
    /// Whether a redirect may change the scheme.
    CrossScheme {
        /// It may.
        Always = "Always",
        /// It may not.
        Never = "Never",
        /// From HTTP to HTTPS only.
        SafeOnly = "SafeOnly",
    }
}
