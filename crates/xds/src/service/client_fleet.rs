//! The fleet of a client, for the duration of one call.
//!
//! In: the fleet that a credential or a node names. Out: its runtime. A fleet that was never published goes with its last call, also when the
//! call is dropped halfway: its clients may come again and again without it ever being published.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::fleet::FleetRuntime;
use crate::identity::Fleet;
use crate::server::Inner;

/// The fleet of the client of one call.
pub(super) struct ClientFleet {
    pub runtime: Arc<FleetRuntime>,
    /// Cancelled when the clients of the fleet, as it was when the call began, must authenticate again.
    pub clients_end: CancellationToken,
    /// Declared after the runtime, and so dropped after it.
    _tidy: Tidy,
}

impl ClientFleet {
    pub fn of(inner: &Arc<Inner>, fleet: &Fleet) -> Self {
        let runtime = inner.runtime(fleet);
        let clients_end = runtime.clients_end();
        Self { runtime, clients_end, _tidy: Tidy { inner: inner.clone(), fleet: fleet.clone() } }
    }
}

/// Lets go of a fleet when it is dropped: see [`Inner::tidy`].
struct Tidy {
    inner: Arc<Inner>,
    fleet: Fleet,
}

impl Drop for Tidy {
    fn drop(&mut self) {
        self.inner.tidy(&self.fleet);
    }
}
