//! Who has which address in a cluster, and the lan that they are on: a bridge in the network of the test process, with
//! the ways to all that is on the nodes.
//!
//! In: the cluster's number in this process, 0 to 7. Out: every address and range of it, so that clusters of one
//! process never meet and a reader finds the whole plan in one place:
//!
//! ```text
//! 198.18.B.0/24        lan: .1 the control plane and the tests, .11 and .12 the nodes      (B = 128 + 16 * number)
//! 198.18.(B+4).0/24    pods of the first node, the next /24 those of the second
//! 198.18.(B+8).0/24    load balancer addresses that a Service may ask for
//! 198.18.(B+9).0/24    load balancer addresses that are given to those who did not ask
//! 198.18.(B+15).0/30   the link to the host, for a cluster that a person uses
//! 198.19.(S).0/20      Services: .1 the API server, .10 DNS                                 (S = 16 * number)
//! ```

use std::net::Ipv4Addr;

use parking_lot::Mutex;

use super::{Error, shell};
use crate::StateDir;

/// How many clusters one process may have at once.
pub(super) const MOST: u8 = 8;

static TAKEN: Mutex<[bool; MOST as usize]> = Mutex::new([false; MOST as usize]);

/// The addresses of one cluster; they are its own until this is dropped.
#[derive(Debug)]
pub(super) struct Addresses {
    number: u8,
}

impl Addresses {
    /// Those of the first free number; none when all are in use.
    pub(super) fn claim() -> Option<Addresses> {
        let mut taken = TAKEN.lock();
        let number = taken.iter().position(|taken| !taken)?;
        taken[number] = true;
        Some(Addresses { number: number as u8 })
    }

    pub(super) fn number(&self) -> u8 {
        self.number
    }

    fn base(&self) -> u8 {
        128 + 16 * self.number
    }

    fn service(&self, low: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 19, 16 * self.number, low)
    }

    /// All that is not a Service.
    pub(super) fn all(&self) -> String {
        format!("198.18.{}.0/20", self.base())
    }

    /// Where the control plane is, and the way from every node to all that is not on it.
    pub(super) fn control_plane(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.base(), 1)
    }

    /// A node, counted from 0.
    pub(super) fn node(&self, node: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.base(), 11 + node)
    }

    /// The pods of a node.
    pub(super) fn pods(&self, node: u8) -> String {
        format!("198.18.{}.0/24", self.base() + 4 + node)
    }

    /// The pods of all nodes. The nodes themselves are not in it: what comes from outside of this range to a Service is
    /// given a node's address, or the answer of a pod on another node would never find back.
    pub(super) fn all_pods(&self) -> String {
        format!("198.18.{}.0/22", self.base() + 4)
    }

    /// All load balancer addresses.
    pub(super) fn load_balancers(&self) -> String {
        format!("198.18.{}.0/23", self.base() + 8)
    }

    /// The load balancer addresses that a Service may ask for.
    pub(super) fn requestable(&self) -> Vec<Ipv4Addr> {
        self.hosts(8)
    }

    /// The load balancer addresses for those who ask for none.
    pub(super) fn assignable(&self) -> Vec<Ipv4Addr> {
        self.hosts(9)
    }

    fn hosts(&self, above: u8) -> Vec<Ipv4Addr> {
        (1..=254).map(|low| Ipv4Addr::new(198, 18, self.base() + above, low)).collect()
    }

    /// The two ends of the link to the host: the host's and the cluster's.
    pub(super) fn uplink(&self) -> [Ipv4Addr; 2] {
        [1, 2].map(|low| Ipv4Addr::new(198, 18, self.base() + 15, low))
    }

    pub(super) fn services(&self) -> String {
        format!("{}/20", self.service(0))
    }

    /// The Service `kubernetes`: the API server from within pods.
    pub(super) fn api_service(&self) -> Ipv4Addr {
        self.service(1)
    }

    pub(super) fn dns(&self) -> Ipv4Addr {
        self.service(10)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        TAKEN.lock()[usize::from(self.number)] = false;
    }
}

/// The bridge; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Bridge {
    name: String,
}

impl Bridge {
    /// Services are reached through the first node: its kube-proxy knows them. Connections to a load balancer address
    /// spread over the nodes by port, as those of different clients would.
    pub(super) async fn create(addresses: &Addresses, state: &StateDir) -> Result<Bridge, Error> {
        let bridge = Bridge { name: format!("components{}", addresses.number()) };
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
