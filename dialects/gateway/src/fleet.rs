//! The fleet of a Gateway: the shared one, or one of its own.
//!
//! In: a Gateway and its listeners. Out: which fleet serves it, and for one of its own what it must be: whose it is, the ports that
//! clients connect to, and the labels and annotations that go onto everything that is created.

use crate::{Listeners, Settings, gateway};
use kinds::Gateway;
use model::{FleetId, FleetName, PortProtocol, status::Address};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

/// A fleet that serves one Gateway and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFleet {
    /// The namespace and name of the Gateway.
    pub name: FleetName,
    /// Its uid.
    pub uid: Box<str>,
    /// The labels of its infrastructure.
    pub labels: BTreeMap<String, String>,
    /// The annotations of its infrastructure.
    pub annotations: BTreeMap<String, String>,
    /// The ports of its listeners that are served, and whether they are for UDP.
    pub ports: BTreeSet<(u16, bool)>,
    /// The address that its load balancer is to have, if not any.
    pub address: Option<IpAddr>,
}

/// Which fleet serves a Gateway.
pub fn of(gateway: &Gateway, settings: &Settings) -> FleetId {
    let name = || FleetName::new(&gateway.meta.namespace, &gateway.meta.name);
    let is_own = settings.own_fleets && !settings.is_bound(&gateway.meta);
    if is_own { FleetId::Named(name().into()) } else { FleetId::Shared }
}

/// The fleet of a Gateway, if it has one of its own.
pub fn own(gateway: &Gateway, listeners: &Listeners, settings: &Settings) -> Option<OwnFleet> {
    let FleetId::Named(name) = of(gateway, settings) else { return None };
    let infrastructure = gateway.spec.infrastructure.ok().and_then(Option::as_ref);
    let served = listeners.listeners.iter().filter(|listener| listener.is_served());
    let ports = served.filter_map(|listener| {
        let protocol = listener.protocol?.on_port();
        Some((listener.port, protocol == PortProtocol::Udp))
    });
    Some(OwnFleet {
        name: FleetName::clone(&name),
        uid: gateway.meta.uid.to_string().into(),
        labels: infrastructure.map(|it| texts(&it.labels)).unwrap_or_default(),
        annotations: infrastructure.map(|it| texts(&it.annotations)).unwrap_or_default(),
        ports: ports.collect(),
        address: gateway::requested_address(gateway),
    })
}

/// The entries of a map that are texts.
fn texts(map: &kinds::TextMap) -> BTreeMap<String, String> {
    map.iter().filter_map(|(key, value)| Some((key.to_owned(), value.ok()?.to_string()))).collect()
}

/// What is known of a Gateway's own fleet outside of its specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetState {
    /// The uid of the Gateway that it is about.
    pub uid: Box<str>,
    /// Where clients reach it.
    pub addresses: Vec<Address>,
    /// Whether Kubernetes counts any of its proxies as ready: only these get connections of clients.
    pub has_ready_proxy: bool,
    /// Why its proxies cannot be created or changed, with the code.
    pub problem: Option<Box<str>>,
}
