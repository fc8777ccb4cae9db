//! What the writer must be allowed to do: for whoever writes roles, and for the test that compares them.

use kinds::Kind;

/// A right: the verb, the API group, the resource.
pub type Right = (&'static str, &'static str, &'static str);

/// Events are written wherever the objects stand that they are about.
const EVENTS: [Right; 2] = [("create", "events.k8s.io", "events"), ("patch", "events.k8s.io", "events")];

/// The status of a kind, where we write one.
fn status(kind: Kind) -> Option<Right> {
    let resource = match kind {
        Kind::Ingress => "ingresses/status",
        Kind::HttpProxy(_) => "httpproxies/status",
        _ => return None,
    };
    Some(("patch", kind.group(), resource))
}

/// The rights for the objects of these kinds. An event has the uid of the object that it is about, and a write that came
/// too late looks at what stands there now: both read one object.
pub fn rights(kinds: &[Kind]) -> Vec<Right> {
    let has_verdicts = |kind: &&Kind| !matches!(kind, Kind::EndpointSlice | Kind::IngressClass);
    let reads = kinds.iter().filter(has_verdicts).map(|kind| ("get", kind.group(), kind.plural()));
    reads.chain(kinds.iter().copied().filter_map(status)).chain(EVENTS).collect()
}

/// The rights for the lease, in its namespace alone. All but the first can be bound to its name.
pub const LEASE: [Right; 3] = [
    ("create", "coordination.k8s.io", "leases"),
    ("get", "coordination.k8s.io", "leases"),
    ("update", "coordination.k8s.io", "leases"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statuses;

    #[test]
    fn every_status_that_is_written_has_its_right() {
        for &kind in Kind::ALL {
            assert_eq!(status(kind).is_some(), statuses::has_status(kind), "{kind:?}");
            let resource = status(kind).map(|(_, _, resource)| resource);
            assert!(resource.is_none_or(|it| it == format!("{}/status", kind.plural())), "{kind:?}");
        }
    }
}
