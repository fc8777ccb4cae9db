//! The status of an Ingress: where it is served.
//!
//! In: the addresses. Out: facts. An Ingress has no conditions; what is wrong with it is told by events.

use model::status::{Acknowledgement, Mark, Scope, StatusFacts, StatusInput, StatusKind, StatusLayout, StatusValue};
use std::time::Duration;

/// The status of Ingresses.
pub const STATUS: StatusKind = StatusKind {
    layout: StatusLayout {
        fields: &["loadBalancer"],
        conditions: &[],
        lists: &[],
        marks: &[Mark::LoadBalancer("loadBalancer")],
    },
    facts,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// What the status must say.
pub fn facts(input: &StatusInput<'_>) -> StatusFacts {
    let mut values = Vec::new();
    if !input.addresses.is_empty() {
        values.push(("loadBalancer", StatusValue::LoadBalancer(input.addresses.to_vec())));
    }
    StatusFacts { object: Scope { values, ..Scope::default() }, lists: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::status::Address;

    #[test]
    fn an_ingress_says_where_it_is_served_and_nothing_before_that_is_known() {
        let addresses = [Address::ip("192.0.2.1"), Address::hostname("lb.example")];
        let served = facts(&StatusInput { addresses: &addresses, ..StatusInput::default() });
        assert_eq!(served.object.values, [("loadBalancer", StatusValue::LoadBalancer(addresses.to_vec()))]);
        assert_eq!(facts(&StatusInput::default()), StatusFacts::default());
    }
}
