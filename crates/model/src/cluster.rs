//! A cluster: one Service port as a proxy reaches it.
//!
//! Its name comes from identity alone, so that the same Service port has the same name however many routes use it, in
//! whatever order, on every replica. What the Service itself says (protocol, circuit breakers) is content, not name: a
//! change of it updates the cluster in place. What a route says about the way there ([`ClusterOverrides`]: how backends are
//! probed and eased in, whom to trust) is identity.

mod overrides;

use crate::{EndpointsId, HeaderValue, ObjectRef, Timeout, route::PathAndQuery};
use std::{fmt, sync::Arc, time::Duration};

pub use overrides::{ClusterOverrides, LoadBalancing};

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId {
    /// The Service port behind it.
    pub backend: EndpointsId,
    /// What the route says about the way there, where it says anything.
    pub variant: Option<Arc<ClusterOverrides>>,
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            None => self.backend.fmt(f),
            Some(variant) => write!(f, "{}/{variant}", self.backend),
        }
    }
}

impl From<EndpointsId> for ClusterId {
    fn from(backend: EndpointsId) -> Self {
        Self { backend, variant: None }
    }
}

/// The longest name that can be asked for in a TLS handshake.
pub const LONGEST_SERVER_NAME: usize = 255;

/// What the backend speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP/1.1 in the clear.
    #[default]
    Http1,
    /// HTTP/2 in the clear.
    H2c,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 over TLS.
    H2,
}

impl Protocol {
    /// The word that objects and annotations have for it; `http` for the one that needs none.
    pub fn word(self) -> &'static str {
        match self {
            Protocol::Http1 => "http",
            Protocol::H2c => "h2c",
            Protocol::Tls => "tls",
            Protocol::H2 => "h2",
        }
    }

    /// Whether the connection to the backend is encrypted.
    pub fn is_tls(self) -> bool {
        matches!(self, Protocol::Tls | Protocol::H2)
    }

    /// Whether requests go upstream as HTTP/2.
    pub fn is_h2(self) -> bool {
        matches!(self, Protocol::H2c | Protocol::H2)
    }
}

/// How a proxy learns where the backend is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Discovery {
    /// From the endpoint sets that we send.
    Endpoints,
    /// By asking DNS for these names.
    Dns(Vec<DnsTarget>),
}

/// A name that DNS knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsTarget {
    /// The name.
    pub host: Arc<str>,
    /// The port at the addresses it has.
    pub port: u16,
}

/// How much a backend may be given at once; `None` leaves Envoy's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CircuitBreakers {
    /// Connections of one proxy.
    pub max_connections: Option<u32>,
    /// Requests that wait for a connection.
    pub max_pending_requests: Option<u32>,
    /// Requests in flight.
    pub max_requests: Option<u32>,
    /// Retries in flight.
    pub max_retries: Option<u32>,
    /// Connections to one endpoint.
    pub per_host_max_connections: Option<u32>,
}

impl CircuitBreakers {
    /// These, and others where these say nothing.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        Self {
            max_connections: self.max_connections.or(others.max_connections),
            max_pending_requests: self.max_pending_requests.or(others.max_pending_requests),
            max_requests: self.max_requests.or(others.max_requests),
            max_retries: self.max_retries.or(others.max_retries),
            per_host_max_connections: self.per_host_max_connections.or(others.per_host_max_connections),
        }
    }
}

/// One Service port as a proxy reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Its identity.
    pub id: ClusterId,
    /// Where the endpoints come from.
    pub discovery: Discovery,
    /// What it speaks.
    pub protocol: Protocol,
    /// The name asked for in the TLS handshake, where it is known; at most [`LONGEST_SERVER_NAME`] bytes.
    pub server_name: Option<Arc<str>>,
    /// Its limits.
    pub breakers: CircuitBreakers,
    /// How long a connection may be without requests.
    pub idle: Timeout,
    /// How an endpoint is chosen.
    pub balance: LoadBalancing,
    /// How its endpoints are probed.
    pub health: Option<HealthCheck>,
    /// How new endpoints are eased in; only where they are used in turn or by least requests.
    pub slow_start: Option<SlowStart>,
    /// Whom to trust; anybody where nothing is said.
    pub validation: Option<Validation>,
}

impl Cluster {
    /// The cluster as a route wants it: what the route says stands above what the Service says.
    #[must_use]
    pub fn varied(self, id: &ClusterId) -> Self {
        let Some(variant) = &id.variant else { return self };
        let ClusterOverrides { protocol, server_name, idle, balance, health, slow_start, validation, health_port: _ } =
            &**variant;
        Self {
            id: id.clone(),
            protocol: protocol.unwrap_or(self.protocol),
            server_name: server_name.clone().or(self.server_name),
            idle: *idle,
            balance: *balance,
            health: health.clone(),
            slow_start: slow_start.clone(),
            validation: validation.clone(),
            ..self
        }
    }
}

/// The CA, by the Secret that holds it, and the names of which the backend's certificate must have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Validation {
    /// The Secret with the CA.
    pub ca: ObjectRef,
    /// The DNS names; never empty.
    pub names: Vec<Arc<str>>,
}

/// How backends are probed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HealthCheck {
    /// What is tried.
    pub probe: Probe,
    /// The time between probes; a second at least.
    pub interval: Duration,
    /// How long an answer may take; not zero.
    pub timeout: Duration,
    /// Failures after which a backend is not used; not zero.
    pub unhealthy: u32,
    /// Successes after which it is used again; not zero.
    pub healthy: u32,
}

/// What is tried to see whether a backend lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// A request.
    Http {
        /// What is asked for.
        path: PathAndQuery,
        /// The host that is asked for.
        host: HeaderValue,
        /// The statuses that are good, each from the first to before the second, from 100 to 600; 200 alone where there is
        /// none.
        statuses: Vec<(u16, u16)>,
    },
    /// A connection.
    Tcp,
}

/// How new endpoints are eased in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlowStart {
    /// For how long; not zero.
    pub window: Duration,
    /// How fast.
    pub aggression: Aggression,
    /// The share to begin with, in a hundred; 0 to 100.
    pub least_percent: u32,
}

/// How fast something new is eased in: 1 in even steps, above that sooner. Always above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aggression(u64);

impl Aggression {
    /// Reads a number above 0.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let value: f64 = text.parse().ok().filter(|_| digits)?;
        (value.is_finite() && value > 0.0).then(|| Self(value.to_bits()))
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}
