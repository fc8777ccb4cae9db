//! What is counted about configurations.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

/// `sesame_configuration_…`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    is_valid: Gauge,
    changes: Family<Outcome, Counter>,
}

impl Metrics {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.is_valid.set(1);
        for result in ["applied", "rejected"] {
            drop(self.changes.get_or_create(&Outcome { result }));
        }
        let registry = registry.sub_registry_with_prefix("sesame_configuration");
        let valid = "1 if the current configuration is in effect, 0 while a changed one is rejected";
        registry.register("valid", valid, self.is_valid.clone());
        registry.register("changes", "Changes of the configuration, by result", self.changes.clone());
    }

    /// What is written is in effect, by a change or because it was.
    pub fn applied(&self, is_change: bool) {
        self.is_valid.set(1);
        if is_change {
            self.changes.get_or_create(&Outcome { result: "applied" }).inc();
        }
    }

    /// What is written is not in effect.
    pub fn rejected(&self) {
        self.is_valid.set(0);
        self.changes.get_or_create(&Outcome { result: "rejected" }).inc();
    }
}
