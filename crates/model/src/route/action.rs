//! What is done with a request that a route took.

use super::{CookieRewrite, HeaderChanges, Path};
use crate::{ClusterId, Fqdn, HeaderName, HeaderValue, Timeout};
use std::sync::Arc;

/// Envoy refuses a longer text in a direct answer.
pub const LONGEST_BODY: usize = 4096;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes to a backend.
    Forward(Box<Forward>),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// The proxy answers by itself.
    DirectResponse(DirectResponse),
}

/// A request goes to a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Forward {
    /// The backends and their shares. Never empty: a route without backends is a [`DirectResponse`].
    pub clusters: Vec<WeightedCluster>,
    /// How long the whole answer may take.
    pub timeout: Timeout,
    /// Whether and when it is tried again.
    pub retry: Option<RetryPolicy>,
    /// Whether the connection may become a WebSocket.
    pub websocket: bool,
    /// How long nothing may move.
    pub idle: Timeout,
    /// The backends that get copies.
    pub mirrors: Vec<Mirror>,
    /// What the backend sees for the prefix that the route matched.
    pub rewrite: Option<Path>,
    /// What the backend sees as the host.
    pub host: Option<HostRewrite>,
    /// What a hash of the request is made of, where one chooses the endpoint.
    pub hash: Vec<Hash>,
    /// Redirects of the backend that the proxy follows itself.
    pub internal_redirect: Option<InternalRedirect>,
}

/// A part of the hash of a request.
#[derive(Clone, Debug, PartialEq, Eq, std::hash::Hash)]
pub struct Hash {
    /// What it is made of.
    pub of: HashOf,
    /// Nothing after this counts where this gives something.
    pub terminal: bool,
}

/// What a hash is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashOf {
    /// A cookie of this name, which a client without one is given for its session.
    Cookie(Arc<str>),
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
    /// How many in a row; one where nothing is said.
    pub most: Option<u32>,
    /// Which statuses, of 301, 302, 303, 307 and 308; 302 where there is none.
    pub statuses: Vec<u32>,
    /// Whether the scheme may change.
    pub cross_scheme: CrossScheme,
    /// Not to a route that was taken before.
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
    /// Every backend that a request may reach, copies of it too.
    pub fn targets(&self) -> impl Iterator<Item = &ClusterId> {
        self.clusters.iter().map(|share| &share.cluster).chain(self.mirrors.iter().map(|mirror| &mirror.cluster))
    }
}

/// A backend that gets copies of requests, and nobody waits for its answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mirror {
    /// The backend.
    pub cluster: ClusterId,
    /// Of how many requests in a hundred; 1 to 100.
    pub percent: u32,
}

/// What the backend sees as the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostRewrite {
    /// This text.
    Literal(HeaderValue),
    /// The value of this header of the request.
    Header(HeaderName),
}

/// A backend's share of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedCluster {
    /// The backend.
    pub cluster: ClusterId,
    /// Its share; those of a route are together above nothing and no more than a `u32` holds.
    pub weight: u32,
    /// What is changed about the headers of a request that goes there.
    pub request_headers: HeaderChanges,
    /// What is changed about the headers of an answer that comes from there.
    pub response_headers: HeaderChanges,
    /// What it sees as the host.
    pub host: Option<HeaderValue>,
    /// What is changed about the cookies that it sets, all told: the route's word is in it. Nothing where the route's stands.
    pub cookies: Vec<CookieRewrite>,
}

impl WeightedCluster {
    /// A backend's share, with nothing changed on the way.
    pub fn new(cluster: ClusterId, weight: u32) -> Self {
        let (request_headers, response_headers, cookies) = Default::default();
        Self { cluster, weight, request_headers, response_headers, host: None, cookies }
    }
}

/// When a request is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// The conditions, in Envoy's words.
    pub on: Vec<RetryOn>,
    /// How often at most.
    pub count: u32,
    /// How long each try may take.
    pub per_try: Timeout,
    /// The answers that [`RetryOn::RetriableStatusCodes`] means.
    pub status_codes: Vec<u32>,
}

macro_rules! retry_on {
    ($($name:ident $word:literal $doc:literal;)*) => {
        /// A condition for another try.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RetryOn {
            $(#[doc = $doc] $name,)*
        }

        impl RetryOn {
            /// Every condition.
            pub const ALL: &'static [RetryOn] = &[$(RetryOn::$name,)*];

            /// The word that Envoy has for it.
            pub fn word(self) -> &'static str {
                match self { $(RetryOn::$name => $word,)* }
            }
        }
    };
}

retry_on! {
    ServerError "5xx" "Any answer of 500 and above, or none.";
    GatewayError "gateway-error" "An answer of 502, 503 or 504.";
    Reset "reset" "The backend did not answer.";
    ResetBeforeRequest "reset-before-request" "The backend went before it had the request.";
    ConnectFailure "connect-failure" "No connection was to be had.";
    EnvoyRatelimited "envoy-ratelimited" "A limit on the way refused it.";
    Retriable4xx "retriable-4xx" "An answer of 409.";
    RefusedStream "refused-stream" "The backend refused the HTTP/2 stream.";
    RetriableStatusCodes "retriable-status-codes" "An answer with one of the codes that are listed.";
    RetriableHeaders "retriable-headers" "An answer with one of the headers that are listed.";
    Http3PostConnectFailure "http3-post-connect-failure" "HTTP/3 failed after the connection was there.";
    Cancelled "cancelled" "gRPC status 1.";
    DeadlineExceeded "deadline-exceeded" "gRPC status 4.";
    Internal "internal" "gRPC status 13.";
    ResourceExhausted "resource-exhausted" "gRPC status 8.";
    Unavailable "unavailable" "gRPC status 14.";
}

/// The client is sent elsewhere; what is not said stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// The scheme.
    pub scheme: Option<Scheme>,
    /// The host.
    pub host: Option<Fqdn>,
    /// The port, where it is not the scheme's usual one.
    pub port: Option<u16>,
    /// The path.
    pub path: Option<RedirectPath>,
    /// The status: 301, 302, 303, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// To the same place over HTTPS, for good; at `port`, where clients do not reach HTTPS at the usual one.
    pub fn to_https(port: Option<u16>) -> Self {
        Self { scheme: Some(Scheme::Https), host: None, port, path: None, status: 301 }
    }
}

/// How a place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// The path that a client is sent to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RedirectPath {
    /// This one.
    Whole(Path),
    /// That of the request, with this for the prefix that the route matched.
    Prefix(Path),
}

/// The proxy answers by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DirectResponse {
    /// The status, 200 to 599.
    pub status: u16,
    /// The text, at most [`LONGEST_BODY`] bytes.
    pub body: Arc<str>,
}

impl DirectResponse {
    /// 503: what the route leads to is not there.
    pub fn unavailable() -> Self {
        Self { status: 503, body: "".into() }
    }
}
