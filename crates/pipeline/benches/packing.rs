//! What an edit costs in each packing, with the real Envoy and the real server: `cargo bench -p pipeline --bench packing`.
//!
//! `HOSTS=1000,10000` chooses the sizes. Every host is an Ingress with a path to one Service. Rows: the first state until
//! Envoy has all of it; an edit of one host's route, and a host that comes and goes, from the change of the object to
//! Envoy's ACK, with the CPU that Envoy and we spent on each. The last column is what one look at Envoy's statistics costs
//! it: what it was that once made edits look expensive, because a harness took that look after each.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

#[path = "measure/process.rs"]
mod process;
#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/packing/world.rs"]
mod world;

use kinds::Object;
use pipeline::settings::Packing;
use process::{cpu, load, rss};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use testbed::envoy::Config;
use world::{World, ingress, service, settings};

const EDITS: usize = 100;

fn main() {
    let sizes = std::env::var("HOSTS").unwrap_or_else(|_| "1000,10000".to_owned());
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
    println!("load {}", load());
    println!(
        "{:>6} {:>7} | first: wall, Envoy, ours | edit: p50, p99, Envoy, ours, bytes | host: p50, Envoy, ours | RSS: Envoy, ours | statistics",
        "hosts", "packing"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for hosts in sizes {
        for packing in [Packing::Plain, Packing::Scoped] {
            runtime.block_on(measure(packing, hosts));
        }
    }
}

/// Changes of one kind: how long each took, and what all of them cost.
struct Changes {
    took: Vec<Duration>,
    envoy: Duration,
    ours: Duration,
    bytes: usize,
}

impl Changes {
    async fn make(world: &mut World, mut change: impl FnMut(usize, &mut World)) -> Changes {
        let envoy = world.proxy.envoy().process().id();
        let (envoy_before, own_before) = (cpu(envoy), cpu(std::process::id()));
        let mut took = Vec::new();
        let mut bytes = 0;
        for number in 0..EDITS {
            change(number, world);
            let begun = Instant::now();
            let changes = world.pipeline.settle().xds;
            bytes = changes.upserts.iter().map(|resource| resource.body.len()).sum();
            world.proxy.send(changes).await.unwrap();
            took.push(begun.elapsed());
        }
        took.sort_unstable();
        let each = |before: Duration, process| (cpu(process) - before) / EDITS as u32;
        Changes { took, envoy: each(envoy_before, envoy), ours: each(own_before, std::process::id()), bytes }
    }

    fn p50(&self) -> Duration {
        self.took[EDITS / 2]
    }

    fn p99(&self) -> Duration {
        self.took[EDITS * 99 / 100]
    }
}

async fn measure(packing: Packing, hosts: usize) {
    let mut world = World::with(&settings(packing), Config::new().name("bench"), []).await;
    let envoy = world.proxy.envoy().process().id();
    let (own_used, own_memory) = (cpu(std::process::id()), rss(std::process::id()));
    world.put((0..hosts).map(|n| ingress(&format!("h{n}"), &format!("h{n}.example.com"), "/", "web")));
    world.put([service("web", Ipv4Addr::new(198, 18, 0, 1))]);
    let (begun, used) = (Instant::now(), cpu(envoy));
    world.publish().await;
    let (first, first_cpu, first_own) = (begun.elapsed(), cpu(envoy) - used, cpu(std::process::id()) - own_used);

    let edits = Changes::make(&mut world, |number, world| {
        let path = if number % 2 == 0 { "/a" } else { "/b" };
        world.put([ingress("h7", "h7.example.com", path, "web")]);
    });
    let edits = edits.await;
    let new: Object = ingress("new", "new.example.com", "/", "web");
    let comings = Changes::make(&mut world, |number, world| match number % 2 {
        0 => world.put([new.clone()]),
        _ => world.remove(&new),
    });
    let comings = comings.await;
    let before = cpu(envoy);
    for _ in 0..10 {
        world.proxy.envoy().stats("^listener_manager.total_listeners_warming$").await.unwrap();
    }
    let look = (cpu(envoy) - before) / 10;
    println!(
        "{hosts:>6} {:>7} | {first:.1?}, {first_cpu:.1?}, {first_own:.1?} | {:.1?}, {:.1?}, {:.2?}, {:.2?}, {} | {:.1?}, {:.2?}, {:.2?} | {}MB, {}MB | {look:.1?}",
        format!("{packing:?}"),
        edits.p50(),
        edits.p99(),
        edits.envoy,
        edits.ours,
        edits.bytes,
        comings.p50(),
        comings.envoy,
        comings.ours,
        rss(envoy) / 1024,
        rss(std::process::id()).saturating_sub(own_memory) / 1024,
    );
}
