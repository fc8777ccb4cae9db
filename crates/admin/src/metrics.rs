//! `/metrics`: what every part counts, in the text formats that Prometheus reads.
//!
//! [`table::METRICS`] lists every metric; `docs/metrics.md` is written from it, and a test compares it with what a server shows.

mod format;
mod process;
pub mod proxies;
pub mod table;

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
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

use crate::board::{Board, VerdictCounts};
use format::Format;

/// The most series of verdicts by namespace, kind and code; the rest is one more.
pub const MOST_VERDICT_SERIES: usize = 150;
/// The most certificates whose expiry is shown: those that expire soonest.
pub const MOST_CERTIFICATES: usize = 50;

/// What this program is.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo {
    /// Its version.
    pub version: &'static str,
    /// The commit it was built from; empty if that is not known.
    pub revision: &'static str,
}

impl BuildInfo {
    /// Adds `sesame_build_info` and `process_…` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let labels = [("version", self.version), ("revision", self.revision)];
        registry.register("sesame_build", "Build information", Info::new(labels.to_vec()));
        registry.register_collector(Box::new(process::Process));
    }
}

/// `/metrics`; with Contour's names beside our own where that is asked for.
pub fn metrics(registry: Arc<Registry>, contour_names: bool) -> Router {
    Router::new().route("/metrics", get(show)).with_state((registry, contour_names))
}

async fn show(State((registry, contour_names)): State<(Arc<Registry>, bool)>, headers: HeaderMap) -> Response {
    let format = Format::preferred(headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()));
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) => {
            let headers = [(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept")];
            let page = if contour_names { table::with_contour_names(&page) } else { page };
            (headers, format.of(page)).into_response()
        }
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
    table: String,
}

impl InTable {
    /// Values of labels have no spaces.
    fn of(name: &str) -> Self {
        Self { table: name.replace(' ', "_") }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVerdict {
    namespace: String,
    kind: String,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSecret {
    namespace: String,
    secret: String,
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
        family(&mut encoder, "sesame_objects", "Objects read, by kind", objects)?;
        let tables = shared.tables.load();
        let rows = tables.iter().map(|table| (InTable::of(table.name), gauge(table.rows)));
        family(&mut encoder, "sesame_table_rows", "Rows of the pipeline's tables", rows)?;
        let failed = tables.iter().map(|table| table.failed).sum();
        // By table it is on `/debug/tables`.
        total(&mut encoder, "sesame_table_failed_rows", "Rows whose last computation failed", &gauge(failed))?;
        let computed = tables.iter().map(|table| (InTable::of(table.name), ConstCounter::new(table.computed)));
        family(&mut encoder, "sesame_recomputed_keys", "Keys recomputed", computed)?;
        let equal = ConstCounter::new(tables.iter().map(|table| table.unchanged).sum::<u64>());
        total(&mut encoder, "sesame_unchanged_keys", "Keys recomputed with an unchanged result", &equal)?;
        let severities = shared.severities.load();
        let severities = [Severity::Error, Severity::Warning, Severity::Note].map(|severity| {
            let count = severities.get(&severity).copied().unwrap_or_default();
            (Weight { severity: severity.word() }, ConstGauge::new(count))
        });
        family(&mut encoder, "sesame_verdicts", "Verdicts on objects, by severity", severities)?;
        let counts = shared.verdict_counts.load();
        let help = "Verdicts on objects, by namespace, kind and code; all that are not among the most frequent have code other";
        family(&mut encoder, "sesame_object_verdicts", help, most_frequent(&counts))?;
        let expiries = shared.expiries.load();
        let expiries = expiries.iter().take(MOST_CERTIFICATES).map(|(secret, at)| {
            let labels = OfSecret { namespace: secret.namespace.to_string(), secret: secret.name.to_string() };
            (labels, ConstGauge::new(*at))
        });
        let help = "Expiry time of the certificates that expire soonest among those that hosts use, in seconds since the epoch";
        family(&mut encoder, "sesame_certificate_expiry_timestamp_seconds", help, expiries)
    }
}

/// The most frequent verdicts, and all others together.
fn most_frequent(counts: &VerdictCounts) -> Vec<(OfVerdict, ConstGauge<i64>)> {
    let mut all: Vec<_> = counts.iter().collect();
    // The order is total, so replicas with the same verdicts show the same.
    all.sort_unstable_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
    let rest: i64 = all.iter().skip(MOST_VERDICT_SERIES).map(|(_, count)| **count).sum();
    let shown = all.iter().take(MOST_VERDICT_SERIES).map(|((namespace, kind, code), count)| {
        let (namespace, kind, code) = (namespace.to_string(), kind.to_string(), code.to_string());
        (OfVerdict { namespace, kind, code }, ConstGauge::new(**count))
    });
    let other = OfVerdict { namespace: String::new(), kind: String::new(), code: "other".to_owned() };
    shown.chain((rest > 0).then(|| (other, ConstGauge::new(rest)))).collect()
}

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}

fn total(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
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
