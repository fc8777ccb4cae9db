//! TLS as clients see it: certificates, versions, and what makes two hosts share a filter chain.

pub mod client_validation;

pub use client_validation::ClientValidation;

use crate::{ClusterId, Host, ListenerId, ObjectRef, Timeout, route::IpFilter};
use std::{fmt, sync::Arc};

/// The cipher suites that versions below 1.3 may be told to use, in the words of Envoy; a group in brackets is chosen from by the client.
pub const CIPHER_SUITES: [&str; 16] = [
    "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
    "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "AES128-GCM-SHA256",
    "AES128-SHA",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES256-GCM-SHA384",
    "AES256-SHA",
];

/// The curves of key exchange, in the words of Envoy.
pub const CURVES: [&str; 5] = ["X25519", "P-256", "P-384", "P-521", "X25519MLKEM768"];

/// Which certificate, with its key, a TLS host shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateRef {
    /// Each host of the chain shows its own: Envoy asks for it by the server name.
    OnDemand,
    /// One that Sesame signs itself for this host, on a machine without a cluster.
    SelfSigned(Host),
    /// The one in this Secret.
    Secret(ObjectRef),
}

impl CertificateRef {
    /// The Secret that it is in, if it is in one.
    pub fn secret(&self) -> Option<&ObjectRef> {
        match self {
            CertificateRef::Secret(secret) => Some(secret),
            CertificateRef::OnDemand | CertificateRef::SelfSigned(_) => None,
        }
    }
}

/// Two parts with a `/` between them. No namespace has a `(`, so a Secret is never taken for one of the others.
impl fmt::Display for CertificateRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateRef::OnDemand => f.write_str("(on-demand)/server-name"),
            CertificateRef::SelfSigned(host) => write!(f, "(self-signed)/{host}"),
            CertificateRef::Secret(ObjectRef { namespace, name, .. }) => write!(f, "{namespace}/{name}"),
        }
    }
}

/// A protocol version. Those below 1.2 are spoken where an object asks for them by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.0
    V1_0,
    /// TLS 1.1
    V1_1,
    /// TLS 1.2
    V1_2,
    /// TLS 1.3
    V1_3,
}

impl TlsVersion {
    /// Reads `1.2` or `1.3`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "1.2" => Some(TlsVersion::V1_2),
            "1.3" => Some(TlsVersion::V1_3),
            _ => None,
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsVersion::V1_0 => "1.0",
            TlsVersion::V1_1 => "1.1",
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        })
    }
}

/// The versions that may be spoken, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlsVersions {
    /// The lowest.
    pub lowest: TlsVersion,
    /// The highest.
    pub highest: TlsVersion,
}

impl Default for TlsVersions {
    fn default() -> Self {
        Self { lowest: TlsVersion::V1_2, highest: TlsVersion::V1_3 }
    }
}

impl TlsVersions {
    /// What is left of these within others. It may be nothing: see [`TlsVersions::is_empty`].
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self { lowest: self.lowest.max(other.lowest), highest: self.highest.min(other.highest) }
    }

    /// Whether there is no version in it.
    pub fn is_empty(self) -> bool {
        self.lowest > self.highest
    }
}

/// What a handshake agrees on besides the version. What is empty is as the settings of the listener, or of all clusters, have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlsParameters {
    /// Of [`CIPHER_SUITES`].
    pub ciphers: Vec<Arc<str>>,
    /// Of [`CURVES`].
    pub curves: Vec<Arc<str>>,
    /// The application protocols, of 1 to 255 bytes each.
    pub alpn: Vec<Arc<str>>,
}

impl TlsParameters {
    /// `None` if it says nothing.
    pub fn shared(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
}

impl fmt::Display for TlsParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ciphers, curves, alpn } = self;
        write!(f, "ciphers:{ciphers:?} curves:{curves:?} alpn:{alpn:?}")
    }
}

/// Everything that is settled before a request is read. Hosts for which all of it is equal share one filter chain, so
/// that a connection made for one may carry requests for the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Termination {
    /// The certificate that is shown.
    pub certificate: CertificateRef,
    /// Certificates that are shown to clients whose names or key types fit them better; mostly none.
    pub additional: Arc<[CertificateRef]>,
    /// The lowest version that is spoken.
    pub lowest: TlsVersion,
    /// The highest version that is spoken.
    pub highest: TlsVersion,
    /// Which client certificates are accepted; none is asked for where nothing is said.
    pub clients: Option<Arc<ClientValidation>>,
    /// Ciphers, curves and protocols, where they are not those of the listener.
    pub parameters: Option<Arc<TlsParameters>>,
}

impl Termination {
    /// A termination that shows one certificate and asks clients for none.
    pub fn new(certificate: CertificateRef, versions: TlsVersions) -> Self {
        let TlsVersions { lowest, highest } = versions;
        Self { certificate, additional: Arc::default(), lowest, highest, clients: None, parameters: None }
    }

    /// All certificates, the one that is shown where none fits better first.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateRef> {
        std::iter::once(&self.certificate).chain(&*self.additional)
    }

    /// The same, whatever certificate is shown: what hosts share a chain by when proxies ask for certificates by the name
    /// that a client asks for.
    pub fn on_demand(&self) -> Self {
        Self { certificate: CertificateRef::OnDemand, additional: Arc::default(), ..self.clone() }
    }

    /// Whether each host shows its own certificate.
    pub fn is_on_demand(&self) -> bool {
        self.certificate == CertificateRef::OnDemand
    }
}

/// A name from identity: the certificates and the settings, never a number or an order.
impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, certificate) in self.certificates().enumerate() {
            write!(f, "{}{certificate}", if at > 0 { "+" } else { "" })?;
        }
        write!(f, "/tls{}-{}", self.lowest, self.highest)?;
        self.parameters.iter().try_for_each(|parameters| write!(f, "/{parameters}"))?;
        self.clients.iter().try_for_each(|clients| write!(f, "/{clients}"))
    }
}

/// A filter chain of a TLS listener whose requests are looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId {
    /// The listener.
    pub listener: ListenerId,
    /// What the connections of the chain have in common.
    pub termination: Arc<Termination>,
    /// Whether it is for clients that name no host, or one that the listener does not know.
    pub is_fallback: bool,
}

/// Which connections of a TLS port may carry the requests for a host. The others are answered with 421. And where else its clients may
/// connect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Admission {
    /// Those that took one of these filter chains, by name. None where the connections of the host are passed through.
    pub chains: Vec<Arc<str>>,
    /// Of the first chain only those whose client named the host itself: its certificates are shown on demand, and its other
    /// hosts have certificates of their own.
    pub by_server_name: bool,
    /// The port at which the host is served by HTTP/3 as well: responses tell clients.
    pub http3_port: Option<u16>,
}

/// What is done with the connections of a TLS host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TlsMode {
    /// They are decrypted, and their requests are looked up among the hosts of the port.
    Http(Termination),
    /// They go to a backend as a stream of bytes.
    Tcp(Arc<TcpProxy>),
}

impl TlsMode {
    /// Its connections are ended.
    pub fn closed() -> Self {
        TlsMode::Tcp(Arc::new(TcpProxy::closed()))
    }

    /// How the requests of the host are decrypted, where requests are looked at.
    pub fn http(&self) -> Option<&Termination> {
        match self {
            TlsMode::Http(termination) => Some(termination),
            TlsMode::Tcp(_) => None,
        }
    }

    /// How connections are decrypted, where they are.
    pub fn termination(&self) -> Option<&Termination> {
        match self {
            TlsMode::Http(termination) => Some(termination),
            TlsMode::Tcp(proxy) => proxy.termination.as_ref(),
        }
    }

    /// The certificate that is shown, where connections are decrypted.
    pub fn certificate(&self) -> Option<&CertificateRef> {
        self.termination().map(|termination| &termination.certificate)
    }

    /// Where connections go, where they are passed on.
    pub fn tcp(&self) -> Option<&Arc<TcpProxy>> {
        match self {
            TlsMode::Http(_) => None,
            TlsMode::Tcp(proxy) => Some(proxy),
        }
    }
}

/// Where the connections of a host go without being looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TcpProxy {
    /// How they are decrypted; nothing where the backend has the certificate.
    pub termination: Option<Termination>,
    /// Which clients may connect; all where nothing is said.
    pub ip_filter: Option<IpFilter>,
    /// The backends and their shares, none of them zero; connections are ended where there is none.
    pub clusters: Vec<(ClusterId, u32)>,
    /// The share of connections whose backends cannot be used: they are ended.
    pub unavailable: u32,
    /// How long they may be without a byte.
    pub idle: Timeout,
}

impl TcpProxy {
    /// Connections that are ended.
    pub fn closed() -> Self {
        Self { termination: None, ip_filter: None, clusters: Vec::new(), unavailable: 0, idle: Timeout::Default }
    }
}

/// The connections of one TLS host that are passed on: a filter chain of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TcpChain {
    /// The host.
    pub host: Host,
    /// How they are decrypted, if at all.
    pub termination: Option<Termination>,
    /// Which clients may connect; all where nothing is said.
    pub ip_filter: Option<IpFilter>,
}

/// The hosts of a listener that share a filter chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// What they have in common.
    pub termination: Termination,
    /// The hosts whose names the listener lists, sorted; [`Host::Any`] has every name that no chain lists, and clients that send
    /// none. Empty for a chain of the fallback certificate.
    pub hosts: Vec<Host>,
    /// Whether the chain also takes every name that no chain lists. Its certificates tell which hosts there are.
    pub takes_unlisted: bool,
}

/// The certificate and key behind a [`CertificateRef`], checked: the chain parses, the key belongs to it and is strong enough.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyPair {
    /// The chain, leaf first, PEM.
    pub chain: Arc<str>,
    /// The private key, PEM.
    pub key: Arc<str>,
}

/// A key is never printed.
impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}
