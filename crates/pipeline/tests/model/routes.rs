//! Arbitrary virtual hosts and routes: every action, condition and policy.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use model::{
    ClusterId, Fqdn, Host, ObjectRef, Route, VirtualHost,
    cluster::Extension,
    jwt::{Jwks, JwtProvider, JwtProviderId},
    regex::RegexRewrite,
    route::{
        Action, AddressOf, AuthCheck, AuthServer, Authorization, Cidr, Conditions, Cors, CrossScheme, Depth,
        Descriptor, DescriptorEntry, DirectResponse, Forward, GlobalRateLimit, Hash, HashOf, HeaderChanges,
        HeaderMatch, HostCondition, HostNames, HostRewrite, InternalRedirect, IpFilter, LONGEST_PARAMETER,
        LocalRateLimitPolicy, Mirror, OnEqual, PathMatch, PathReplacement, PathRewrite, Policy, Precedence, QueryMatch,
        Redirect, RetryPolicy, RouteList, Scheme, Share, StringMatch, UnavailableAnswer, UnavailableShare, Upgrade,
        ValueMatch, WeightedCluster,
        action::{LONGEST_BODY, RetryOn},
        authorization::{AuthBody, AuthProtocol, HeaderNamePattern},
        cookies::{CookieName, CookieRewrite, CookieValue, SameSite},
        cors::{AllowedOrigin, HeaderToken},
        policy::is_status,
    },
};

use super::dice::Dice;

/// A host of its own for each number.
pub fn exact(dice: &mut Dice, number: usize) -> Host {
    let label = |dice: &mut Dice| dice.pick(&["a", "xn--bcher-kva", "0", "a-b"]).repeat(1 + dice.below(4));
    dice.parsed(|dice| format!("h{number}.{}.{}", label(dice), label(dice)), Host::parse)
}

pub fn wildcard(dice: &mut Dice, number: usize) -> Host {
    match exact(dice, number) {
        Host::Exact(name) => Host::Wildcard(name),
        other => other,
    }
}

/// A virtual host with so many routes at most.
pub fn virtual_host(dice: &mut Dice, host: Host, clusters: &[ClusterId], most: usize) -> VirtualHost {
    let mut routes = dice.list(0, most, |dice| Arc::new(route(dice, clusters)));
    routes.extend(dice.maybe(|dice| combined(dice, clusters)));
    let catch_all = match host {
        Host::Wildcard(_) => dice.list(0, 2, |dice| Arc::new(route(dice, clusters))),
        _ => Vec::new(),
    };
    let (routes, catch_all) = (routes.into(), catch_all.into());
    VirtualHost { host, routes, catch_all, local_rate_limit: dice.maybe(|dice| Arc::new(limit(dice))) }
}

/// A host with more routes than a list may have, in all the shapes that decide about a tree.
pub fn long_host(dice: &mut Dice, host: Host, clusters: &[ClusterId]) -> VirtualHost {
    let shape = dice.below(3);
    let mut routes: Vec<_> = (0..40).map(|_| route(dice, clusters)).collect();
    for route in &mut routes {
        match shape {
            0 => route.path = PathMatch::Regex(dice.regex()),
            1 => route.policy.local_rate_limit = None,
            _ => {}
        }
    }
    VirtualHost {
        host,
        routes: routes.into_iter().map(Arc::new).collect(),
        catch_all: RouteList::default(),
        local_rate_limit: None,
    }
}

/// A route whose requests several objects share, as assembly makes it.
fn combined(dice: &mut Dice, clusters: &[ClusterId]) -> Arc<Route> {
    let base = Route { action: Action::Forward(Box::new(forward(dice, clusters))), ..route(dice, clusters) };
    let member = |dice: &mut Dice| {
        let mut route = base.clone();
        if let Action::Forward(forward) = &mut route.action {
            forward.clusters = shares(dice, clusters);
        }
        route.precedence.index = dice.number();
        let share = if dice.one_in(2) { Share::Rest } else { Share::Percent(dice.between(0, 100) as u8) };
        route.precedence.on_equal = OnEqual::Combine { share, across_namespaces: false };
        Arc::new(route)
    };
    let members = dice.list(1, 4, member);
    assemble::combine::resolve(members, &mut |_, _, _| {}).remove(0)
}

fn route(dice: &mut Dice, clusters: &[ClusterId]) -> Route {
    let (namespace, name) = (dice.name(), dice.name());
    let (ns, object) = (namespace.as_str().into(), name.as_str().into());
    let precedence = Precedence::by_age(dialect_httpproxy::DIALECT, 0, ns, object, 0);
    Route {
        path: path_match(dice),
        conditions: Conditions {
            headers: dice.list(0, 2, header_match),
            query: dice.list(0, 2, query_match),
            host: dice.maybe(host_condition),
        }
        .sorted(),
        depth: dice.pick(&[Depth::OneLabel, Depth::AnyLabels]),
        action: action(dice, clusters),
        policy: policy(dice).into(),
        precedence,
        fraction: dice.maybe(|dice| dice.between(0, 99) as u8),
        combined: None,
        origin: ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, namespace, name).at(dice.text().as_str()),
    }
}

fn path_match(dice: &mut Dice) -> PathMatch {
    match dice.below(6) {
        0 => PathMatch::Exact(dice.path()),
        4 => PathMatch::ExactIgnoreCase(dice.path()),
        5 => PathMatch::PrefixIgnoreCase(dice.path()),
        1 => PathMatch::Regex(dice.regex()),
        2 => PathMatch::below(&dice.path()),
        _ => PathMatch::Prefix(dice.path()),
    }
}

fn host_condition(dice: &mut Dice) -> HostCondition {
    let name = |dice: &mut Dice| dice.parsed(|dice| format!("c{}.example", dice.below(9)), Fqdn::parse);
    let names = match dice.below(6) {
        0 => HostNames::Any,
        1 => HostNames::Exact(name(dice)),
        2 => HostNames::Below(name(dice)),
        3 => HostNames::Suffix(dice.name().into()),
        4 => HostNames::Prefix(dice.name().into()),
        _ => HostNames::Regex(dice.regex()),
    };
    HostCondition { names, port: dice.maybe(Dice::port) }
}

fn text_match(dice: &mut Dice) -> StringMatch {
    match dice.below(5) {
        0 => StringMatch::Exact(dice.text().into()),
        1 => StringMatch::Regex(dice.regex()),
        2 => StringMatch::Prefix(dice.name().into()),
        3 => StringMatch::Suffix(dice.name().into()),
        _ => StringMatch::Contains(dice.name().into()),
    }
}

fn value_match(dice: &mut Dice) -> ValueMatch {
    match dice.below(3) {
        0 => ValueMatch::Present,
        _ => ValueMatch::Text { text: text_match(dice), ignore_case: dice.one_in(2) },
    }
}

fn header_match(dice: &mut Dice) -> HeaderMatch {
    HeaderMatch {
        name: dice.parsed(Dice::header_text, model::HeaderName::parse_matched),
        invert: dice.one_in(2),
        value: value_match(dice),
        missing_is_empty: dice.one_in(2),
    }
}

fn query_match(dice: &mut Dice) -> QueryMatch {
    let name = dice.until(|dice| Some(dice.name()).filter(|name| name.len() <= LONGEST_PARAMETER));
    QueryMatch { name: name.into(), value: value_match(dice) }
}

fn action(dice: &mut Dice, clusters: &[ClusterId]) -> Action {
    match dice.below(6) {
        0 => Action::Redirect(redirect(dice)),
        1 => {
            let body = dice.until(|dice| Some(dice.text()).filter(|body| body.len() <= LONGEST_BODY));
            Action::DirectResponse(DirectResponse {
                status: dice.between(200, 599) as u16,
                body: body.into(),
                reason: None,
            })
        }
        _ => Action::Forward(Box::new(forward(dice, clusters))),
    }
}

fn redirect(dice: &mut Dice) -> Redirect {
    Redirect {
        scheme: dice.maybe(|dice| dice.pick(&[Scheme::Http, Scheme::Https])),
        host: dice.maybe(|dice| dice.parsed(|dice| format!("r{}.example", dice.below(9)), Fqdn::parse)),
        port: dice.maybe(Dice::port),
        path: dice.maybe(path_rewrite),
        status: dice.pick(&[301, 302, 303, 307, 308]),
    }
}

fn path_rewrite(dice: &mut Dice) -> PathRewrite {
    let path = dice.path();
    match dice.below(4) {
        0 => PathRewrite::Whole(path_replacement(dice)),
        3 => {
            let substitution = path.as_str().replace('\\', "\\\\");
            PathRewrite::Regex(RegexRewrite::new(dice.regex(), &substitution).expect("a substitution without groups"))
        }
        1 => PathRewrite::Prefix(path_replacement(dice)),
        _ => PathRewrite::Below { matched: dice.path(), path },
    }
}

fn path_replacement(dice: &mut Dice) -> PathReplacement {
    dice.parsed(|dice| if dice.one_in(2) { format!("/{}", dice.text()) } else { dice.text() }, PathReplacement::parse)
}

fn forward(dice: &mut Dice, clusters: &[ClusterId]) -> Forward {
    let answer = dice.pick(&[UnavailableAnswer::InternalServerError, UnavailableAnswer::ServiceUnavailable]);
    let unavailable = dice.maybe(|dice| UnavailableShare { weight: dice.between(1, u32::MAX / 4), answer });
    Forward {
        clusters: if unavailable.is_some() && dice.one_in(2) { Vec::new() } else { shares(dice, clusters) },
        unavailable,
        timeout: dice.timeout(),
        retry: dice.maybe(retry).map(Box::new),
        websocket: dice.one_in(2),
        upgrades: if dice.one_in(4) { vec![Upgrade::parse("spdy/3.1").expect("a protocol")] } else { Vec::new() },
        high_priority: dice.one_in(4),
        idle: dice.timeout(),
        mirrors: dice.list(0, 2, |dice| Mirror {
            cluster: dice.pick(clusters),
            per_million: dice.between(1, 1_000_000),
            keeps_host: dice.one_in(2),
        }),
        rewrite: dice.maybe(path_rewrite),
        host: dice.maybe(|dice| match dice.below(2) {
            0 => HostRewrite::Literal(dice.header_value()),
            _ => HostRewrite::Header(dice.header_name()),
        }),
        hash: dice.list(0, 3, |dice| Hash { of: hash(dice), terminal: dice.one_in(2) }),
        internal_redirect: dice.maybe(|dice| {
            Box::new(InternalRedirect {
                most: dice.maybe(Dice::number),
                statuses: [301, 302, 303, 307, 308].into_iter().filter(|_| dice.one_in(2)).collect(),
                cross_scheme: dice.pick(&[CrossScheme::Always, CrossScheme::Never, CrossScheme::SafeOnly]),
                no_repeats: dice.one_in(2),
            })
        }),
    }
}

/// At least one, with something to share, and all shares together a number that Envoy has.
fn shares(dice: &mut Dice, clusters: &[ClusterId]) -> Vec<WeightedCluster> {
    let most = u32::MAX / 4;
    let mut shares = dice.list(1, 3, |dice| WeightedCluster {
        request_headers: header_changes(dice).into(),
        response_headers: header_changes(dice).into(),
        host: dice.maybe(Dice::header_value),
        cookies: cookies(dice),
        ..WeightedCluster::new(dice.pick(clusters), dice.between(0, most))
    });
    shares[0].weight = shares[0].weight.max(1);
    shares
}

fn hash(dice: &mut Dice) -> HashOf {
    match dice.below(5) {
        0 => HashOf::Cookie("X-Contour-Session-Affinity".into()),
        4 => HashOf::LastingCookie {
            name: dice.object_name().into(),
            path: dice.maybe(Dice::path),
            lifetime: dice.maybe(Dice::span),
        },
        1 => HashOf::Header(dice.header_name()),
        2 => HashOf::Query(dice.name().into()),
        _ => HashOf::SourceIp,
    }
}

fn retry(dice: &mut Dice) -> RetryPolicy {
    RetryPolicy {
        on: dice.list(0, 4, |dice| dice.pick(RetryOn::ALL)),
        count: dice.number(),
        per_try: dice.timeout(),
        status_codes: dice.list(0, 3, |dice| dice.between(100, 599)),
        backoff: dice.maybe(Dice::span),
    }
}

pub fn header_changes(dice: &mut Dice) -> HeaderChanges {
    let set = dice.list(0, 2, |dice| (dice.changed_header(), dice.header_format()));
    let set: BTreeMap<_, _> = set.into_iter().collect();
    let mut remove = dice.list(0, 2, Dice::changed_header);
    remove.sort();
    remove.dedup();
    let add = dice.list(0, 2, |dice| (dice.changed_header(), dice.header_format()));
    HeaderChanges { set: set.into_iter().collect(), add, remove }
}

fn policy(dice: &mut Dice) -> Policy {
    Policy {
        request_headers: header_changes(dice),
        response_headers: header_changes(dice),
        ip_filter: dice.maybe(ip_filter),
        rejects_escaped_slashes: dice.one_in(4),
        runs_script: dice.one_in(4),
        local_rate_limit: dice.maybe(limit),
        host_rate_limit: None,
        global_limit: dice.maybe(|dice| Arc::new(global_limit(dice))),
        cors: dice.maybe(|dice| Arc::new(cors(dice))),
        cookies: cookies(dice),
        authorization: authorization(dice),
        jwt: dice.maybe(|dice| {
            let object = ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "a", "b");
            Arc::new(JwtProviderId { object, name: dice.text().into() })
        }),
    }
}

fn authorization(dice: &mut Dice) -> Authorization {
    if dice.one_in(2) {
        return dice.pick(&[Authorization::Unset, Authorization::Disabled]);
    }
    let object = ObjectRef::new(kinds::kind::CONTOUR_EXTENSION_SERVICE, "a", dice.pick(&["b", "80", "c.d"]));
    let name = dice.maybe(|dice| dice.header_value().as_str().into());
    let extension = dice.maybe(|dice| Extension::of(object, name, dice.timeout()));
    let pattern = |dice: &mut Dice| {
        let name = dice.header_name();
        dice.pick(&[HeaderNamePattern::Exact, HeaderNamePattern::Prefix, HeaderNamePattern::Contains])(name)
    };
    let protocol = if dice.one_in(2) {
        AuthProtocol::Grpc
    } else {
        AuthProtocol::Http { path_prefix: dice.maybe(Dice::path), upstream_headers: dice.list(0, 2, pattern) }
    };
    let server = AuthServer {
        extension,
        protocol,
        timeout: dice.timeout(),
        fail_open: dice.one_in(2),
        body: dice.maybe(|dice| AuthBody {
            most: dice.number().max(1),
            partial: dice.one_in(2),
            as_bytes: dice.one_in(2),
        }),
    };
    let context = dice.list(0, 2, |dice| (dice.text().into(), dice.text().into())).into_iter().collect();
    Authorization::Ask(Arc::new(AuthCheck { server: Arc::new(server), context }))
}

fn global_limit(dice: &mut Dice) -> GlobalRateLimit {
    let entry = |dice: &mut Dice| match dice.below(6) {
        0 => DescriptorEntry::Generic { key: dice.maybe(filled), value: filled(dice) },
        1 => DescriptorEntry::Header { name: dice.header_name(), key: filled(dice), skip_if_absent: dice.one_in(2) },
        2 => DescriptorEntry::HeaderMatch {
            headers: dice.list(1, 2, header_match),
            expected: dice.one_in(2),
            value: filled(dice),
        },
        3 => DescriptorEntry::SourceCluster,
        4 => DescriptorEntry::DestinationCluster,
        _ => DescriptorEntry::RemoteAddress,
    };
    GlobalRateLimit { descriptors: dice.list(1, 3, |dice| Descriptor { entries: dice.list(1, 3, entry) }) }
}

/// Any text that is not empty.
fn filled(dice: &mut Dice) -> Arc<str> {
    Some(dice.text()).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned()).into()
}

/// A provider of tokens, with keys or without.
pub fn provider(dice: &mut Dice) -> JwtProvider {
    let object = ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "a", "b");
    let keys = [
        r#"{"k":"AQAB","kty":"oct"}"#,
        r#"{"e":"AQAB","kid":"","kty":"RSA","n":"AQAB"}"#,
        r#"{"crv":"Ed25519","kty":"OKP","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#,
        r#"{"crv":"P-256","kty":"EC","x":"AA","y":"AA"}"#,
    ];
    JwtProvider {
        id: Arc::new(JwtProviderId { object, name: dice.text().into() }),
        issuer: dice.maybe(|dice| dice.text().into()),
        audiences: dice.list(0, 3, |dice| dice.text().into()),
        forward: dice.one_in(2),
        keys: Jwks::new(dice.list(0, 3, |dice| Arc::from(dice.pick(&keys)))),
        remote: None,
        origin: ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "a", "b").at("spec"),
    }
}

/// Sorted, each cookie once.
fn cookies(dice: &mut Dice) -> Vec<CookieRewrite> {
    let mut cookies = dice.list(0, 2, |dice| CookieRewrite {
        name: dice.parsed(Dice::header_text, CookieName::parse),
        path: dice.maybe(|dice| dice.parsed(Dice::text, CookieValue::path)),
        domain: dice.maybe(|dice| dice.parsed(|dice| format!(".d{}.example", dice.below(9)), CookieValue::domain)),
        secure: dice.maybe(|dice| dice.one_in(2)),
        same_site: dice.maybe(|dice| dice.pick(&[SameSite::Strict, SameSite::Lax, SameSite::None])),
    });
    cookies.sort();
    cookies.dedup_by(|a, b| a.name == b.name);
    cookies
}

pub fn ip_filter(dice: &mut Dice) -> IpFilter {
    let range = |dice: &mut Dice| {
        let address: IpAddr = dice.pick(&super::clusters::ADDRESSES);
        let text = match address {
            IpAddr::V4(v4) => format!("{v4}/{}", dice.below(33)),
            IpAddr::V6(v6) => format!("{v6}/{}", dice.below(129)),
        };
        (dice.pick(&[AddressOf::Peer, AddressOf::Remote]), Cidr::parse(&text).expect("a range"))
    };
    IpFilter { allow: dice.one_in(2), ranges: dice.list(1, 4, range) }
}

fn limit(dice: &mut Dice) -> LocalRateLimitPolicy {
    LocalRateLimitPolicy {
        requests: dice.between(1, u32::MAX),
        interval: Duration::from_secs(dice.pick(&[1, 60, 3600])),
        burst: dice.number(),
        status: dice.until(|dice| Some(dice.between(400, 599) as u16).filter(|status| is_status(*status))),
        headers: dice.list(0, 3, |dice| (dice.changed_header(), dice.header_format())),
    }
}

fn cors(dice: &mut Dice) -> Cors {
    let token = |dice: &mut Dice| dice.parsed(Dice::header_text, HeaderToken::parse);
    Cors {
        origins: dice.list(1, 3, |dice| {
            if dice.one_in(3) { AllowedOrigin::Any } else { AllowedOrigin::Matching(text_match(dice)) }
        }),
        methods: dice.list(0, 3, token),
        headers: dice.list(0, 3, token),
        exposed: dice.list(0, 3, token),
        credentials: dice.one_in(2),
        max_age: dice.maybe(Dice::span),
        private_network: dice.one_in(2),
        forwards_other_preflights: dice.one_in(2),
    }
}
