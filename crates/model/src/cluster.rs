//! A cluster: one Service port as a proxy reaches it, or an [extension](Extension): several of them that proxies themselves call.
//!
//! Its name comes from identity alone, so that the same Service port has the same name however many routes use it, in
//! whatever order, on every replica. What the Service sets (protocol, circuit breakers) is content, not name: a change of it
//! updates the cluster in place. What a route sets for its connections ([`ClusterOverrides`]: health checks, slow start, TLS
//! validation) is identity.

mod extension;
mod outside;
mod overrides;

use crate::{
    EndpointsId, HeaderValue, ObjectRef,
    route::{HeaderChanges, PathAndQuery},
};
use std::{fmt, sync::Arc, time::Duration};

pub use extension::Extension;
pub use outside::{OutsideHost, OutsideHostError};
pub use overrides::{ClusterOverrides, LoadBalancing};

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId {
    /// What is behind it.
    pub backend: Backend,
    /// What the route overrides, if anything.
    pub overrides: Option<Arc<ClusterOverrides>>,
}

/// What is behind a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// A Service port.
    Service(EndpointsId),
    /// Several Service ports with equal shares; sorted, each once.
    Services(Arc<[EndpointsId]>),
    /// The Services of an extension, by the object that names them.
    Extension(ObjectRef),
    /// An address, or a name in DNS, that is no Service.
    Outside(OutsideHost),
}

/// `namespace/service/port`, `services:` and several of these, `outside:host/port`, or `extension/namespace/name`. The kind stands before the namespace where two groups have one of that
/// name, and where the name could be a port: a namespace may be called `extension`, and none has upper-case letters.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backend::Service(endpoints) => endpoints.fmt(f),
            Backend::Services(several) => {
                f.write_str("services:")?;
                several.iter().enumerate().try_for_each(|(at, one)| {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{one}")
                })
            }
            Backend::Extension(ObjectRef { kind, namespace, name }) => {
                f.write_str("extension/")?;
                if kind.label() != kind.name() || name.bytes().all(|byte| byte.is_ascii_digit()) {
                    write!(f, "{}/", kind.label())?;
                }
                write!(f, "{namespace}/{name}")
            }
            Backend::Outside(host) => write!(f, "outside:{host}"),
        }
    }
}

impl ClusterId {
    /// The Service port, if it is one's cluster.
    pub fn service(&self) -> Option<&EndpointsId> {
        match &self.backend {
            Backend::Service(endpoints) => Some(endpoints),
            Backend::Services(_) | Backend::Extension(_) | Backend::Outside(_) => None,
        }
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.overrides {
            None => self.backend.fmt(f),
            Some(overrides) => write!(f, "{}/{overrides}", self.backend),
        }
    }
}

impl From<EndpointsId> for ClusterId {
    fn from(backend: EndpointsId) -> Self {
        Self { backend: Backend::Service(backend), overrides: None }
    }
}

/// The longest server name of a TLS handshake, in bytes.
pub const LONGEST_SERVER_NAME: usize = 255;

/// The protocol of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP/1.1, plaintext.
    #[default]
    Http1,
    /// HTTP/2, plaintext.
    H2c,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 over TLS.
    H2,
}

impl Protocol {
    /// Its name in objects and annotations; `http` for the default.
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

/// How a proxy discovers the endpoints of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Discovery {
    /// By EDS.
    Endpoints,
    /// By EDS, with a weight for each of several Services.
    WeightedEndpoints,
    /// By DNS.
    Dns(Vec<DnsTarget>),
}

impl Discovery {
    /// Whether a proxy asks for the endpoints by EDS.
    pub fn is_by_eds(&self) -> bool {
        !matches!(self, Discovery::Dns(_))
    }
}

/// A DNS name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsTarget {
    /// The name.
    pub host: Arc<str>,
    /// The port at its addresses.
    pub port: u16,
}

/// How names in DNS are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsLookup {
    /// Whether new connections go to the first address of the last answer, and old ones stay. Otherwise all addresses of an answer are
    /// endpoints, and none but those.
    pub logical: bool,
    /// Whether an answer is used for as long as it says itself.
    pub respect_ttl: bool,
    /// Which addresses are used, if not those of the settings.
    pub addresses: Option<DnsAddresses>,
}

/// Which addresses of a name in DNS are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DnsAddresses {
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
    /// Those of IPv6, and of IPv4 where there are none.
    Auto,
}

/// TCP keepalive of connections to a backend; `None` leaves the default of the proxy's system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keepalive {
    /// Probes without an answer after which a connection is dead.
    pub probes: Option<u32>,
    /// Seconds of silence before the first probe.
    pub idle_seconds: Option<u32>,
    /// Seconds between probes.
    pub interval_seconds: Option<u32>,
}

/// Circuit breakers; `None` leaves Envoy's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitBreakers {
    /// Connections of one proxy.
    pub max_connections: Option<u32>,
    /// Pending requests: those that wait for a connection.
    pub max_pending_requests: Option<u32>,
    /// Requests in flight.
    pub max_requests: Option<u32>,
    /// Retries in flight.
    pub max_retries: Option<u32>,
    /// Connections to one endpoint.
    pub per_host_max_connections: Option<u32>,
}

impl CircuitBreakers {
    /// These, and those of others where these are not set.
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
    /// The protocol.
    pub protocol: Protocol,
    /// The server name (SNI) of the TLS handshake, if it is known; at most [`LONGEST_SERVER_NAME`] bytes.
    pub server_name: Option<Arc<str>>,
    /// The circuit breakers.
    pub breakers: CircuitBreakers,
    /// What its routes, or whoever else calls it, set. Protocol, server name and circuit breakers that are set there are in the fields above,
    /// which also have what the Service says.
    pub overrides: ClusterOverrides,
}

impl Cluster {
    /// A cluster of which nothing but this is said.
    pub fn new(id: ClusterId, discovery: Discovery) -> Self {
        let (protocol, server_name, breakers, overrides) = Default::default();
        Self { id, discovery, protocol, server_name, breakers, overrides }
    }

    /// The cluster with what a route overrides.
    #[must_use]
    pub fn varied(self, id: &ClusterId) -> Self {
        let Some(overrides) = &id.overrides else { return self };
        Self {
            id: id.clone(),
            protocol: overrides.protocol.unwrap_or(self.protocol),
            server_name: overrides.server_name.clone().or(self.server_name),
            breakers: overrides.breakers.or(&self.breakers),
            overrides: ClusterOverrides::clone(overrides),
            ..self
        }
    }
}

/// How the certificate of a backend is validated: the CA that signed it, and the names of which it must have one, if there are any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Validation {
    /// The CA.
    pub ca: TrustedCa,
    /// The names; where there is none, a certificate may have any.
    pub names: Vec<SubjectAltName>,
}

/// The CA that signed the certificate of a backend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrustedCa {
    /// One of those in this bundle.
    Bundle(CaBundle),
    /// One of the CAs that the proxy's system trusts.
    System,
}

impl TrustedCa {
    /// The bundle, if it is not the system's.
    pub fn bundle(&self) -> Option<&CaBundle> {
        match self {
            TrustedCa::Bundle(bundle) => Some(bundle),
            TrustedCa::System => None,
        }
    }
}

/// A CA bundle: all CA certificates of some Secrets or ConfigMaps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaBundle {
    first: ObjectRef,
    /// Sorted, after the first.
    more: Arc<[ObjectRef]>,
    /// The Secret with the CRLs of the CAs, if certificates are compared with some.
    crl: Option<ObjectRef>,
}

impl CaBundle {
    /// The bundle of these objects, in whatever order; nothing if there is none.
    pub fn of(objects: impl IntoIterator<Item = ObjectRef>) -> Option<Self> {
        let mut objects: Vec<_> = objects.into_iter().collect();
        objects.sort();
        objects.dedup();
        let mut objects = objects.into_iter();
        Some(Self { first: objects.next()?, more: objects.collect(), crl: None })
    }

    /// The first of the objects.
    pub fn first(&self) -> &ObjectRef {
        &self.first
    }

    /// The same, without the certificates that the CRLs of a Secret revoke.
    #[must_use]
    pub fn revoked_by(self, crl: Option<ObjectRef>) -> Self {
        Self { crl, ..self }
    }

    /// The Secret with the CRLs, if there are some.
    pub fn crl(&self) -> Option<&ObjectRef> {
        self.crl.as_ref()
    }

    /// The objects, sorted, each once.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        std::iter::once(&self.first).chain(self.more.iter())
    }
}

impl From<ObjectRef> for CaBundle {
    fn from(first: ObjectRef) -> Self {
        Self { first, more: Arc::default(), crl: None }
    }
}

/// A subject alternative name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectAltName {
    /// A DNS name.
    Dns(Arc<str>),
    /// A URI, such as a SPIFFE ID.
    Uri(Arc<str>),
}

impl SubjectAltName {
    /// The name.
    pub fn text(&self) -> &Arc<str> {
        match self {
            SubjectAltName::Dns(name) | SubjectAltName::Uri(name) => name,
        }
    }
}

/// Active health checks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HealthCheck {
    /// What is sent.
    pub probe: Probe,
    /// The interval; at least a second.
    pub interval: Duration,
    /// The timeout; not zero.
    pub timeout: Duration,
    /// The unhealthy threshold: failures after which an endpoint is not used; not zero.
    pub unhealthy: u32,
    /// The healthy threshold: successes after which it is used again; not zero.
    pub healthy: u32,
}

/// The probe of a health check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// An HTTP request.
    Http {
        /// The path.
        path: PathAndQuery,
        /// The Host header.
        host: HeaderValue,
        /// The ranges of expected statuses, each from the first to before the second, from 100 to 600; 200 alone where there is
        /// none.
        statuses: Vec<(u16, u16)>,
        /// Changes of the headers of the request.
        headers: HeaderChanges,
    },
    /// A question of the gRPC health checking protocol; it is asked where the protocol of the cluster is HTTP/2.
    Grpc {
        /// The service that is asked about; empty for the server as a whole.
        service: Arc<str>,
        /// The Host header; the name of the cluster without.
        host: Option<HeaderValue>,
    },
    /// A TCP connection.
    Tcp,
}

/// Slow start: how the traffic of new endpoints is ramped up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlowStart {
    /// The window; not zero.
    pub window: Duration,
    /// How fast traffic grows.
    pub aggression: Aggression,
    /// The percentage to begin with, 0 to 100.
    pub least_percent: u32,
}

/// The aggression of slow start: 1 is linear, above that traffic grows sooner. Always above 0.
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
