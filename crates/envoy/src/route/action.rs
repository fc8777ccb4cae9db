//! What is done with a request.

use super::{headers_to_add, headers_to_remove, rate_limit, response_script, retry};
use crate::name;
use envoy_api::envoy::config::core::v3::{DataSource, RoutingPriority, RuntimeFractionalPercent, data_source};
use envoy_api::envoy::config::route::v3::redirect_action::{
    PathRewriteSpecifier, RedirectResponseCode, SchemeRewriteSpecifier,
};
use envoy_api::envoy::config::route::v3::route::Action;
use envoy_api::envoy::config::route::v3::route_action::hash_policy::{
    ConnectionProperties, Cookie, Header, PolicySpecifier, QueryParameter,
};
use envoy_api::envoy::config::route::v3::route_action::{
    ClusterNotFoundResponseCode, ClusterSpecifier, HashPolicy, HostRewriteSpecifier, RequestMirrorPolicy, UpgradeConfig,
};
use envoy_api::envoy::config::route::v3::weighted_cluster::{ClusterWeight, cluster_weight};
use envoy_api::envoy::config::route::v3::{DirectResponseAction, RedirectAction, RouteAction, WeightedCluster};
use envoy_api::envoy::r#type::matcher::v3::{RegexMatchAndSubstitute, RegexMatcher};
use envoy_api::envoy::r#type::v3::{FractionalPercent, fractional_percent::DenominatorType};
use envoy_api::google::protobuf::Duration;
use model::route::{
    DirectResponse, Forward, Hash, HashOf, HostRewrite, Mirror, Path, PathRewrite, Policy, Redirect, Scheme,
    UnavailableAnswer, UnavailableShare, Upgrade,
};
use model::{Regex, Timeout, regex::RegexRewrite, route};

/// The shortest time that Envoy can tell from none.
pub(super) const SHORTEST: std::time::Duration = std::time::Duration::from_millis(1);

/// The action. The filter of global rate limits reads its descriptors from the actions that forward, and has no others.
pub fn action(action: &route::Action, policy: &Policy) -> Action {
    match action {
        route::Action::Forward(forward) => Action::Route(RouteAction {
            rate_limits: rate_limit::rate_limits(policy.descriptors()),
            ..forwarded(forward, policy)
        }),
        route::Action::Redirect(redirect) => Action::Redirect(redirected(redirect)),
        route::Action::DirectResponse(respond) => Action::DirectResponse(responded(respond)),
    }
}

fn forwarded(forward: &Forward, policy: &Policy) -> RouteAction {
    RouteAction {
        cluster_specifier: Some(clusters(forward, policy)),
        cluster_not_found_response_code: not_found(forward.unavailable).into(),
        timeout: timeout(forward.timeout),
        retry_policy: forward.retry.as_deref().map(retry::retry_policy),
        idle_timeout: timeout(forward.idle),
        request_mirror_policies: forward.mirrors.iter().map(mirror).collect(),
        prefix_rewrite: prefix_rewrite(forward.rewrite.as_ref()),
        regex_rewrite: regex_rewrite(forward.rewrite.as_ref()),
        host_rewrite_specifier: forward.host.as_ref().map(host),
        hash_policy: forward.hash.iter().map(hash_policy).collect(),
        internal_redirect_policy: forward.internal_redirect.as_deref().map(retry::internal_redirect_policy),
        upgrade_configs: upgrades(forward),
        priority: priority(forward).into(),
        ..Default::default()
    }
}

/// The backends. What cannot be used has its share as a cluster that there is not, for which Envoy has an answer. A redirect or
/// a direct response in its place would leave out the filters that a forwarded request passes, such as CORS.
fn clusters(forward: &Forward, policy: &Policy) -> ClusterSpecifier {
    let Forward { clusters, unavailable, .. } = forward;
    match (&clusters[..], unavailable) {
        ([], _) => return ClusterSpecifier::Cluster(name::NO_CLUSTER.to_owned()),
        // A single backend needs no shares, unless something is changed on the way to it.
        ([only], None) if *only == route::WeightedCluster::new(only.cluster.clone(), only.weight) => {
            return ClusterSpecifier::Cluster(name::cluster(&only.cluster));
        }
        _ => {}
    }
    let nowhere = unavailable.iter().map(|share| ClusterWeight {
        name: name::NO_CLUSTER.to_owned(),
        weight: Some(share.weight.into()),
        ..Default::default()
    });
    let clusters = clusters.iter().map(|share| ClusterWeight {
        name: name::cluster(&share.cluster),
        weight: Some(share.weight.into()),
        request_headers_to_add: headers_to_add(&share.request_headers),
        request_headers_to_remove: headers_to_remove(&share.request_headers),
        response_headers_to_add: headers_to_add(&share.response_headers),
        response_headers_to_remove: headers_to_remove(&share.response_headers),
        host_rewrite_specifier: share
            .host
            .as_ref()
            .map(|host| cluster_weight::HostRewriteSpecifier::HostRewriteLiteral(host.as_str().to_owned())),
        typed_per_filter_config: response_script::of_share(&share.cookies, policy).into_iter().collect(),
        ..Default::default()
    });
    let clusters = clusters.chain(nowhere).collect();
    ClusterSpecifier::WeightedClusters(WeightedCluster { clusters, ..Default::default() })
}

/// What is answered for a cluster that there is not.
fn not_found(unavailable: Option<UnavailableShare>) -> ClusterNotFoundResponseCode {
    match unavailable.map(|share| share.answer) {
        Some(UnavailableAnswer::InternalServerError) => ClusterNotFoundResponseCode::InternalServerError,
        Some(UnavailableAnswer::ServiceUnavailable) | None => ClusterNotFoundResponseCode::ServiceUnavailable,
    }
}

fn prefix_rewrite(rewrite: Option<&PathRewrite>) -> String {
    match rewrite {
        Some(PathRewrite::Prefix(path)) => path.to_string(),
        Some(PathRewrite::Whole(_) | PathRewrite::Below { .. } | PathRewrite::Regex(_)) | None => String::new(),
    }
}

fn regex_rewrite(rewrite: Option<&PathRewrite>) -> Option<RegexMatchAndSubstitute> {
    match rewrite? {
        PathRewrite::Whole(path) => Some(substitute("^/.*$".to_owned(), path.as_str(), "")),
        PathRewrite::Below { matched, path } => Some(below(matched, path)),
        PathRewrite::Regex(rewrite) => Some(by_pattern(rewrite)),
        PathRewrite::Prefix(_) => None,
    }
}

fn by_pattern(rewrite: &RegexRewrite) -> RegexMatchAndSubstitute {
    RegexMatchAndSubstitute {
        pattern: Some(RegexMatcher { regex: rewrite.pattern().to_string(), ..Default::default() }),
        substitution: rewrite.substitution().to_owned(),
    }
}

/// A pattern, and what replaces what it matches: a path, and a reference to a group behind it.
fn substitute(regex: String, path: &str, group: &str) -> RegexMatchAndSubstitute {
    RegexMatchAndSubstitute {
        pattern: Some(RegexMatcher { regex, ..Default::default() }),
        substitution: format!("{}{group}", path.replace('\\', "\\\\")),
    }
}

/// The rest of the path after a prefix by path element. Envoy's own replacement of a prefix has two slashes where the
/// replacement is `/`.
fn below(matched: &Path, path: &Path) -> RegexMatchAndSubstitute {
    let matched = Regex::literal(matched.as_str().trim_end_matches('/'));
    match path.as_str() {
        "/" => substitute(format!("^{matched}/*(.*)$"), "/", "\\1"),
        path => substitute(format!("^{matched}(/.*)?$"), path, "\\1"),
    }
}

fn mirror(mirror: &Mirror) -> RequestMirrorPolicy {
    let fraction = RuntimeFractionalPercent { default_value: Some(fraction(mirror.per_million)), ..Default::default() };
    RequestMirrorPolicy {
        cluster: name::cluster(&mirror.cluster),
        runtime_fraction: Some(fraction),
        disable_shadow_host_suffix_append: mirror.keeps_host,
        ..Default::default()
    }
}

/// A part of all requests, in percent where that is exact.
fn fraction(per_million: u32) -> FractionalPercent {
    const PERCENT: u32 = 10_000;
    match per_million % PERCENT {
        0 => FractionalPercent { numerator: per_million / PERCENT, denominator: DenominatorType::Hundred.into() },
        _ => FractionalPercent { numerator: per_million, denominator: DenominatorType::Million.into() },
    }
}

fn host(host: &HostRewrite) -> HostRewriteSpecifier {
    match host {
        HostRewrite::Literal(text) => HostRewriteSpecifier::HostRewriteLiteral(text.as_str().to_owned()),
        HostRewrite::Header(name) => HostRewriteSpecifier::HostRewriteHeader(name.to_string()),
    }
}

/// What a connection may become.
fn upgrades(forward: &Forward) -> Vec<UpgradeConfig> {
    let websocket = forward.websocket.then_some("websocket");
    let others = forward.upgrades.iter().map(Upgrade::as_str).filter(|other| Some(*other) != websocket);
    let config = |name: &str| UpgradeConfig { upgrade_type: name.to_owned(), ..Default::default() };
    websocket.into_iter().chain(others).map(config).collect()
}

fn priority(forward: &Forward) -> RoutingPriority {
    if forward.high_priority { RoutingPriority::High } else { RoutingPriority::Default }
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
            PathRewrite::Whole(path) => PathRewriteSpecifier::PathRedirect(path.to_string()),
            PathRewrite::Prefix(path) => PathRewriteSpecifier::PrefixRewrite(path.to_string()),
            PathRewrite::Below { matched, path } => PathRewriteSpecifier::RegexRewrite(below(matched, path)),
            PathRewrite::Regex(rewrite) => PathRewriteSpecifier::RegexRewrite(by_pattern(rewrite)),
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
        HashOf::LastingCookie { name, path, lifetime } => PolicySpecifier::Cookie(Cookie {
            name: name.to_string(),
            ttl: lifetime.map(Into::into),
            path: path.as_ref().map_or_else(String::new, ToString::to_string),
            ..Default::default()
        }),
        HashOf::Header(name) => PolicySpecifier::Header(Header { header_name: name.to_string(), ..Default::default() }),
        HashOf::Query(name) => PolicySpecifier::QueryParameter(QueryParameter { name: name.to_string() }),
        HashOf::SourceIp => PolicySpecifier::ConnectionProperties(ConnectionProperties { source_ip: true }),
    };
    HashPolicy { policy_specifier: Some(specifier), terminal: hash.terminal }
}
