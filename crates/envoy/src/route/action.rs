//! What is done with a request.

use super::{cookies, headers_to_remove, headers_to_set, retry};
use crate::name;
use envoy_api::envoy::config::core::v3::{DataSource, RuntimeFractionalPercent, data_source};
use envoy_api::envoy::config::route::v3::redirect_action::{
    PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier,
};
use envoy_api::envoy::config::route::v3::route::Action;
use envoy_api::envoy::config::route::v3::route_action::hash_policy::{
    ConnectionProperties, Cookie, Header, PolicySpecifier, QueryParameter,
};
use envoy_api::envoy::config::route::v3::route_action::{
    ClusterSpecifier, HashPolicy, HostRewriteSpecifier, RequestMirrorPolicy, UpgradeConfig,
};
use envoy_api::envoy::config::route::v3::weighted_cluster::{ClusterWeight, cluster_weight};
use envoy_api::envoy::config::route::v3::{DirectResponseAction, RedirectAction, RouteAction, WeightedCluster};
use envoy_api::envoy::r#type::v3::FractionalPercent;
use envoy_api::google::protobuf::Duration;
use model::route::{DirectResponse, Forward, Hash, HashOf, HostRewrite, Mirror, Redirect, RedirectPath, Scheme};
use model::{Timeout, route};

/// The shortest time that Envoy can tell from none.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(1);

/// The action.
pub fn action(action: &route::Action) -> Action {
    match action {
        route::Action::Forward(forward) => Action::Route(forwarded(forward)),
        route::Action::Redirect(redirect) => Action::Redirect(redirected(redirect)),
        route::Action::DirectResponse(respond) => Action::DirectResponse(responded(respond)),
    }
}

fn forwarded(forward: &Forward) -> RouteAction {
    RouteAction {
        cluster_specifier: Some(clusters(&forward.clusters)),
        timeout: timeout(forward.timeout),
        retry_policy: forward.retry.as_deref().map(retry::retry_policy),
        idle_timeout: timeout(forward.idle),
        request_mirror_policies: forward.mirrors.iter().map(mirror).collect(),
        prefix_rewrite: forward.rewrite.as_ref().map_or_else(String::new, ToString::to_string),
        host_rewrite_specifier: forward.host.as_ref().map(host),
        hash_policy: forward.hash.iter().map(hash_policy).collect(),
        internal_redirect_policy: forward.internal_redirect.as_deref().map(retry::internal_redirect_policy),
        upgrade_configs: if forward.websocket { vec![websocket()] } else { Vec::new() },
        ..Default::default()
    }
}

fn clusters(clusters: &[route::WeightedCluster]) -> ClusterSpecifier {
    // A single backend needs no shares, unless something is changed on the way to it.
    if let [only] = clusters
        && *only == route::WeightedCluster::new(only.cluster.clone(), only.weight)
    {
        return ClusterSpecifier::Cluster(name::cluster(&only.cluster));
    }
    let clusters = clusters.iter().map(|share| ClusterWeight {
        name: name::cluster(&share.cluster),
        weight: Some(share.weight.into()),
        request_headers_to_add: headers_to_set(&share.request_headers),
        request_headers_to_remove: headers_to_remove(&share.request_headers),
        response_headers_to_add: headers_to_set(&share.response_headers),
        response_headers_to_remove: headers_to_remove(&share.response_headers),
        host_rewrite_specifier: share
            .host
            .as_ref()
            .map(|host| cluster_weight::HostRewriteSpecifier::HostRewriteLiteral(host.as_str().to_owned())),
        typed_per_filter_config: cookies::of(&share.cookies).into_iter().collect(),
        ..Default::default()
    });
    ClusterSpecifier::WeightedClusters(WeightedCluster { clusters: clusters.collect(), ..Default::default() })
}

fn mirror(mirror: &Mirror) -> RequestMirrorPolicy {
    let fraction = RuntimeFractionalPercent {
        default_value: Some(FractionalPercent { numerator: mirror.percent, denominator: 0 }),
        ..Default::default()
    };
    RequestMirrorPolicy {
        cluster: name::cluster(&mirror.cluster),
        runtime_fraction: Some(fraction),
        ..Default::default()
    }
}

fn host(host: &HostRewrite) -> HostRewriteSpecifier {
    match host {
        HostRewrite::Literal(text) => HostRewriteSpecifier::HostRewriteLiteral(text.as_str().to_owned()),
        HostRewrite::Header(name) => HostRewriteSpecifier::HostRewriteHeader(name.to_string()),
    }
}

fn websocket() -> UpgradeConfig {
    UpgradeConfig { upgrade_type: "websocket".to_owned(), ..Default::default() }
}

/// Envoy reads "nothing said" as its own default and zero as "for ever", and it counts whole milliseconds: less than one
/// must not become none.
pub(crate) fn timeout(timeout: Timeout) -> Option<Duration> {
    match timeout {
        Timeout::Default => None,
        Timeout::Infinite => Some(Duration::default()),
        Timeout::After(span) => Some(span.max(SHORTEST).into()),
    }
}

fn redirected(redirect: &Redirect) -> RedirectAction {
    RedirectAction {
        scheme_rewrite_specifier: redirect.scheme.map(|scheme| match scheme {
            Scheme::Https => SchemeRewriteSpecifier::HttpsRedirect(true),
            Scheme::Http => SchemeRewriteSpecifier::SchemeRedirect("http".to_owned()),
        }),
        host_redirect: redirect.host.as_ref().map_or_else(String::new, ToString::to_string),
        port_redirect: redirect.port.map_or(0, u32::from),
        path_rewrite_specifier: redirect.path.as_ref().map(|path| match path {
            RedirectPath::Whole(path) => PathRewriteSpecifier::PathRedirect(path.to_string()),
            RedirectPath::Prefix(path) => PathRewriteSpecifier::PrefixRewrite(path.to_string()),
        }),
        response_code: status(redirect.status).into(),
        ..Default::default()
    }
}

fn status(code: u16) -> RedirectResponseCode {
    match code {
        302 => RedirectResponseCode::Found,
        303 => RedirectResponseCode::SeeOther,
        307 => RedirectResponseCode::TemporaryRedirect,
        308 => RedirectResponseCode::PermanentRedirect,
        _ => RedirectResponseCode::MovedPermanently,
    }
}

fn responded(respond: &DirectResponse) -> DirectResponseAction {
    let body = (!respond.body.is_empty()).then(|| DataSource {
        specifier: Some(data_source::Specifier::InlineString(respond.body.to_string())),
        ..Default::default()
    });
    DirectResponseAction { status: respond.status.into(), body, ..Default::default() }
}

/// One part of what the hash of a request is made of, where one chooses the endpoint.
fn hash_policy(hash: &Hash) -> HashPolicy {
    let specifier = match &hash.of {
        HashOf::Cookie(name) => PolicySpecifier::Cookie(Cookie {
            name: name.to_string(),
            ttl: Some(Duration::default()),
            path: "/".to_owned(),
            ..Default::default()
        }),
        HashOf::Header(name) => PolicySpecifier::Header(Header { header_name: name.to_string(), ..Default::default() }),
        HashOf::Query(name) => PolicySpecifier::QueryParameter(QueryParameter { name: name.to_string() }),
        HashOf::SourceIp => PolicySpecifier::ConnectionProperties(ConnectionProperties { source_ip: true }),
    };
    HashPolicy { policy_specifier: Some(specifier), terminal: hash.terminal }
}
