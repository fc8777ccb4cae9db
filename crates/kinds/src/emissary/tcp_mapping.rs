//! TCPMapping: where TCP connections go, by port and server name.

use super::{AmbassadorId, mapping::CircuitBreaker};
use crate::{Checked, Meta};
use serde::Deserialize;

/// Where TCP connections go, by port and server name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TcpMapping {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: TcpMappingSpec,
}

/// The specification of a TCPMapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TcpMappingSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The port; required.
    pub port: Checked<Option<i64>>,
    /// The server name that clients ask for; every connection if absent.
    pub host: Checked<Option<Box<str>>>,
    /// The address that is listened on; all if absent.
    pub address: Checked<Option<Box<str>>>,
    /// The service; required.
    pub service: Checked<Option<Box<str>>>,
    /// The TLSContext of connections to the service.
    pub tls: Checked<Option<Box<str>>>,
    /// The resolver that finds the endpoints of the service.
    pub resolver: Checked<Option<Box<str>>>,
    /// The share of connections in percent.
    pub weight: Checked<Option<i64>>,
    /// Limits of connections.
    pub circuit_breakers: Checked<Option<Box<[CircuitBreaker]>>>,
    /// Keeps the cluster apart from those of other mappings to the same service.
    pub cluster_tag: Checked<Option<Box<str>>>,
    /// IPv4 addresses are used.
    pub enable_ipv4: Checked<Option<bool>>,
    /// IPv6 addresses are used.
    pub enable_ipv6: Checked<Option<bool>>,
    /// Milliseconds that a connection may be idle, as text.
    pub idle_timeout_ms: Checked<Option<Box<str>>>,
    /// The name of the cluster in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
}
