//! What is counted about fetches: by result, and over all servers. A server is no label: tenants choose how many there are.

use model::jwt::RemoteJwks;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

/// `sesame_jwks_…`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    fetches: Family<Outcome, Counter>,
    servers: Servers,
}

/// The servers that are asked, and when each last answered with keys.
#[derive(Clone, Debug, Default)]
struct Servers(Arc<Mutex<HashMap<Arc<RemoteJwks>, Option<Instant>>>>);

impl Metrics {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        for result in ["success", "failure", "timeout"] {
            drop(self.fetches.get_or_create(&Outcome { result }));
        }
        let help = "Fetches of JSON Web Key Sets, by result";
        registry.register("sesame_jwks_fetches", help, self.fetches.clone());
        registry.register_collector(Box::new(self.servers.clone()));
    }

    /// A server is asked from now on.
    pub(super) fn asked(&self, source: &Arc<RemoteJwks>) {
        self.servers.0.lock().entry(source.clone()).or_default();
    }

    /// A server is asked no more.
    pub(super) fn forgotten(&self, source: &Arc<RemoteJwks>) {
        self.servers.0.lock().remove(source);
    }

    /// A fetch is over.
    pub(super) fn fetched(&self, source: &Arc<RemoteJwks>, result: &'static str) {
        self.fetches.get_or_create(&Outcome { result }).inc();
        if result == "success"
            && let Some(last) = self.servers.0.lock().get_mut(source)
        {
            *last = Some(Instant::now());
        }
    }
}

impl Collector for Servers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (all, without, oldest) = {
            let servers = self.0.lock();
            let without = servers.values().filter(|last| last.is_none()).count();
            (servers.len(), without, servers.values().flatten().min().copied())
        };
        let age = oldest.map_or(0.0, |oldest| oldest.elapsed().as_secs_f64());
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        gauge(&mut encoder, "sesame_jwks_servers", "Servers from which JSON Web Key Sets are fetched", count(all))?;
        let help = "Servers of JSON Web Key Sets that have never answered with keys";
        gauge(&mut encoder, "sesame_jwks_servers_without_keys", help, count(without))?;
        let help = "Age of the JSON Web Key Set whose last successful fetch is longest ago, in seconds";
        gauge(&mut encoder, "sesame_jwks_oldest_keys_age_seconds", help, age)
    }
}

fn gauge<N>(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: N) -> fmt::Result
where
    ConstGauge<N>: EncodeMetric,
{
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}
