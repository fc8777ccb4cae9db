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
        serde_json::from_value(json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints })).unwrap(),
    )
}

#[test]
fn each_service_keeps_an_address_of_its_own() {
    let mut pool = pool();
    let (a, b) = (service("a", json!({})), service("b", json!({})));
    let first = wanted(std::slice::from_ref(&b), &[], &mut pool, &nodes());
    assert_eq!(first.routes, Routes::from([(FIRST, [N1, N2].into())]));
    let both = wanted(&[a.clone(), b], &[], &mut pool, &nodes());
    let ips: Vec<_> =
        both.statuses.iter().map(|s| (s.name.as_str(), s.ingress.clone().unwrap()[0].ip.clone().unwrap())).collect();
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
    let found = wanted(&[local], &[slice("other", json!([]))], &mut pool(), &nodes());
    assert!(found.routes.is_empty(), "nobody would answer");
    assert_eq!(found.statuses.len(), 1, "the address is shown all the same");
}

#[test]
fn a_status_that_is_right_is_not_written_again() {
    let mut right = Arc::unwrap_or_clone(service("a", json!({})));
    right.status = serde_json::from_value(json!({ "loadBalancer": { "ingress": [{ "ip": FIRST }] } })).unwrap();
    assert_eq!(wanted(&[Arc::new(right)], &[], &mut pool(), &nodes()).statuses, []);
    let foreign = service("b", json!({ "loadBalancerClass": "example.test/other" }));
    assert_eq!(wanted(&[foreign], &[], &mut pool(), &nodes()), Wanted::default());
}
