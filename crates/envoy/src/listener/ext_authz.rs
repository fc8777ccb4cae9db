//! What fills a slot for external authorization: a filter that asks nobody by itself.
//!
//! Who is asked stands in each route ([`crate::route::ext_authz`]), so the slot is the same whoever uses it. Requests that are
//! not marked pass; marked ones whose route names no server are refused, because the filter's own does not exist. There are two
//! slots, since what is done about a server that cannot be asked is a setting of the filter.
//!
//! A server may change what the backend sees, not whose request it is: the host, the scheme, and the headers by which Sesame finds
//! routes are out of its reach.

use crate::{listener::slots::Slot, name, route::ext_authz::is_marked};
use envoy_api::{
    any,
    envoy::{
        config::{
            common::mutation_rules::v3::HeaderMutationRules,
            core::v3::{ApiVersion, GrpcService, TypedExtensionConfig, grpc_service},
        },
        extensions::filters::http::ext_authz::v3::{ExtAuthz, ext_authz::Services},
        r#type::{
            matcher::v3::{ListStringMatcher, RegexMatcher, StringMatcher, string_matcher::MatchPattern},
            v3::HttpStatus,
        },
    },
};
use model::PortId;

/// The slot of a port, filled.
pub fn filled(port: &PortId, fail_open: bool) -> TypedExtensionConfig {
    let typed_config = Some(any(&filter(fail_open)));
    TypedExtensionConfig { name: name::slot(port, Slot::ext_authz(fail_open)), typed_config }
}

/// The filter.
pub(super) fn filter(fail_open: bool) -> ExtAuthz {
    let nobody = grpc_service::EnvoyGrpc { cluster_name: name::NOWHERE.to_owned(), ..Default::default() };
    let nobody =
        GrpcService { target_specifier: Some(grpc_service::TargetSpecifier::EnvoyGrpc(nobody)), ..Default::default() };
    let own = StringMatcher { match_pattern: Some(MatchPattern::Prefix("x-sesame-".to_owned())), ignore_case: true };
    ExtAuthz {
        services: Some(Services::GrpcService(nobody)),
        transport_api_version: ApiVersion::V3.into(),
        failure_mode_allow: fail_open,
        clear_route_cache: true,
        status_on_error: Some(HttpStatus { code: 403 }),
        include_peer_certificate: true,
        filter_enabled_metadata: Some(is_marked(fail_open)),
        disallowed_headers: Some(ListStringMatcher { patterns: vec![own] }),
        decoder_header_mutation_rules: Some(HeaderMutationRules {
            allow_all_routing: Some(true.into()),
            disallow_expression: Some(RegexMatcher {
                regex: "^(:authority|host|:scheme|x-sesame-.*)$".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}
