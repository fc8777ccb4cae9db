//! What a fleet should be: plain values, so that whoever knows the Gateways can say it without knowing Kubernetes' workloads.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use model::FleetName;

/// A fleet that should exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSpec {
    /// The namespace and the name of the Gateway.
    pub name: FleetName,
    /// The Gateway as the owner of what is created.
    pub owner: Owner,
    /// Labels for everything that is created (`spec.infrastructure.labels`).
    pub labels: BTreeMap<String, String>,
    /// Annotations for everything that is created (`spec.infrastructure.annotations`).
    pub annotations: BTreeMap<String, String>,
    /// The ports of its listeners.
    pub ports: BTreeSet<Port>,
    /// The address that its load balancer is asked for, if not any.
    pub address: Option<IpAddr>,
}

/// The object that a fleet belongs to, beside its namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its group and version, such as `gateway.networking.k8s.io/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its uid: an object of the same name that is created later has another fleet.
    pub uid: String,
}

/// A port that clients reach the fleet by. Proxies listen on the same number: pods may bind any port, see
/// [`crate::objects::deployment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// The number.
    pub port: u16,
    /// TCP or UDP.
    pub transport: Transport,
}

/// The transport protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// TCP: HTTP, TLS, plain TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// As a Service writes it.
    pub fn protocol(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        }
    }
}

/// The ports in a proxy's pod that are not for clients. They make way for listeners: a Gateway may have any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Readiness and metrics of Envoy, a listener that comes from Sesame.
    pub stats: u16,
    /// The shutdown manager.
    pub shutdown: u16,
}

impl Pages {
    /// The numbers from which the first that no listener has are taken. Few Gateways have a listener here: one that comes later
    /// moves the pages, and that restarts the proxies.
    const FIRST: u16 = 19001;

    /// The pages of a fleet with these listeners.
    pub fn beside(ports: &BTreeSet<Port>) -> Self {
        let mut free = (Self::FIRST..=u16::MAX)
            .chain(1024..Self::FIRST)
            .filter(|port| !ports.contains(&Port { port: *port, transport: Transport::Tcp }));
        // A Gateway has far fewer listeners than there are ports.
        let mut next = || free.next().unwrap_or(Self::FIRST);
        Self { stats: next(), shutdown: next() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(ports: impl IntoIterator<Item = u16>) -> BTreeSet<Port> {
        ports.into_iter().map(|port| Port { port, transport: Transport::Tcp }).collect()
    }

    #[test]
    fn a_listener_has_the_port_that_it_asks_for() {
        assert_eq!(Pages::beside(&tcp([80, 8002, 8090])), Pages { stats: 19001, shutdown: 19002 });
        assert_eq!(Pages::beside(&tcp([19001, 19003])), Pages { stats: 19002, shutdown: 19004 });
        assert_eq!(Pages::beside(&tcp(19001..=u16::MAX)), Pages { stats: 1024, shutdown: 1025 });
        let udp = [Port { port: 19001, transport: Transport::Udp }].into();
        assert_eq!(Pages::beside(&udp), Pages { stats: 19001, shutdown: 19002 });
    }
}
