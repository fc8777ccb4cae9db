//! What a request costs Envoy: `cargo bench -p pipeline --bench requests`.
//!
//! - One host with one route to a backend, in each packing: exact, in upper case, below a wildcard. Both Envoys run side by
//!   side and take turns, so that whatever else the machine does falls on both.
//! - The same two hosts in the packing of the default, with the empty slots of protecting filters and without them.
//! - 10,000 routes on one host, as a list and as a tree, asked for the last: the same Envoy, in turns.
//!
//! All figures are CPU time of Envoy's for each request, the median of the rounds, and ratios within the run.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

#[allow(dead_code, reason = "the other benchmark uses the rest of it")]
#[path = "measure/process.rs"]
mod process;
#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/packing/world.rs"]
mod world;

use envoy::{
    listener::{ext_authz, jwt},
    route::framing,
    virtual_host,
};
use envoy_api::{
    Message,
    envoy::{
        config::{
            listener::v3::{Listener, filter},
            route::v3::{Route, RouteConfiguration, RouteMatch, VirtualHost, route_match::PathSpecifier},
        },
        extensions::filters::network::http_connection_manager::v3::{
            HttpConnectionManager, http_filter::ConfigType::ConfigDiscovery,
        },
    },
};
use model::Host;
use pipeline::settings::{Bind, Packing};
use process::{cpu, load};
use std::net::SocketAddr;
use testbed::{
    Backend, Client, Net,
    client::Connection,
    envoy::{Config, Envoy},
};
use world::{World, ingress, service, settings};
use xds::{Kind, Resource};

const ROUNDS: usize = 15;
const CONNECTIONS: usize = 16;
const REQUESTS: usize = 3_200;
const ROUTES: usize = 10_000;

fn main() {
    println!("load {}", load());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        packings().await;
        slots().await;
        lists_and_trees().await;
    });
}

/// Some connections to ask one thing on, again and again.
struct Asker {
    connections: Vec<Connection>,
    path: String,
    envoy: u32,
}

impl Asker {
    async fn new(envoy: &Envoy, address: SocketAddr, host: &str, path: &str) -> Asker {
        let client = Client::new(address).host(host);
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(client.connect().await.unwrap());
        }
        Asker { connections, path: path.to_owned(), envoy: envoy.process().id() }
    }

    /// Microseconds of Envoy's for each request.
    async fn round(&self, requests: usize) -> f64 {
        let before = cpu(self.envoy);
        let asking = self.connections.iter().cloned().map(|connection| {
            let path = self.path.clone();
            tokio::spawn(async move {
                for _ in 0..requests / CONNECTIONS {
                    assert_eq!(connection.get(&path).await.unwrap().status, 200, "{path}");
                }
            })
        });
        for task in asking.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        (cpu(self.envoy) - before).as_secs_f64() * 1e6 / requests as f64
    }
}

/// Takes turns, and gives the median of each.
async fn in_turns<const N: usize>(askers: &[Asker; N]) -> [f64; N] {
    let mut rounds = [const { Vec::new() }; N];
    for round in 0..=ROUNDS {
        for (asker, figures) in askers.iter().zip(&mut rounds) {
            let figure = asker.round(REQUESTS).await;
            // The first one warms everything up.
            if round > 0 {
                figures.push(figure);
            }
        }
    }
    rounds.map(|mut figures| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    })
}

/// An exact and a wildcard host, and where they are served.
async fn two_hosts(packing: Packing, backend: &Backend) -> (World, SocketAddr) {
    let address = Net::here().unwrap().address().into();
    let mut settings = settings(packing);
    settings.http = Bind { address, port: 8080 };
    settings.stats = Bind { address, port: 8002 };
    settings.admin_port = 0;
    let objects = [
        service("web", backend.ip()),
        ingress("here", "here.com", "/", "web"),
        ingress("wild", "*.wild.com", "/", "web"),
    ];
    let world = World::with(&settings, Config::new().name("bench"), objects).await;
    (world, SocketAddr::new(address, 8080))
}

async fn packings() {
    let backend = Backend::start("web").await.unwrap();
    let worlds = [two_hosts(Packing::Plain, &backend).await, two_hosts(Packing::Scoped, &backend).await];
    for (what, host) in [("exact", "here.com"), ("upper case", "HERE.com"), ("wildcard", "x.wild.com")] {
        let [(plain, plain_at), (scoped, scoped_at)] = &worlds;
        let askers = [
            Asker::new(plain.proxy.envoy(), *plain_at, host, "/").await,
            Asker::new(scoped.proxy.envoy(), *scoped_at, host, "/").await,
        ];
        let [plain, scoped] = in_turns(&askers).await;
        println!("proxied, {what:>10}: plain {plain:.1} µs, scoped {scoped:.1} µs, {:.3} times", scoped / plain);
    }
}

async fn slots() {
    let backend = Backend::start("web").await.unwrap();
    let (filled, filled_at) = two_hosts(Packing::Scoped, &backend).await;
    let (mut without, without_at) = two_hosts(Packing::Scoped, &backend).await;
    let listener = listener_without_slots(&without);
    without.proxy.publish(xds::Changes { upserts: vec![listener], removes: Vec::new() }).await.unwrap();
    for (what, host) in [("exact", "here.com"), ("wildcard", "x.wild.com")] {
        let askers = [
            Asker::new(without.proxy.envoy(), without_at, host, "/").await,
            Asker::new(filled.proxy.envoy(), filled_at, host, "/").await,
        ];
        let [without, with] = in_turns(&askers).await;
        println!("slots, {what:>10}: without {without:.1} µs, with {with:.1} µs, {:.3} times", with / without);
    }
}

/// The plaintext listener, less the filters that verify tokens, ask authorization servers, note what these may not change, and ask the
/// rate limit service. The script that writes back what was noted is that of cookies, and stands in either listener.
fn listener_without_slots(world: &World) -> Resource {
    let acks = world.proxy.server().acks(&xds::Fleet::Shared).unwrap();
    let snapshot = acks.snapshot().unwrap();
    let mut listener = Listener::decode(snapshot.get(Kind::Listener, "ingress_http").unwrap().body.clone()).unwrap();
    let mut dropped = 0;
    let chains = listener.filter_chains.iter_mut().chain(&mut listener.default_filter_chain);
    for filter in chains.flat_map(|chain| &mut chain.filters) {
        let Some(filter::ConfigType::TypedConfig(any)) = &mut filter.config_type else { continue };
        let Ok(mut manager) = HttpConnectionManager::decode(any.value.clone()) else { continue };
        let all = manager.http_filters.len();
        manager.http_filters.retain(|filter| {
            let protects = [jwt::FILTER, ext_authz::FILTER, framing::FILTER].contains(&&*filter.name);
            !protects && !matches!(filter.config_type, Some(ConfigDiscovery(_)))
        });
        dropped += all - manager.http_filters.len();
        any.value = manager.encode_to_vec().into();
    }
    assert!(dropped > 0, "the listener has no slots");
    Resource::new(Kind::Listener, "ingress_http", listener.encode_to_vec())
}

async fn lists_and_trees() {
    let backend = Backend::start("web").await.unwrap();
    let mut world =
        World::start(Packing::Plain, [service("web", backend.ip()), ingress("a", "a.com", "/", "web")]).await;
    // The routes are copies of the one that the pipeline made, each with a path of its own.
    let one = route_of(&world);
    let routes: Vec<Route> = (0..ROUTES)
        .map(|number| Route {
            r#match: Some(RouteMatch {
                path_specifier: Some(PathSpecifier::Prefix(format!("/service-{number}/"))),
                ..Default::default()
            }),
            ..one.clone()
        })
        .collect();
    let host = |name: &str| VirtualHost {
        name: name.to_owned(),
        domains: vec![Host::parse(name).unwrap().to_string()],
        routes: routes.clone(),
        ..Default::default()
    };
    let mut tree = host("tree.com");
    virtual_host::tree::shape(&mut tree);
    assert!(tree.matcher.is_some() && tree.routes.is_empty());
    let table = RouteConfiguration {
        name: "ingress_http".to_owned(),
        virtual_hosts: vec![host("list.com"), tree],
        ..Default::default()
    };
    let table = Resource::new(Kind::Route, "ingress_http", table.encode_to_vec());
    world.proxy.publish(xds::Changes { upserts: vec![table], removes: Vec::new() }).await.unwrap();
    let at = SocketAddr::from(([127, 0, 0, 1], 8080));
    let last = format!("/service-{}/x", ROUTES - 1);
    let first = "/service-0/x";
    let askers = [
        Asker::new(world.proxy.envoy(), at, "list.com", first).await,
        Asker::new(world.proxy.envoy(), at, "list.com", &last).await,
        Asker::new(world.proxy.envoy(), at, "tree.com", first).await,
        Asker::new(world.proxy.envoy(), at, "tree.com", &last).await,
    ];
    let [list_first, list_last, tree_first, tree_last] = in_turns(&askers).await;
    println!(
        "{ROUTES} routes: list {list_first:.1} µs (first) {list_last:.1} µs (last), tree {tree_first:.1} / {tree_last:.1} µs, {:.3} times",
        tree_last / list_last
    );
}

/// The route that the pipeline made for the only host.
fn route_of(world: &World) -> Route {
    let acks = world.proxy.server().acks(&xds::Fleet::Shared).unwrap();
    let snapshot = acks.snapshot().unwrap();
    let entry = snapshot.get(Kind::Route, "ingress_http").unwrap();
    let table = RouteConfiguration::decode(entry.body.clone()).unwrap();
    table.virtual_hosts[0].routes[0].clone()
}
