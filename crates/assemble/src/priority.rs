//! Routes that take requests of another namespace by their priority: both sides get a verdict.
//!
//! A priority comes before everything else, so a route with one for `/` has the requests of all longer paths. Inside a namespace that
//! is its author's choice. Of another namespace's routes it may be meant, too, but whoever has them should know.

use model::{Code, Host, Route, Verdict, route::PathMatch};
use std::{collections::BTreeSet, sync::Arc};

/// The most pairs of objects of a host that get a verdict.
pub const MOST_PAIRS: usize = 100;
/// The most pairs of routes of a host that are compared for that: one object may have very many.
const MOST_COMPARISONS: usize = 1_000_000;

/// The verdicts on routes in the order in which they are tried, on [`MOST_PAIRS`] of objects and no more.
pub fn taken(host: &Host, routes: &[Arc<Route>]) -> Vec<Verdict> {
    let mut pairs = BTreeSet::new();
    let mut verdicts = Vec::new();
    if routes.first().is_none_or(|first| first.precedence.priority <= 0) {
        return verdicts;
    }
    let beginnings: Vec<&str> = routes.iter().map(|route| beginning(&route.path)).collect();
    let mut comparisons = 0;
    for (at, strong) in routes.iter().enumerate().take_while(|(_, route)| route.precedence.priority > 0) {
        for (below, weak) in routes.iter().enumerate().skip(at + 1) {
            comparisons += 1;
            if comparisons > MOST_COMPARISONS {
                return verdicts;
            }
            if !has_priority(strong, weak) || !covers((&strong.path, beginnings[at]), (&weak.path, beginnings[below])) {
                continue;
            }
            if pairs.insert((&strong.origin.object, &weak.origin.object)) {
                verdicts.extend(pair(host, strong, weak));
            }
            if pairs.len() == MOST_PAIRS {
                return verdicts;
            }
        }
    }
    verdicts
}

/// Whether a route has requests of another namespace's because of its priority.
pub fn takes(strong: &Route, weak: &Route) -> bool {
    has_priority(strong, weak) && covers((&strong.path, beginning(&strong.path)), (&weak.path, beginning(&weak.path)))
}

fn has_priority(strong: &Route, weak: &Route) -> bool {
    strong.precedence.priority > weak.precedence.priority.max(0)
        && strong.origin.object.namespace != weak.origin.object.namespace
        && !strong.precedence.implied
        && !weak.precedence.implied
}

/// Whether all paths of the one are paths of the other, each with its beginning. A pattern covers whatever it may match: more is not
/// known about it.
fn covers((wide, first): (&PathMatch, &str), (narrow, text): (&PathMatch, &str)) -> bool {
    match (wide, narrow) {
        (PathMatch::Regex(_), _) => {
            let length = first.len().min(text.len());
            first.as_bytes()[..length].eq_ignore_ascii_case(&text.as_bytes()[..length])
        }
        (PathMatch::Prefix(path), _) => text.starts_with(path.as_str()),
        (PathMatch::PrefixIgnoreCase(path), _) => {
            text.get(..path.as_str().len()).is_some_and(|start| start.eq_ignore_ascii_case(path.as_str()))
        }
        (PathMatch::Below(path), _) => {
            text.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        (PathMatch::Exact(path), PathMatch::Exact(other)) => path == other,
        (PathMatch::ExactIgnoreCase(path), PathMatch::Exact(other) | PathMatch::ExactIgnoreCase(other)) => {
            path.as_str().eq_ignore_ascii_case(other.as_str())
        }
        (PathMatch::Exact(_) | PathMatch::ExactIgnoreCase(_), _) => false,
    }
}

/// What every path of a match begins with: of a pattern, the plain text at its beginning, and `/` where there is none.
fn beginning(path: &PathMatch) -> &str {
    let PathMatch::Regex(pattern) = path else { return path.text() };
    let text = pattern.as_str().trim_start_matches('^');
    let end = text.find(|c: char| r"\.+*?()[]{}^$".contains(c)).unwrap_or(text.len());
    let (plain, rest) = text.split_at(end);
    // What may be repeated no times is not always there, and of alternatives only one is.
    let last = plain.chars().next_back().map_or(0, char::len_utf8);
    let plain = if rest.starts_with(['?', '*', '{']) { &plain[..plain.len() - last] } else { plain };
    if plain.is_empty() || has_alternatives(text) { "/" } else { plain }
}

/// Whether a pattern is one of several, outside of its groups.
fn has_alternatives(pattern: &str) -> bool {
    let (mut depth, mut in_class, mut is_escaped) = (0_usize, false, false);
    pattern.bytes().any(|byte| {
        let is_plain = std::mem::take(&mut is_escaped);
        match byte {
            _ if is_plain => {}
            b'\\' => is_escaped = true,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => depth += 1,
            b')' if !in_class => depth = depth.saturating_sub(1),
            b'|' => return !in_class && depth == 0,
            _ => {}
        }
        false
    })
}

/// The verdicts for both routes, that of the weaker one first. The number is called precedence, as in [`model::route::Precedence`]: a
/// dialect may have a field `priority` that is about something else.
pub fn pair(host: &Host, strong: &Route, weak: &Route) -> [Verdict; 2] {
    let (priority, path) = (strong.precedence.priority, &weak.path);
    let (winner, loser) = (&strong.origin.object, &weak.origin.object);
    let by = format!("host {host}, path {path}: {winner} takes its requests by precedence {priority}");
    let from = format!("host {host}, path {path}: by precedence {priority} it takes requests of {loser}");
    [
        Verdict::new(Code::RouteTakenByPriority, weak.origin.clone(), by).related_to(strong.origin.clone()),
        Verdict::new(Code::RouteTakenByPriority, strong.origin.clone(), from).related_to(weak.origin.clone()),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::testing::{changed, route};
    use model::ObjectRef;

    fn of(namespace: &str, priority: i32, text: &str) -> Arc<Route> {
        changed(&route("r", 1, text), |route| {
            route.precedence.priority = priority;
            route.origin = ObjectRef::new(kinds::kind::SERVICE, namespace, "r").at("spec");
        })
    }

    #[test]
    fn whoever_has_requests_of_another_namespace_by_its_priority_is_told_and_so_is_the_other() {
        let host = Host::parse("a.example.com").unwrap();
        for (strong, weak, is_told) in [
            (of("b", 1, "p /"), of("a", 0, "p /login"), true),
            (of("b", 1, "p /login"), of("a", 0, "= /login/form"), true),
            (of("b", 1, "/ /log"), of("a", 0, "p /login"), false),
            (of("b", 1, "/ /login"), of("a", 0, "p /login/x"), true),
            (of("b", 1, "p /"), of("a", 0, "~ /[a-z]+"), true),
            (of("b", 1, "p /login/"), of("a", 0, "~ /login/[a-z]+"), true),
            (of("b", 1, "p /login"), of("a", 0, "~ /[a-z]+"), false),
            (of("b", 1, "~ /.*"), of("a", 0, "p /login"), true),
            (of("b", 1, "~ ^/.*"), of("a", 0, "~ /[a-z]+"), true),
            (of("b", 1, "~ /log[a-z]+"), of("a", 0, "= /login"), true),
            (of("b", 1, "~ /logo?i.*"), of("a", 0, "p /login"), true),
            (of("b", 1, "~ /a|/login"), of("a", 0, "p /login"), true),
            (of("b", 1, "~ /api/(v1|v2)/.*"), of("a", 0, "p /login"), false),
            (of("b", 1, "p /login/"), of("a", 0, "~ /login/(a|b)"), true),
            (of("b", 1, "~ (?i)/LOGIN"), of("a", 0, "p /login"), true),
            (of("b", 1, "~ /api/v[0-9]+"), of("a", 0, "p /login"), false),
            (of("a", 1, "~ /.*"), of("a", 0, "p /login"), false),
            (of("b", 1, "= /login"), of("a", 0, "p /login"), false),
            (of("b", 1, "p /login"), of("a", 0, "p /"), false),
            (of("a", 1, "p /"), of("a", 0, "p /login"), false),
            (of("b", 0, "p /"), of("a", -1, "p /login"), false),
            (of("b", 2, "p /"), of("a", 2, "p /login"), false),
        ] {
            let verdicts = taken(&host, &[strong.clone(), weak.clone()]);
            let objects: Vec<_> = verdicts.iter().map(|verdict| &*verdict.origin.object.namespace).collect();
            assert!(verdicts.iter().all(|verdict| verdict.message.contains("by precedence 1")), "{verdicts:?}");
            let expected: &[&str] = if is_told { &["a", "b"] } else { &[] };
            assert_eq!(objects, expected, "{} over {}", strong.path, weak.path);
        }
    }

    #[test]
    fn one_host_tells_about_so_many_pairs_and_no_more() {
        let weak = (0..2 * MOST_PAIRS).map(|at| {
            changed(&of("a", 0, "p /login"), |route| {
                route.origin = ObjectRef::new(kinds::kind::SERVICE, "a", format!("r{at}").as_str()).at("spec");
            })
        });
        let routes: Vec<_> = [of("b", 1, "p /")].into_iter().chain(weak).collect();
        assert_eq!(taken(&Host::Any, &routes).len(), 2 * MOST_PAIRS);
    }
}
