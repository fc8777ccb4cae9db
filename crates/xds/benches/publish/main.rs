//! What one change costs, and a cold start: time to the last client, CPU, bytes and memory of the server.
//!
//! The server is a process of its own, so that its CPU and memory are its own; the clients are bare HTTP/2 connections
//! that say what they have, count what they get and keep nothing. `cargo bench -p xds` prints the tables, with `quick` as
//! an argument a small part of them, with `restored` that of the disk cache alone.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by panicking")]
#![allow(missing_docs, reason = "a program, not a library")]

mod client;
mod server;
mod world;

use std::time::{Duration, Instant};

use client::{Fleet, Start};
use server::Remote;
use xds::{Batch, Changes, Config, Server};

/// That of the product.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How many resources of a type there are.
const SIZES: &[usize] = &[1_000, 10_000, 50_000];
/// How many changes are measured in each cell.
const CHANGES: usize = 41;

fn main() {
    let role: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if role.first().is_some_and(|role| role == "serve") {
        return server::serve();
    }
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let quick = role.iter().any(|role| role == "quick");
    if role.iter().any(|role| role == "restored") {
        return restore(SIZES);
    }
    // The clients have a thread of their own, so that waiting for the server does not stop them.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(run(quick));
}

async fn run(quick: bool) {
    let (sizes, clients): (&[usize], &[usize]) =
        if quick { (&SIZES[..2], &[1, 100]) } else { (SIZES, &[1, 100, 1_000]) };
    println!("One change: `n` clusters and `n` scopes, clients that are in step with all of it.\n");
    println!(
        "| resources of a type | clients | first | last, median | last, worst | server CPU per change | bytes per client | encodes | server RSS per client |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for size in sizes {
        for count in clients {
            one_change(*size, *count).await;
        }
    }
    println!("\nCold start: clients that have nothing connect at once.\n");
    println!(
        "| resources of a type | clients | last client complete | server CPU | bytes per client | encodes | server RSS before | at peak | after |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    cold_start(10_000, if quick { 10 } else { 100 }).await;
    restore(sizes);
}

/// The table of the disk cache.
fn restore(sizes: &[usize]) {
    println!("\nDisk cache: hosts with a cluster, endpoints, a scope and a certificate each.\n");
    println!("| hosts | bytes | encode | decode | until a client can be answered |");
    println!("|--:|--:|--:|--:|--:|");
    for size in sizes {
        restored(*size);
    }
}

/// What it takes to write what is published, and to serve what was written.
fn restored(size: usize) {
    let upserts = (0..size).flat_map(world::host).collect();
    let server = Server::new(Config::default());
    server.publish(Batch { fleet: xds::Fleet::Shared, changes: Changes { upserts, removes: Vec::new() } }).unwrap();
    let snapshot = server.acks(&xds::Fleet::Shared).unwrap().snapshot().unwrap();
    let start = Instant::now();
    let bytes = xds::stored::encode(&[(xds::Fleet::Shared, snapshot)]);
    let (encoded, len) = (start.elapsed(), bytes.len());
    let next = Server::new(Config::default());
    let start = Instant::now();
    let fleets = xds::stored::decode(bytes.into()).unwrap();
    let decoded = start.elapsed();
    for (fleet, resources) in fleets {
        next.restore(&fleet, resources);
    }
    println!(
        "| {size} | {:.1} MB | {} | {} | {} |",
        len as f64 / 1e6,
        millis(encoded),
        millis(decoded),
        millis(start.elapsed())
    );
}

async fn one_change(size: usize, count: usize) {
    let mut remote = Remote::start(size);
    let fleet = Fleet::connect(remote.address, count, size, Start::InStep).await;
    // Let the memory of the requests' lists of names go before it is counted as the clients'.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let lone = remote.usage();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    remote.change(0);
    fleet.all_got(1).await;
    remote.settle(count);
    let (before, bytes) = (remote.usage(), fleet.bytes());
    for at in 1..=CHANGES {
        let start = Instant::now();
        remote.change(at);
        let times = fleet.all_got(at + 1).await;
        first.push(times.0.duration_since(start));
        last.push(times.1.duration_since(start));
        remote.settle(count);
    }
    let after = remote.usage();
    let rss = match count {
        1 => "–".to_owned(),
        _ => format!("{} kB", lone.rss.saturating_sub(remote.empty.rss) / count / 1024),
    };
    first.sort();
    last.sort();
    println!(
        "| {size} | {count} | {} | {} | {} | {} | {} | {} | {rss} |",
        millis(first[CHANGES / 2]),
        millis(last[CHANGES / 2]),
        millis(last[CHANGES - 1]),
        millis((after.cpu - before.cpu) / u32::try_from(CHANGES).unwrap()),
        (fleet.bytes() - bytes) / CHANGES / count,
        (after.encodes - before.encodes) as f64 / CHANGES as f64,
    );
}

async fn cold_start(size: usize, count: usize) {
    let mut remote = Remote::start(size);
    let start = Instant::now();
    let fleet = Fleet::connect(remote.address, count, size, Start::Cold).await;
    let (_, last) = fleet.all_got(2).await;
    let peak = remote.usage();
    remote.settle(2 * count);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = remote.usage();
    println!(
        "| {size} | {count} | {} | {} | {} | {} | {} MB | {} MB | {} MB |",
        millis(last.duration_since(start)),
        millis(peak.cpu - remote.empty.cpu),
        fleet.bytes() / count,
        peak.encodes,
        remote.empty.rss >> 20,
        peak.peak >> 20,
        after.rss >> 20,
    );
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
