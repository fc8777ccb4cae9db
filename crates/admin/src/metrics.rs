//! `/metrics`: what every part counts, in the text form that Prometheus reads.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use model::Severity;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text},
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::Registry,
};
use std::{fmt, sync::Arc};

use crate::board::Board;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What this program is.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo {
    /// Its version.
    pub version: &'static str,
    /// The commit it was built from; empty if that is not known.
    pub revision: &'static str,
}

impl BuildInfo {
    /// Adds `sesame_build_info` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let labels = [("version", self.version), ("revision", self.revision)];
        registry.register("sesame_build", "Build information", Info::new(labels.to_vec()));
    }
}

/// `/metrics`.
pub fn metrics(registry: Arc<Registry>) -> Router {
    Router::new().route("/metrics", get(show)).with_state(registry)
}

async fn show(State(registry): State<Arc<Registry>>) -> Response {
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
        Err(fmt::Error) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The bounds of a histogram of seconds: from an edit of one object to a first build of everything.
pub(crate) fn seconds() -> [f64; 15] {
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0]
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InTable {
    table: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Weight {
    severity: &'static str,
}

/// Counts at the time of the question what the board shows.
#[derive(Debug)]
pub(crate) struct Figures(pub Board);

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shared = &self.0.0;
        let objects = shared.objects.load();
        let objects = objects.iter().map(|(kind, count)| (OfKind { kind }, gauge(*count)));
        family(&mut encoder, "sesame_objects", "Objects that are known", objects)?;
        let tables = shared.tables.load();
        let rows = tables.iter().map(|table| (InTable { table: table.name }, gauge(table.rows)));
        family(&mut encoder, "sesame_table_rows", "Rows that have a value", rows)?;
        let held = tables.iter().map(|table| (InTable { table: table.name }, gauge(table.held)));
        family(&mut encoder, "sesame_table_held", "Rows whose last computation failed", held)?;
        let computed = tables.iter().map(|table| (InTable { table: table.name }, ConstCounter::new(table.computed)));
        family(&mut encoder, "sesame_recomputed_keys", "Keys that were computed", computed)?;
        let equal = tables.iter().map(|table| (InTable { table: table.name }, ConstCounter::new(table.unchanged)));
        family(&mut encoder, "sesame_unchanged_keys", "Keys that were computed and came out as before", equal)?;
        let severities = shared.severities.load();
        let severities = [Severity::Error, Severity::Warning, Severity::Note].map(|severity| {
            let count = severities.get(&severity).copied().unwrap_or_default();
            (Weight { severity: severity.word() }, ConstGauge::new(count))
        });
        family(&mut encoder, "sesame_verdicts", "Verdicts on objects", severities)
    }
}

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

fn family<L: EncodeLabelSet, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metrics: impl IntoIterator<Item = (L, M)>,
) -> fmt::Result {
    let mut metrics = metrics.into_iter().peekable();
    let Some((_, first)) = metrics.peek() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    for (labels, metric) in metrics {
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
