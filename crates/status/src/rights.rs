//! What the writer must be allowed to do: for whoever writes roles, and for the test that compares them.

use kinds::Kind;

/// A right: the verb, the API group, the resource.
pub type Right = (&'static str, &'static str, &'static str);

/// Statuses and events are written wherever the objects stand.
const WRITES: [Right; 3] = [
    ("patch", "networking.k8s.io", "ingresses/status"),
    ("create", "events.k8s.io", "events"),
    ("patch", "events.k8s.io", "events"),
];

/// The rights for the objects of these kinds. An event has the uid of the object that it is about, and a write that came
/// too late looks at what stands there now: both read one object.
pub fn rights(kinds: &[Kind]) -> Vec<Right> {
    let has_verdicts = |kind: &&Kind| !matches!(kind, Kind::EndpointSlice | Kind::IngressClass);
    let reads = kinds.iter().filter(has_verdicts).map(|kind| ("get", kind.group(), kind.plural()));
    reads.chain(WRITES).collect()
}

/// The rights for the lease, in its namespace alone. All but the first can be bound to its name.
pub const LEASE: [Right; 3] = [
    ("create", "coordination.k8s.io", "leases"),
    ("get", "coordination.k8s.io", "leases"),
    ("update", "coordination.k8s.io", "leases"),
];
