//! External authorization: one filter in each filter chain, which passes marked requests on to one that asks about them.
//!
//! Who is asked stands in each route ([`crate::route::ext_authz`]), so the filters that ask are the same for everybody and stand in the
//! listener: those that fail closed and those that fail open, and of each one that sends bodies as text and one that sends them as bytes.
//! Both are settings of the filter: Envoy takes no notice of `pack_as_bytes` in a route. Only the server of a fleet stands in a
//! [slot](Slot), with what has no form per route. Requests that are not marked pass none of them, and cost nothing; marked ones whose
//! route names no server are refused, because the filter's own does not exist.
//!
//! A server may change what the backend sees, not whose request it is, nor where it ends: pseudo-headers, the host, headers of message
//! framing and those by which Sesame finds routes are out of its reach ([`immutable_names`]). The route stays the one whose IP lists,
//! tokens and limits the request has passed, whatever headers it is given. The exception is the server of a fleet, which is the
//! operator's, and whose headers may choose the route. What a server may do to responses is limited by
//! [`crate::route::framing`] and, where it denies, by [`super::local_replies`].

use super::{composite, slots::Slot};
use crate::{
    name,
    route::{ext_authz, mark},
};
use envoy_api::{
    any,
    envoy::{
        config::{
            common::mutation_rules::v3::HeaderMutationRules,
            core::v3::{ApiVersion, GrpcService, HeaderValue, TypedExtensionConfig, grpc_service},
        },
        extensions::filters::{
            http::ext_authz::v3::{
                AuthorizationRequest, AuthorizationResponse, BufferSettings, ExtAuthz, HttpService,
                check_settings::ServiceOverride, ext_authz::Services,
            },
            network::http_connection_manager::v3::HttpFilter,
        },
        r#type::{
            matcher::v3::{ListStringMatcher, RegexMatcher, StringMatcher, string_matcher::MatchPattern},
            v3::HttpStatus,
        },
    },
};
use model::{HeaderName, PortId, header::immutable_names, listener::AuthorizationService, route::Authorization};

/// The filter that asks, under which a route says whom.
pub const FILTER: &str = "envoy.filters.http.ext_authz";

/// The filters of which one asks about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationFilter {
    /// It refuses requests when nobody can be asked.
    FailClosed {
        /// Whether bodies are sent as bytes.
        bytes: bool,
    },
    /// It lets them pass.
    FailOpen {
        /// Whether bodies are sent as bytes.
        bytes: bool,
    },
    /// It asks the server of the fleet, which the filter itself names.
    OfFleet,
}

impl AuthorizationFilter {
    /// The one that asks about requests of a route, if one does.
    pub fn of(authorization: &Authorization) -> Option<Self> {
        match authorization {
            Authorization::Ask(check) => {
                let bytes = check.server.body.is_some_and(|body| body.as_bytes);
                Some(if check.server.fail_open { Self::FailOpen { bytes } } else { Self::FailClosed { bytes } })
            }
            Authorization::AskFleet(_) => Some(Self::OfFleet),
            Authorization::Unset | Authorization::AskDefault(_) | Authorization::Disabled => None,
        }
    }
}

/// The filter of a port, which passes marked requests on to the one that asks about them.
pub(super) fn authorization(port: &PortId) -> HttpFilter {
    let fleet = composite::slot(name::slot(port, Slot::ExtAuthzOfFleet), Slot::ExtAuthzOfFleet.source());
    let fixed = |config: ExtAuthz| composite::fixed(FILTER, any(&config));
    let filters = [
        (mark::authorized_by(AuthorizationFilter::OfFleet), fleet),
        (mark::authorized_by(AuthorizationFilter::FailOpen { bytes: false }), fixed(filter(true))),
        (mark::authorized_by(AuthorizationFilter::FailOpen { bytes: true }), fixed(with_bytes(filter(true)))),
        (mark::authorized_by(AuthorizationFilter::FailClosed { bytes: true }), fixed(with_bytes(filter(false)))),
    ];
    composite::by_mark(FILTER, mark::any_authorized(), filters, &fixed(filter(false)))
}

/// The same filter, for bodies as bytes. How much of them is sent stands in the route.
fn with_bytes(filter: ExtAuthz) -> ExtAuthz {
    let body = BufferSettings { max_request_bytes: 1, pack_as_bytes: true, ..Default::default() };
    ExtAuthz { with_request_body: Some(body), ..filter }
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
        clear_route_cache: true,
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

/// The filter that asks whom a route names.
fn filter(fail_open: bool) -> ExtAuthz {
    let no_server = grpc_service::EnvoyGrpc { cluster_name: name::NO_CLUSTER.to_owned(), ..Default::default() };
    let no_server = GrpcService {
        target_specifier: Some(grpc_service::TargetSpecifier::EnvoyGrpc(no_server)),
        ..Default::default()
    };
    let own = StringMatcher { match_pattern: Some(MatchPattern::Prefix("x-sesame-".to_owned())), ignore_case: true };
    ExtAuthz {
        services: Some(Services::GrpcService(no_server)),
        transport_api_version: ApiVersion::V3.into(),
        failure_mode_allow: fail_open,
        validate_mutations: true,
        enforce_response_header_limits: true,
        status_on_error: Some(HttpStatus { code: 403 }),
        include_peer_certificate: true,
        disallowed_headers: Some(ListStringMatcher { patterns: vec![own] }),
        decoder_header_mutation_rules: Some(HeaderMutationRules {
            disallow_expression: Some(RegexMatcher { regex: immutable_names(), ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    }
}
