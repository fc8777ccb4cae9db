//! Route actions: what is done with a request that matches a route.

use super::{CookieRewrite, HeaderChanges, Path, PathReplacement};
use crate::{ClusterId, Code, Fqdn, HeaderName, HeaderValue, OrDefault, Timeout, regex::RegexRewrite};
use std::{sync::Arc, time::Duration};

/// The longest body of a direct response that Envoy accepts, in bytes.
pub const LONGEST_BODY: usize = 4096;

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It is forwarded to a backend.
    Forward(Box<Forward>),
    /// The client gets a redirect.
    Redirect(Redirect),
    /// The proxy answers itself.
    DirectResponse(DirectResponse),
}

/// A request is forwarded to a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Forward {
    /// The backends and their weights. Empty only where [`Forward::unavailable`] has all requests: a route without backends is
    /// otherwise a [`DirectResponse`].
    pub clusters: Vec<WeightedCluster>,
    /// The share of requests whose backends cannot be used: the proxy answers them itself.
    pub unavailable: Option<UnavailableShare>,
    /// The timeout of the whole response.
    pub timeout: Timeout,
    /// When a request is retried, if at all.
    pub retry: Option<Box<RetryPolicy>>,
    /// Whether the connection may become a WebSocket.
    pub websocket: bool,
    /// What else the connection may become.
    pub upgrades: Vec<Upgrade>,
    /// Whether its requests count against the limits for requests of high priority.
    pub high_priority: bool,
    /// The idle timeout of the stream.
    pub idle: Timeout,
    /// The backends that requests are mirrored to.
    pub mirrors: Vec<Mirror>,
    /// How the path is rewritten.
    pub rewrite: Option<PathRewrite>,
    /// How the Host header is rewritten.
    pub host: Option<HostRewrite>,
    /// The hash policy: what the hash of a request is made of, for load balancing by hash.
    pub hash: Vec<Hash>,
    /// Redirects of the backend that the proxy follows itself.
    pub internal_redirect: Option<Box<InternalRedirect>>,
}

/// A share of requests that no backend gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnavailableShare {
    /// Its weight beside those of the backends; the sum is above 0 and fits a `u32`.
    pub weight: u32,
    /// What the proxy answers.
    pub answer: UnavailableAnswer,
}

/// What the proxy answers in the place of a backend that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnavailableAnswer {
    /// 500; the gRPC status UNKNOWN.
    InternalServerError,
    /// 503; the gRPC status UNAVAILABLE.
    ServiceUnavailable,
}

/// A protocol that a connection may be upgraded to: a token in lower case, not WebSocket and none that makes the proxy a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Upgrade(Arc<str>);

/// Why a text is no protocol that a connection may be upgraded to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// Not a token, with or without a version.
    #[error("`{0}` is not the name of a protocol such as `spdy/3.1`")]
    Name(Box<str>),
    /// `CONNECT` would connect clients to whatever they name.
    #[error("`{0}` would make the proxy a tunnel; it is not supported")]
    Tunnel(Box<str>),
}

impl Upgrade {
    /// Reads the name of a protocol, in any case.
    pub fn parse(text: &str) -> Result<Self, UpgradeError> {
        let lower = text.to_ascii_lowercase();
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(&b);
        if lower.is_empty() || lower.len() > 64 || !lower.bytes().all(is_token) {
            return Err(UpgradeError::Name(
                lower.chars().take(80).collect::<String>().escape_debug().to_string().into(),
            ));
        }
        if lower.starts_with("connect") {
            return Err(UpgradeError::Tunnel(lower.into()));
        }
        Ok(Self(lower.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How the path of a request is rewritten, for a backend or in a redirect. The query is kept, except in a redirect that replaces the
/// whole path with one that has a query itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathRewrite {
    /// The whole path is replaced by this.
    Whole(PathReplacement),
    /// The prefix that the route matched is replaced by this.
    Prefix(PathReplacement),
    /// The prefix that the route matched by path element is replaced: `/a/b` becomes `/x/b`, and `/b` where the replacement is
    /// `/`.
    Below {
        /// The prefix; without a final `/`, but for `/` itself.
        matched: Path,
        /// What replaces it; without a final `/`, but for `/` itself.
        path: Path,
    },
    /// What a pattern matches of the path is replaced.
    Regex(RegexRewrite),
}

/// One part of the hash policy.
#[derive(Clone, Debug, PartialEq, Eq, std::hash::Hash)]
pub struct Hash {
    /// What it is made of.
    pub of: HashOf,
    /// Whether the parts after this one are ignored if this one yields a hash.
    pub terminal: bool,
}

/// What a hash is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashOf {
    /// A session cookie of this name; the proxy sets it for a client without one.
    Cookie(Arc<str>),
    /// A cookie of this name; the proxy sets it for a client without one, if it has a lifetime.
    LastingCookie {
        /// The name; never empty.
        name: Arc<str>,
        /// The path that it is set for.
        path: Option<Path>,
        /// How long it lasts; zero for a session.
        lifetime: Option<Duration>,
    },
    /// A header.
    Header(HeaderName),
    /// A query parameter; never empty.
    Query(Arc<str>),
    /// The client's address.
    SourceIp,
}

/// Redirects of the backend that the proxy follows itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InternalRedirect {
    /// How many redirects in a row are followed; one by default.
    pub most: Option<u32>,
    /// The statuses that are followed, of 301, 302, 303, 307 and 308; 302 if empty.
    pub statuses: Vec<u32>,
    /// Whether the scheme may change.
    pub cross_scheme: CrossScheme,
    /// Whether a route that was taken before is not taken again.
    pub no_repeats: bool,
}

/// Whether a redirect may change the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrossScheme {
    /// It may.
    Always,
    /// It may not.
    Never,
    /// From HTTP to HTTPS only.
    SafeOnly,
}

impl Forward {
    /// Every backend that a request may reach, mirrored requests included.
    pub fn targets(&self) -> impl Iterator<Item = &ClusterId> {
        self.clusters.iter().map(|share| &share.cluster).chain(self.mirrors.iter().map(|mirror| &mirror.cluster))
    }
}

/// A backend that requests are mirrored to; its responses are discarded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mirror {
    /// The backend.
    pub cluster: ClusterId,
    /// How many of a million requests, 1 to 1,000,000.
    pub per_million: u32,
    /// Whether the backend gets the Host header as it is. Otherwise `-shadow` is appended to it.
    pub keeps_host: bool,
}

/// How the Host header is rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostRewrite {
    /// This text.
    Literal(HeaderValue),
    /// The value of this header of the request.
    Header(HeaderName),
}

/// A backend of a route and its weight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedCluster {
    /// The backend.
    pub cluster: ClusterId,
    /// Its weight; the sum of a route is above 0 and fits a `u32`.
    pub weight: u32,
    /// Changes of the headers of requests to this backend.
    pub request_headers: OrDefault<HeaderChanges>,
    /// Changes of the headers of its responses.
    pub response_headers: OrDefault<HeaderChanges>,
    /// The Host header that it gets.
    pub host: Option<HeaderValue>,
    /// Changes of the cookies that it sets, with those of the route merged in. Empty if those of the route apply.
    pub cookies: Vec<CookieRewrite>,
}

impl WeightedCluster {
    /// A backend with nothing changed on the way.
    pub fn new(cluster: ClusterId, weight: u32) -> Self {
        let (request_headers, response_headers, cookies) = Default::default();
        Self { cluster, weight, request_headers, response_headers, host: None, cookies }
    }
}

/// When a request is retried.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// The conditions.
    pub on: Vec<RetryOn>,
    /// The most retries.
    pub count: u32,
    /// The timeout of each try.
    pub per_try: Timeout,
    /// The status codes of [`RetryOn::RetriableStatusCodes`].
    pub status_codes: Vec<u32>,
    /// The base interval of the back-off between tries, if it is not the proxy's default; not zero.
    pub backoff: Option<Duration>,
}

macro_rules! retry_on {
    ($($name:ident $word:literal $doc:literal;)*) => {
        /// A condition for a retry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RetryOn {
            $(#[doc = $doc] $name,)*
        }

        impl RetryOn {
            /// Every condition.
            pub const ALL: &'static [RetryOn] = &[$(RetryOn::$name,)*];

            /// Its name in Envoy's `retry_on`.
            pub fn word(self) -> &'static str {
                match self { $(RetryOn::$name => $word,)* }
            }
        }
    };
}

retry_on! {
    ServerError "5xx" "Any response with status 500 or above, or none at all.";
    GatewayError "gateway-error" "A response with status 502, 503 or 504.";
    Reset "reset" "The backend did not respond: disconnect, reset or timeout.";
    ResetBeforeRequest "reset-before-request" "The connection was reset before the request was sent.";
    ConnectFailure "connect-failure" "The connection to the backend failed.";
    EnvoyRatelimited "envoy-ratelimited" "The request was rate limited.";
    Retriable4xx "retriable-4xx" "A response with status 409.";
    RefusedStream "refused-stream" "The backend refused the HTTP/2 stream.";
    RetriableStatusCodes "retriable-status-codes" "A response with one of the listed status codes.";
    RetriableHeaders "retriable-headers" "A response with one of the listed headers.";
    Http3PostConnectFailure "http3-post-connect-failure" "HTTP/3 failed after the connection was established.";
    Cancelled "cancelled" "gRPC status 1.";
    DeadlineExceeded "deadline-exceeded" "gRPC status 4.";
    Internal "internal" "gRPC status 13.";
    ResourceExhausted "resource-exhausted" "gRPC status 8.";
    Unavailable "unavailable" "gRPC status 14.";
}

/// A redirect; what is not set stays as in the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// The scheme.
    pub scheme: Option<Scheme>,
    /// The host.
    pub host: Option<Fqdn>,
    /// The port, if it is not the default of the scheme.
    pub port: Option<u16>,
    /// The path.
    pub path: Option<PathRewrite>,
    /// The status: 301, 302, 303, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// A permanent redirect to HTTPS; to `port`, if clients do not reach HTTPS at 443.
    pub fn to_https(port: Option<u16>) -> Self {
        Self { scheme: Some(Scheme::Https), host: None, port, path: None, status: 301 }
    }

    /// Whether it is a permanent redirect to HTTPS, of everything but the scheme and the port as it is.
    pub fn is_to_https(&self) -> bool {
        *self == Self::to_https(self.port)
    }
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// A response of the proxy itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DirectResponse {
    /// The status, 200 to 599.
    pub status: u16,
    /// The body, at most [`LONGEST_BODY`] bytes.
    pub body: Arc<str>,
    /// Why the proxy answers at all, where no user asked for it: the body and the access log have the code.
    pub reason: Option<Code>,
}

impl DirectResponse {
    /// 503: what the route refers to is not available.
    pub fn unavailable() -> Self {
        Self::because(503, Code::RouteNotServed)
    }

    /// A response in the place of what cannot be served.
    pub fn because(status: u16, reason: Code) -> Self {
        Self { status, body: "".into(), reason: Some(reason) }
    }
}
