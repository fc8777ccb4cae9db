//! TracingServices: who gets the spans of requests, which requests are traced, and what their spans say.
//!
//! In: all TracingServices of the instance. Out: the one in effect: of Sesame's namespace before others, then the oldest; all others
//! are told, and all of them are where the operator's settings name a collector. One that cannot be used traces nothing, and requests
//! are served all the same. A tag that is not valid is told, and the others are served.

use crate::{EmissaryView, Problem, Problems, Settings, mapping::upstream, precedence, upstream_service::Reading};
use kinds::{
    emissary::{
        TracingService,
        tracing_service::{
            CollectorVersion, CustomTag, NamedTag, Sampling, TracingConfig, TracingDriver, TracingServiceSpec,
        },
    },
    kind,
};
use model::{
    Code, HeaderName, HeaderValue, ObjectRef, Translation, Verdict,
    cluster::ClusterOverrides,
    listener::{Exporter, Percent, SpanTag, TagValue, Tracer, Tracing, Zipkin},
    route::PathAndQuery,
};
use std::{collections::BTreeMap, sync::Arc};

/// `service.name` of spans where nothing is said.
const SERVICE_NAME: &str = "ambassador";
/// The path of Zipkin's API where nothing is said.
const ENDPOINT: &str = "/api/v2/spans";
/// The longest name or value of a tag, and the longest name of a service or a host.
const LONGEST: usize = 1024;
/// The most tags: every span has them.
const MOST_TAGS: usize = 64;

/// The TracingServices of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingServices {
    /// The object in effect.
    pub object: ObjectRef,
    /// What proxies are told; nothing where it cannot be used.
    pub tracer: Option<Tracer>,
    /// What is told about each object.
    pub verdicts: BTreeMap<ObjectRef, Vec<Verdict>>,
    /// Whether it depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

impl TracingServices {
    /// The one in effect, and what is told about all of them; nothing where there is none. Where the operator names a collector,
    /// none is.
    pub fn of<'a>(
        objects: impl Iterator<Item = &'a TracingService>,
        is_operators: bool,
        view: &mut impl EmissaryView,
        settings: &Settings,
    ) -> Option<Self> {
        let mut objects: Vec<&TracingService> = objects.collect();
        let order =
            |object: &TracingService| (*object.meta.namespace != *settings.namespace, precedence(&object.meta, 0));
        objects.sort_by_cached_key(|object| order(object));
        let (first, others) = objects.split_first()?;
        let object = subject(first);
        let mut problems = Problems::new(&object);
        let (namespace, code) = (&*first.meta.namespace, Code::TracingServiceInvalid);
        let mut reading = Reading { namespace, code, view, settings, problems: &mut problems, is_pending: false };
        let tracer = read(&first.spec, &mut reading);
        let is_pending = reading.is_pending;
        let is_usable = !problems.is_refused() && !is_operators;
        let tracer = tracer.filter(|_| is_usable);
        let mut verdicts = BTreeMap::from([(object.clone(), problems.into_verdicts())]);
        let (passed_over, holder) = match is_operators {
            true => (&*objects, "the collector of Sesame's configuration is in effect".to_owned()),
            false => (others, format!("{object} is in effect")),
        };
        for other in passed_over {
            let verdict = Verdict::new(Code::EmissaryOlderObjectInEffect, subject(other).at(""), holder.clone());
            verdicts.insert(subject(other), vec![verdict]);
        }
        Some(Self { object, tracer, verdicts, is_pending })
    }
}

fn read(spec: &TracingServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<Tracer> {
    let called = reading.service("service", &spec.service, None);
    let config = reading.problems.optional("config", &spec.config).map(|config| (**config).clone()).unwrap_or_default();
    let driver = driver(spec, reading);
    let service_name = short(reading, "config.service_name", config.service_name.as_deref());
    let host = match short(reading, "config.collector_hostname", config.collector_hostname.as_deref()) {
        Some(host) if !is_host(&host) => {
            reading.refuse("config.collector_hostname", "must be a host, with a port or without");
            None
        }
        host => host,
    };
    let zipkin = zipkin(&config, reading);
    let [overall, client, random] = sampling(spec, reading);
    let tags = tags(spec, reading);
    let stats_name = reading.problems.optional("stats_name", &spec.stats_name).filter(|name| !name.is_empty());
    let overrides =
        ClusterOverrides { stats_name: stats_name.map(|name| upstream::in_stats(name)), ..ClusterOverrides::default() };
    let (called, driver) = (called?, driver?);
    report_idle(driver, &config, reading);
    let host = host.unwrap_or_else(|| called.authority.clone());
    let collector = called.extension(driver == Driver::OpenTelemetry, overrides, reading.view);
    let exporter = match driver {
        Driver::OpenTelemetry => Exporter::Otlp,
        Driver::Datadog => Exporter::Datadog(host),
        Driver::Zipkin => {
            let (endpoint, is_protobuf) = zipkin?;
            let has_long_ids = config.trace_id_128bit.unwrap_or(true);
            let shares_spans = config.shared_span_context.unwrap_or(true);
            Exporter::Zipkin(Zipkin { endpoint, host, is_protobuf, has_long_ids, shares_spans })
        }
    };
    let service_name = service_name.unwrap_or_else(|| SERVICE_NAME.into());
    let tracing = Tracing { service_name, overall, client, random, tags, ..Tracing::default() };
    Some(Tracer { tracing: Arc::new(tracing), collector, exporter })
}

/// A driver that proxies have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Driver {
    Zipkin,
    Datadog,
    OpenTelemetry,
}

fn driver(spec: &TracingServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<Driver> {
    match reading.problems.read("driver", &spec.driver)? {
        Some(TracingDriver::Zipkin) => Some(Driver::Zipkin),
        Some(TracingDriver::Datadog) => Some(Driver::Datadog),
        Some(TracingDriver::OpenTelemetry) => Some(Driver::OpenTelemetry),
        Some(driver @ (TracingDriver::Lightstep | TracingDriver::Unknown(_))) => {
            let driver = driver.as_str().escape_debug();
            reading.refuse("driver", format!("must be zipkin, datadog or opentelemetry; {driver} is not supported"));
            None
        }
        None => {
            reading.refuse("driver", "driver is missing");
            None
        }
    }
}

/// The path of Zipkin's API, and whether spans are protobuf.
fn zipkin(config: &TracingConfig, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Option<(PathAndQuery, bool)> {
    let endpoint = config.collector_endpoint.as_deref().filter(|text| !text.is_empty()).unwrap_or(ENDPOINT);
    let endpoint = PathAndQuery::parse(endpoint).map_err(|error| {
        reading.refuse("config.collector_endpoint", error.to_string());
    });
    let is_protobuf = match &config.collector_endpoint_version {
        None | Some(CollectorVersion::HttpJson) => Some(false),
        Some(CollectorVersion::HttpProto) => Some(true),
        Some(version @ (CollectorVersion::HttpJsonV1 | CollectorVersion::Unknown(_))) => {
            let version = version.as_str().escape_debug();
            let why = format!("must be HTTP_JSON or HTTP_PROTO; Envoy does not support `{version}`");
            reading.refuse("config.collector_endpoint_version", why);
            None
        }
    };
    endpoint.ok().zip(is_protobuf)
}

/// Keys of the configuration that the driver has no use for.
fn report_idle(driver: Driver, config: &TracingConfig, reading: &mut Reading<'_, '_, impl EmissaryView>) {
    use Driver::{Datadog, OpenTelemetry, Zipkin};
    let keys: [(&str, bool, &[Driver]); 9] = [
        ("collector_endpoint", config.collector_endpoint.is_some(), &[Zipkin]),
        ("collector_endpoint_version", config.collector_endpoint_version.is_some(), &[Zipkin]),
        ("collector_hostname", config.collector_hostname.is_some(), &[Zipkin, Datadog]),
        ("trace_id_128bit", config.trace_id_128bit.is_some(), &[Zipkin]),
        ("shared_span_context", config.shared_span_context.is_some(), &[Zipkin]),
        ("service_name", config.service_name.is_some(), &[Datadog, OpenTelemetry]),
        ("collector_cluster", config.collector_cluster.is_some(), &[]),
        ("propagation_modes", !config.propagation_modes.is_empty(), &[]),
        ("access_token_file", config.access_token_file.is_some(), &[]),
    ];
    for (key, is_set, drivers) in keys {
        if is_set && !drivers.contains(&driver) {
            reading.problems.no_effect(&format!("config.{key}"), "it has no effect with this driver");
        }
    }
}

/// How many requests are traced: at most, of those whose clients ask for it, of all others.
fn sampling(spec: &TracingServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> [Percent; 3] {
    let written = reading.problems.optional("sampling", &spec.sampling);
    let Sampling { client, random, overall } = written.map(|written| (**written).clone()).unwrap_or_default();
    [("overall", overall), ("client", client), ("random", random)].map(|(name, value)| {
        let Some(value) = value else { return Percent::ALL };
        Percent::parse(&value.to_string()).unwrap_or_else(|error| {
            reading.refuse(&format!("sampling.{name}"), error.to_string());
            Percent::ALL
        })
    })
}

/// Tags of spans, each of another name; one that is not valid is left out.
fn tags(spec: &TracingServiceSpec, reading: &mut Reading<'_, '_, impl EmissaryView>) -> Vec<SpanTag> {
    let headers = reading.problems.optional("tag_headers", &spec.tag_headers);
    if headers.is_some_and(|headers| !headers.is_empty()) {
        reading.problems.no_effect(
            "tag_headers",
            "Cannot specify both custom_tags and tag_headers. Using custom_tags and ignoring tag_headers.",
        );
    }
    let mut tags: Vec<SpanTag> = Vec::new();
    for (index, written) in spec.custom_tags.iter().enumerate() {
        let found = match written.get() {
            Ok(_) if tags.len() >= MOST_TAGS => Err(format!("at most {MOST_TAGS} tags are served")),
            Ok(written) => tag(written),
            Err(fault) => Err(fault.why.to_string()),
        };
        let found = found.and_then(|tag| match tags.iter().any(|other| other.name == tag.name) {
            true => Err(format!("there is another tag `{}`", tag.name.escape_debug())),
            false => Ok(tag),
        });
        match found {
            Ok(tag) => tags.push(tag),
            Err(why) => {
                let field = format!("custom_tags[{index}]");
                reading.problems.add(Problem::new(Code::TracingServiceInvalid, &field, why));
            }
        }
    }
    tags
}

fn tag(written: &CustomTag) -> Result<SpanTag, String> {
    let CustomTag { tag, literal, environment, request_header } = written;
    let name = filled("tag", tag)?;
    let default = |tag: &NamedTag| {
        let text = tag.default_value.as_deref().filter(|text| !text.is_empty());
        text.map(|text| filled("default_value", text)).transpose()
    };
    let (value, default) = match (literal, environment, request_header) {
        (Some(literal), None, None) => (TagValue::Literal(filled("value", &literal.value)?), None),
        (None, Some(variable), None) => (TagValue::Environment(filled("name", &variable.name)?), default(variable)?),
        (None, None, Some(header)) => {
            let name = HeaderName::parse_matched(&header.name).map_err(|error| error.to_string())?;
            (TagValue::RequestHeader(name), default(header)?)
        }
        _ => return Err("must have exactly one of literal, environment and request_header".to_owned()),
    };
    Ok(SpanTag { name, value, default })
}

fn filled(name: &str, text: &str) -> Result<Arc<str>, String> {
    match text.len() {
        1..=LONGEST if !text.contains('\0') => Ok(text.into()),
        1..=LONGEST => Err(format!("{name} must not contain NUL")),
        found => Err(format!("{name} must have from 1 to {LONGEST} bytes, not {found}")),
    }
}

/// A text that is not empty, if there is one.
fn short(reading: &mut Reading<'_, '_, impl EmissaryView>, field: &str, text: Option<&str>) -> Option<Arc<str>> {
    let text = text.filter(|text| !text.is_empty())?;
    filled("it", text).map_err(|why| reading.refuse(field, why)).ok()
}

/// Whether a text may stand in `Host`.
fn is_host(text: &str) -> bool {
    HeaderValue::parse(text).is_ok() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What is told about a TracingService: it asks for nothing by itself.
pub fn translate(subject: ObjectRef, all: &TracingServices) -> Translation {
    let verdicts = all.verdicts.get(&subject).cloned().unwrap_or_default();
    Translation { verdicts, ..Translation::empty(subject) }
}

fn subject(object: &TracingService) -> ObjectRef {
    ObjectRef::new(kind::TRACING_SERVICE, object.meta.namespace.clone(), object.meta.name.clone())
}
