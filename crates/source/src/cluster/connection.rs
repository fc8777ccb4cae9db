//! Whether the API server can be reached: told in the log, and shown by metrics.
//!
//! In: from everybody who asks it something, what came of it. Out: one line when an outage begins, one a minute, one when it
//! ends, each with the address; `sesame_apiserver_connected`, and for each kind when it was last heard of.

use crate::{
    Subject,
    outage::{News, Outage},
};
use kinds::Kind;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tracing::{info, warn};

/// The way to one API server. Clones are handles of the same one.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    address: Box<str>,
    outage: Mutex<Outage>,
    connected: Gauge,
    heard: Family<OfKind, Gauge<f64, AtomicU64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

impl Connection {
    /// To the API server at an address. It is not known whether anybody answers there.
    pub fn new(address: impl Into<Box<str>>) -> Self {
        let (outage, connected, heard) = Default::default();
        Self(Arc::new(Shared { address: address.into(), outage, connected, heard }))
    }

    /// What a source says about the connection is said about this. The log has it from here.
    pub fn subject() -> Subject {
        Subject::Source("the API server".into())
    }

    /// Where the API server is.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// It did not answer.
    pub fn failed(&self, why: &str) {
        self.0.connected.set(0);
        let address = self.address();
        match self.0.outage.lock().failed(Instant::now()) {
            Some(News::Begun) => {
                warn!(address, why, "the API server cannot be reached; what is known stays in force");
            }
            Some(News::Lasting(away)) => {
                warn!(address, why, ?away, "the API server still cannot be reached; what is known stays in force");
            }
            Some(News::Over(_)) | None => {}
        }
    }

    /// It answered, whatever it said.
    pub fn answered(&self) {
        self.0.connected.set(1);
        if let Some(News::Over(away)) = self.0.outage.lock().worked(Instant::now()) {
            info!(address = self.address(), ?away, "the API server answers again");
        }
    }

    /// What came of a request; says whether there was an answer.
    pub fn note<T>(&self, answer: &kube::Result<T>) -> bool {
        match answer {
            Ok(_) | Err(kube::Error::Api(_)) => {
                self.answered();
                true
            }
            Err(error) => {
                self.failed(&super::api::with_causes(error));
                false
            }
        }
    }

    /// Something was heard of a kind: a list, an event, or a bookmark that says that there is none.
    pub(super) fn heard(&self, kind: Kind) {
        self.answered();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.heard.get_or_create(&OfKind { kind: kind.name() }).set(now.as_secs_f64());
    }

    /// Adds `sesame_apiserver_connected` and `sesame_source_last_event_timestamp_seconds` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let connected = self.0.connected.clone();
        registry.register("sesame_apiserver_connected", "1 if the API server answers, else 0", connected);
        registry.register(
            "sesame_source_last_event_timestamp_seconds",
            "Time of the last watch event for each kind, in seconds since the epoch; bookmarks arrive about once a minute",
            self.0.heard.clone(),
        );
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self::new("unknown")
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.0.address).finish()
    }
}
