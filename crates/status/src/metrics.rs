//! What the writer counts, under `sesame_status_` and `sesame_events_`.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// What was written, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Request {
    pub kind: &'static str,
    /// One word.
    pub result: &'static str,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub writes: Family<Request, Counter>,
    pub lag: Histogram,
    pub behind: Gauge,
    pub events: Family<Request, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];
        Self {
            writes: Family::default(),
            lag: Histogram::new(seconds),
            behind: Gauge::default(),
            events: Family::default(),
        }
    }
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("sesame");
        registry.register(
            "status_writes",
            "Writes of the status of objects, by what became of them",
            self.writes.clone(),
        );
        registry.register(
            "status_lag_seconds",
            "From the moment an object should say something else to the moment it does",
            self.lag.clone(),
        );
        registry.register("status_behind", "Objects that do not say what they should", self.behind.clone());
        registry.register("events", "Events about verdicts, by what became of them", self.events.clone());
    }
}
