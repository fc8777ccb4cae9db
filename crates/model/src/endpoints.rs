//! The endpoints of one backend: addresses, zones and weights.

use std::{fmt, net::IpAddr, sync::Arc};

/// The transport protocol of a Service's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        })
    }
}

/// Which set of endpoints: a Service's port. TCP and UDP may share a number, as they do for DNS: these are two sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointsId {
    /// The Service's namespace.
    pub namespace: Arc<str>,
    /// The Service's name.
    pub service: Arc<str>,
    /// The Service's port number; its name in the EndpointSlices is found through the Service.
    pub port: u16,
    /// The port's protocol.
    pub transport: Transport,
}

impl EndpointsId {
    /// A TCP port.
    pub fn tcp(namespace: impl Into<Arc<str>>, service: impl Into<Arc<str>>, port: u16) -> Self {
        Self { namespace: namespace.into(), service: service.into(), port, transport: Transport::Tcp }
    }
}

/// `namespace/service/port`; for UDP with `udp:` before the port.
impl fmt::Display for EndpointsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if self.transport == Transport::Udp { "udp:" } else { "" };
        write!(f, "{}/{}/{transport}{}", self.namespace, self.service, self.port)
    }
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its zone; empty if unknown.
    pub zone: Arc<str>,
    /// Its weight among the endpoints of its zone, 1 to 128: a hash ring grows with the ratio of weights, to seconds of Envoy's
    /// time and hundreds of megabytes.
    pub weight: u32,
    /// The port that health checks use, if it is another.
    pub health_port: Option<u16>,
}

/// All endpoints that are to be used now, sorted and each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Endpoints {
    /// The endpoints.
    pub list: Vec<Endpoint>,
}
