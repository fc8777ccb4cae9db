//! Hosts: what all units ask for together, and where each virtual host is looked up.

use crate::units::{HostKey, TlsByHost, Units, UnitsByHost};
use assemble::{tls, virtual_host};
use engine::{Derived, Index, Reads, Table};
use model::{
    Fqdn, Host, ListenerId, ObjectRef, Route, RouteTableId,
    tls::{Chain, TcpProxy, Termination},
};
use std::sync::Arc;

/// The virtual hosts of all listeners: a TLS host is there also without routes, so that its paths are not found (404)
/// rather than found elsewhere (421).
pub struct VirtualHosts;

impl Table for VirtualHosts {
    type Key = HostKey;
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "virtual hosts";
}

impl Derived for VirtualHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let (listener, host) = key;
        let everyone = match host {
            Host::Wildcard(_) if *listener == ListenerId::http() => {
                virtual_host::assemble(&Host::Any, routes(&(listener.clone(), Host::Any), reads), &[]).host.routes
            }
            _ => Vec::new(),
        };
        Some(virtual_host::assemble(host, routes(key, reads), &everyone))
    }
}

fn routes(key: &HostKey, reads: &mut Reads<'_>) -> Vec<Arc<Route>> {
    let units: Vec<_> = reads.probe::<UnitsByHost>(key).collect();
    let units = units.into_iter().filter_map(|name| reads.get::<Units>(name));
    let pieces = units.flat_map(|unit| &unit.routes);
    let ours = pieces.filter(|piece| piece.listener == key.0 && piece.host == key.1);
    ours.map(|piece| piece.route.clone()).collect()
}

/// The TLS hosts of all listeners.
pub struct TlsHosts;

impl Table for TlsHosts {
    type Key = HostKey;
    type Value = tls::Assembled;
    const NAME: &'static str = "TLS hosts";
}

impl Derived for TlsHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<tls::Assembled> {
        let units: Vec<_> = reads.probe::<TlsByHost>(key).collect();
        let units = units.into_iter().filter_map(|name| reads.get::<Units>(name));
        let pieces = units.flat_map(|unit| &unit.tls).filter(|piece| piece.listener == key.0 && piece.host == key.1);
        tls::assemble(&key.1, pieces.collect())
    }
}

/// TLS hosts by the chain that they share.
pub struct HostsByChain;

impl Index for HostsByChain {
    type Of = TlsHosts;
    type Key = RouteTableId;
    const NAME: &'static str = "by chain";

    fn keys((listener, _): &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = RouteTableId> {
        host.handling.http().map(|termination| table(listener, Some(termination.clone())))
    }
}

/// The chains of TLS listeners.
pub struct Chains;

impl Table for Chains {
    type Key = RouteTableId;
    type Value = Chain;
    const NAME: &'static str = "chains";
}

impl Derived for Chains {
    fn compute(&self, key: &RouteTableId, reads: &mut Reads<'_>) -> Option<Chain> {
        let hosts = reads.probe::<HostsByChain>(key).map(|(_, host)| host.clone());
        Some(tls::chain(key.termination.as_ref()?, hosts.collect()))
    }
}

/// The TLS hosts whose connections are passed on.
pub struct TcpHosts;

impl Table for TcpHosts {
    type Key = HostKey;
    type Value = TcpProxy;
    const NAME: &'static str = "TCP hosts";
}

impl Derived for TcpHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<TcpProxy> {
        reads.get::<TlsHosts>(key)?.handling.tcp().map(|proxy| TcpProxy::clone(proxy))
    }
}

/// Where each virtual host is looked up. Under TLS, a host without a certificate of its own is reached through that of
/// the wildcard above it. A host without either is not looked up at all, nor is one whose connections are passed on.
pub struct Places;

impl Table for Places {
    type Key = HostKey;
    type Value = RouteTableId;
    const NAME: &'static str = "places of hosts";
}

impl Derived for Places {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<RouteTableId> {
        let (listener, host) = key;
        if *listener == ListenerId::http() {
            return Some(table(listener, None));
        }
        let own = reads.get::<TlsHosts>(key);
        let found = own.or_else(|| reads.get::<TlsHosts>(&(listener.clone(), Host::Wildcard(above(host)?))))?;
        Some(table(listener, Some(found.handling.http()?.clone())))
    }
}

fn above(host: &Host) -> Option<Fqdn> {
    let Host::Exact(name) = host else { return None };
    Fqdn::parse(name.as_str().split_once('.')?.1).ok()
}

fn table(listener: &ListenerId, termination: Option<Termination>) -> RouteTableId {
    RouteTableId { listener: listener.clone(), termination }
}

/// Virtual hosts by the objects that lost a route there.
pub struct RouteLosers;

impl Index for RouteLosers {
    type Of = VirtualHosts;
    type Key = ObjectRef;
    const NAME: &'static str = "by loser";

    fn keys(_: &HostKey, host: &virtual_host::Assembled) -> impl IntoIterator<Item = ObjectRef> {
        host.lost.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

/// TLS hosts by the objects that asked for something else there.
pub struct TlsLosers;

impl Index for TlsLosers {
    type Of = TlsHosts;
    type Key = ObjectRef;
    const NAME: &'static str = "by loser";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = ObjectRef> {
        host.lost.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(VirtualHosts).per::<UnitsByHost>().per::<TlsByHost>();
    pipeline.derived(TlsHosts).per::<TlsByHost>();
    pipeline.derived(Chains).per::<HostsByChain>();
    pipeline.derived(TcpHosts).each::<TlsHosts>();
    pipeline.derived(Places).each::<VirtualHosts>();
    pipeline.index::<RouteLosers>().index::<TlsLosers>();
}
