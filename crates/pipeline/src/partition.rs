//! What changes together where an edit that reaches many rows is worked off in parts ([`engine::Engine::limit_fan_out`]).
//!
//! A host is a partition of its fleet: its virtual hosts, TLS and scopes on all listeners are computed together, so that no proxy
//! sees a part of what an object changes about one host. A translation is one, too: a Service, certificate or Gateway may be used by
//! many objects. Which partition a key has is a hash of it; two that have the same one are computed together.

use crate::translations::HostKey;
use model::{FleetId, Host, ObjectRef};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many hosts, or objects, an edit reaches at once. The others wait until everybody else's edits are published.
pub const AT_ONCE: usize = 16;

fn hash(key: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The partition of a host of a fleet.
pub fn of_name(fleet: &FleetId, host: &Host) -> u64 {
    hash((fleet, host))
}

/// The same by a listener of the fleet.
pub fn of_host((listener, host): &HostKey) -> u64 {
    of_name(listener.fleet(), host)
}

/// The partition of a translation.
pub fn of_translation(key: &ObjectRef) -> u64 {
    hash(key)
}
