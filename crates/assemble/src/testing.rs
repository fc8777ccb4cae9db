//! Routes as small as they can be, for tests.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use model::{
    HeaderName, ObjectRef, Regex, Route,
    route::{Action, Depth, Dialect, DirectResponse, HeaderMatch, Path, PathMatch, Precedence, TieBreak, ValueMatch},
};
use std::sync::Arc;

/// A dialect that looks at conditions before age.
pub const CONDITIONS: Dialect = Dialect { rank: 2, tie_break: TieBreak::Conditions, falls_through: false };
/// A dialect that looks at age before conditions.
pub const AGE: Dialect = Dialect { rank: 1, tie_break: TieBreak::Age, falls_through: false };
/// A dialect that loses to the others.
pub const WEAKER: Dialect = Dialect { rank: 3, tie_break: TieBreak::Conditions, falls_through: false };

/// A dialect with an order of its own.
pub const LENGTH: Dialect = Dialect { rank: 3, tie_break: TieBreak::Length, falls_through: false };

/// `= /a` is an exact path, `~ /a` a pattern, `/ /a` a prefix by element, `p /a` a prefix.
fn path(text: &str) -> PathMatch {
    let path = |text: &str| Path::parse(text).unwrap();
    match text.split_once(' ').unwrap() {
        ("=", rest) => PathMatch::Exact(path(rest)),
        ("~", rest) => PathMatch::Regex(Regex::parse(rest).unwrap()),
        ("/", rest) => PathMatch::below(&path(rest)),
        (_, rest) => PathMatch::Prefix(path(rest)),
    }
}

/// A route of an object in the namespace `ns`.
pub fn route(name: &str, created: i64, text: &str) -> Arc<Route> {
    Arc::new(Route {
        path: path(text),
        conditions: Default::default(),
        depth: Depth::OneLabel,
        fraction: None,
        action: Action::DirectResponse(DirectResponse::unavailable()),
        policy: Default::default(),
        precedence: Precedence {
            implied: name.starts_with("implied"),
            ..Precedence::by_age(CONDITIONS, created, "ns".into(), name.into(), 0)
        },
        origin: ObjectRef::new(kinds::kind::SERVICE, "ns", name).at("spec"),
        combined: None,
    })
}

/// The same route, changed.
pub fn changed(route: &Arc<Route>, change: impl FnOnce(&mut Route)) -> Arc<Route> {
    let mut route = Route::clone(route);
    change(&mut route);
    Arc::new(route)
}

/// The same route for requests that have this header, too.
pub fn with_header(route: &Arc<Route>, name: &str) -> Arc<Route> {
    changed(route, |route| {
        let name = HeaderName::parse(name).unwrap();
        route.conditions.headers.push(HeaderMatch {
            name,
            invert: false,
            value: ValueMatch::Present,
            missing_is_empty: false,
        });
        route.conditions = std::mem::take(&mut route.conditions).sorted();
    })
}
