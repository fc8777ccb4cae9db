//! What filters are told for one route. Each stands in every chain and does nothing until a route tells it to.

use super::{ext_authz, framing, jwt, mark, response_script};
use crate::listener::script;
use envoy_api::{
    Any, any,
    envoy::{
        config::{
            core::v3::{
                CidrRange, HeaderValue, HeaderValueOption, RuntimeFractionalPercent,
                header_value_option::HeaderAppendAction,
            },
            rbac::v3::{Permission, Policy as Rule, Principal, Rbac as Rules, permission, principal, rbac::Action},
            route::v3::Route,
        },
        extensions::filters::http::{
            cors::v3::CorsPolicy,
            local_ratelimit::v3::LocalRateLimit,
            rbac::v3::{Rbac, RbacPerRoute},
        },
        r#type::{
            matcher::v3::{PathMatcher, RegexMatcher, StringMatcher, path_matcher, string_matcher::MatchPattern},
            v3::{FractionalPercent, HttpStatus, TokenBucket},
        },
    },
};
use model::PortId;
use model::route::{
    AddressOf, Cors, IpFilter, LocalRateLimitPolicy, Policy, StringMatch,
    cors::{AllowedOrigin, HeaderToken},
};
use std::collections::BTreeMap;

/// Which other sites may.
pub const CORS: &str = "envoy.filters.http.cors";
/// How many requests are taken.
pub const LOCAL_LIMIT: &str = "envoy.filters.http.local_ratelimit";
/// Which clients may.
pub const RBAC: &str = "envoy.filters.http.rbac";

/// What a route tells them.
pub fn of_route(port: &PortId, policy: &Policy) -> BTreeMap<String, Any> {
    let cors = policy.cors.as_ref().map(|cors| (CORS, any(&cors_policy(cors))));
    let limit = policy.local_rate_limit.as_ref().map(|limit| (LOCAL_LIMIT, any(&local_limit(limit))));
    let rbac = rbac(policy).map(|rbac| (RBAC, any(&RbacPerRoute { rbac: Some(rbac) })));
    let own = [cors, limit, rbac].into_iter().flatten().map(|(name, config)| (name.to_owned(), config));
    let protecting = jwt::of(policy).into_iter().chain(ext_authz::of(policy)).chain(framing::of(policy));
    let scripts = response_script::of_route(policy).into_iter().chain(script::of_route(port, policy));
    own.chain(scripts).chain(protecting).collect()
}

/// What a virtual host tells them: requests of all its routes are counted together.
pub fn of_host(limit: Option<&LocalRateLimitPolicy>) -> BTreeMap<String, Any> {
    limit.map(|limit| (LOCAL_LIMIT.to_owned(), any(&local_limit(limit)))).into_iter().collect()
}

/// Takes a route out of what its virtual host counts, unless it counts by itself.
pub fn not_counted(route: &mut Route) {
    route.typed_per_filter_config.entry(LOCAL_LIMIT.to_owned()).or_insert_with(uncounted);
}

/// Whether a route counts its requests by itself.
pub fn counts(route: &Route) -> bool {
    route.typed_per_filter_config.get(LOCAL_LIMIT).is_some_and(|config| *config != uncounted())
}

/// A limit that is never switched on. Envoy takes none for a route that has no bucket.
fn uncounted() -> Any {
    let bucket = TokenBucket {
        max_tokens: 1,
        fill_interval: Some(std::time::Duration::from_secs(1).into()),
        ..Default::default()
    };
    any(&LocalRateLimit { stat_prefix: "route".to_owned(), token_bucket: Some(bucket), ..Default::default() })
}

/// Who may, and the [mark](mark) of requests that others look at.
fn rbac(policy: &Policy) -> Option<Rbac> {
    let shadow_rules = mark::of(policy);
    let rules = rules(policy.ip_filter.as_ref(), policy.rejects_escaped_slashes);
    (rules.is_some() || shadow_rules.is_some()).then(|| Rbac { rules, shadow_rules, ..Default::default() })
}

/// Who may, and for which paths, as rules for requests.
fn rules(ip_filter: Option<&IpFilter>, rejects_escaped_slashes: bool) -> Option<Rules> {
    let everything = || Permission { rule: Some(permission::Rule::Any(true)) };
    let everybody = || Principal { identifier: Some(principal::Identifier::Any(true)) };
    let rule = |permission: Permission, principals: Vec<Principal>| Rule {
        permissions: vec![permission],
        principals,
        ..Default::default()
    };
    let mut policies = BTreeMap::new();
    let allow = ip_filter.is_some_and(|ip_filter| ip_filter.allow);
    if let Some(ip_filter) = ip_filter {
        let paths = match allow && rejects_escaped_slashes {
            true => Permission { rule: Some(permission::Rule::NotRule(Box::new(escaped_slashes()))) },
            false => everything(),
        };
        policies.insert("ip-rules".to_owned(), rule(paths, addresses(ip_filter)));
    }
    if rejects_escaped_slashes && !allow {
        policies.insert("escaped-slashes".to_owned(), rule(escaped_slashes(), vec![everybody()]));
    }
    let action = if allow { Action::Allow } else { Action::Deny }.into();
    (!policies.is_empty()).then(|| Rules { action, policies, ..Default::default() })
}

/// Paths with an escaped slash or backslash.
fn escaped_slashes() -> Permission {
    let regex = RegexMatcher { regex: "(?i).*%(2f|5c).*".to_owned(), ..Default::default() };
    let text = StringMatcher { match_pattern: Some(MatchPattern::SafeRegex(regex)), ..Default::default() };
    let path = PathMatcher { rule: Some(path_matcher::Rule::Path(text)) };
    Permission { rule: Some(permission::Rule::UrlPath(path)) }
}

fn addresses(ip_filter: &IpFilter) -> Vec<Principal> {
    let principals = ip_filter.forms().map(|(of, cidr)| {
        let range =
            CidrRange { address_prefix: cidr.address.to_string(), prefix_len: Some(u32::from(cidr.bits).into()) };
        let identifier = match of {
            AddressOf::Peer => principal::Identifier::DirectRemoteIp(range),
            AddressOf::Remote => principal::Identifier::RemoteIp(range),
        };
        Principal { identifier: Some(identifier) }
    });
    principals.collect()
}

fn local_limit(limit: &LocalRateLimitPolicy) -> LocalRateLimit {
    let headers = limit.headers.iter().map(|(name, value)| HeaderValueOption {
        header: Some(HeaderValue { key: name.to_string(), value: value.as_str().to_owned(), ..Default::default() }),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
        ..Default::default()
    });
    LocalRateLimit {
        stat_prefix: "route".to_owned(),
        status: Some(HttpStatus { code: limit.status.into() }),
        token_bucket: Some(TokenBucket {
            max_tokens: limit.requests.saturating_add(limit.burst),
            tokens_per_fill: Some(limit.requests.into()),
            fill_interval: Some(limit.interval.into()),
        }),
        filter_enabled: Some(always()),
        filter_enforced: Some(always()),
        response_headers_to_add: headers.collect(),
        ..Default::default()
    }
}

fn always() -> RuntimeFractionalPercent {
    RuntimeFractionalPercent {
        default_value: Some(FractionalPercent { numerator: 100, denominator: 0 }),
        ..Default::default()
    }
}

fn cors_policy(cors: &Cors) -> CorsPolicy {
    let words = |words: &[HeaderToken]| words.iter().map(HeaderToken::as_str).collect::<Vec<_>>().join(",");
    CorsPolicy {
        allow_origin_string_match: cors.origins.iter().map(origin).collect(),
        allow_methods: words(&cors.methods),
        allow_headers: words(&cors.headers),
        expose_headers: words(&cors.exposed),
        max_age: cors.max_age.map_or_else(String::new, |span| span.as_secs().to_string()),
        allow_credentials: Some(cors.credentials.into()),
        allow_private_network_access: Some(cors.private_network.into()),
        // Envoy forwards them if nothing is said.
        forward_not_matching_preflights: (!cors.forwards_other_preflights).then(|| false.into()),
        ..Default::default()
    }
}

fn origin(origin: &AllowedOrigin) -> StringMatcher {
    let (pattern, ignore_case) = match origin {
        AllowedOrigin::Any => (MatchPattern::Exact("*".to_owned()), false),
        AllowedOrigin::Matching(StringMatch::Regex(regex)) => {
            (MatchPattern::SafeRegex(RegexMatcher { regex: regex.to_string(), ..Default::default() }), false)
        }
        AllowedOrigin::Matching(StringMatch::Exact(text)) => (MatchPattern::Exact(text.to_string()), true),
        AllowedOrigin::Matching(StringMatch::Prefix(text)) => (MatchPattern::Prefix(text.to_string()), true),
        AllowedOrigin::Matching(StringMatch::Suffix(text)) => (MatchPattern::Suffix(text.to_string()), true),
        AllowedOrigin::Matching(StringMatch::Contains(text)) => (MatchPattern::Contains(text.to_string()), true),
    };
    StringMatcher { match_pattern: Some(pattern), ignore_case }
}
