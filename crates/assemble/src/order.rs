//! The order in which a proxy tries the routes of a virtual host: the first that matches is served.
//!
//! The priority that an author chose comes first, then the host name where a dialect compares it; then the most specific path:
//! exact paths, then patterns, then prefixes; the longer one first; a prefix by path element before the same text as a plain prefix.
//! That is the order that Kubernetes documents for paths (the longest match wins, exact before prefix), Contour's, and the
//! Gateway API's. Of routes with one path, the one that has a (longer) condition about the path comes first, then one with a
//! method, then the one with more conditions about headers, then about query parameters. What is equally specific is ordered by dialect,
//! and by the rule of that dialect.
//!
//! One thing is more specific than a pattern: the path of an ACME challenge. Otherwise a pattern that redirects every request
//! to HTTPS would keep the certificate from being renewed.
//!
//! A dialect may have an order of its own ([`TieBreak::Length`]): its routes are tried in that order among themselves, whatever else
//! is on the host. [`sorted`] merges both lists: of the first route of each, the one that the rules above put first is next. So each
//! list keeps its order, and the result follows from the routes alone.

use model::{
    Host, Route,
    route::{PathMatch, TieBreak, ValueMatch},
};
use std::{
    cmp::{Ordering, Reverse},
    sync::Arc,
};

/// Which of two routes is tried first. Equal only for routes that are equal in everything that is compared.
pub fn compare(a: &Route, b: &Route) -> Ordering {
    let (first, second) = (&a.precedence, &b.precedence);
    (Reverse(first.priority), first.widening)
        .cmp(&(Reverse(second.priority), second.widening))
        .then_with(|| specificity(a, b))
        .then_with(|| first.dialect.cmp(&second.dialect))
        .then_with(|| match first.dialect.tie_break {
            TieBreak::Conditions => by_conditions(a, b),
            TieBreak::Age => first.cmp_age(second).then_with(|| by_conditions(a, b)),
            TieBreak::Length => compare_length(a, b),
        })
        .then_with(|| first.cmp(second))
        .then_with(|| a.origin.cmp(&b.origin))
}

/// All routes in the order in which they are tried.
pub fn sorted(routes: Vec<Arc<Route>>) -> Vec<Arc<Route>> {
    let has_own_order = |route: &Arc<Route>| route.precedence.dialect.tie_break == TieBreak::Length;
    let (mut by_length, mut others): (Vec<_>, Vec<_>) = routes.into_iter().partition(has_own_order);
    others.sort_by(|a, b| compare(a, b));
    if by_length.is_empty() {
        return others;
    }
    by_length.sort_by(|a, b| compare_length(a, b));
    let (mut by_length, mut others) = (by_length.into_iter().peekable(), others.into_iter().peekable());
    let mut merged = Vec::with_capacity(by_length.len() + others.len());
    loop {
        let is_other_first = match (by_length.peek(), others.peek()) {
            (Some(one), Some(other)) => compare(other, one).is_lt(),
            (one, _) => one.is_none(),
        };
        let next = if is_other_first { others.next() } else { by_length.next() };
        match next {
            Some(route) => merged.push(route),
            None => return merged,
        }
    }
}

/// Which of two routes of a dialect with an order of its own is tried first: the higher priority, then the longer path, headers and
/// query parameters, whatever the kind of match; then the texts, the later one first; then the one with more conditions, and of those
/// that share the same requests the smaller part.
fn compare_length(a: &Route, b: &Route) -> Ordering {
    let key = |route: &Route| (route.precedence.priority, route.precedence.lengths, route.precedence.widening);
    let (first, second) = (key(a), key(b));
    (second.0, second.1)
        .cmp(&(first.0, first.1))
        .then_with(|| first.2.cmp(&second.2))
        .then_with(|| b.path.text().cmp(a.path.text()))
        .then_with(|| a.path.cmp(&b.path))
        .then_with(|| b.conditions.count().cmp(&a.conditions.count()))
        .then_with(|| b.conditions.cmp(&a.conditions))
        .then_with(|| a.depth.cmp(&b.depth))
        .then_with(|| a.precedence.implied.cmp(&b.precedence.implied))
        .then_with(|| a.fraction.unwrap_or(WHOLE).cmp(&b.fraction.unwrap_or(WHOLE)))
        .then_with(|| a.precedence.cmp(&b.precedence))
        .then_with(|| a.origin.cmp(&b.origin))
}

/// The percentage of a route that takes all.
const WHOLE: u8 = 100;

/// The more specific match first.
fn specificity(a: &Route, b: &Route) -> Ordering {
    class(&a.path)
        .cmp(&class(&b.path))
        .then_with(|| b.path.text().len().cmp(&a.path.text().len()))
        .then_with(|| b.path.text().cmp(a.path.text()))
        .then_with(|| a.path.cmp(&b.path))
        .then_with(|| path_condition(b).cmp(&path_condition(a)))
        .then_with(|| has_method(b).cmp(&has_method(a)))
        .then_with(|| b.conditions.headers.len().cmp(&a.conditions.headers.len()))
        .then_with(|| b.conditions.query.len().cmp(&a.conditions.query.len()))
}

fn by_conditions(a: &Route, b: &Route) -> Ordering {
    a.conditions.cmp(&b.conditions).then_with(|| a.depth.cmp(&b.depth))
}

/// Some order in which routes of a host that match exactly the same requests, and no others, are equal. How deep they reach below a
/// wildcard is a difference in a wildcard host only.
pub fn by_match(host: &Host, a: &Route, b: &Route) -> Ordering {
    let by_path = a.path.cmp(&b.path);
    match host {
        Host::Wildcard(_) => by_path.then_with(|| by_conditions(a, b)),
        Host::Exact(_) | Host::Any => by_path.then_with(|| a.conditions.cmp(&b.conditions)),
    }
}

/// The same, where a condition about the host that every request for this host fulfils makes no difference.
pub fn by_requests(host: &Host, a: &Route, b: &Route) -> Ordering {
    let of_host = |route: &Route| route.conditions.host.clone().filter(|condition| !condition.is_implied(host));
    let key = |route: &Route| (of_host(route), matches!(host, Host::Wildcard(_)).then_some(route.depth));
    let by_conditions =
        || (&a.conditions.headers, &a.conditions.query).cmp(&(&b.conditions.headers, &b.conditions.query));
    a.path.cmp(&b.path).then_with(by_conditions).then_with(|| key(a).cmp(&key(b)))
}

/// How long the text is that the path is compared with besides: a condition about it makes the path more specific.
fn path_condition(route: &Route) -> usize {
    let about_path = route.conditions.headers.iter().filter(|header| header.name.as_str() == ":path");
    let length = |value: &ValueMatch| match value {
        ValueMatch::Present => 0,
        ValueMatch::Text { text, .. } => text.as_str().len(),
    };
    about_path.map(|header| length(&header.value)).max().unwrap_or_default()
}

fn has_method(route: &Route) -> bool {
    route.conditions.headers.iter().any(|header| header.name.as_str() == ":method")
}

fn class(path: &PathMatch) -> u8 {
    match path {
        PathMatch::Exact(_) | PathMatch::ExactIgnoreCase(_) => 0,
        PathMatch::Below(_) | PathMatch::Prefix(_) | PathMatch::PrefixIgnoreCase(_) if path.is_acme() => 1,
        PathMatch::Regex(_) => 2,
        PathMatch::Below(_) | PathMatch::Prefix(_) | PathMatch::PrefixIgnoreCase(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    //! The order in which routes are tried, in each dialect and between them.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::testing::{self, AGE, CONDITIONS, LENGTH, WEAKER, route, with_header};
    use model::{
        HeaderName,
        route::{Conditions, HeaderMatch, Lengths, Precedence, QueryMatch, Share, StringMatch},
    };

    /// The names of the objects in the order in which their routes are tried.
    fn tried(mut routes: Vec<Arc<Route>>) -> Vec<String> {
        let order = |routes: &mut Vec<Arc<Route>>| -> Vec<String> {
            *routes = sorted(std::mem::take(routes));
            routes.iter().map(|route| route.origin.object.name.to_string()).collect()
        };
        let forwards = order(&mut routes);
        routes.reverse();
        assert_eq!(order(&mut routes), forwards, "whatever the order they come in");
        forwards
    }

    fn changed(route: &Arc<Route>, change: impl FnOnce(&mut Precedence)) -> Arc<Route> {
        testing::changed(route, |route| change(&mut route.precedence))
    }

    #[test]
    fn the_specific_is_tried_first() {
        let paths = ["/ /", "/ /a", "p /a", "= /a", "/ /a/b", "~ /a/[0-9]+", "= /a/b", "~ /x.*"];
        let routes = paths.iter().map(|path| route(path, 0, path)).collect();
        assert_eq!(tried(routes), ["= /a/b", "= /a", "~ /a/[0-9]+", "~ /x.*", "/ /a/b", "/ /a", "p /a", "/ /"]);
    }

    #[test]
    fn between_equally_specific_routes_the_dialect_decides() {
        // The young one's header comes first in the alphabet, the old one's object is older.
        let young = with_header(&route("young", 2, "/ /"), "x-a");
        let old = with_header(&route("old", 1, "/ /"), "x-b");
        let of = |dialect| move |route: &Arc<Route>| changed(route, |precedence| precedence.dialect = dialect);
        assert_eq!(tried([&young, &old].map(of(CONDITIONS)).to_vec()), ["young", "old"]);
        assert_eq!(tried([&young, &old].map(of(AGE)).to_vec()), ["old", "young"]);
        // Namespace and name are next, then the place inside the object.
        let (a, b) = (route("a", 1, "/ /"), route("b", 1, "/ /"));
        let (a, b) = (with_header(&of(AGE)(&a), "x-b"), with_header(&of(AGE)(&b), "x-a"));
        assert_eq!(tried(vec![b.clone(), a.clone()]), ["a", "b"]);
        let first = testing::changed(&b, |route| {
            route.precedence.name = a.precedence.name.clone();
            route.precedence.index = 1;
        });
        assert_eq!(tried(vec![first, a]), ["a", "b"]);
        // More conditions are more specific in both.
        for dialect in [CONDITIONS, AGE] {
            let two = with_header(&with_header(&of(dialect)(&route("two", 9, "/ /")), "x-y"), "x-z");
            assert_eq!(tried(vec![of(dialect)(&old), two]), ["two", "old"]);
        }
    }

    #[test]
    fn between_dialects_the_stronger_comes_first_among_equally_specific_routes_only() {
        let of = |dialect| move |route: Arc<Route>| changed(&route, |precedence| precedence.dialect = dialect);
        let strong = with_header(&of(AGE)(route("strong", 9, "/ /")), "x-b");
        let weak = with_header(&of(WEAKER)(route("weak", 1, "/ /")), "x-a");
        assert_eq!(tried(vec![weak.clone(), strong.clone()]), ["strong", "weak"]);
        let longer = of(WEAKER)(route("longer", 9, "/ /a"));
        assert_eq!(tried(vec![strong, weak, longer]), ["longer", "strong", "weak"]);
    }

    #[test]
    fn a_priority_comes_before_the_path_and_the_default_among_the_others() {
        let with = |name, priority, path| changed(&route(name, 1, path), |precedence| precedence.priority = priority);
        let routes = vec![with("exact", 0, "= /a"), with("high", 10, "/ /"), with("low", -1, "= /b")];
        assert_eq!(tried(routes), ["high", "exact", "low"]);
    }

    #[test]
    fn the_narrower_host_name_comes_before_the_path() {
        let with = |name, widening, path| changed(&route(name, 1, path), |precedence| precedence.widening = widening);
        let routes = vec![with("wide", 12, "= /a"), with("own", 0, "/ /"), with("wider", 20, "= /b")];
        assert_eq!(tried(routes), ["own", "wide", "wider"]);
    }

    #[test]
    fn a_method_comes_before_headers_headers_before_parameters_and_all_of_them_before_age() {
        let header = |name: &str, value: ValueMatch| HeaderMatch {
            name: HeaderName::parse_matched(name).unwrap(),
            invert: false,
            value,
            missing_is_empty: false,
        };
        let exact = |text: &str| ValueMatch::Text { text: StringMatch::Exact(text.into()), ignore_case: false };
        let query = |name: &str| QueryMatch { name: name.into(), value: ValueMatch::Present };
        let with = |name: &str, headers: Vec<HeaderMatch>, queries: &[&str]| {
            // The younger an object is here, the sooner its routes are tried.
            let route = changed(&route(name, 0, "/ /"), |precedence| precedence.dialect = AGE);
            testing::changed(&route, |route| {
                let query = queries.iter().map(|name| query(name)).collect();
                route.conditions = Conditions { headers, query, host: None }.sorted();
            })
        };
        let mut routes = vec![
            with("plain", Vec::new(), &[]),
            with("parameter", Vec::new(), &["a"]),
            with("parameters", Vec::new(), &["a", "b"]),
            with("header", vec![header("x-a", exact("b"))], &[]),
            with("headers", vec![header("x-a", exact("b")), header("x-b", exact("b"))], &[]),
            with("method", vec![header(":method", exact("GET"))], &[]),
            with("method and header", vec![header(":method", exact("GET")), header("x-a", exact("b"))], &[]),
            with("path", vec![header(":path", exact("/a/b"))], &[]),
            with("longer path", vec![header(":path", exact("/a/bc"))], &[]),
        ];
        for (created, route) in routes.iter_mut().enumerate() {
            *route = changed(route, |precedence| precedence.created = i64::try_from(created).unwrap());
        }
        let expected = [
            "longer path",
            "path",
            "method and header",
            "method",
            "headers",
            "header",
            "parameters",
            "parameter",
            "plain",
        ];
        assert_eq!(tried(routes), expected);
    }

    /// A route of a dialect with an order of its own.
    fn by_length(name: &str, path: &str, headers: u32) -> Arc<Route> {
        changed(&route(name, 1, path), |precedence| {
            precedence.dialect = LENGTH;
            precedence.lengths = Lengths { path: (path.len() - 2) as u32, headers, query: 0 };
        })
    }

    #[test]
    fn a_dialect_may_try_the_longer_text_first_whatever_kind_of_match_it_is() {
        let routes = vec![
            by_length("exact", "= /ab", 0),
            by_length("prefix", "p /abc", 0),
            by_length("pattern", "~ /a.*b", 0),
            by_length("header", "= /ab", 5),
            changed(&by_length("high", "p /", 0), |precedence| precedence.priority = 1),
        ];
        assert_eq!(tried(routes), ["high", "pattern", "prefix", "header", "exact"]);
        // Of equal lengths the later text comes first.
        assert_eq!(tried(vec![by_length("a", "p /a", 0), by_length("b", "p /b", 0)]), ["b", "a"]);
    }

    #[test]
    fn orders_of_dialects_are_merged_and_each_keeps_its_own() {
        // An exact path of the other dialects comes before a prefix of this one, and a shorter prefix behind it.
        let own = || vec![by_length("long prefix", "p /abc", 0), by_length("exact", "= /ab", 0)];
        let with = |others: &[(&str, &str)]| {
            tried(own().into_iter().chain(others.iter().map(|(name, path)| route(name, 1, path))).collect())
        };
        assert_eq!(with(&[("other exact", "= /x")]), ["other exact", "long prefix", "exact"]);
        assert_eq!(with(&[("other prefix", "/ /a")]), ["long prefix", "exact", "other prefix"]);
        // What is more specific than the first of a list is tried before all of the list.
        assert_eq!(with(&[("other pattern", "~ /a.*")]), ["other pattern", "long prefix", "exact"]);
        let high = changed(&by_length("high", "p /", 0), |precedence| precedence.priority = 1);
        assert_eq!(tried(vec![high, route("other exact", 1, "= /x")]), ["high", "other exact"]);
    }

    #[test]
    fn shares_are_in_a_fixed_order() {
        assert!(Share::Percent(1) < Share::Percent(2) && Share::Percent(100) < Share::Rest);
    }
}
