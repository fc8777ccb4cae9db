//! Tracing of a connection manager: spans go to a collector of OTLP over gRPC, to Zipkin, or to an agent of Datadog.
//!
//! Envoy looks the cluster of an OTLP collector up when it sends spans, so one that is not there costs spans and nothing else. With the
//! others it refuses a listener whose cluster it does not have: the listener has to be sent after the cluster. No route has tags, a
//! sampling or an operation name of its own.

use crate::{name, route::action::timeout};
use envoy_api::{
    any,
    envoy::{
        config::{
            core::v3::{
                GrpcService,
                grpc_service::{EnvoyGrpc, TargetSpecifier},
            },
            trace::v3::{
                DatadogConfig, OpenTelemetryConfig, ZipkinConfig,
                tracing::{Http, http::ConfigType},
                zipkin_config::CollectorEndpointVersion,
            },
        },
        extensions::filters::network::http_connection_manager::v3::http_connection_manager::Tracing,
        r#type::{
            tracing::v3::{
                CustomTag,
                custom_tag::{Environment, Header, Literal, Type},
            },
            v3,
        },
    },
};
use model::listener::{Exporter, Percent, SpanTag, TagValue, Tracer, Zipkin};

/// How a manager traces requests. Envoy is a hop of its own: what it forwards has a span below that of the request.
pub fn tracing(tracer: &Tracer) -> Tracing {
    let tracing = &tracer.tracing;
    Tracing {
        overall_sampling: Some(percent(tracing.overall)),
        client_sampling: Some(percent(tracing.client)),
        random_sampling: Some(percent(tracing.random)),
        max_path_tag_length: Some(tracing.max_path.into()),
        custom_tags: tracing.tags.iter().map(tag).collect(),
        provider: Some(provider(tracer)),
        spawn_upstream_span: Some(true.into()),
        ..Default::default()
    }
}

/// Who gets the spans, and in which form.
fn provider(tracer: &Tracer) -> Http {
    let Tracer { tracing, collector, exporter } = tracer;
    let cluster = name::cluster(&collector.cluster);
    let (name, config) = match exporter {
        Exporter::Otlp => {
            let authority = collector.authority.to_string();
            let grpc = EnvoyGrpc { cluster_name: cluster, authority, ..Default::default() };
            let exporter = OpenTelemetryConfig {
                grpc_service: Some(GrpcService {
                    timeout: timeout(collector.response_timeout),
                    target_specifier: Some(TargetSpecifier::EnvoyGrpc(grpc)),
                    ..Default::default()
                }),
                service_name: tracing.service_name.to_string(),
                ..Default::default()
            };
            ("envoy.tracers.opentelemetry", any(&exporter))
        }
        Exporter::Zipkin(zipkin) => ("envoy.tracers.zipkin", any(&self::zipkin(zipkin, cluster))),
        Exporter::Datadog(host) => {
            let agent = DatadogConfig {
                collector_cluster: cluster,
                service_name: tracing.service_name.to_string(),
                collector_hostname: host.to_string(),
                ..Default::default()
            };
            ("envoy.tracers.datadog", any(&agent))
        }
    };
    Http { name: name.to_owned(), config_type: Some(ConfigType::TypedConfig(config)) }
}

fn zipkin(zipkin: &Zipkin, cluster: String) -> ZipkinConfig {
    let version = match zipkin.is_protobuf {
        true => CollectorEndpointVersion::HttpProto,
        false => CollectorEndpointVersion::HttpJson,
    };
    ZipkinConfig {
        collector_cluster: cluster,
        collector_endpoint: zipkin.endpoint.to_string(),
        trace_id_128bit: zipkin.has_long_ids,
        shared_span_context: Some(zipkin.shares_spans.into()),
        collector_endpoint_version: version.into(),
        collector_hostname: zipkin.host.to_string(),
        ..Default::default()
    }
}

fn percent(percent: Percent) -> v3::Percent {
    v3::Percent { value: percent.value() }
}

fn tag(tag: &SpanTag) -> CustomTag {
    let default_value = tag.default.as_deref().unwrap_or_default().to_owned();
    let value = match &tag.value {
        TagValue::Literal(text) => Type::Literal(Literal { value: text.to_string() }),
        TagValue::RequestHeader(name) => Type::RequestHeader(Header { name: name.to_string(), default_value }),
        TagValue::Environment(name) => Type::Environment(Environment { name: name.to_string(), default_value }),
    };
    CustomTag { tag: tag.name.to_string(), r#type: Some(value) }
}
