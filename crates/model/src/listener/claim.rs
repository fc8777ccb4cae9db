//! What an object asks for at the level of listeners: a listener of its own, and where a listener without hosts leads.

use super::{ConnectionSettings, HttpOverrides, HttpSettings, ListenerId, PortProtocol};
use crate::{ClusterId, Host, ObjectRef, Origin, Timeout, route::IpFilter, route::Precedence};
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// A listener that an object asks for. Several may share a port if they speak the same protocol, differ in their host, and have
/// the same owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenerClaim {
    /// The listener.
    pub listener: ListenerId,
    /// The address it binds.
    pub address: IpAddr,
    /// The port it binds.
    pub port: u16,
    /// What is spoken there. Whether the connections of a TLS host are terminated or passed through is the host's own matter
    /// ([`crate::tls::TlsMode`]).
    pub protocol: PortProtocol,
    /// The hosts that it takes: a name, all names below one at any depth, or [`Host::Any`]. Of several listeners on a port the
    /// one with the narrowest host has a request.
    pub host: Host,
    /// The object whose listeners it shares ports with, and nobody else's: a narrower listener takes hosts from a wider one. Nothing
    /// only where the operator has bound the listener to the fleet: it shares ports with the listeners of settings and with all
    /// others that are bound.
    pub owner: Option<ObjectRef>,
    /// The TLS listener of this address and port whose plaintext connections it takes: it then speaks plaintext HTTP, and has no
    /// socket of its own.
    pub plaintext_of: Option<ListenerId>,
    /// What it has of its own where its port has settings.
    pub overrides: PortOverrides,
    /// Which of two claims wins that exclude each other.
    pub precedence: Precedence,
    /// Who wrote it.
    pub origin: Origin,
}

/// Settings that a listener has of its own; where it says nothing, those of the fleet hold. Listeners of one port agree on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortOverrides {
    /// How many proxies in front are believed about the client's address and the scheme.
    pub trusted_hops: Option<u32>,
    /// Whether connections begin with a PROXY protocol preamble.
    pub proxy_protocol: Option<bool>,
    /// How many requests one HTTP/2 or HTTP/3 connection may have in flight.
    pub max_streams: Option<u32>,
    /// What the names of its statistics begin with: letters, digits and `_`.
    pub stats_prefix: Option<Arc<str>>,
    /// The port that clients reach it at, where it is not the one that it binds.
    pub public_port: Option<u16>,
    /// What else holds for its requests.
    pub http: Option<Arc<HttpOverrides>>,
}

impl PortOverrides {
    /// The settings of a port with these.
    #[must_use]
    pub fn applied(&self, settings: HttpSettings) -> HttpSettings {
        let settings = match &self.http {
            Some(http) => http.applied(settings),
            None => settings,
        };
        HttpSettings {
            trusted_hops: self.trusted_hops.unwrap_or(settings.trusted_hops),
            proxy_protocol: self.proxy_protocol.unwrap_or(settings.proxy_protocol),
            max_streams: self.max_streams.unwrap_or(settings.max_streams),
            stats_prefix: self.stats_prefix.clone().or(settings.stats_prefix),
            ..settings
        }
    }

    /// The settings of connections of a port with these.
    #[must_use]
    pub fn of_connections(&self, settings: ConnectionSettings) -> ConnectionSettings {
        let buffer = self.http.as_ref().and_then(|http| http.connection_buffer);
        ConnectionSettings { buffer: buffer.unwrap_or(settings.buffer), ..settings }
    }
}

/// Where all connections or datagrams of a plain TCP or UDP listener go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StreamPiece {
    /// The listener.
    pub listener: ListenerId,
    /// Where they go.
    pub target: Arc<StreamTarget>,
    /// Which of two objects that ask for one listener wins.
    pub precedence: Precedence,
    /// Who wrote it.
    pub origin: Origin,
}

/// Backends of a plain TCP or UDP listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamTarget {
    /// Which clients may connect; all where nothing is said. A UDP listener cannot tell, and leads nowhere.
    pub ip_filter: Option<IpFilter>,
    /// The backends and their shares, none of them zero; connections are closed where there is none.
    pub clusters: Vec<(ClusterId, u32)>,
    /// The share of connections or datagrams whose backends cannot be used: they are closed or dropped.
    pub unavailable: u32,
    /// How long connections may be without a byte.
    pub idle: Timeout,
}

impl StreamTarget {
    /// The same, each backend once with all of its shares: proxies take one share for each.
    pub fn combined(self: &Arc<Self>) -> Arc<Self> {
        let mut shares: BTreeMap<&ClusterId, u32> = BTreeMap::new();
        for (cluster, share) in &self.clusters {
            let sum = shares.entry(cluster).or_default();
            *sum = sum.saturating_add(*share);
        }
        if shares.len() == self.clusters.len() {
            return Arc::clone(self);
        }
        let mut clusters = self.clusters.clone();
        clusters.retain_mut(|(cluster, share)| {
            let sum = shares.remove(&*cluster);
            *share = sum.unwrap_or_default();
            sum.is_some()
        });
        Arc::new(Self { clusters, ..Self::clone(self) })
    }
}
