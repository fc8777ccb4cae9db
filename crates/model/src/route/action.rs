//! What is done with a request that a route took.

use crate::{ClusterId, Timeout};
use std::sync::Arc;

/// Envoy refuses a longer text in a direct answer.
pub const LONGEST_BODY: usize = 4096;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes to a backend.
    Forward(Forward),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// The proxy answers by itself.
    Respond(Respond),
}

/// A request goes to a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    /// The backends and their shares. Never empty: a route without backends is a [`Respond`].
    pub clusters: Vec<WeightedCluster>,
    /// How long the whole answer may take.
    pub timeout: Timeout,
    /// Whether and when it is tried again.
    pub retry: Option<RetryPolicy>,
    /// Whether the connection may become a WebSocket.
    pub websocket: bool,
}

/// A backend's share of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedCluster {
    /// The backend.
    pub cluster: ClusterId,
    /// Its share.
    pub weight: u32,
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

/// The client is sent to the same place over HTTPS, for good (301).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// The port that clients reach HTTPS at, where it is not the usual one.
    pub port: Option<u16>,
}

/// The proxy answers by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Respond {
    /// The status, 200 to 599.
    pub status: u16,
    /// The text, at most [`LONGEST_BODY`] bytes.
    pub body: Arc<str>,
}

impl Respond {
    /// 503: what the route leads to is not there.
    pub fn unavailable() -> Self {
        Self { status: 503, body: "".into() }
    }
}
