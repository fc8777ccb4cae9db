//! Connections that are not authenticated yet: few in all, fewer from one address.
//!
//! In: the address of each connection that is accepted. Out: a [`Handshake`] for the time until TLS has authenticated the client, which
//! is told when it has to make room. Whoever can reach the port can open connections, so they are counted apart from those
//! of clients: they can never take the place of one. A connection that is one too many ends the oldest of its own address, or
//! of the address that has the most: a new client needs some milliseconds for its handshake and gets them even from an
//! address that is flooding.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The connections whose handshake goes on.
pub(crate) struct Handshakes {
    /// How many there may be in all, and from one address.
    most: usize,
    most_of_one: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    tokens: HashMap<u64, CancellationToken>,
    /// Of each address, in the order in which they came.
    by_address: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// Addresses by how many they have.
    by_count: BTreeSet<(usize, IpAddr)>,
}

/// One connection's place; given back when it is dropped.
pub(super) struct Handshake {
    of: Arc<Handshakes>,
    address: IpAddr,
    id: u64,
    /// Cancelled when it has to make room.
    pub evicted: CancellationToken,
}

impl Handshakes {
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self { most, most_of_one, state: Mutex::default() }
    }

    /// Takes a connection in; another one may have to make room for it.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Handshake {
        let address = network(peer);
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        let evicted = CancellationToken::new();
        state.add(address, id, evicted.clone());
        if state.by_address.get(&address).is_some_and(|ids| ids.len() > self.most_of_one) {
            state.evict(address);
        }
        if state.tokens.len() > self.most
            && let Some((_, crowded)) = state.by_count.last().copied()
        {
            state.evict(crowded);
        }
        Handshake { of: self.clone(), address, id, evicted }
    }
}

impl State {
    fn add(&mut self, address: IpAddr, id: u64, token: CancellationToken) {
        self.tokens.insert(id, token);
        let ids = self.by_address.entry(address).or_default();
        self.by_count.remove(&(ids.len(), address));
        ids.insert(id);
        self.by_count.insert((ids.len(), address));
    }

    fn remove(&mut self, address: IpAddr, id: u64) -> Option<CancellationToken> {
        let token = self.tokens.remove(&id)?;
        let ids = self.by_address.get_mut(&address)?;
        self.by_count.remove(&(ids.len(), address));
        ids.remove(&id);
        if ids.is_empty() {
            self.by_address.remove(&address);
        } else {
            self.by_count.insert((ids.len(), address));
        }
        Some(token)
    }

    /// Ends the oldest of an address.
    fn evict(&mut self, address: IpAddr) {
        let oldest = self.by_address.get(&address).and_then(|ids| ids.first().copied());
        if let Some(token) = oldest.and_then(|id| self.remove(address, id)) {
            token.cancel();
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.of.state.lock().remove(self.address, self.id);
    }
}

/// What counts as one address: of IPv6 the network of 64 bits, all of which one machine may have.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn the_oldest_of_the_same_address_makes_room() {
        let handshakes = Arc::new(Handshakes::new(100, 2));
        let [first, second, third] = [1, 1, 1].map(|last| handshakes.admit(address(last)));
        assert!(first.evicted.is_cancelled() && !second.evicted.is_cancelled() && !third.evicted.is_cancelled());
        let other = handshakes.admit(address(2));
        drop(third);
        let fourth = handshakes.admit(address(1));
        assert!([&second, &fourth, &other].iter().all(|handshake| !handshake.evicted.is_cancelled()));
    }

    #[test]
    fn the_address_with_the_most_makes_room_for_others() {
        let handshakes = Arc::new(Handshakes::new(10, 8));
        let crowd: Vec<_> = (0..8).map(|_| handshakes.admit(address(1))).collect();
        let others: Vec<_> = (2..7).map(|last| handshakes.admit(address(last))).collect();
        assert!(others.iter().all(|handshake| !handshake.evicted.is_cancelled()));
        let gone: Vec<bool> = crowd.iter().map(|handshake| handshake.evicted.is_cancelled()).collect();
        assert_eq!(gone, [true, true, true, false, false, false, false, false]);
        drop((crowd, others));
        let state = handshakes.state.lock();
        assert!(state.tokens.is_empty() && state.by_address.is_empty() && state.by_count.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:10.0.0.1"), address(1));
    }
}
