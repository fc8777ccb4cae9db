//! What an edit and a request cost in each packing, with the real Envoy and the real server: `cargo bench -p pipeline`.
//!
//! `HOSTS=1000,10000` chooses the sizes. Every host is an Ingress with a path to one Service. Rows: the first state until
//! Envoy has all of it; edits of one host, from the change of the object to Envoy's ACK, with the CPU that Envoy and we
//! spent on each; requests on kept connections for an exact host, one in upper case and one below a wildcard, answered by
//! Envoy itself, in CPU of Envoy's for each.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/packing/world.rs"]
mod world;

use pipeline::settings::Packing;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use testbed::{Client, envoy::Config};
use world::{World, ingress, service};

const EDITS: usize = 50;
const REQUESTS: usize = 20_000;

fn main() {
    let sizes = std::env::var("HOSTS").unwrap_or_else(|_| "1000,10000".to_owned());
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("load {}", load.trim());
    println!(
        "{:>6} {:>7} | {:>9} {:>9} | {:>8} {:>8} {:>9} {:>8} {:>7} | {:>7} {:>7} {:>7} | {:>6}",
        "hosts",
        "packing",
        "first",
        "Envoy",
        "edit p50",
        "p99",
        "Envoy",
        "ours",
        "bytes",
        "exact",
        "upper",
        "wild",
        "RSS"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for hosts in sizes {
        for packing in [Packing::Plain, Packing::Scoped] {
            runtime.block_on(measure(packing, hosts));
        }
    }
}

async fn measure(packing: Packing, hosts: usize) {
    let objects = (0..hosts).map(|n| ingress(&format!("h{n}"), &format!("h{n}.example.com"), "/", "web"));
    let fixed = [
        service("web", Ipv4Addr::new(198, 18, 0, 1)),
        ingress("wild", "*.wild.com", "/", "nobody"),
        ingress("here", "here.com", "/", "nobody"),
    ];
    let mut world = World::with(packing, Config::new().name("bench").concurrency(1), []).await;
    let envoy = world.proxy.envoy().process().id();
    world.put(objects.chain(fixed));
    let (begun, used) = (Instant::now(), cpu(envoy));
    world.publish().await;
    let (first, first_cpu) = (begun.elapsed(), cpu(envoy) - used);

    let mut edits = Vec::new();
    let mut bytes = 0;
    let (envoy_before, own_before) = (cpu(envoy), cpu(std::process::id()));
    for edit in 0..EDITS {
        let path = if edit % 2 == 0 { "/a" } else { "/b" };
        world.put([ingress("h7", "h7.example.com", path, "web")]);
        let begun = Instant::now();
        let changes = world.pipeline.settle().xds;
        bytes = changes.upserts.iter().map(|resource| resource.body.len()).sum();
        world.proxy.publish(changes).await.unwrap();
        edits.push(begun.elapsed());
    }
    let each = |before: Duration, process| (cpu(process) - before) / EDITS as u32;
    let (envoy_edit, own_edit) = (each(envoy_before, envoy), each(own_before, std::process::id()));
    edits.sort_unstable();

    let mut requests = Vec::new();
    for host in ["here.com", "HERE.com", "x.wild.com"] {
        let connection = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))).host(host).connect().await.unwrap();
        for _ in 0..500 {
            assert_eq!(connection.get("/").await.unwrap().status, 503, "no Service, so Envoy answers by itself");
        }
        let before = cpu(envoy);
        for _ in 0..REQUESTS {
            connection.get("/").await.unwrap();
        }
        requests.push((cpu(envoy) - before).as_secs_f64() * 1e6 / REQUESTS as f64);
    }
    println!(
        "{hosts:>6} {:>7} | {:>9.1?} {:>9.1?} | {:>8.1?} {:>8.1?} {:>9.1?} {:>8.1?} {bytes:>7} | {:>5.1}µs {:>5.1}µs {:>5.1}µs | {:>4}MB",
        format!("{packing:?}"),
        first,
        first_cpu,
        edits[EDITS / 2],
        edits[EDITS - 1],
        envoy_edit,
        own_edit,
        requests[0],
        requests[1],
        requests[2],
        rss(envoy) / 1024,
    );
}

/// The CPU time of a process.
fn cpu(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let nanos: u64 = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum();
    Duration::from_nanos(nanos)
}

/// The memory of a process, in KiB.
fn rss(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
