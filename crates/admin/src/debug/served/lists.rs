//! The routes of virtual hosts, from the scopes and route lists of a fleet.
//!
//! In: the snapshot of a fleet. Out: the virtual hosts that a resource serves, each with its listener and [`ShownRoutes`]. A route list
//! that hosts share is shown for each of them and decoded once: ten thousand hosts may share a list of ten thousand routes.

use super::{RouteView, object_of};
use envoy_api::{
    Message,
    envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration, VirtualHost, scoped_route_configuration},
    json::to_json,
};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use xds::{Entry, Kind, Name, Ref, Snapshot};

/// How many routes of a virtual host are shown.
const MOST_ROUTES: usize = 200;

/// The routes of a virtual host that are shown.
#[derive(Clone)]
pub(super) struct ShownRoutes {
    /// Whether it has routes and none of them is to be shown.
    pub are_hidden: bool,
    /// How many there are.
    pub count: usize,
    /// The first of them.
    pub first: Arc<[RouteView]>,
    /// The objects of all of them.
    pub owners: Arc<BTreeSet<String>>,
}

/// The routes of one fleet.
pub(super) struct RouteLists<'s, W, S> {
    snapshot: &'s Snapshot,
    is_wanted: W,
    is_shown: S,
    /// The route lists that scopes name.
    shared: HashSet<&'s str>,
    /// Those of them that were decoded: the routes of each virtual host.
    decoded: HashMap<Name, Vec<ShownRoutes>>,
}

impl<'s, W: Fn(&str) -> bool, S: Fn(&RouteView) -> bool> RouteLists<'s, W, S> {
    /// Those of a fleet, of which some hosts are wanted and some routes are shown.
    pub fn new(snapshot: &'s Snapshot, is_wanted: W, is_shown: S) -> Self {
        let refs = snapshot.table(Kind::ScopedRoute).iter().flat_map(|scope| scope.refs.iter());
        let shared = refs.filter_map(|to| match to {
            Ref::To(Kind::Route, name) => Some(&**name),
            Ref::To(..) | Ref::Under(..) => None,
        });
        Self { snapshot, is_wanted, is_shown, shared: shared.collect(), decoded: HashMap::new() }
    }

    /// The virtual hosts of a resource that are wanted, each with the listener that it is for. Scopes for redirects that Envoy follows by
    /// itself repeat hosts that have scopes of their own.
    pub fn virtual_hosts(&mut self, kind: Kind, entry: &Entry) -> Vec<(String, String, ShownRoutes)> {
        if kind != Kind::ScopedRoute {
            return self.of_route_list(entry);
        }
        let Ok(scope) = ScopedRouteConfiguration::decode(entry.body.clone()) else { return Vec::new() };
        let Some((listener, host)) = scope_key(&scope) else { return Vec::new() };
        match scope.route_configuration {
            Some(config) if host == "*" || config.virtual_hosts.iter().any(|other| other.name == host) => {
                self.of_config(&listener, config)
            }
            Some(_) => Vec::new(),
            None => self.of_shared(&listener, &host, &scope.route_configuration_name),
        }
    }

    /// The virtual hosts of a route list. One that scopes name is shown with these.
    fn of_route_list(&self, entry: &Entry) -> Vec<(String, String, ShownRoutes)> {
        if self.shared.contains(&*entry.name) {
            return Vec::new();
        }
        match RouteConfiguration::decode(entry.body.clone()) {
            Ok(config) => self.of_config(&config.name.clone(), config),
            Err(_) => Vec::new(),
        }
    }

    fn of_config(&self, listener: &str, config: RouteConfiguration) -> Vec<(String, String, ShownRoutes)> {
        let wanted = config.virtual_hosts.into_iter().filter(|host| (self.is_wanted)(&host.name));
        wanted.map(|host| (listener.to_owned(), host.name.clone(), self.shown(&host))).collect()
    }

    /// The routes that a host shares with others, as its own.
    fn of_shared(&mut self, listener: &str, host: &str, name: &str) -> Vec<(String, String, ShownRoutes)> {
        if !(self.is_wanted)(host) {
            return Vec::new();
        }
        let Some(entry) = self.snapshot.get(Kind::Route, name) else { return Vec::new() };
        if !self.decoded.contains_key(name) {
            let config = RouteConfiguration::decode(entry.body.clone()).unwrap_or_default();
            let routes = config.virtual_hosts.iter().map(|host| self.shown(host)).collect();
            self.decoded.insert(entry.name.clone(), routes);
        }
        let routes = self.decoded.get(name).into_iter().flatten();
        routes.map(|routes| (listener.to_owned(), host.to_owned(), routes.clone())).collect()
    }

    fn shown(&self, host: &VirtualHost) -> ShownRoutes {
        let mut routes = routes(host);
        let has_routes = !routes.is_empty();
        routes.retain(&self.is_shown);
        let count = routes.len();
        let owners = routes.iter().filter_map(|route| object_of(&route.route)).collect();
        routes.truncate(MOST_ROUTES);
        ShownRoutes { are_hidden: has_routes && count == 0, count, first: routes.into(), owners: Arc::new(owners) }
    }
}

/// The listener and the host in the key of a scope.
fn scope_key(scope: &ScopedRouteConfiguration) -> Option<(String, String)> {
    use scoped_route_configuration::key::fragment::Type;
    let fragment = scope.key.as_ref()?.fragments.first()?;
    let Type::StringKey(key) = fragment.r#type.as_ref()?;
    let (listener, host) = key.split_once('|')?;
    Some((listener.to_owned(), host.to_owned()))
}

/// The routes, in lists and in match trees.
fn routes(host: &VirtualHost) -> Vec<RouteView> {
    let mut found = Vec::new();
    if let Ok(value) = to_json(host) {
        collect(value, &mut found);
    }
    found
}

/// A route is what has a match and one of the actions.
fn collect(value: Value, found: &mut Vec<RouteView>) {
    const ACTIONS: [&str; 3] = ["route", "redirect", "direct_response"];
    match value {
        Value::Object(mut fields) => {
            let action = ACTIONS.into_iter().find(|action| fields.contains_key(*action));
            if let Some(action) = action.filter(|_| fields.contains_key("match")) {
                let route = fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                let mut take = |field: &str| fields.remove(field).unwrap_or_default();
                let (matches, done) = (take("match"), take(action));
                let action = Value::Object([(action.to_owned(), done)].into_iter().collect());
                found.push(RouteView { route, matches, action });
            } else {
                fields.into_iter().for_each(|(_, value)| collect(value, found));
            }
        }
        Value::Array(values) => values.into_iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use envoy_api::envoy::config::route::v3::{
        DirectResponseAction, Route, RouteMatch,
        route::Action,
        route_match::PathSpecifier,
        scoped_route_configuration::{Key, key::Fragment, key::fragment::Type},
    };
    use std::cell::Cell;
    use xds::{Batch, Changes, Config, Fleet, Resource, Server};

    use super::*;

    fn scope(host: &str) -> Resource {
        let key = Key { fragments: vec![Fragment { r#type: Some(Type::StringKey(format!("http|{host}"))) }] };
        let scope = ScopedRouteConfiguration {
            name: host.to_owned(),
            route_configuration_name: "shared".to_owned(),
            key: Some(key),
            ..Default::default()
        };
        let refs = vec![Ref::To(Kind::Route, "shared".into())];
        Resource { refs, ..Resource::new(Kind::ScopedRoute, host, scope.encode_to_vec()) }
    }

    #[test]
    fn a_list_that_hosts_share_is_decoded_once_and_only_for_a_host_that_is_wanted() {
        let path = Some(PathSpecifier::Prefix("/".to_owned()));
        let route = Route {
            name: "Ingress shop/web spec.rules[0]".to_owned(),
            r#match: Some(RouteMatch { path_specifier: path, ..Default::default() }),
            action: Some(Action::DirectResponse(DirectResponseAction { status: 200, ..Default::default() })),
            ..Default::default()
        };
        let own = VirtualHost { name: "any".to_owned(), routes: vec![route; 300], ..Default::default() };
        let list = RouteConfiguration { name: "shared".to_owned(), virtual_hosts: vec![own], ..Default::default() };
        let hosts = (0..100).map(|number| scope(&format!("h{number}.example.com")));
        let upserts = hosts.chain([Resource::new(Kind::Route, "shared", list.encode_to_vec())]).collect();
        let server = Server::new(Config::default());
        server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: Vec::new() } }).unwrap();
        let snapshot = server.acks(&Fleet::Shared).unwrap().snapshot().unwrap();

        let looked_at = Cell::new(0);
        let is_shown = |_: &RouteView| {
            looked_at.set(looked_at.get() + 1);
            true
        };
        let mut lists = RouteLists::new(&snapshot, |host: &str| host != "h7.example.com", is_shown);
        let scopes: Vec<_> = snapshot.table(Kind::ScopedRoute).iter().collect();
        let found: Vec<_> = scopes.iter().flat_map(|scope| lists.virtual_hosts(Kind::ScopedRoute, scope)).collect();
        assert_eq!((found.len(), looked_at.get()), (99, 300));
        let (listener, host, routes) = &found[0];
        assert_eq!((&**listener, &**host), ("http", "h0.example.com"));
        assert_eq!((routes.count, routes.first.len(), routes.are_hidden), (300, MOST_ROUTES, false));
        assert!(routes.owners.iter().eq(["Ingress shop/web"]));
        let list = snapshot.get(Kind::Route, "shared").unwrap();
        assert!(lists.virtual_hosts(Kind::Route, list).is_empty(), "it is shown with its hosts");

        let mut lists = RouteLists::new(&snapshot, |_: &str| false, is_shown);
        assert!(scopes.iter().all(|scope| lists.virtual_hosts(Kind::ScopedRoute, scope).is_empty()));
        assert_eq!(looked_at.get(), 300, "a host that is not wanted costs its scope alone");
    }
}
