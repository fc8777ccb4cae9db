//! `/healthz` and `/readyz`.
//!
//! Alive is a process that answers: an API server that is gone is no reason to restart. Ready is a replica to which
//! proxies may connect: one that has done every [`Task`] that was named, and of which no [check](Readiness::check) fails.

use axum::{Router, extract::State, http::StatusCode, routing::get};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Registry,
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// What has to be done before this replica is ready. Clones are handles of the same one.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<&'static str, Waiting>>>, Arc<Mutex<Vec<Check>>>);

/// What a task waits for.
#[derive(Default)]
struct Waiting {
    /// What was said last.
    reason: Option<String>,
    /// Who is asked where nothing was said.
    asked: Option<Check>,
}

/// Says what a replica that was ready waits for, if anything.
type Check = Box<dyn Fn() -> Option<String> + Send>;

impl Readiness {
    /// Names something that may make a replica unready at any time.
    pub fn check(&self, check: impl Fn() -> Option<String> + Send + 'static) {
        self.1.lock().push(Box::new(check));
    }

    /// Adds `sesame_ready` to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Ready(self.clone())));
    }

    /// Names something that has to be done first.
    pub fn task(&self, name: &'static str) -> Task {
        self.0.lock().insert(name, Waiting::default());
        Task { name, readiness: self.clone() }
    }

    /// Names something that has to be done first, and whom to ask what it waits for while [nothing is said](Task::waits).
    pub fn task_that_waits(&self, name: &'static str, asked: impl Fn() -> Option<String> + Send + 'static) -> Task {
        self.0.lock().insert(name, Waiting { reason: None, asked: Some(Box::new(asked)) });
        Task { name, readiness: self.clone() }
    }

    /// What is still to be done, and why it is not where that was said; nothing when ready.
    pub fn pending(&self) -> Vec<String> {
        let pending = self.0.lock();
        let line = |(name, waiting): (&&str, &Waiting)| {
            let asked = || waiting.asked.as_ref().and_then(|asked| asked());
            match waiting.reason.clone().or_else(asked) {
                Some(why) => format!("{name} ({why})"),
                None => (*name).to_owned(),
            }
        };
        let checks = self.1.lock();
        pending.iter().map(line).chain(checks.iter().filter_map(|check| check())).collect()
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.pending()).finish()
    }
}

#[derive(Debug)]
struct Ready(Readiness);

impl Collector for Ready {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let ready = ConstGauge::new(i64::from(self.0.pending().is_empty()));
        let help = "1 if proxies may connect to this replica, else 0";
        ready.encode(encoder.encode_descriptor("sesame_ready", help, None, ready.metric_type())?)
    }
}

/// Something that has to be done first. Dropping it does not do it: what failed leaves the replica unready.
#[derive(Debug)]
#[must_use]
pub struct Task {
    name: &'static str,
    readiness: Readiness,
}

impl Task {
    /// Says what it waits for, if anything is known.
    pub fn waits(&self, why: Option<String>) {
        self.readiness.0.lock().entry(self.name).or_default().reason = why;
    }

    /// It is done.
    pub fn done(self) {
        self.readiness.0.lock().remove(self.name);
    }
}

/// `/healthz`, `/health` and `/readyz`.
pub fn health(readiness: &Readiness) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/health", get(alive))
        .route("/readyz", get(ready))
        .with_state(readiness.clone())
}

async fn alive() -> &'static str {
    "ok\n"
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let pending = readiness.pending();
    if pending.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", pending.join(", ")))
}
