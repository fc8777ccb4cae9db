//! What an object asks for at the level of listeners: a listener of its own, and where a listener without hosts leads.

use super::{ListenerId, PortProtocol};
use crate::{ClusterId, Host, Origin, route::IpFilter, route::Precedence};
use std::{net::IpAddr, sync::Arc};

/// A listener that an object asks for. Several may share a port if they speak the same protocol and differ in their host.
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
    /// Which clients may connect; all where nothing is said. TCP only.
    pub clients: Option<IpFilter>,
    /// The backends and their shares, none of them zero; connections are closed where there is none.
    pub clusters: Vec<(ClusterId, u32)>,
    /// The share of connections or datagrams whose backends cannot be used: they are closed or dropped.
    pub unavailable: u32,
}
