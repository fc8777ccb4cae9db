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
pub(super) struct Desired {
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
) -> Desired {
    let mut wanted = Desired::default();
    let ours: Vec<&Service> = services.iter().map(Arc::as_ref).filter(|service| is_ours(service)).collect();
    let uids: BTreeSet<String> = ours.iter().filter_map(|service| service.uid()).collect();
    pool.given.retain(|uid, _| uids.contains(uid));
    for service in ours {
        let address = pool.address(service);
        if let Some(address) = address {
            wanted.routes.insert(address, reached_over(service, slices, nodes));
        }
        wanted.statuses.extend(correction(service, address));
    }
    wanted
}

/// The routes, given those that there are. Where no node has a ready endpoint, connections go on to those that had one last, as with a
/// cloud's load balancer whose targets are all unhealthy: often a slice is only being rewritten. Where none ever had, there is no route.
pub(super) fn with_last(wanted: Routes, last: &Routes) -> Routes {
    let kept = |address: &Ipv4Addr| last.get(address).cloned();
    let of = |(address, over): (Ipv4Addr, BTreeSet<Ipv4Addr>)| {
        let over = if over.is_empty() { kept(&address)? } else { over };
        Some((address, over))
    };
    wanted.into_iter().filter_map(of).collect()
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
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::{Value, json};

    use super::*;

    const N1: Ipv4Addr = Ipv4Addr::new(198, 18, 128, 11);
    const N2: Ipv4Addr = Ipv4Addr::new(198, 18, 128, 12);
    const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 137, 1);
    const SECOND: Ipv4Addr = Ipv4Addr::new(198, 18, 137, 2);
    const ASKED: Ipv4Addr = Ipv4Addr::new(198, 18, 136, 9);

    fn pool() -> Pool {
        Pool { assignable: vec![FIRST, SECOND], requestable: vec![ASKED], given: BTreeMap::new() }
    }

    fn nodes() -> Nodes {
        [("n1".to_owned(), N1), ("n2".to_owned(), N2)].into()
    }

    fn service(name: &str, spec: Value) -> Arc<Service> {
        let metadata = json!({ "name": name, "namespace": "default", "uid": name });
        let mut spec = spec;
        spec["type"] = json!("LoadBalancer");
        Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
    }

    fn slice(service: &str, endpoints: Value) -> Arc<EndpointSlice> {
        let metadata =
            json!({ "name": service, "namespace": "default", "labels": { "kubernetes.io/service-name": service } });
        Arc::new(
            serde_json::from_value(json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints }))
                .unwrap(),
        )
    }

    #[test]
    fn each_service_keeps_an_address_of_its_own() {
        let mut pool = pool();
        let (a, b) = (service("a", json!({})), service("b", json!({})));
        let first = wanted(std::slice::from_ref(&b), &[], &mut pool, &nodes());
        assert_eq!(first.routes, Routes::from([(FIRST, [N1, N2].into())]));
        let both = wanted(&[a.clone(), b], &[], &mut pool, &nodes());
        let ips: Vec<_> = both
            .statuses
            .iter()
            .map(|s| (s.name.as_str(), s.ingress.clone().unwrap()[0].ip.clone().unwrap()))
            .collect();
        assert_eq!(ips, [("a", SECOND.to_string()), ("b", FIRST.to_string())]);
        // When b goes, its address is free again.
        assert_eq!(wanted(&[a], &[], &mut pool, &nodes()).routes.keys().collect::<Vec<_>>(), [&SECOND]);
        assert_eq!(
            wanted(&[service("c", json!({}))], &[], &mut pool, &nodes()).routes.keys().collect::<Vec<_>>(),
            [&FIRST]
        );
    }

    #[test]
    fn a_requested_address_is_given_or_nothing_is() {
        let good = service("good", json!({ "loadBalancerIP": ASKED.to_string() }));
        let late = service("late", json!({ "loadBalancerIP": ASKED.to_string() }));
        let odd = service("odd", json!({ "loadBalancerIP": "203.0.113.9" }));
        let found = wanted(&[good, late, odd], &[], &mut pool(), &nodes());
        assert_eq!(found.routes.keys().collect::<Vec<_>>(), [&ASKED]);
        assert_eq!(found.statuses.len(), 1, "those who get nothing show nothing already: {:?}", found.statuses);
    }

    #[test]
    fn a_local_service_is_reached_over_nodes_with_ready_endpoints() {
        let local = service("local", json!({ "externalTrafficPolicy": "Local" }));
        let endpoints = json!([
            { "addresses": ["198.18.132.2"], "nodeName": "n1", "conditions": { "ready": false } },
            { "addresses": ["198.18.133.2"], "nodeName": "n2", "conditions": { "ready": true } },
        ]);
        let found = wanted(std::slice::from_ref(&local), &[slice("local", endpoints)], &mut pool(), &nodes());
        assert_eq!(found.routes, Routes::from([(FIRST, [N2].into())]));
        let before = with_last(found.routes, &Routes::default());
        let found = wanted(&[local], &[slice("other", json!([]))], &mut pool(), &nodes());
        assert_eq!(found.statuses.len(), 1, "the address is shown all the same");
        assert!(with_last(found.routes.clone(), &Routes::default()).is_empty(), "nobody would answer");
        assert_eq!(with_last(found.routes, &before), before, "they may be ready again at once");
    }

    #[test]
    fn a_status_that_is_right_is_not_written_again() {
        let mut right = Arc::unwrap_or_clone(service("a", json!({})));
        right.status = serde_json::from_value(json!({ "loadBalancer": { "ingress": [{ "ip": FIRST }] } })).unwrap();
        assert_eq!(wanted(&[Arc::new(right)], &[], &mut pool(), &nodes()).statuses, []);
        let foreign = service("b", json!({ "loadBalancerClass": "example.test/other" }));
        assert_eq!(wanted(&[foreign], &[], &mut pool(), &nodes()), Desired::default());
    }
}
