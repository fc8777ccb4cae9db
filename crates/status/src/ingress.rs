//! What the status of an Ingress is to say: where it is served. There are no conditions on it; what is wrong with it is
//! said by events.
//!
//! Pure: the object and the addresses in, what must be written out.

use crate::{address, statuses::Change};
use kinds::{Ingress, ingress::LoadBalancerAddress};
use serde_json::{Value, json};

/// What must be written so that the object says what it should, if anything.
///
/// An Ingress that is not ours and says an address of ours was ours once: it is taken back, as far as it was we who
/// wrote it, which the API server knows.
pub(crate) fn change(ingress: &Ingress, ours: bool, addresses: &[LoadBalancerAddress]) -> Option<Change> {
    let status = ingress.status.ok();
    let said: Vec<&LoadBalancerAddress> =
        status.iter().flat_map(|status| address::said(&status.load_balancer)).collect();
    let wanted: &[LoadBalancerAddress] = if ours { addresses } else { &[] };
    if said.iter().copied().eq(wanted) {
        return None;
    }
    if !wanted.is_empty() {
        let wanted: Vec<Value> = wanted.iter().map(address::written).collect();
        return Some(Change::Say(json!({ "loadBalancer": { "ingress": wanted } })));
    }
    let once_ours = said.iter().all(|address| addresses.contains(address));
    (ours || once_ours).then_some(Change::Withdraw)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::Addresses;
    use kinds::kind;

    fn says(addresses: &str) -> Ingress {
        let addresses: Vec<Value> = list(addresses).iter().map(address::written).collect();
        let object = json!({ "metadata": { "name": "a" }, "status": { "loadBalancer": { "ingress": addresses } } });
        let decoded = kinds::decode_json(kind::INGRESS, object.to_string().as_bytes()).unwrap();
        Ingress::clone(decoded.object.get::<Ingress>().unwrap())
    }

    fn list(addresses: &str) -> Vec<LoadBalancerAddress> {
        match addresses.parse().unwrap() {
            Addresses::Fixed(addresses) => addresses,
            Addresses::Service(_) => unreachable!(),
        }
    }

    fn say(addresses: &str) -> Option<Change> {
        let addresses: Vec<Value> = list(addresses).iter().map(address::written).collect();
        Some(Change::Say(json!({ "loadBalancer": { "ingress": addresses } })))
    }

    #[test]
    fn ours_says_our_addresses() {
        assert_eq!(change(&says(""), true, &list("192.0.2.1,lb.example")), say("192.0.2.1,lb.example"));
        assert_eq!(change(&says("192.0.2.1"), true, &list("192.0.2.1")), None);
        assert_eq!(change(&says("192.0.2.9"), true, &list("192.0.2.1")), say("192.0.2.1"));
        assert_eq!(change(&says("2001:db8::1"), true, &list("2001:db8::1")), None);
    }

    #[test]
    fn ours_says_nothing_while_there_is_nothing_to_say() {
        assert_eq!(change(&says(""), true, &[]), None);
        assert_eq!(change(&says("192.0.2.1"), true, &[]), Some(Change::Withdraw));
    }

    #[test]
    fn an_address_of_ours_is_taken_back_and_no_other() {
        assert_eq!(change(&says("192.0.2.1"), false, &list("192.0.2.1,192.0.2.2")), Some(Change::Withdraw));
        assert_eq!(change(&says("192.0.2.9"), false, &list("192.0.2.1")), None);
        assert_eq!(change(&says(""), false, &list("192.0.2.1")), None);
    }

    #[test]
    fn addresses_are_checked_where_they_are_set() {
        assert_eq!(list(" 192.0.2.1, lb.example ,"), list("192.0.2.1,lb.example"));
        for bad in ["LB.example", "a_b", "a b", "-a.example", "1.2.3.4:80"] {
            assert!(bad.parse::<Addresses>().is_err(), "{bad}");
        }
    }
}
