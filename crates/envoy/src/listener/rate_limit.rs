//! The filter that asks a rate limit service about requests that are forwarded and have descriptors.

use super::slots::Slot;
use crate::{name, route::action::timeout};
use envoy_api::{
    any,
    envoy::{
        config::{
            core::v3::{
                ApiVersion, GrpcService, TypedExtensionConfig,
                grpc_service::{EnvoyGrpc, TargetSpecifier},
            },
            ratelimit::v3::RateLimitServiceConfig,
        },
        extensions::filters::http::ratelimit::v3::{RateLimit, rate_limit::XRateLimitHeadersRfcVersion},
    },
};
use model::{PortId, cluster::Extension, listener::RateLimitService};

/// What fills the slot of a port where there is a service; one that cannot be called is asked all the same.
pub fn filled(port: &PortId, service: &RateLimitService, extension: Option<&Extension>) -> TypedExtensionConfig {
    let grpc = EnvoyGrpc {
        cluster_name: extension.map_or_else(|| name::NO_CLUSTER.to_owned(), |found| name::cluster(&found.cluster)),
        authority: extension.map(|found| found.authority.to_string()).unwrap_or_default(),
        ..Default::default()
    };
    let grpc = GrpcService { target_specifier: Some(TargetSpecifier::EnvoyGrpc(grpc)), ..Default::default() };
    let headers = match service.response_headers {
        true => XRateLimitHeadersRfcVersion::DraftVersion03,
        false => XRateLimitHeadersRfcVersion::Off,
    };
    let filter = RateLimit {
        domain: service.domain.to_string(),
        timeout: extension.and_then(|found| timeout(found.response_timeout)),
        failure_mode_deny: !service.fail_open,
        rate_limited_as_resource_exhausted: service.resource_exhausted,
        enable_x_ratelimit_headers: headers.into(),
        rate_limit_service: Some(RateLimitServiceConfig {
            grpc_service: Some(grpc),
            transport_api_version: ApiVersion::V3.into(),
        }),
        ..Default::default()
    };
    TypedExtensionConfig { name: name::slot(port, Slot::RateLimit), typed_config: Some(any(&filter)) }
}
