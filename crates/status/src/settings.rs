//! What the operator sets about writing.

use crate::{Addresses, pace::Rate};

/// What holds for all writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where what we serve is reached.
    pub addresses: Addresses,
    /// Which replica this is, for people who look at an event: the name of the pod.
    pub instance: String,
    /// The name under which the API server keeps what we say. Two installations in one cluster must differ in it: what
    /// one says is not the other's to take back.
    pub manager: String,
    /// How fast status is written.
    pub writes: Rate,
    /// How fast events are written.
    pub events: Rate,
}

impl Settings {
    /// The usual ones for a replica of that name.
    pub fn new(instance: &str, addresses: Addresses) -> Self {
        Self {
            addresses,
            instance: instance.to_owned(),
            manager: "sesame".to_owned(),
            writes: Rate { per_second: 200.0, burst: 200 },
            events: Rate { per_second: 50.0, burst: 100 },
        }
    }
}
