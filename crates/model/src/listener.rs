//! Fleets, ports and listeners.
//!
//! A [fleet](FleetId) is a set of Envoys that get the same configuration. A [port](Port) is a socket of theirs that clients
//! connect to: one Envoy listener, with what holds for every connection and request on it. A [listener](ListenerId) is what
//! routes and certificates are attached to; it stands on one port, and may share it with others ([`claim`]).

pub mod access_log;
pub mod access_log_format;
pub mod authorization;
pub mod claim;
pub mod overrides;
pub mod settings;
pub mod tracing;

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, LazyLock},
};

pub use access_log::{AccessLog, AccessLogFormat, AccessLogLevel, AccessLogServer, AccessLogServers, LoggedHeaders};
pub use authorization::AuthorizationService;
pub use claim::{ListenerClaim, PortOverrides, StreamPiece, StreamTarget};
pub use overrides::HttpOverrides;
pub use settings::{
    ClientCertHeader, Compression, GrpcMethods, GrpcStats, Gzip, HeadersWithUnderscores, HttpSettings, HttpVersions,
    LocalReplyBody, RateLimitService, ServerHeader,
};
pub use tracing::{Exporter, Percent, SpanTag, TagValue, Tracer, Tracing, Zipkin};

/// Which listener, by its fleet and its name there: `ingress_http` of the shared fleet. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(Arc<InFleet>);

/// Which socket of a fleet's proxies, by the name of the Envoy listener that binds it. Several listeners may share one. Cheap
/// to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(Arc<InFleet>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct InFleet {
    fleet: FleetId,
    name: Arc<str>,
}

macro_rules! in_fleet {
    ($($id:ident)*) => {
        $(
            impl $id {
                /// Its fleet.
                pub fn fleet(&self) -> &FleetId {
                    &self.0.fleet
                }

                /// Its name, unique in the fleet.
                pub fn name(&self) -> &Arc<str> {
                    &self.0.name
                }
            }

            /// The name alone: names of resources are per fleet.
            impl fmt::Display for $id {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.0.name)
                }
            }
        )*
    };
}

in_fleet!(ListenerId PortId);

impl PortId {
    /// The one of this name in a fleet.
    pub fn new(fleet: FleetId, name: impl Into<Arc<str>>) -> Self {
        Self(Arc::new(InFleet { fleet, name: name.into() }))
    }
}

impl ListenerId {
    /// The one of this name in a fleet. It becomes a part of names of resources: anything but letters, digits and `._/-` is
    /// written as `~` and its number, so that no tenant's listener has the name of something else.
    pub fn new(fleet: FleetId, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        if name.chars().all(is_plain) {
            return Self(Arc::new(InFleet { fleet, name }));
        }
        let mut escaped = String::new();
        for character in name.chars() {
            match character {
                plain if is_plain(plain) => escaped.push(plain),
                other => escaped.push_str(&format!("~{:x}~", u32::from(other))),
            }
        }
        Self(Arc::new(InFleet { fleet, name: escaped.into() }))
    }

    /// The plaintext listener of the shared fleet.
    pub fn http() -> Self {
        static HTTP: LazyLock<ListenerId> = LazyLock::new(|| ListenerId::new(FleetId::Shared, "ingress_http"));
        HTTP.clone()
    }

    /// The TLS listener of the shared fleet.
    pub fn https() -> Self {
        static HTTPS: LazyLock<ListenerId> = LazyLock::new(|| ListenerId::new(FleetId::Shared, "ingress_https"));
        HTTPS.clone()
    }
}

/// What is spoken on a port. Listeners of one port agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortProtocol {
    /// Plaintext HTTP.
    Http,
    /// TLS: the server name that the client asks for decides whether a connection is terminated or passed through, and with
    /// which certificate.
    Tls,
    /// Plain TCP.
    Tcp,
    /// UDP.
    Udp,
    /// HTTP/3, over QUIC. The server name decides about the certificate, as with TLS over TCP; every connection is terminated.
    Quic,
}

impl PortProtocol {
    /// Whether requests or connections are told apart by their host. Otherwise a port has one listener.
    pub fn has_hosts(self) -> bool {
        matches!(self, PortProtocol::Http | PortProtocol::Tls | PortProtocol::Quic)
    }

    /// Whether connections are encrypted, so that hosts have certificates and filter chains.
    pub fn is_tls(self) -> bool {
        matches!(self, PortProtocol::Tls | PortProtocol::Quic)
    }

    /// Whether it has a port of UDP; otherwise it has one of TCP.
    pub fn is_udp(self) -> bool {
        matches!(self, PortProtocol::Udp | PortProtocol::Quic)
    }
}

impl fmt::Display for PortProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortProtocol::Http => "HTTP",
            PortProtocol::Tls => "TLS",
            PortProtocol::Tcp => "TCP",
            PortProtocol::Udp => "UDP",
            PortProtocol::Quic => "HTTP/3",
        })
    }
}

/// One port: an Envoy listener, with what holds for its connections and requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// Its fleet and name.
    pub id: PortId,
    /// The address it binds.
    pub address: IpAddr,
    /// The port it binds.
    pub port: u16,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// What holds for all connections.
    pub connections: ConnectionSettings,
    /// What holds for all requests.
    pub http: HttpSettings,
    /// How requests are traced, if they are.
    pub tracer: Option<Tracer>,
}

/// What TLS 1.2 may use, as Contour has it: forward secrecy and authenticated encryption only.
pub const CIPHERS: [&str; 4] = [
    "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
    "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
];

/// What holds for all connections of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionSettings {
    /// What a connection may hold in memory in each direction before its peer is made to wait, in bytes.
    pub buffer: u32,
    /// Whether connections are spread evenly over the threads of a proxy, at the price of a lock.
    pub even_balance: bool,
    /// How many connections are accepted at a time.
    pub accepted_at_once: Option<u32>,
    /// The type of service of IPv4 packets; zero for none.
    pub type_of_service: u8,
    /// The traffic class of IPv6 packets; zero for none.
    pub traffic_class: u8,
    /// What TLS 1.2 may use, in the words of Envoy.
    pub ciphers: Vec<Arc<str>>,
    /// The curves of key exchange; Envoy's own if none is named.
    pub curves: Vec<Arc<str>>,
    /// Whether clients are told apart by JA3.
    pub ja3: bool,
    /// Whether clients are told apart by JA4.
    pub ja4: bool,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            buffer: 32 * 1024,
            even_balance: false,
            accepted_at_once: None,
            type_of_service: 0,
            traffic_class: 0,
            ciphers: CIPHERS.map(Arc::from).to_vec(),
            curves: Vec::new(),
            ja3: false,
            ja4: false,
        }
    }
}

/// A set of Envoys that get the same configuration. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FleetId {
    /// The fleet that serves every object that has none of its own.
    #[default]
    Shared,
    /// A fleet with a name.
    Named(Arc<FleetName>),
}

impl FleetId {
    /// The fleet of this name.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self::Named(Arc::new(FleetName::new(namespace, name)))
    }
}

impl fmt::Display for FleetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetId::Shared => f.write_str("shared"),
            FleetId::Named(name) => write!(f, "{name}"),
        }
    }
}

/// The name of a fleet that is not the shared one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetName {
    /// Where the fleet's proxies live.
    pub namespace: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

impl FleetName {
    /// A fleet by its two names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
