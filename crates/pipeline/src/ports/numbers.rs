//! Who has the ports of each number.
//!
//! In: the listeners that somebody asks for, by port number. Out: [`PortsOfNumber`], a port for each address that is used, and a verdict for
//! each listener that may not be there. Whether two listeners exclude each other depends on their addresses, so one row decides about
//! all of a number.

use super::{ListenerRow, Listeners, PortRow, claimant, plaintext_port};
use crate::settings::{Bind, Fleets};
use engine::{Derived, Index, Reads, Table};
use model::{Code, FleetId, Host, ListenerId, PortId, Verdict};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A port number of a fleet's proxies: one of TCP and one of UDP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNumber {
    /// The fleet.
    pub fleet: FleetId,
    /// Whether it is one of UDP.
    pub is_udp: bool,
    /// The number.
    pub number: u16,
}

/// Listeners by their port number: whether two of them exclude each other depends on their addresses.
pub struct ListenersByNumber;

impl Index for ListenersByNumber {
    type Of = Listeners;
    type Key = PortNumber;
    const NAME: &'static str = "by port number";

    fn keys(id: &ListenerId, listener: &ListenerRow) -> impl IntoIterator<Item = PortNumber> {
        let (is_udp, number) = (listener.protocol.is_udp(), listener.bind.port);
        [PortNumber { fleet: id.fleet().clone(), is_udp, number }]
    }
}

/// The ports of one number, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortsOfNumber {
    /// The ports, each on another address.
    pub ports: BTreeMap<PortId, PortRow>,
    /// A verdict for each listener that may not be there; sorted.
    pub lost: Vec<Verdict>,
}

impl PortsOfNumber {
    /// Adds a listener for the plaintext connections of a TLS listener. Where that one is not in effect, it has been told.
    fn add_plaintext(&mut self, listener: &ListenerId, asked: &ListenerRow) {
        let is_of = |port: &PortRow| port.listeners.iter().any(|(id, _)| Some(id) == asked.plaintext_of.as_ref());
        let Some((tls, port)) = self.ports.iter_mut().find(|(_, port)| is_of(port)) else { return };
        if port.plaintext.is_some() {
            let why = format!("the plaintext connections of port {} belong to another listener", asked.bind.port);
            let origin = asked.claim.iter().map(|(_, origin)| origin.clone());
            self.lost.extend(origin.map(|origin| Verdict::new(Code::ListenerConflict, origin, why.clone())));
            return;
        }
        let id = plaintext_port(tls);
        port.plaintext = Some(id.clone());
        let row = PortRow {
            listeners: vec![(listener.clone(), asked.host.clone())],
            plaintext_of: Some(tls.clone()),
            ..PortRow::of(asked)
        };
        self.ports.insert(id, row);
    }
}

/// Who has the ports of each number.
pub struct PortNumbers;

impl Table for PortNumbers {
    type Key = PortNumber;
    type Value = PortsOfNumber;
    const NAME: &'static str = "port numbers";
}

impl Derived for PortNumbers {
    fn compute(&self, number: &PortNumber, reads: &mut Reads<'_>) -> Option<PortsOfNumber> {
        let keys: Vec<_> = reads.probe::<ListenersByNumber>(number).collect();
        let mut rows: Vec<(&ListenerId, &ListenerRow)> =
            keys.into_iter().filter_map(|key| Some((key, &**reads.get::<Listeners>(key)?))).collect();
        rows.sort_by(|a, b| (&a.1.claim, a.0).cmp(&(&b.1.claim, b.0)));
        let settings = reads.get::<Fleets>(&number.fleet).filter(|_| !number.is_udp);
        let pages = settings.into_iter().flat_map(|settings| settings.own_pages(&number.fleet));
        let pages: Vec<Bind> = pages.map(|(_, page)| page.bind()).collect();
        let (plaintext, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| row.plaintext_of.is_some());
        let mut all = PortsOfNumber { ports: BTreeMap::new(), lost: Vec::new() };
        let mut taken = Taken::default();
        for (listener, asked) in rows {
            let why = if asked.bind.port == 0 {
                Some("port 0 is not a port to listen on".to_owned())
            } else if pages.iter().any(|page| page.overlaps(asked.bind)) {
                Some(format!("port {} is used for Envoy's own pages", asked.bind.port))
            } else {
                taken.by_another_than(asked)
            };
            match (why, &asked.claim) {
                (None, _) => {
                    taken.add(listener, asked);
                    let port = all.ports.entry(asked.port.clone()).or_insert_with(|| PortRow::of(asked));
                    port.listeners.push((listener.clone(), asked.host.clone()));
                }
                (Some(why), Some((_, origin))) => {
                    all.lost.push(Verdict::new(Code::ListenerConflict, origin.clone(), why));
                }
                // There is nobody to tell: whoever reads settings refuses such (`Settings::check_binds`).
                (Some(_), None) => {}
            }
        }
        plaintext.into_iter().for_each(|(listener, asked)| all.add_plaintext(listener, asked));
        all.ports.values_mut().for_each(|port| port.listeners.sort());
        all.lost.sort();
        Some(all)
    }
}

/// Which addresses of a port number have a listener, and which hosts.
#[derive(Default)]
struct Taken<'r> {
    /// The first listener of each address, which is the strongest.
    addresses: BTreeMap<IpAddr, (&'r ListenerId, &'r ListenerRow)>,
    hosts: BTreeMap<(IpAddr, &'r Host), &'r ListenerId>,
}

impl<'r> Taken<'r> {
    /// A plain TCP or UDP listener has the address for itself, whatever its host.
    fn host(asked: &'r ListenerRow) -> (IpAddr, &'r Host) {
        (asked.bind.address, if asked.protocol.has_hosts() { &asked.host } else { &Host::Any })
    }

    fn add(&mut self, listener: &'r ListenerId, asked: &'r ListenerRow) {
        self.addresses.entry(asked.bind.address).or_insert((listener, asked));
        self.hosts.insert(Self::host(asked), listener);
    }

    /// Why a listener may not be there.
    fn by_another_than(&self, asked: &'r ListenerRow) -> Option<String> {
        let Bind { address, port } = asked.bind;
        let (lowest, highest): (IpAddr, IpAddr) = match address {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into()),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into()),
        };
        // Whoever has every address excludes whoever has one, and the other way round.
        let highest = if address == lowest { highest } else { lowest };
        if let Some((other, (first, _))) = self.addresses.range(lowest..=highest).find(|(other, _)| **other != address)
        {
            return Some(format!("port {port} of address {other} is used by listener {first}"));
        }
        let (first, winner) = self.addresses.get(&address)?;
        if asked.protocol != winner.protocol {
            return Some(format!("port {port} is used for {} by listener {first}", winner.protocol));
        }
        if asked.owner != winner.owner {
            let whose = claimant(&winner.claim);
            return Some(format!("port {port} belongs to listener {first} of {whose}, which does not share it"));
        }
        if asked.overrides != winner.overrides {
            return Some(format!("port {port} is used with other settings by listener {first}"));
        }
        let (_, host) = Self::host(asked);
        let rival = self.hosts.get(&(address, host))?;
        Some(format!("listener {rival} has port {port} and host {host}"))
    }
}

/// Port numbers by their ports.
pub struct NumbersByPort;

impl Index for NumbersByPort {
    type Of = PortNumbers;
    type Key = PortId;
    const NAME: &'static str = "by port";

    fn keys(_: &PortNumber, row: &PortsOfNumber) -> impl IntoIterator<Item = PortId> {
        row.ports.keys().cloned().collect::<Vec<_>>()
    }
}
