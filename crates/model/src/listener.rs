//! A listener: an address that clients connect to, and what holds for every connection and request on it.

pub mod access_log;
pub mod connections;
pub mod settings;

pub use access_log::{AccessLog, AccessLogFormat, AccessLogLevel};
pub use connections::ConnectionSettings;
pub use settings::{Compression, HttpSettings, HttpVersions, ServerHeader};

use std::{fmt, net::IpAddr, sync::Arc};

/// Which listener of a fleet, by name: `ingress_http`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub Arc<str>);

impl ListenerId {
    /// The listener that Ingress and HTTPProxy use in the clear.
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
    /// HTTP in the clear.
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
