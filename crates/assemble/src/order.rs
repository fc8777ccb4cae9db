//! The order in which a proxy must try the routes of one virtual host: the most specific first.
//!
//! Exact paths, then patterns, then prefixes; the longer one first; a prefix by path element before the same text as a
//! plain prefix. That is the order the Kubernetes API documents for Ingress (the longest match wins, exact before prefix),
//! and Contour's. Of routes with one path, that with more conditions comes first. Routes that match alike are ordered by rank, and only the first of them is served.
//!
//! One thing is stronger than a pattern: the path of an ACME challenge. Without it a pattern that sends every client to
//! HTTPS would keep the certificate from ever being renewed.

use model::{
    Route,
    route::{ACME, PathMatch},
};
use std::cmp::Ordering;

/// How two routes of one virtual host stand to each other.
pub fn compare(a: &Route, b: &Route) -> Ordering {
    by_match(a, b).then_with(|| a.rank.cmp(&b.rank))
}

/// The same without the ranks: equal means that the two take exactly the same requests.
pub fn by_match(a: &Route, b: &Route) -> Ordering {
    class(&a.path)
        .cmp(&class(&b.path))
        .then_with(|| b.path.text().len().cmp(&a.path.text().len()))
        .then_with(|| b.path.text().cmp(a.path.text()))
        .then_with(|| a.path.cmp(&b.path))
        .then_with(|| has_method(b).cmp(&has_method(a)))
        .then_with(|| b.conditions.headers.len().cmp(&a.conditions.headers.len()))
        .then_with(|| b.conditions.query.len().cmp(&a.conditions.query.len()))
        .then_with(|| a.conditions.cmp(&b.conditions))
        .then_with(|| a.depth.cmp(&b.depth))
}

fn has_method(route: &Route) -> bool {
    route.conditions.headers.iter().any(|header| header.name.as_str() == ":method")
}

fn class(path: &PathMatch) -> u8 {
    match path {
        PathMatch::Exact(_) => 0,
        PathMatch::Below(path) | PathMatch::Prefix(path) if path.as_str().starts_with(ACME) => 1,
        PathMatch::Regex(_) => 2,
        PathMatch::Below(_) | PathMatch::Prefix(_) => 3,
    }
}
