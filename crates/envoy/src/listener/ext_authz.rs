//! What fills a slot for external authorization: a filter that asks nobody by itself.
//!
//! Who is asked stands in each route ([`crate::route::ext_authz`]), so the slot is the same whoever uses it; only the server of a fleet
//! stands in a slot of its own, with what has no form per route. Requests that are
//! not marked pass; marked ones whose route names no server are refused, because the filter's own does not exist. There are two
//! slots, since what is done about a server that cannot be asked is a setting of the filter.
//!
//! A server may change what the backend sees, not whose request it is: the host, the scheme, and the headers by which Sesame finds
//! routes are out of its reach.

use crate::{
    listener::slots::Slot,
    name,
    route::{ext_authz, mark::is_marked},
};
use envoy_api::{
    any,
    envoy::{
        config::{
            common::mutation_rules::v3::HeaderMutationRules,
            core::v3::{ApiVersion, GrpcService, HeaderValue, TypedExtensionConfig, grpc_service},
        },
        extensions::filters::http::ext_authz::v3::{
            AuthorizationRequest, AuthorizationResponse, ExtAuthz, HttpService, check_settings::ServiceOverride,
            ext_authz::Services,
        },
        r#type::{
            matcher::v3::{ListStringMatcher, RegexMatcher, StringMatcher, string_matcher::MatchPattern},
            v3::HttpStatus,
        },
    },
};
use model::{HeaderName, PortId, listener::AuthorizationService};

/// The slot of a port, filled.
pub fn filled(port: &PortId, fail_open: bool) -> TypedExtensionConfig {
    let typed_config = Some(any(&filter(fail_open)));
    TypedExtensionConfig { name: name::slot(port, Slot::ext_authz(fail_open)), typed_config }
}

/// The slot of a port for the server of its fleet, filled.
pub fn filled_by_fleet(port: &PortId, service: &AuthorizationService) -> TypedExtensionConfig {
    let typed_config = Some(any(&of_fleet(service)));
    TypedExtensionConfig { name: name::slot(port, Slot::ExtAuthzOfFleet), typed_config }
}

/// The filter that asks the server of a fleet about requests that are marked for it.
pub(super) fn of_fleet(service: &AuthorizationService) -> ExtAuthz {
    let AuthorizationService { server, request_headers, added_headers, client_headers, status_on_error } = service;
    let added = added_headers.iter().map(|(name, value)| HeaderValue {
        key: name.to_string(),
        value: value.as_str().to_owned(),
        ..Default::default()
    });
    let services = match ext_authz::service(server) {
        ServiceOverride::GrpcService(grpc) => {
            Services::GrpcService(GrpcService { initial_metadata: added.collect(), ..grpc })
        }
        ServiceOverride::HttpService(http) => {
            let clients = (!client_headers.is_empty()).then(|| list(client_headers));
            let response = http.authorization_response.unwrap_or_default();
            Services::HttpService(HttpService {
                authorization_request: Some(AuthorizationRequest {
                    headers_to_add: added.collect(),
                    ..Default::default()
                }),
                authorization_response: Some(AuthorizationResponse { allowed_client_headers: clients, ..response }),
                ..http
            })
        }
    };
    ExtAuthz {
        services: Some(services),
        failure_mode_allow: server.fail_open,
        with_request_body: server.body.as_ref().map(ext_authz::body),
        status_on_error: Some(HttpStatus { code: (*status_on_error).into() }),
        allowed_headers: request_headers.as_deref().map(list),
        filter_enabled_metadata: Some(is_marked(Slot::ExtAuthzOfFleet)),
        ..filter(server.fail_open)
    }
}

fn list(names: &[HeaderName]) -> ListStringMatcher {
    let one = |name: &HeaderName| StringMatcher {
        match_pattern: Some(MatchPattern::Exact(name.to_string())),
        ignore_case: true,
    };
    ListStringMatcher { patterns: names.iter().map(one).collect() }
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
        filter_enabled_metadata: Some(is_marked(Slot::ext_authz(fail_open))),
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
