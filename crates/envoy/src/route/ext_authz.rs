//! External authorization of a route: who is asked, told to the filter that asks.
//!
//! The filter serves the whole port, and most routes of a port ask nobody. To name them all would make the first host that asks for
//! authorization, and the last that stops, an edit of every other host. So it asks about marked requests only
//! ([`super::mark`]). A marked request whose route names no server is refused: the filter itself knows none.

use crate::{listener::ext_authz::FILTER, name};
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{GrpcService, HttpUri, grpc_service, http_uri::HttpUpstreamType},
        extensions::filters::http::ext_authz::v3::{
            AuthorizationResponse, BufferSettings, CheckSettings, ExtAuthzPerRoute, HttpService,
            check_settings::ServiceOverride, ext_authz_per_route::Override,
        },
        r#type::matcher::v3::{ListStringMatcher, StringMatcher, string_matcher::MatchPattern},
    },
    google::protobuf::Duration as Span,
};
use model::{
    Timeout,
    cluster::Extension,
    route::{
        AuthServer, Authorization, Policy,
        authorization::{AuthBody, AuthProtocol, HeaderNamePattern},
    },
    timeout::LONGEST,
};
use std::time::Duration;

/// How long a gRPC server may take by default; Envoy's own default, written down.
const GRPC_TIMEOUT: Duration = Duration::from_millis(200);
/// How long an HTTP server may take by default.
const HTTP_TIMEOUT: Duration = Duration::from_secs(15);

/// What a route tells the filter that asks its server.
pub fn of(policy: &Policy) -> Option<(String, Any)> {
    let (context, server) = match &policy.authorization {
        Authorization::Ask(check) => (&check.context, Some(&check.server)),
        // The filter knows everything else.
        Authorization::AskFleet(context) if !context.is_empty() => (&**context, None),
        _ => return None,
    };
    let settings = CheckSettings {
        context_extensions: context.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        with_request_body: server.and_then(|server| server.body.as_ref()).map(body),
        service_override: server.map(|server| service(server)),
        ..Default::default()
    };
    let config = ExtAuthzPerRoute { r#override: Some(Override::CheckSettings(settings)) };
    Some((FILTER.to_owned(), any(&config)))
}

/// The server, and how it is asked.
pub(crate) fn service(server: &AuthServer) -> ServiceOverride {
    let (cluster, authority) = match &server.extension {
        Some(Extension { cluster, authority, .. }) => (name::cluster(cluster), authority.to_string()),
        None => (name::NO_CLUSTER.to_owned(), name::NO_CLUSTER.to_owned()),
    };
    match &server.protocol {
        AuthProtocol::Grpc => {
            let envoy = grpc_service::EnvoyGrpc { cluster_name: cluster, authority, ..Default::default() };
            ServiceOverride::GrpcService(GrpcService {
                target_specifier: Some(grpc_service::TargetSpecifier::EnvoyGrpc(envoy)),
                timeout: Some(timeout(server, GRPC_TIMEOUT)),
                ..Default::default()
            })
        }
        AuthProtocol::Http { path_prefix, upstream_headers } => {
            let allowed = (!upstream_headers.is_empty())
                .then(|| ListStringMatcher { patterns: upstream_headers.iter().map(names).collect() });
            ServiceOverride::HttpService(HttpService {
                server_uri: Some(HttpUri {
                    uri: format!("http://{authority}/"),
                    http_upstream_type: Some(HttpUpstreamType::Cluster(cluster)),
                    timeout: Some(timeout(server, HTTP_TIMEOUT)),
                }),
                path_prefix: path_prefix.as_ref().map(|path| path.as_str().to_owned()).unwrap_or_default(),
                authorization_response: Some(AuthorizationResponse {
                    allowed_upstream_headers: allowed,
                    ..Default::default()
                }),
                ..Default::default()
            })
        }
    }
}

/// What the route says, then what the extension says. There is always an end: a request that waits for its server is held.
fn timeout(server: &AuthServer, default: Duration) -> Span {
    let of = |timeout: Timeout| match timeout {
        Timeout::Default => None,
        Timeout::Infinite => Some(LONGEST),
        Timeout::After(span) => Some(span.max(Duration::from_millis(1))),
    };
    let of_extension = server.extension.as_ref().and_then(|extension| of(extension.response_timeout));
    of(server.timeout).or(of_extension).unwrap_or(default).into()
}

pub(crate) fn body(body: &AuthBody) -> BufferSettings {
    BufferSettings { max_request_bytes: body.most, allow_partial_message: body.partial, pack_as_bytes: body.as_bytes }
}

fn names(pattern: &HeaderNamePattern) -> StringMatcher {
    let pattern = match pattern {
        HeaderNamePattern::Exact(name) => MatchPattern::Exact(name.to_string()),
        HeaderNamePattern::Prefix(name) => MatchPattern::Prefix(name.to_string()),
        HeaderNamePattern::Suffix(name) => MatchPattern::Suffix(name.to_string()),
        HeaderNamePattern::Contains(name) => MatchPattern::Contains(name.to_string()),
    };
    StringMatcher { match_pattern: Some(pattern), ignore_case: false }
}
