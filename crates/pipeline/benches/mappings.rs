//! What Mappings of Emissary cost the pipeline where they are most: on as many Hosts as there are Mappings.
//!
//! In the first shape each Mapping is for a Host of its own, in the second all are for `*`, so every Host has all of them. Each row is
//! measured in a process of its own, so that memory is not what an earlier row left behind. Times are CPU times, which hold on a busy
//! machine too. `SIZES=100,1000 cargo bench -p pipeline --bench mappings` chooses other numbers than 1,000; `TABLES=1` lists what each
//! table of the engine has computed.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use pipeline::{
    Pipeline, Settings,
    settings::Packing::{self, Plain, Scoped},
};
use serde_json::json;
use std::{process::Command, time::Duration};
use testbed::cases::object;
use xds::{Batch, Fleet, Server};

/// That of the product.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const EDITS: usize = 20;

/// For which Hosts a Mapping is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    OwnHost,
    EveryHost,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [size, shape, packing] = &words[..] {
        let shape = if shape == "own" { Shape::OwnHost } else { Shape::EveryHost };
        return measure(size.parse().unwrap(), shape, if packing == "scoped" { Scoped } else { Plain });
    }
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "1000".to_owned());
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!(
        "| Mappings and Hosts | each Mapping for | packing | first build | resources | bytes | one edit | its resources | its bytes | memory at most |"
    );
    println!("|--:|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for size in sizes.split(',') {
        for shape in ["own", "every"] {
            for packing in ["plain", "scoped"] {
                let own = std::env::current_exe().unwrap();
                assert!(Command::new(own).args([size, shape, packing]).status().unwrap().success());
            }
        }
    }
}

/// One row.
fn measure(size: usize, shape: Shape, packing: Packing) {
    let mut pipeline = Pipeline::new(&Settings { packing, ..Settings::default() });
    let server = Server::new(xds::Config::default());
    let objects: Vec<_> = std::iter::once(listener())
        .chain((0..size).flat_map(|number| [host(number), service(number), mapping(number, shape, "/a")]))
        .collect();
    let before = cpu();
    for object in objects {
        pipeline.put(&object.key(), Some(object));
    }
    let changes = pipeline.settle().xds;
    let build = cpu() - before;
    let (resources, bytes) = weight(&changes);
    server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();

    let edits: Vec<_> = (0..EDITS).map(|edit| mapping(edit * 7919 % size, shape, &format!("/edit-{edit}"))).collect();
    let (mut edited_resources, mut edited_bytes, mut edit) = (0, 0, Duration::ZERO);
    for object in edits {
        let before = cpu();
        pipeline.put(&object.key(), Some(object));
        let changes = pipeline.settle().xds;
        edit += cpu() - before;
        let (resources, bytes) = weight(&changes);
        (edited_resources, edited_bytes) = (edited_resources + resources, edited_bytes + bytes);
        server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    }
    println!(
        "| {size} | {} | {} | {:.0} ms | {resources} | {} | {:.2} ms | {} | {} | {} MB |",
        if shape == Shape::OwnHost { "its own Host" } else { "every Host" },
        format!("{packing:?}").to_lowercase(),
        build.as_secs_f64() * 1e3,
        kilobytes(bytes),
        edit.as_secs_f64() * 1e3 / EDITS as f64,
        edited_resources / EDITS,
        kilobytes(edited_bytes / EDITS),
        peak() / 1_000_000,
    );
    print_tables(&pipeline);
}

/// How many resources there are in changes, and their bytes.
fn weight(changes: &xds::Changes) -> (usize, usize) {
    (changes.upserts.len(), changes.upserts.iter().map(|resource| resource.body.len()).sum())
}

fn kilobytes(bytes: usize) -> String {
    format!("{} kB", bytes / 1000)
}

/// How often each table has computed a row, the most first.
fn print_tables(pipeline: &Pipeline) {
    if std::env::var_os("TABLES").is_none() {
        return;
    }
    let mut tables = pipeline.engine().counters();
    tables.sort_by_key(|table| std::cmp::Reverse(table.computed));
    println!("| table | computed | rows | index keys | reads |\n|---|--:|--:|--:|--:|");
    for table in tables.iter().filter(|table| table.computed > 0) {
        println!("| {} | {} | {} | {} | {} |", table.name, table.computed, table.rows, table.index_keys, table.reads);
    }
}

/// The CPU time of this thread, on which all of it runs.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// The most memory that this process had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

fn listener() -> kinds::Object {
    object(&json!({
        "apiVersion": "getambassador.io/v3alpha1", "kind": "Listener", "metadata": { "name": "http" },
        "spec": {
            "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": { "namespace": { "from": "ALL" } },
        },
    }))
}

fn host(number: usize) -> kinds::Object {
    object(&json!({
        "apiVersion": "getambassador.io/v3alpha1", "kind": "Host", "metadata": { "name": format!("web-{number}") },
        "spec": {
            "hostname": format!("web-{number}.example.com"),
            "requestPolicy": { "insecure": { "action": "Route" } },
        },
    }))
}

fn service(number: usize) -> kinds::Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": format!("web-{number}") },
        "spec": { "ports": [{ "port": 80 }] },
    }))
}

fn mapping(number: usize, shape: Shape, path: &str) -> kinds::Object {
    let hostname = match shape {
        Shape::OwnHost => format!("web-{number}.example.com"),
        Shape::EveryHost => "*".to_owned(),
    };
    object(&json!({
        "apiVersion": "getambassador.io/v3alpha1", "kind": "Mapping", "metadata": { "name": format!("web-{number}") },
        "spec": { "hostname": hostname, "prefix": format!("{path}/{number}/"), "service": format!("web-{number}") },
    }))
}
