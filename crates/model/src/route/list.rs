//! The routes of a host, which hosts with equal routes share.

use super::Route;
use std::{ops::Deref, slice, sync::Arc};

/// Routes, first match wins. A clone is another handle of the same list: a thousand hosts with a thousand routes in common have them once,
/// and what is asked of all of a list is known with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteList(Option<Arc<Shared>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shared {
    routes: Box<[Arc<Route>]>,
    follows_redirects: bool,
    requires_tokens: bool,
}

impl RouteList {
    /// Whether proxies follow redirects of backends on some route.
    pub fn follows_redirects(&self) -> bool {
        self.0.as_ref().is_some_and(|list| list.follows_redirects)
    }

    /// Whether some route requires a JSON Web Token.
    pub fn requires_tokens(&self) -> bool {
        self.0.as_ref().is_some_and(|list| list.requires_tokens)
    }
}

impl From<Vec<Arc<Route>>> for RouteList {
    fn from(routes: Vec<Arc<Route>>) -> Self {
        if routes.is_empty() {
            return Self::default();
        }
        let follows_redirects = routes.iter().any(|route| route.follows_redirects());
        let requires_tokens = routes.iter().any(|route| route.policy.jwt.is_some());
        Self(Some(Arc::new(Shared { routes: routes.into(), follows_redirects, requires_tokens })))
    }
}

impl FromIterator<Arc<Route>> for RouteList {
    fn from_iter<I: IntoIterator<Item = Arc<Route>>>(routes: I) -> Self {
        routes.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for RouteList {
    type Target = [Arc<Route>];

    fn deref(&self) -> &[Arc<Route>] {
        self.0.as_ref().map_or(&[], |list| &list.routes)
    }
}

impl<'a> IntoIterator for &'a RouteList {
    type Item = &'a Arc<Route>;
    type IntoIter = slice::Iter<'a, Arc<Route>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
