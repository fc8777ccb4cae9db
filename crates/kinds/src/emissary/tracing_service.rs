//! TracingService: who is sent the traces.

use super::AmbassadorId;
use crate::{Checked, List, Meta, open_enum::open_enum};
use serde::Deserialize;

/// Who is sent the traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TracingService {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: TracingServiceSpec,
}

/// The specification of a TracingService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TracingServiceSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The kind of tracing; required.
    pub driver: Checked<Option<TracingDriver>>,
    /// The service; required.
    pub service: Checked<Option<Box<str>>>,
    /// Which requests are traced.
    pub sampling: Checked<Option<Box<Sampling>>>,
    /// Tags of spans.
    pub custom_tags: List<CustomTag>,
    /// Request headers that become tags of spans; deprecated.
    pub tag_headers: Checked<Option<Box<[Box<str>]>>>,
    /// Settings of the driver.
    pub config: Checked<Option<Box<TracingConfig>>>,
    /// The name of the cluster in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
}

open_enum! {
    /// A kind of tracing.
    TracingDriver {
        /// Lightstep: not supported.
        Lightstep = "lightstep",
        /// Zipkin.
        Zipkin = "zipkin",
        /// Datadog.
        Datadog = "datadog",
        /// OpenTelemetry.
        OpenTelemetry = "opentelemetry",
    }
}

/// Which requests are traced, in percent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Of those whose client asks for a trace.
    pub client: Option<i64>,
    /// Of all, at random.
    pub random: Option<i64>,
    /// Of all, at most.
    pub overall: Option<i64>,
}

/// A tag of spans: exactly one of the sources should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CustomTag {
    /// Its name.
    pub tag: Box<str>,
    /// A constant.
    pub literal: Option<LiteralTag>,
    /// An environment variable of the proxy.
    pub environment: Option<NamedTag>,
    /// A header of the request.
    pub request_header: Option<NamedTag>,
}

/// A constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LiteralTag {
    /// The value.
    pub value: Box<str>,
}

/// A value by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NamedTag {
    /// The name.
    pub name: Box<str>,
    /// The value where there is none.
    pub default_value: Option<Box<str>>,
}

/// Settings of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TracingConfig {
    /// The path of the collector; `/api/v2/spans` if absent.
    pub collector_endpoint: Option<Box<str>>,
    /// The format of the collector.
    pub collector_endpoint_version: Option<CollectorVersion>,
    /// The host of the collector.
    pub collector_hostname: Option<Box<str>>,
    /// No effect: the cluster is made from `service`.
    pub collector_cluster: Option<Box<str>>,
    /// Trace ids have 128 bits; true if absent.
    pub trace_id_128bit: Option<bool>,
    /// Client and server share a span; true if absent.
    pub shared_span_context: Option<bool>,
    /// The name of this service in traces; `ambassador` if absent.
    pub service_name: Option<Box<str>>,
    /// Headers that carry the trace on.
    pub propagation_modes: Box<[Box<str>]>,
    /// A file with the token of Lightstep.
    pub access_token_file: Option<Box<str>>,
}

open_enum! {
    /// The format of a collector.
    CollectorVersion {
        /// JSON of Zipkin's first version, which Envoy has no more.
        HttpJsonV1 = "HTTP_JSON_V1",
        /// JSON of Zipkin's second version.
        HttpJson = "HTTP_JSON",
        /// Protobuf of Zipkin's second version.
        HttpProto = "HTTP_PROTO",
    }
}
