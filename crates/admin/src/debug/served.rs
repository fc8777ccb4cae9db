//! What proxies were sent for hosts, for the pages about one host and about one object.
//!
//! In: the snapshots of fleets. Out: virtual hosts, the routes in each, the hosts and listeners whose connections are passed on, and
//! which clients have them. All of a fleet's routes are decoded to find them, so it is done on a thread of its own, for few at once.

mod streams;

use envoy_api::{
    Message,
    envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration, VirtualHost, scoped_route_configuration},
    json::to_json,
};
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc, time::Instant};
use xds::{Entry, Fleet, FleetAcks, Kind, Snapshot};

/// How many clients are named where they do not have something.
const MOST_CLIENTS: usize = 50;
/// How many routes of a virtual host are shown.
const MOST_ROUTES: usize = 200;

/// A virtual host that a fleet was sent.
#[derive(Serialize)]
pub(super) struct Site {
    pub fleet: Fleet,
    /// The listener whose requests it is for.
    pub listener: String,
    /// Its domain; empty for a listener that takes every connection or datagram, whatever host it is for.
    pub host: String,
    #[serde(rename = "type")]
    kind: &'static str,
    resource: Arc<str>,
    version: String,
    clients: ClientsView,
    route_count: usize,
    /// The first of them.
    pub routes: Vec<RouteView>,
    /// The objects of all of them.
    #[serde(skip)]
    pub owners: BTreeSet<String>,
}

/// Which clients have it.
#[derive(Serialize)]
struct ClientsView {
    have: usize,
    behind: Vec<BehindView>,
    rejected: Vec<Arc<str>>,
}

#[derive(Serialize)]
struct BehindView {
    node: Arc<str>,
    seconds: u64,
}

/// A route: its object and field, or what else it is for, and what it does.
#[derive(Clone, Serialize)]
pub(super) struct RouteView {
    pub route: String,
    #[serde(rename = "match")]
    matches: Value,
    action: Value,
}

/// Every virtual host of these fleets that is wanted, with those of its routes that are.
pub(super) fn find(
    fleets: &[(Fleet, FleetAcks)],
    is_wanted: impl Fn(&str) -> bool,
    is_shown: impl Fn(&RouteView) -> bool,
) -> Vec<Site> {
    let mut found = Vec::new();
    for (fleet, acks) in fleets {
        let Some(snapshot) = acks.snapshot() else { continue };
        let streams = streams::find(&snapshot).filter(|stream| is_wanted(&stream.host) && is_shown(&stream.route));
        found.extend(streams.map(|stream| Site {
            fleet: fleet.clone(),
            listener: stream.listener,
            host: stream.host,
            kind: stream.kind.label(),
            resource: stream.entry.name.clone(),
            version: format!("{:016x}", stream.entry.version),
            clients: clients(acks, stream.kind, stream.entry),
            route_count: 1,
            owners: object_of(&stream.route.route).into_iter().collect(),
            routes: vec![stream.route],
        }));
        for (kind, entry) in tables(&snapshot) {
            for (listener, host) in virtual_hosts(kind, entry, &snapshot) {
                if !is_wanted(&host.name) {
                    continue;
                }
                let mut routes = routes(&host);
                let had_routes = !routes.is_empty();
                routes.retain(&is_shown);
                // Who has it is not asked in vain: that takes a lock of every client.
                if had_routes && routes.is_empty() {
                    continue;
                }
                let route_count = routes.len();
                let owners = routes.iter().filter_map(|route| object_of(&route.route)).collect();
                routes.truncate(MOST_ROUTES);
                found.push(Site {
                    fleet: fleet.clone(),
                    listener,
                    host: host.name,
                    kind: kind.label(),
                    resource: entry.name.clone(),
                    version: format!("{:016x}", entry.version),
                    clients: clients(acks, kind, entry),
                    route_count,
                    routes,
                    owners,
                });
            }
        }
    }
    found
}

fn tables(snapshot: &Snapshot) -> impl Iterator<Item = (Kind, &Entry)> {
    let kinds = [Kind::ScopedRoute, Kind::Route].into_iter();
    kinds.flat_map(|kind| snapshot.table(kind).iter().map(move |entry| (kind, &**entry)))
}

/// The virtual hosts in a resource, and the listener that it is for. Scopes for redirects that Envoy follows by itself repeat
/// hosts that have scopes of their own. A route configuration that hosts share is shown for each of them.
fn virtual_hosts(kind: Kind, entry: &Entry, snapshot: &Snapshot) -> Vec<(String, VirtualHost)> {
    let (table, config) = match kind {
        Kind::ScopedRoute => {
            let Ok(scope) = ScopedRouteConfiguration::decode(entry.body.clone()) else { return Vec::new() };
            let Some((listener, host)) = scope_key(&scope) else { return Vec::new() };
            let config = match scope.route_configuration {
                Some(config) => config,
                None => shared(&scope.route_configuration_name, &host, snapshot),
            };
            if host != "*" && config.virtual_hosts.iter().all(|other| other.name != host) {
                return Vec::new();
            }
            (listener, config)
        }
        _ => match RouteConfiguration::decode(entry.body.clone()) {
            Ok(config) if !is_named_by_scopes(&config.name, snapshot) => (config.name.clone(), config),
            Ok(_) | Err(_) => return Vec::new(),
        },
    };
    config.virtual_hosts.into_iter().map(|host| (table.clone(), host)).collect()
}

/// The routes that a host shares with others, as its own.
fn shared(name: &str, host: &str, snapshot: &Snapshot) -> RouteConfiguration {
    let entry = snapshot.get(Kind::Route, name);
    let mut config = entry.and_then(|entry| RouteConfiguration::decode(entry.body.clone()).ok()).unwrap_or_default();
    config.virtual_hosts.iter_mut().for_each(|own| host.clone_into(&mut own.name));
    config
}

/// Whether a route configuration is one that scopes name.
fn is_named_by_scopes(name: &str, snapshot: &Snapshot) -> bool {
    let to = xds::Ref::To(Kind::Route, name.into());
    snapshot.table(Kind::ScopedRoute).iter().any(|scope| scope.refs.contains(&to))
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

/// The object in the name of a route: `HTTPProxy shop/web spec.routes[0]`. Routes that are nobody's have other names.
pub(super) fn object_of(route: &str) -> Option<String> {
    let mut words = route.split(' ');
    let (kind, name) = (words.next()?, words.next()?);
    Some(format!("{kind} {name}"))
}

fn clients(acks: &FleetAcks, kind: Kind, entry: &Entry) -> ClientsView {
    let acks = acks.resource_acks(kind, &entry.name, entry.version);
    let now = Instant::now();
    let behind = acks.behind.into_iter().take(MOST_CLIENTS).map(|(client, since)| BehindView {
        node: client.node.clone(),
        seconds: now.saturating_duration_since(since).as_secs(),
    });
    let rejected = acks.refused.into_iter().take(MOST_CLIENTS).map(|client| client.node.clone());
    ClientsView { have: acks.have.len(), behind: behind.collect(), rejected: rejected.collect() }
}
