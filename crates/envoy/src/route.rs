//! One route: its match (path, names below a wildcard, conditions), header changes, action, and the metadata that access logs
//! read.

pub mod action;
pub mod cookies;
pub mod ext_authz;
pub mod filters;
pub mod framing;
pub mod jwt;
pub mod mark;
pub mod rate_limit;
pub mod response_script;
pub mod retry;

use crate::listener::local_replies;
use envoy_api::{
    envoy::{
        config::{
            core::v3::{
                HeaderValue, HeaderValueOption, Metadata, RuntimeFractionalPercent,
                header_value_option::HeaderAppendAction,
            },
            route::v3::{
                HeaderMatcher, QueryParameterMatcher, Route, RouteMatch, header_matcher::HeaderMatchSpecifier,
                query_parameter_matcher::QueryParameterMatchSpecifier, route_match::PathSpecifier,
            },
        },
        r#type::{
            matcher::v3::{RegexMatcher, StringMatcher, string_matcher::MatchPattern},
            v3::{FractionalPercent, fractional_percent::DenominatorType},
        },
    },
    google::protobuf::Struct,
};
use model::{
    Code, Host, MutableHeader, ObjectRef, PortId, Regex,
    header::HeaderFormat,
    route::{Depth, HeaderChanges, HeaderMatch, PathMatch, QueryMatch, StringMatch, ValueMatch},
};
use std::collections::BTreeMap;

/// Where the metadata of routes and listeners has what is ours; access logs read it from there.
pub const ORIGIN: &str = "projectsesame.io";

/// The route, for the virtual host of `host` at a port.
pub fn route(port: &PortId, host: &Host, route: &model::Route, names: Names) -> Route {
    Route {
        name: route.origin.to_string(),
        r#match: Some(route_match(host, route, names)),
        metadata: Some(metadata(&route.origin.object, reason(&route.action))),
        action: Some(action::action(&route.action, &route.policy)),
        typed_per_filter_config: filters::of_route(port, &route.policy),
        request_headers_to_add: headers_to_add(&route.policy.request_headers),
        request_headers_to_remove: headers_to_remove(&route.policy.request_headers),
        response_headers_to_add: headers_to_add(&route.policy.response_headers),
        response_headers_to_remove: headers_to_remove(&route.policy.response_headers),
        ..Default::default()
    }
}

fn reason(action: &model::route::Action) -> Option<Code> {
    match action {
        model::route::Action::DirectResponse(response) => response.reason,
        model::route::Action::Redirect(_) => Some(Code::Redirected),
        model::route::Action::Forward(_) => None,
    }
}

/// What access logs read: whose route it is, and why it answers by itself.
pub(crate) fn metadata(object: &ObjectRef, reason: Option<Code>) -> Metadata {
    let origin = [("kind", object.kind.label()), ("namespace", &object.namespace), ("name", &object.name)];
    let mut metadata = facts(origin.into_iter());
    if let (Some(reason), Some(own)) = (reason, metadata.filter_metadata.get_mut(ORIGIN)) {
        own.fields.extend(local_replies::reason(reason));
    }
    metadata
}

/// Facts of ours, as metadata.
pub(crate) fn facts<'a>(facts: impl Iterator<Item = (&'a str, &'a str)>) -> Metadata {
    let fields = facts.map(|(key, value)| (key.to_owned(), value.into())).collect();
    Metadata { filter_metadata: BTreeMap::from([(ORIGIN.to_owned(), Struct { fields })]), ..Default::default() }
}

/// Which names below a wildcard host a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Those that the route itself reaches.
    Own,
    /// Those deeper than one label.
    Deeper,
    /// All that are looked up there: exact names that share their routes.
    Shared,
}

/// The match: the path, and below a wildcard host, how many labels the Host has.
fn route_match(host: &Host, route: &model::Route, names: Names) -> RouteMatch {
    let mut headers = match (host, names) {
        (Host::Wildcard(below), Names::Own) if route.depth == Depth::OneLabel => vec![one_label_below(below.as_str())],
        (Host::Wildcard(below), Names::Deeper) => {
            vec![HeaderMatcher { invert_match: true, ..one_label_below(below.as_str()) }]
        }
        _ => Vec::new(),
    };
    let of_host = route.conditions.host.as_ref().filter(|condition| !condition.is_implied(host));
    headers.extend(of_host.map(|condition| authority(condition.pattern())));
    headers.extend(route.conditions.headers.iter().map(header));
    let ignores_case = matches!(&route.path, PathMatch::ExactIgnoreCase(_) | PathMatch::PrefixIgnoreCase(_));
    RouteMatch {
        path_specifier: Some(path(&route.path)),
        case_sensitive: ignores_case.then(|| false.into()),
        runtime_fraction: route.fraction.map(|percent| RuntimeFractionalPercent {
            default_value: Some(FractionalPercent {
                numerator: percent.into(),
                denominator: DenominatorType::Hundred.into(),
            }),
            ..Default::default()
        }),
        headers,
        query_parameters: route.conditions.query.iter().map(query).collect(),
        ..Default::default()
    }
}

fn path(path: &PathMatch) -> PathSpecifier {
    match path {
        PathMatch::Exact(path) | PathMatch::ExactIgnoreCase(path) => PathSpecifier::Path(path.as_str().to_owned()),
        PathMatch::Regex(regex) => PathSpecifier::SafeRegex(pattern(regex.as_str().to_owned())),
        PathMatch::Below(path) => PathSpecifier::PathSeparatedPrefix(path.as_str().to_owned()),
        PathMatch::Prefix(path) | PathMatch::PrefixIgnoreCase(path) => PathSpecifier::Prefix(path.as_str().to_owned()),
    }
}

/// Envoy's wildcard domains are any number of labels deep. The Host comes in any case and may carry a port.
fn one_label_below(name: &str) -> HeaderMatcher {
    authority(format!("(?i)[^.]+\\.{}(:[0-9]+)?", Regex::literal(name)))
}

/// A condition about the Host, which may carry a port.
fn authority(regex: String) -> HeaderMatcher {
    HeaderMatcher {
        name: ":authority".to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(MatchPattern::SafeRegex(pattern(regex))),
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn pattern(regex: String) -> RegexMatcher {
    RegexMatcher { regex, ..Default::default() }
}

/// A condition about a header.
fn header(header: &HeaderMatch) -> HeaderMatcher {
    HeaderMatcher {
        name: header.name.to_string(),
        invert_match: header.invert,
        treat_missing_header_as_empty: header.missing_is_empty,
        header_match_specifier: Some(match &header.value {
            ValueMatch::Present => HeaderMatchSpecifier::PresentMatch(true),
            ValueMatch::Text { text: found, ignore_case } => {
                HeaderMatchSpecifier::StringMatch(text(found, *ignore_case))
            }
        }),
    }
}

/// A condition about a query parameter.
fn query(query: &QueryMatch) -> QueryParameterMatcher {
    QueryParameterMatcher {
        name: query.name.to_string(),
        query_parameter_match_specifier: Some(match &query.value {
            ValueMatch::Present => QueryParameterMatchSpecifier::PresentMatch(true),
            ValueMatch::Text { text: found, ignore_case } => {
                QueryParameterMatchSpecifier::StringMatch(text(found, *ignore_case))
            }
        }),
    }
}

/// How a text is compared. A pattern says itself how it takes case.
fn text(text: &StringMatch, ignore_case: bool) -> StringMatcher {
    let (pattern, ignore_case) = match text {
        StringMatch::Exact(text) => (MatchPattern::Exact(text.to_string()), ignore_case),
        StringMatch::Prefix(text) => (MatchPattern::Prefix(text.to_string()), ignore_case),
        StringMatch::Suffix(text) => (MatchPattern::Suffix(text.to_string()), ignore_case),
        StringMatch::Contains(text) => (MatchPattern::Contains(text.to_string()), ignore_case),
        StringMatch::Regex(regex) => {
            (MatchPattern::SafeRegex(RegexMatcher { regex: regex.to_string(), ..Default::default() }), false)
        }
    };
    StringMatcher { match_pattern: Some(pattern), ignore_case }
}

/// Headers that are given a value, whatever they had, and values that are added to what they have.
pub(crate) fn headers_to_add(changes: &HeaderChanges) -> Vec<HeaderValueOption> {
    let option = |(name, value): &(MutableHeader, HeaderFormat), action: HeaderAppendAction| HeaderValueOption {
        header: Some(HeaderValue { key: name.to_string(), value: value.as_str().to_owned(), ..Default::default() }),
        append_action: action.into(),
        // Else Envoy would leave what the client sent.
        keep_empty_value: value.as_str().is_empty(),
        ..Default::default()
    };
    let set = changes.set.iter().map(|header| option(header, HeaderAppendAction::OverwriteIfExistsOrAdd));
    let add = changes.add.iter().map(|header| option(header, HeaderAppendAction::AppendIfExistsOrAdd));
    set.chain(add).collect()
}

/// Headers that are taken away.
pub(crate) fn headers_to_remove(changes: &HeaderChanges) -> Vec<String> {
    changes.remove.iter().map(ToString::to_string).collect()
}
