//! A long list of routes as a tree on the path, so that a request does not pass every route before its own.
//!
//! In: routes, in the order in which they must be tried. Out: the longest path of a route that a request's path begins with
//! leads to a list of *every* route that can take such a request, in the same order. Envoy then tries that list as it
//! tries any other, with all conditions. So nothing about the order or the meaning of routes is said twice, and no request
//! has to come back from a branch that did not fit (Envoy does not go on after a list in which nothing matched).
//!
//! Why the lists are complete: Envoy looks at the path with its query, and no route's path has a `?`. A route with a prefix
//! takes a request only if its path is among the beginnings of the longest one that was found. A route with an exact path
//! takes a request only if that path is the longest one found. Routes with patterns are in every list, and so are those that take a
//! path in any case: the tree compares as it is written. A route for a part of requests is followed by the next one in its list.
//!
//! The price is that a route stands in the lists of all paths below its own; where that would be more than a few copies of
//! each, the list stays a list. So it does where a route that counts its requests would be copied: each copy would count by
//! itself.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{route::filters, splice};
use bytes::BytesMut;
use envoy_api::{
    Message, any,
    envoy::{
        config::route::v3::{Route, RouteList, VirtualHost, route_match::PathSpecifier},
        r#type::matcher::v3::HttpRequestHeaderMatchInput,
    },
    xds::{
        core::v3::TypedExtensionConfig,
        r#type::matcher::v3::{
            Matcher,
            matcher::{
                MatcherTree, MatcherType, OnMatch,
                matcher_tree::{MatchMap, TreeType},
                on_match,
            },
        },
    },
};

/// Up to so many routes a list is as fast (measured: 43 ns for each route that is passed, 1.4 µs for a tree).
pub const LONGEST_LIST: usize = 32;
/// How many copies of a route a tree may have, on average.
const COPIES: usize = 6;

/// Puts a tree in the place of a list where it pays. The routes are encoded once, however many lists they stand in, and one
/// after the other, so that a long list is not in memory in both forms.
pub fn shape(host: &mut VirtualHost) {
    if host.routes.len() > LONGEST_LIST
        && let Some(lists) = Lists::of(&host.routes, COPIES)
    {
        let encoded: Vec<Vec<u8>> =
            std::mem::take(&mut host.routes).into_iter().map(|route| route.encode_to_vec()).collect();
        host.matcher = Some(lists.matcher(&encoded));
    }
}

/// The tree of these routes, unless it would hold more copies of each than this, on average, or no path at all: Envoy takes
/// no empty tree.
pub fn matcher(routes: &[Route], copies: usize) -> Option<Matcher> {
    let encoded: Vec<Vec<u8>> = routes.iter().map(Message::encode_to_vec).collect();
    Some(Lists::of(routes, copies)?.matcher(&encoded))
}

/// Which routes stand in which list, by their places among all.
struct Lists {
    by_path: BTreeMap<String, Vec<usize>>,
    /// For requests without any of these paths.
    any: Vec<usize>,
}

/// Where routes stand in the list, by what they say about the path.
#[derive(Default)]
struct ByPath<'r> {
    exact: HashMap<&'r str, Vec<usize>>,
    prefix: HashMap<&'r str, Vec<usize>>,
    any: Vec<usize>,
}

impl Lists {
    fn of(routes: &[Route], copies: usize) -> Option<Self> {
        let mut by_path = ByPath::default();
        for (at, route) in routes.iter().enumerate() {
            let found = route.r#match.as_ref().filter(|found| found.case_sensitive != Some(false.into()));
            match found.and_then(|found| found.path_specifier.as_ref()) {
                Some(PathSpecifier::Path(path)) => by_path.exact.entry(path).or_default().push(at),
                Some(PathSpecifier::Prefix(path) | PathSpecifier::PathSeparatedPrefix(path)) => {
                    by_path.prefix.entry(path).or_default().push(at);
                }
                _ => by_path.any.push(at),
            }
        }
        if by_path.exact.is_empty() && by_path.prefix.is_empty() {
            return None;
        }
        let mut left = routes.len().saturating_mul(copies);
        let mut counting = HashSet::new();
        let mut lists = BTreeMap::new();
        // In order, a path follows everything that it begins with: the last prefixes that still fit are all there are.
        let mut above: Vec<&str> = Vec::new();
        for path in by_path.paths() {
            while above.last().is_some_and(|last| !path.starts_with(last)) {
                above.pop();
            }
            if by_path.prefix.contains_key(path) {
                above.push(path);
            }
            let list = by_path.list(path, &above);
            left = left.checked_sub(list.len())?;
            let counts = |at: &&usize| routes.get(**at).is_some_and(filters::counts);
            if !list.iter().filter(counts).all(|at| counting.insert(*at)) {
                return None;
            }
            lists.insert(path.to_owned(), list);
        }
        Some(Self { by_path: lists, any: by_path.any })
    }

    /// The tree, from all routes as they are encoded.
    fn matcher(self, routes: &[Vec<u8>]) -> Matcher {
        let path = HttpRequestHeaderMatchInput { header_name: ":path".to_owned() };
        let map = self.by_path.into_iter().map(|(path, list)| (path, on_match(routes, &list))).collect();
        Matcher {
            matcher_type: Some(MatcherType::MatcherTree(MatcherTree {
                input: Some(extension("path", any(&path))),
                tree_type: Some(TreeType::PrefixMatchMap(MatchMap { map })),
            })),
            on_no_match: (!self.any.is_empty()).then(|| Box::new(on_match(routes, &self.any))),
        }
    }
}

impl<'r> ByPath<'r> {
    /// Every path, in order, each once.
    fn paths(&self) -> Vec<&'r str> {
        let mut paths: Vec<_> = self.exact.keys().chain(self.prefix.keys()).copied().collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Every route that can take a request of which this is the longest path, in the order of the list. `above` are the
    /// prefixes that the path begins with.
    fn list(&self, path: &str, above: &[&str]) -> Vec<usize> {
        let mut list = self.any.clone();
        list.extend(self.exact.get(path).into_iter().flatten());
        list.extend(above.iter().filter_map(|prefix| self.prefix.get(prefix)).flatten());
        list.sort_unstable();
        list
    }
}

/// Leads to a list: a `RouteList`, whose only field repeats the routes.
fn on_match(routes: &[Vec<u8>], list: &[usize]) -> OnMatch {
    const ROUTES: u32 = 1;
    let routes = || list.iter().filter_map(|&at| routes.get(at));
    let mut value = BytesMut::with_capacity(routes().map(|route| route.len() + 8).sum());
    routes().for_each(|route| splice::append(&mut value, ROUTES, route));
    let list = envoy_api::Any { value: value.freeze(), ..any(&RouteList::default()) };
    OnMatch { on_match: Some(on_match::OnMatch::Action(extension("routes", list))), ..Default::default() }
}

fn extension(name: &str, config: envoy_api::Any) -> TypedExtensionConfig {
    TypedExtensionConfig { name: name.to_owned(), typed_config: Some(config) }
}

#[cfg(test)]
mod tests {
    //! Which routes stand in which list.

    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use super::*;
    use envoy_api::envoy::{config::route::v3::RouteMatch, r#type::matcher::v3::RegexMatcher};
    use proptest::prelude::*;
    use std::time::Duration;

    fn route(at: usize, path: PathSpecifier) -> Route {
        let found = RouteMatch { path_specifier: Some(path), ..Default::default() };
        Route { name: at.to_string(), r#match: Some(found), ..Default::default() }
    }

    fn names(on_match: &OnMatch) -> Vec<String> {
        let Some(on_match::OnMatch::Action(action)) = &on_match.on_match else { panic!("not a list") };
        let list = RouteList::decode(&*action.typed_config.as_ref().unwrap().value).unwrap();
        list.routes.into_iter().map(|route| route.name).collect()
    }

    fn lists(matcher: &Matcher) -> BTreeMap<String, Vec<String>> {
        let Some(MatcherType::MatcherTree(tree)) = &matcher.matcher_type else { panic!("not a tree") };
        let Some(TreeType::PrefixMatchMap(map)) = &tree.tree_type else { panic!("not by prefix") };
        map.map.iter().map(|(path, on_match)| (path.clone(), names(on_match))).collect()
    }

    /// A list of every path, by the definition: each route is held against each path.
    fn by_definition(routes: &[Route]) -> BTreeMap<String, Vec<String>> {
        let of = |route: &Route| {
            let found = route.r#match.as_ref().unwrap();
            let every = PathSpecifier::SafeRegex(RegexMatcher::default());
            if found.case_sensitive.is_some() { every } else { found.path_specifier.clone().unwrap() }
        };
        let text = |path: &PathSpecifier| match path {
            PathSpecifier::Path(path) | PathSpecifier::Prefix(path) | PathSpecifier::PathSeparatedPrefix(path) => {
                Some(path.clone())
            }
            _ => None,
        };
        let takes = |route: &Route, longest: &str| match of(route) {
            PathSpecifier::Path(path) => path == longest,
            PathSpecifier::Prefix(path) | PathSpecifier::PathSeparatedPrefix(path) => longest.starts_with(&path),
            _ => true,
        };
        let paths = routes.iter().filter_map(|route| text(&of(route)));
        let list = |path: &str| -> Vec<String> {
            routes.iter().filter(|route| takes(route, path)).map(|route| route.name.clone()).collect()
        };
        paths.map(|path| (path.clone(), list(&path))).collect()
    }

    fn specifier() -> impl Strategy<Value = PathSpecifier> {
        let path = "/[ab/é]{0,6}";
        prop_oneof![
            path.prop_map(PathSpecifier::Path),
            path.prop_map(PathSpecifier::Prefix),
            path.prop_map(PathSpecifier::PathSeparatedPrefix),
            path.prop_map(|regex| PathSpecifier::SafeRegex(RegexMatcher { regex, ..Default::default() })),
        ]
    }

    proptest! {
        #[test]
        fn a_list_has_every_route_that_can_take_its_requests(
            paths in prop::collection::vec((specifier(), prop::bool::weighted(0.1)), 0..40)
        ) {
            let routes = paths.into_iter().enumerate().map(|(at, (path, ignores_case))| {
                let mut route = route(at, path);
                route.r#match.as_mut().unwrap().case_sensitive = ignores_case.then(|| false.into());
                route
            });
            let routes: Vec<_> = routes.collect();
            let lists = matcher(&routes, usize::MAX).map(|matcher| lists(&matcher)).unwrap_or_default();
            prop_assert_eq!(lists, by_definition(&routes));
        }
    }

    #[test]
    fn long_paths_cost_no_more_than_their_length() {
        let long = "x".repeat(4080);
        let paths = (0..4000).map(|at| PathSpecifier::Prefix(format!("/{long}/{at:04}")));
        let routes: Vec<_> = paths.enumerate().map(|(at, path)| route(at, path)).collect();
        let begun = cpu_time();
        assert_eq!(lists(&matcher(&routes, COPIES).unwrap()).len(), routes.len());
        assert!(cpu_time() - begun < Duration::from_secs(5));
    }

    /// The CPU time of this thread: what the bound is about, however busy the machine is.
    fn cpu_time() -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }
}
