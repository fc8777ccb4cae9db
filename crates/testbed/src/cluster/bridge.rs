//! The lan of a cluster: a bridge in the network of the test process, with the ways to all that is on the nodes.

use super::Error;
use super::addresses::Addresses;
use super::run::shell;
use crate::StateDir;

/// The bridge; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Bridge {
    name: String,
}

impl Bridge {
    /// Services are reached through the first node: its kube-proxy knows them. Connections to a load balancer address
    /// spread over the nodes by port, as those of different clients would.
    pub(super) async fn create(addresses: &Addresses, state: &StateDir) -> Result<Bridge, Error> {
        let bridge = Bridge { name: format!("bed{}", addresses.number()) };
        let script = format!(
            "ip link add {name} type bridge
             ip addr add {own}/24 dev {name}
             ip link set {name} up
             ip route add {services} via {first}
             echo 1 >/proc/sys/net/ipv4/ip_forward
             echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy",
            name = bridge.name,
            own = addresses.control_plane(),
            services = addresses.services(),
            first = addresses.node(0),
        );
        shell("bridge", script, state).await?;
        Ok(bridge)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It goes with the network of the test process at the latest.
        let _ = std::process::Command::new("ip").args(["link", "del", &self.name]).output();
    }
}
