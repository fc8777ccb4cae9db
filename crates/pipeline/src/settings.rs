//! What the operator sets: fixed while a pipeline lives.

use envoy::cluster::ClusterSettings;
pub use envoy::listener::tls::Certificates;
pub use envoy::packing::Packing;
use model::{
    Listener, ListenerId,
    listener::{ConnectionSettings, HttpSettings, Security},
};
pub use resolve::ForeignProtection;
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use crate::server_name::ByServerName;

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

impl Bind {
    /// Every address of the machine.
    pub fn any(port: u16) -> Self {
        Self { address: Ipv4Addr::UNSPECIFIED.into(), port }
    }
}

/// What the operator sets. The defaults are Contour's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where proxies listen for HTTP.
    pub http: Bind,
    /// Where proxies listen for HTTPS.
    pub https: Bind,
    /// Where proxies answer probes and scrapers.
    pub stats: Bind,
    /// The port on loopback at which proxies show their read-only admin pages; 0 for none.
    pub admin_port: u16,
    /// What holds for connections of clients.
    pub connections: ConnectionSettings,
    /// What holds for requests of HTTP.
    pub http_settings: HttpSettings,
    /// What holds for requests of HTTPS.
    pub https_settings: HttpSettings,
    /// Which virtual hosts travel together. Requests are answered alike; only the cost of an edit differs.
    pub packing: Packing,
    /// How Envoy loads the certificates of TLS hosts. Unless each has a chain, the xDS server needs [`Settings::resolver`].
    pub certificates: Certificates,
    /// What holds for every cluster.
    pub cluster: ClusterSettings,
    /// What objects may refer to.
    pub resolve: resolve::Settings,
    /// What holds for Ingresses.
    pub ingress: dialect_ingress::Settings,
    /// What holds for HTTPProxies.
    pub http_proxy: dialect_httpproxy::Settings,
    /// Whether Secrets are brought when something refers to them ([`crate::Pipeline::secret_refs`]). One that is not there has then
    /// not been read yet, until [`crate::Pipeline::set_fetch_result`] says otherwise; without this it does not exist.
    pub fetched_secrets: bool,
    /// Routes of exactly this path are made such that proxies refuse them; for tests only (see [`crate::spoil`]).
    pub spoil: Option<Box<str>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            http: Bind::any(8080),
            https: Bind::any(8443),
            stats: Bind::any(8002),
            admin_port: 9001,
            connections: ConnectionSettings::default(),
            http_settings: HttpSettings::default(),
            https_settings: HttpSettings::default(),
            packing: Packing::default(),
            certificates: Certificates::default(),
            cluster: ClusterSettings::default(),
            resolve: resolve::Settings::default(),
            ingress: dialect_ingress::Settings::default(),
            http_proxy: dialect_httpproxy::Settings::default(),
            fetched_secrets: false,
            spoil: None,
        }
    }
}

impl Settings {
    /// Finds secrets for the xDS server that proxies ask for by other names than theirs.
    pub fn resolver(&self) -> Option<Arc<dyn xds::Resolver>> {
        match self.certificates {
            Certificates::PerChain => None,
            Certificates::Auto | Certificates::OnDemand => Some(Arc::new(ByServerName)),
        }
    }

    /// What an Envoy must be to load certificates as they are set to.
    pub fn required_envoy(&self) -> Option<xds::RequiredEnvoy> {
        let why = "on-demand certificates need it; upgrade the proxy or run Sesame with --certificates=per-chain";
        (self.certificates != Certificates::PerChain).then_some(xds::RequiredEnvoy { version: (1, 38), why })
    }

    /// The plaintext listener that Ingress and HTTPProxy share.
    pub fn http_listener(&self) -> Listener {
        Listener {
            id: ListenerId::http(),
            address: self.http.address,
            port: self.http.port,
            security: Security::Plain,
            connections: self.connections.clone(),
            http: self.http_settings.clone(),
        }
    }

    /// The TLS listener that they share.
    pub fn https_listener(&self) -> Listener {
        Listener {
            id: ListenerId::https(),
            address: self.https.address,
            port: self.https.port,
            security: Security::Tls,
            connections: self.connections.clone(),
            http: self.https_settings.clone(),
        }
    }
}
