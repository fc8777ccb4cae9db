//! Which Service has which address, and over which nodes it is reached.
//!
//! In: Services, EndpointSlices, the pool of addresses. Out: the routes that should exist and the statuses that have to
//! be written. Pure but for the pool, which remembers what it gave to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

use super::super::addresses::Addresses;

/// Addresses of nodes by name.
pub(in super::super) type Nodes = BTreeMap<String, Ipv4Addr>;

/// Over which nodes an address is reached.
pub(super) type Routes = BTreeMap<Ipv4Addr, BTreeSet<Ipv4Addr>>;

/// The addresses to give, and which Service (by uid) has one. A Service that asks for an address gets that one or none,
/// as with a cloud that does not own it.
#[derive(Debug)]
pub(in super::super) struct Pool {
    assignable: Vec<Ipv4Addr>,
    requestable: Vec<Ipv4Addr>,
    given: BTreeMap<String, Ipv4Addr>,
}

impl Pool {
    pub(in super::super) fn new(addresses: &Addresses) -> Pool {
        let (assignable, requestable) = (addresses.assignable(), addresses.requestable());
        Pool { assignable, requestable, given: BTreeMap::new() }
    }

    fn address(&mut self, service: &Service) -> Option<Ipv4Addr> {
        let uid = service.uid()?;
        let asked = service.spec.as_ref().and_then(|spec| spec.load_balancer_ip.as_deref()).filter(|ip| !ip.is_empty());
        let may_have = |address: Ipv4Addr| match asked {
            Some(asked) => asked.parse() == Ok(address) && self.requestable.contains(&address),
            None => self.assignable.contains(&address),
        };
        if let Some(&has) = self.given.get(&uid)
            && may_have(has)
        {
            return Some(has);
        }
        let taken: BTreeSet<Ipv4Addr> =
            self.given.iter().filter(|(other, _)| **other != uid).map(|(_, address)| *address).collect();
        let mut all = self.requestable.iter().chain(&self.assignable).copied();
        let address = all.find(|address| may_have(*address) && !taken.contains(address));
        drop(all);
        self.given.remove(&uid);
        self.given.extend(address.map(|address| (uid, address)));
        address
    }
}

/// What should be.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted {
    pub(super) routes: Routes,
    pub(super) statuses: Vec<Status>,
}

/// A status that is not yet what it should be.
#[derive(Debug, PartialEq)]
pub(super) struct Status {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Nothing takes the address away.
    pub(super) ingress: Option<Vec<LoadBalancerIngress>>,
}

pub(super) fn wanted(
    services: &[Arc<Service>],
    slices: &[Arc<EndpointSlice>],
    pool: &mut Pool,
    nodes: &Nodes,
) -> Wanted {
    let mut wanted = Wanted::default();
    let ours: Vec<&Service> = services.iter().map(Arc::as_ref).filter(|service| is_ours(service)).collect();
    let uids: BTreeSet<String> = ours.iter().filter_map(|service| service.uid()).collect();
    pool.given.retain(|uid, _| uids.contains(uid));
    for service in ours {
        let address = pool.address(service);
        if let Some(address) = address {
            let over = reached_over(service, slices, nodes);
            // No route at all where nobody would answer: clients see at once that it is unreachable.
            if !over.is_empty() {
                wanted.routes.insert(address, over);
            }
        }
        wanted.statuses.extend(correction(service, address));
    }
    wanted
}

fn is_ours(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none())
}

fn reached_over(service: &Service, slices: &[Arc<EndpointSlice>], nodes: &Nodes) -> BTreeSet<Ipv4Addr> {
    let policy = service.spec.as_ref().and_then(|spec| spec.external_traffic_policy.as_deref());
    if policy != Some("Local") {
        return nodes.values().copied().collect();
    }
    let of_service = |slice: &&Arc<EndpointSlice>| {
        slice.namespace() == service.namespace()
            && slice.labels().get("kubernetes.io/service-name") == Some(&service.name_any())
    };
    let endpoints = slices.iter().filter(of_service).flat_map(|slice| &slice.endpoints);
    let ready = endpoints.filter(|endpoint| endpoint.conditions.as_ref().and_then(|c| c.ready) != Some(false));
    ready.filter_map(|endpoint| nodes.get(endpoint.node_name.as_ref()?)).copied().collect()
}

fn correction(service: &Service, address: Option<Ipv4Addr>) -> Option<Status> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let shown = balancer.and_then(|balancer| balancer.ingress.as_ref()).map(Vec::as_slice).unwrap_or_default();
    let ip = address.map(|address| address.to_string());
    if shown.len() == usize::from(ip.is_some()) && shown.first().is_none_or(|shown| shown.ip == ip) {
        return None;
    }
    Some(Status {
        namespace: service.namespace()?,
        name: service.name_any(),
        ingress: ip.map(|ip| vec![LoadBalancerIngress { ip: Some(ip), ..Default::default() }]),
    })
}

#[cfg(test)]
mod tests;
