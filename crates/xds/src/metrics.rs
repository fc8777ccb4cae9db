//! What the server counts, under `sesame_xds_`.

use std::sync::Weak;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::kind::Kind;
use crate::server::Inner;

/// The type of resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Type {
    r#type: &'static str,
}

impl From<Kind> for Type {
    fn from(kind: Kind) -> Self {
        Self { r#type: kind.label() }
    }
}

/// What kind of stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Stream {
    /// `ads` or the type.
    pub service: &'static str,
    /// `delta`, `sotw` or `fetch`.
    pub variant: &'static str,
}

/// Why something ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reason {
    /// One word.
    pub reason: &'static str,
}

/// Which of the server's own certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Certificate {
    /// `ca` or `server`.
    pub certificate: &'static str,
}

type ByType<M> = Family<Type, M>;

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub connections: Gauge,
    pub handshakes: Gauge,
    pub refused_connections: Family<Reason, Counter>,
    pub certificate_expiry: Family<Certificate, Gauge>,
    pub certificates_invalid: Gauge,
    pub streams: Family<Stream, Gauge>,
    pub ended: Family<Reason, Counter>,
    pub requests: ByType<Counter>,
    pub responses: ByType<Counter>,
    pub bytes: ByType<Counter>,
    pub encodes: ByType<Counter>,
    pub acks: Family<Type, Histogram, fn() -> Histogram>,
    pub nacks: ByType<Counter>,
    pub rejections: ByType<Counter>,
}

fn seconds() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0])
}

impl Metrics {
    pub fn new() -> Self {
        Self {
            connections: Gauge::default(),
            handshakes: Gauge::default(),
            refused_connections: Family::default(),
            certificate_expiry: Family::default(),
            certificates_invalid: Gauge::default(),
            streams: Family::default(),
            ended: Family::default(),
            requests: Family::default(),
            responses: Family::default(),
            bytes: Family::default(),
            encodes: Family::default(),
            acks: Family::new_with_constructor(seconds as fn() -> Histogram),
            nacks: Family::default(),
            rejections: Family::default(),
        }
    }

    pub fn register(&self, registry: &mut Registry) {
        // A counter that appears with its first event has no rate for that event.
        for kind in Kind::ALL {
            for counter in [&self.nacks, &self.rejections] {
                drop(counter.get_or_create(&kind.into()));
            }
        }
        let registry = registry.sub_registry_with_prefix("sesame_xds");
        registry.register("connections", "Open xDS connections", self.connections.clone());
        registry.register("handshakes", "xDS connections that are not authenticated yet", self.handshakes.clone());
        registry.register(
            "refused_connections",
            "xDS connections closed before authentication, by reason",
            self.refused_connections.clone(),
        );
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "Expiry time of the CA and the certificate of the xDS server, in seconds since the epoch",
            self.certificate_expiry.clone(),
        );
        registry.register(
            "certificates_invalid",
            "1 while the certificate files of the xDS server cannot be used and the last valid ones are used instead, else 0",
            self.certificates_invalid.clone(),
        );
        registry.register("streams", "Open xDS streams", self.streams.clone());
        registry.register("streams_ended", "xDS streams closed by the server, by reason", self.ended.clone());
        registry.register("requests", "Discovery requests received", self.requests.clone());
        registry.register("responses", "Discovery responses sent", self.responses.clone());
        registry.register("response_bytes", "Bytes of discovery responses sent", self.bytes.clone());
        registry.register(
            "encodes",
            "Discovery responses encoded; identical responses are encoded once",
            self.encodes.clone(),
        );
        registry.register("ack_seconds", "Seconds from a discovery response to its ACK", self.acks.clone());
        registry.register("nacks", "Discovery responses rejected by clients (NACK)", self.nacks.clone());
        registry.register("rejections", "Resources identified as the cause of a NACK", self.rejections.clone());
    }
}

/// Counts at the time of the question what clients do not have yet.
#[derive(Debug)]
pub(crate) struct Pending(pub Weak<Inner>);

impl Collector for Pending {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(inner) = self.0.upgrade() else { return Ok(()) };
        let mut pending = [0i64; Kind::COUNT];
        for runtime in inner.runtimes() {
            for client in runtime.clients() {
                let session = client.session.lock();
                for kind in Kind::ALL {
                    pending[kind.index()] += i64::try_from(session.pending(kind)).unwrap_or(i64::MAX);
                }
            }
        }
        let gauge = ConstGauge::new(0i64);
        let mut family = encoder.encode_descriptor(
            "sesame_xds_pending",
            "xDS resources not yet acknowledged by connected proxies",
            None,
            gauge.metric_type(),
        )?;
        for kind in Kind::ALL {
            let labels = Type::from(kind);
            let metric = family.encode_family(&labels)?;
            ConstGauge::new(pending[kind.index()]).encode(metric)?;
        }
        Ok(())
    }
}
