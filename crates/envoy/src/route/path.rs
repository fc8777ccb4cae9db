//! Which requests a route takes.

use super::condition;
use envoy_api::envoy::{
    config::route::v3::{HeaderMatcher, RouteMatch, header_matcher::HeaderMatchSpecifier, route_match::PathSpecifier},
    r#type::matcher::v3::{RegexMatcher, StringMatcher, string_matcher::MatchPattern},
};
use model::{
    Host, Regex, Route,
    route::{Depth, PathMatch},
};

/// Which names below a wildcard host a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Those that the route itself reaches.
    Own,
    /// Those that lie deeper than one label.
    Deeper,
}

/// The match: the path, and below a wildcard host, how many labels the Host has.
pub fn route_match(host: &Host, route: &Route, names: Names) -> RouteMatch {
    let mut headers = match (host, names) {
        (Host::Wildcard(below), Names::Own) if route.depth == Depth::OneLabel => vec![one_label_below(below.as_str())],
        (Host::Wildcard(below), Names::Deeper) => {
            vec![HeaderMatcher { invert_match: true, ..one_label_below(below.as_str()) }]
        }
        _ => Vec::new(),
    };
    headers.extend(route.conditions.headers.iter().map(condition::header));
    RouteMatch {
        path_specifier: Some(path(&route.path)),
        headers,
        query_parameters: route.conditions.query.iter().map(condition::query).collect(),
        ..Default::default()
    }
}

fn path(path: &PathMatch) -> PathSpecifier {
    match path {
        PathMatch::Exact(path) => PathSpecifier::Path(path.as_str().to_owned()),
        PathMatch::Regex(regex) => PathSpecifier::SafeRegex(pattern(regex.as_str().to_owned())),
        PathMatch::Below(path) => PathSpecifier::PathSeparatedPrefix(path.as_str().to_owned()),
        PathMatch::Prefix(path) => PathSpecifier::Prefix(path.as_str().to_owned()),
    }
}

/// Envoy's wildcard domains are any number of labels deep. The Host comes in any case and may carry a port.
fn one_label_below(name: &str) -> HeaderMatcher {
    let regex = format!("(?i)[^.]+\\.{}(:[0-9]+)?", Regex::literal(name));
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
