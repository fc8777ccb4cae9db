//! What is measured of the disk cache.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::control::now;

/// `sesame_disk_cache_…`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    is_on: Gauge,
    bytes: Gauge,
    written: Gauge,
}

impl Metrics {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("sesame_disk_cache");
        registry.register(
            "enabled",
            "Whether the last write of the disk cache succeeded; 0 without one",
            self.is_on.clone(),
        );
        registry.register("size_bytes", "Size of the disk cache", self.bytes.clone());
        registry.register("written_timestamp_seconds", "When the disk cache was last written", self.written.clone());
    }

    /// It was written.
    pub fn written(&self, bytes: usize) {
        self.is_on.set(1);
        self.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.written.set(now());
    }

    /// It is off.
    pub fn off(&self) {
        self.is_on.set(0);
        self.bytes.set(0);
    }
}
