//! A fleet is a set of Envoys that get the same configuration; a listener is an address of theirs that clients connect
//! to, and what holds for every connection and request on it.

pub mod settings;

use std::{fmt, net::IpAddr, sync::Arc};

pub use settings::{
    AccessLog, AccessLogFormat, AccessLogLevel, Compression, HeadersWithUnderscores, HttpSettings, HttpVersions,
    ServerHeader,
};

/// Which listener of a fleet, by name: `ingress_http`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub Arc<str>);

impl ListenerId {
    /// The listener that Ingress and HTTPProxy use for plaintext HTTP.
    pub fn http() -> Self {
        Self("ingress_http".into())
    }

    /// The listener that Ingress and HTTPProxy use over TLS.
    pub fn https() -> Self {
        Self("ingress_https".into())
    }

    /// Not a listener of its own, but the part of [`ListenerId::https`] for clients that name no host, or one that it does
    /// not know.
    pub fn fallback() -> Self {
        Self("ingress_fallbackcert".into())
    }
}

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Security {
    /// Plaintext HTTP.
    Plain,
    /// TLS; the server name that the client asks for decides about the certificate.
    Tls,
}

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listener {
    /// Its name.
    pub id: ListenerId,
    /// The address it binds.
    pub address: IpAddr,
    /// The port it binds.
    pub port: u16,
    /// In the clear or TLS.
    pub security: Security,
    /// What holds for all connections.
    pub connections: ConnectionSettings,
    /// What holds for all requests.
    pub http: HttpSettings,
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

/// The name of a fleet: the shared one, or that of a Gateway whose proxies Sesame provisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetId {
    /// Where the fleet's proxies live.
    pub namespace: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

impl FleetId {
    /// A fleet by its two names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for FleetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
