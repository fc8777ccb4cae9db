//! The endpoints of one backend: addresses, zones and weights.

use std::{fmt, net::IpAddr, sync::Arc};

/// Which set of endpoints: a Service's port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointsId {
    /// The Service's namespace.
    pub namespace: Arc<str>,
    /// The Service's name.
    pub service: Arc<str>,
    /// The Service's port number; its name in the EndpointSlices is found through the Service.
    pub port: u16,
}

impl fmt::Display for EndpointsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.service, self.port)
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
