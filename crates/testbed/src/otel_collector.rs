//! A real OpenTelemetry collector: it takes OTLP over gRPC, and what it gets can be read.
//!
//! In: nothing. Out: an [`OtelCollector`] on an address of its own, in plaintext, and the [`Span`]s that it has got so far.

use crate::net::Net;
use crate::process::{Command, Process};
use crate::start::StartError;
use crate::state::StateDir;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

const START: Duration = Duration::from_secs(30);
/// The usual port of OTLP over gRPC.
const GRPC: u16 = 4317;
const FILE: &str = "spans.json";

/// A running collector.
#[derive(Debug)]
pub struct OtelCollector {
    address: SocketAddr,
    state: StateDir,
    process: Process,
}

/// A span as the collector got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// `service.name` of its resource.
    pub service: String,
    /// Its name.
    pub name: String,
    /// The trace that it is part of.
    pub trace: String,
    /// The span above it; empty for the first.
    pub parent: String,
    /// Its attributes.
    pub attributes: BTreeMap<String, String>,
}

impl OtelCollector {
    /// Starts it, and waits until it listens.
    pub async fn start() -> Result<OtelCollector, StartError> {
        let net = Net::here()?;
        let state = StateDir::new("otel-collector")?;
        let address = net.socket(GRPC);
        let config = json!({
            "receivers": { "otlp": { "protocols": { "grpc": { "endpoint": address.to_string() } } } },
            "exporters": { "file": { "path": state.path().join(FILE), "flush_interval": "20ms" } },
            "service": {
                "telemetry": { "metrics": { "level": "none" } },
                "pipelines": { "traces": { "receivers": ["otlp"], "exporters": ["file"] } },
            },
        });
        // JSON is YAML.
        let config = state.write("config.yaml", config.to_string())?;
        let process = Command::new(parts::program("otel-collector")?).arg("--config").arg(config).start_in(&state)?;
        process.expect_port(address, START).await?;
        Ok(OtelCollector { address, state, process })
    }

    /// Where it takes spans.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The spans that it has got. A line that is being written is read the next time.
    pub fn spans(&self) -> Result<Vec<Span>, StartError> {
        let path = self.state.path().join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| StartError::File { path, source })?;
        let batches = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(batches.flat_map(|batch| items(&batch["resourceSpans"]).flat_map(of_resource).collect::<Vec<_>>()).collect())
    }

    /// Its process: log, signals.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn of_resource(resource: &Value) -> Vec<Span> {
    let service = attributes(&resource["resource"]).remove("service.name").unwrap_or_default();
    let spans = items(&resource["scopeSpans"]).flat_map(|scope| items(&scope["spans"]));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let span = |span: &Value| Span {
        service: service.clone(),
        name: text(&span["name"]),
        trace: text(&span["traceId"]),
        parent: text(&span["parentSpanId"]),
        attributes: attributes(span),
    };
    spans.map(span).collect()
}

/// The attributes of a resource or a span, each value as text.
fn attributes(of: &Value) -> BTreeMap<String, String> {
    let pair = |attribute: &Value| {
        let value = attribute["value"].as_object()?.values().next()?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((attribute["key"].as_str()?.to_owned(), value))
    };
    items(&of["attributes"]).filter_map(pair).collect()
}
