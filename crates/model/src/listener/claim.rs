//! What an object asks for at the level of listeners: a listener of its own, and where a listener without hosts leads.

use super::{ListenerId, PortProtocol};
use crate::{ClusterId, Host, ObjectRef, Origin, route::IpFilter, route::Precedence};
use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

/// A listener that an object asks for. Several may share a port if they speak the same protocol, differ in their host, and have
/// the same owner.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Which of two claims wins that exclude each other.
    pub precedence: Precedence,
    /// Who wrote it.
    pub origin: Origin,
}

/// Where all connections or datagrams of a plain TCP or UDP listener go.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub clients: Option<IpFilter>,
    /// The backends and their shares, none of them zero; connections are closed where there is none.
    pub clusters: Vec<(ClusterId, u32)>,
    /// The share of connections or datagrams whose backends cannot be used: they are closed or dropped.
    pub unavailable: u32,
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
