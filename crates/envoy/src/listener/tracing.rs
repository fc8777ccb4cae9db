//! Tracing of a connection manager: spans go to a collector of OTLP over gRPC.
//!
//! Envoy looks the cluster of the collector up when it sends spans, so one that is not there costs spans and nothing else. What a
//! span says is the operator's alone: no route has tags, a sampling or an operation name of its own.

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
                OpenTelemetryConfig,
                tracing::{Http, http::ConfigType},
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
use model::listener::{Percent, SpanTag, TagValue, Tracer};

/// How a manager traces requests. Envoy is a hop of its own: what it forwards has a span below that of the request.
pub fn tracing(tracer: &Tracer) -> Tracing {
    let Tracer { tracing, collector } = tracer;
    let grpc = EnvoyGrpc {
        cluster_name: name::cluster(&collector.cluster),
        authority: collector.authority.to_string(),
        ..Default::default()
    };
    let exporter = OpenTelemetryConfig {
        grpc_service: Some(GrpcService {
            timeout: timeout(collector.response_timeout),
            target_specifier: Some(TargetSpecifier::EnvoyGrpc(grpc)),
            ..Default::default()
        }),
        service_name: tracing.service_name.to_string(),
        ..Default::default()
    };
    let provider = Http {
        name: "envoy.tracers.opentelemetry".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&exporter))),
    };
    Tracing {
        overall_sampling: Some(percent(tracing.overall)),
        client_sampling: Some(percent(tracing.client)),
        random_sampling: Some(percent(tracing.random)),
        max_path_tag_length: Some(tracing.max_path.into()),
        custom_tags: tracing.tags.iter().map(tag).collect(),
        provider: Some(provider),
        spawn_upstream_span: Some(true.into()),
        ..Default::default()
    }
}

fn percent(percent: Percent) -> v3::Percent {
    v3::Percent { value: percent.value() }
}

fn tag(tag: &SpanTag) -> CustomTag {
    let value = match &tag.value {
        TagValue::Literal(text) => Type::Literal(Literal { value: text.to_string() }),
        TagValue::RequestHeader(name) => {
            Type::RequestHeader(Header { name: name.to_string(), default_value: String::new() })
        }
        TagValue::Environment(name) => {
            Type::Environment(Environment { name: name.to_string(), default_value: String::new() })
        }
    };
    CustomTag { tag: tag.name.to_string(), r#type: Some(value) }
}
