//! Sends traces to a collector, a second's worth at a time.

use std::str::FromStr;
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use http::uri::PathAndQuery;
use source::outage::{Outage, OutageEvent};
use tokio::sync::mpsc;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint as Address, Uri};
use tonic_prost::ProstCodec;
use tracing::{info, warn};

use super::otlp::{self, Attribute, Resource, ResourceSpans, ScopeSpans, Span, Value, attribute};
use super::{BatchTrace, Stage};
use crate::serve::BUILD;

/// How many batches go into one request, and how long the first of them waits for others.
const MOST: usize = 256;
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long a connection and a request may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Where a collector takes OTLP over gRPC: `http://HOST:PORT`, in plaintext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Uri);

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("`{text}` is no URL: {error}"))?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(_)) => Ok(Self(uri)),
            _ => {
                Err(format!("`{text}` is not written http://HOST:PORT; for TLS, run a collector beside the controller"))
            }
        }
    }
}

/// Sends what the control loop traces.
pub struct Exporter {
    channel: Channel,
    address: String,
    replica: String,
    batches: mpsc::Receiver<BatchTrace>,
    outage: Outage,
}

impl Exporter {
    /// One for a collector, which is connected to when there is something to send.
    pub fn new(endpoint: &Endpoint, replica: &str, batches: mpsc::Receiver<BatchTrace>) -> Self {
        let address = Address::from(endpoint.0.clone()).connect_timeout(LIMIT).timeout(LIMIT);
        Self {
            channel: address.connect_lazy(),
            address: endpoint.0.to_string(),
            replica: replica.to_owned(),
            batches,
            outage: Outage::default(),
        }
    }

    /// Sends until the control loop ends. What cannot be sent is dropped: a trace is worth no memory.
    pub async fn run(mut self) {
        while let Some(first) = self.batches.recv().await {
            let mut batches = vec![first];
            let more = async { while batches.len() < MOST && self.batches.recv_many(&mut batches, MOST).await > 0 {} };
            // What has come until then is sent.
            let _ = tokio::time::timeout(BATCH_DELAY, more).await;
            let sent = self.send(&batches).await;
            self.report(sent);
        }
    }

    async fn send(&self, batches: &[BatchTrace]) -> Result<(), String> {
        let spans: Vec<Span> = batches.iter().flat_map(spans).collect();
        let resource = Resource {
            attributes: vec![
                attribute("service.name", Value::Text("sesame".to_owned())),
                attribute("service.version", Value::Text(BUILD.version.to_owned())),
                attribute("service.instance.id", Value::Text(self.replica.clone())),
            ],
        };
        let of_resource = ResourceSpans { resource: Some(resource), scope_spans: vec![ScopeSpans { spans }] };
        let request = Request::new(otlp::Request { resource_spans: vec![of_resource] });
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| error.to_string())?;
        let codec = ProstCodec::<otlp::Request, otlp::Response>::default();
        let answer = grpc.unary(request, PathAndQuery::from_static(otlp::EXPORT), codec).await;
        answer.map(drop).map_err(|status| status.to_string())
    }

    fn report(&mut self, sent: Result<(), String>) {
        match sent {
            Ok(()) => {
                if let Some(OutageEvent::Ended(lasted)) = self.outage.worked(Instant::now()) {
                    info!(?lasted, "the collector accepts traces again");
                }
            }
            Err(why) if self.outage.failed(Instant::now()).is_some() => {
                warn!("traces of batches cannot be sent to {} (--otlp-traces): {why}", self.address);
            }
            Err(_) => {}
        }
    }
}

/// A span for the batch, and one for each stage of it.
fn spans(batch: &BatchTrace) -> Vec<Span> {
    let (trace_id, batch_id) = (id::<16>(), id::<8>());
    let span = |name: &str,
                parent: &[u8],
                span_id: Vec<u8>,
                (begun, ended): (Instant, Instant),
                attributes: Vec<Attribute>| Span {
        trace_id: trace_id.clone(),
        span_id,
        parent_span_id: parent.to_vec(),
        name: name.to_owned(),
        kind: 1,
        start_time_unix_nano: batch.nanoseconds(begun),
        end_time_unix_nano: batch.nanoseconds(ended),
        attributes,
    };
    let changes = i64::try_from(batch.changes).unwrap_or(i64::MAX);
    let fleets = batch.fleets.iter().take(8).map(ToString::to_string).collect::<Vec<_>>().join(",");
    let about = vec![
        attribute("sesame.changes", Value::Int(changes)),
        attribute("sesame.published", Value::Bool(batch.published)),
        attribute("sesame.fleets", Value::Text(fleets)),
    ];
    let mut spans = vec![span("batch", &[], batch_id.clone(), (batch.first(), batch.last()), about)];
    for stage in Stage::ALL {
        let Some(interval) = batch.stages[stage as usize] else { continue };
        let mut about = vec![attribute("sesame.busy_ms", Value::Double(interval.busy.as_secs_f64() * 1e3))];
        if stage == Stage::Acknowledge {
            about.push(attribute("sesame.complete", Value::Bool(!batch.unacknowledged)));
        }
        spans.push(span(stage.name(), &batch_id, id::<8>(), (interval.begun, interval.ended), about));
    }
    spans
}

/// A random id. One of zeros is invalid, and a collector drops its span: that is all that happens without random numbers.
fn id<const N: usize>() -> Vec<u8> {
    let mut bytes = vec![0; N];
    let _ = rand::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn a_collector_is_given_by_its_url() {
        assert!("http://collector.observability:4317".parse::<Endpoint>().is_ok());
        for wrong in ["collector:4317", "https://collector:4317", "", "http://"] {
            assert!(wrong.parse::<Endpoint>().is_err(), "{wrong}");
        }
    }
}
