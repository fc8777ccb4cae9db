//! What proxies were sent for hosts, for the pages about one host and about one object.
//!
//! In: the snapshots of fleets. Out: virtual hosts, the routes in each, the hosts and listeners whose connections are passed on, and
//! which clients have them. All of a fleet's routes are decoded to find them, so it is done on a thread of its own, for few at once.

mod lists;
mod streams;

use lists::RouteLists;
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc, time::Instant};
use xds::{Entry, Fleet, FleetAcks, Kind, Snapshot};

/// How many clients are named where they do not have something.
const MOST_CLIENTS: usize = 50;

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
    pub routes: Arc<[RouteView]>,
    /// The objects of all of them.
    #[serde(skip)]
    pub owners: Arc<BTreeSet<String>>,
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
            owners: Arc::new(object_of(&stream.route.route).into_iter().collect()),
            routes: Arc::new([stream.route]),
        }));
        let mut lists = RouteLists::new(&snapshot, &is_wanted, &is_shown);
        for (kind, entry) in tables(&snapshot) {
            for (listener, host, routes) in lists.virtual_hosts(kind, entry) {
                // Who has it is not asked in vain: that takes a lock of every client.
                if routes.are_hidden {
                    continue;
                }
                found.push(Site {
                    fleet: fleet.clone(),
                    listener,
                    host,
                    kind: kind.label(),
                    resource: entry.name.clone(),
                    version: format!("{:016x}", entry.version),
                    clients: clients(acks, kind, entry),
                    route_count: routes.count,
                    routes: routes.first,
                    owners: routes.owners,
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
