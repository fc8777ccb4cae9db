//! What the pipeline costs without proxies: the first build, one new host, one route edit, one endpoint change; CPU and memory.
//!
//! Every host is an Ingress, or an HTTPRoute of one Gateway, with a Service and an EndpointSlice of its own, decoded from JSON as a
//! source would; HTTPRoutes have what an API server fills in. Each row is measured in a process of its own, so that memory is not what an earlier row left behind. Times are CPU times, which hold
//! on a busy machine too. `SIZES=1000 cargo bench -p pipeline --bench build` chooses other sizes than 10,000 and 50,000;
//! `TABLES=1` lists what each table of the engine holds.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

#[path = "../tests/packing/claims.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod claims;

use claims::Claims;
use model::{FleetId, PortProtocol};
use pipeline::{
    Pipeline, Settings,
    settings::Packing::{self, Plain, Scoped},
};
use serde_json::json;
use std::{hint::black_box, process::Command, time::Duration};
use testbed::cases::object;
use xds::{Batch, Fleet, Server};

/// That of the product.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const EDITS: usize = 500;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [size, "fleets"] = &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return measure_fleets(size.parse().unwrap());
    }
    if let [size, packing, kind] = &words[..] {
        let packing = if packing == "scoped" { Scoped } else { Plain };
        let kind = if kind == HTTP_ROUTES { HostKind::HttpRoute } else { HostKind::Ingress };
        return measure(size.parse().unwrap(), packing, kind);
    }
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "10000,50000".to_owned());
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!(
        "| hosts | of | packing | first build | one new host | one route edit | one endpoint change | objects | tables | with xDS tables |"
    );
    println!("|--:|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for size in sizes.split(',') {
        for [packing, kind] in [["plain", INGRESSES], ["scoped", INGRESSES], ["scoped", HTTP_ROUTES]] {
            let own = std::env::current_exe().unwrap();
            assert!(Command::new(own).args([size, packing, kind]).status().unwrap().success());
        }
    }
    println!("\n| fleets | hosts each | first build | one route edit | tables, a fleet | with xDS tables, a fleet |");
    println!("|--:|--:|--:|--:|--:|--:|");
    let own = std::env::current_exe().unwrap();
    assert!(Command::new(own).args([FLEETS, "fleets"]).status().unwrap().success());
}

const INGRESSES: &str = "Ingresses";
const HTTP_ROUTES: &str = "HTTPRoutes";

/// What a host is written as.
#[derive(Clone, Copy, PartialEq)]
enum HostKind {
    Ingress,
    HttpRoute,
}

impl HostKind {
    /// What its hosts share.
    fn shared(self) -> Vec<kinds::Object> {
        match self {
            HostKind::Ingress => Vec::new(),
            HostKind::HttpRoute => gateway().into(),
        }
    }

    fn route(self, host: usize, path: &str) -> kinds::Object {
        match self {
            HostKind::Ingress => ingress(host, path),
            HostKind::HttpRoute => http_route(host, path),
        }
    }

    /// All objects of a host, the one that makes it a host last.
    fn objects(self, host: usize) -> [kinds::Object; 3] {
        [service(host), slice(host, "192.0.2.1"), self.route(host, "/")]
    }
}

/// How many fleets there are in the row about fleets, and how many hosts in each.
const FLEETS: &str = "500";
const HOSTS: usize = 20;

/// One row: many small fleets, each with a listener of its own and a Service for each host.
fn measure_fleets(fleets: usize) {
    let hosts = fleets * HOSTS;
    let objects: Vec<_> = (0..hosts).flat_map(|host| [service(host), slice(host, "192.0.2.1")]).collect();
    let fleet = |number: usize| FleetId::named("team", &format!("gateway-{number}"));
    let gateway = |number: usize| {
        let claims = Claims::new(&format!("gateway-{number}"), fleet(number));
        claims.listener("http", 80, PortProtocol::Http, "*")
    };
    let route = |host: usize, to: usize| {
        let claims = Claims::new(&format!("route-{host}"), fleet(host / HOSTS));
        claims.route("http", &format!("h{host}.example.com"), &format!("web-{to}"))
    };
    let loaded = resident();
    let mut pipeline = Pipeline::new(&Settings::default());
    let before = cpu();
    for object in objects {
        pipeline.put(&object.key(), Some(object));
    }
    (0..fleets).for_each(|number| gateway(number).put(&mut pipeline));
    (0..hosts).for_each(|host| route(host, host).put(&mut pipeline));
    let output = pipeline.settle();
    let build = cpu() - before;
    assert_eq!(output.fleets.len(), fleets);
    let built = resident();
    let server = Server::new(xds::Config::default());
    for (fleet, output) in output.fleets {
        assert!(output.xds.upserts.len() >= 3 * HOSTS, "every host has a scope, a cluster and endpoints");
        server.publish(Batch { fleet: pipeline::xds_fleet(&fleet), changes: output.xds }).unwrap();
    }
    let published = resident();
    let edits: Vec<_> = (0..EDITS).map(|edit| edit * 7919 % hosts).collect();
    let before = cpu();
    for host in edits {
        route(host, (host + 1) % hosts).put(&mut pipeline);
        let output = pipeline.settle();
        assert_eq!(output.fleets.len(), 1, "an edit reaches its own fleet");
        black_box(output);
    }
    let edit = (cpu() - before) / EDITS as u32;
    let each = |from: usize, to: usize| format!("{} kB", to.saturating_sub(from) / fleets / 1000);
    println!(
        "| {fleets} | {HOSTS} | {:.0} ms | {} | {} | {} |",
        build.as_secs_f64() * 1e3,
        micros(edit),
        each(loaded, built),
        each(loaded, published),
    );
    print_tables(&pipeline);
}

/// One row: times of this thread, and the memory that each host takes in steps: its objects, the engine's tables, what the
/// server keeps to send.
fn measure(size: usize, packing: Packing, kind: HostKind) {
    let start = resident();
    let hosts = (0..size).flat_map(|host| kind.objects(host));
    let objects: Vec<_> = kind.shared().into_iter().chain(hosts).collect();
    let loaded = resident();

    let mut pipeline = Pipeline::new(&Settings { packing, ..Settings::default() });
    let before = cpu();
    for object in objects {
        pipeline.put(&object.key(), Some(object));
    }
    let output = pipeline.settle();
    let build = cpu() - before;
    assert!(output.xds.upserts.len() >= 2 * size, "every host has a cluster and endpoints");
    let verdicts = output.verdicts.len();
    assert_eq!(verdicts, size + kind.shared().len());
    let changes = output.xds;
    let built = resident();
    let server = Server::new(xds::Config::default());
    server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    let published = resident();

    let mut edits = |make: &dyn Fn(usize, usize) -> kinds::Object| {
        let objects: Vec<_> = (0..EDITS).map(|edit| make(edit * 7919 % size, edit)).collect();
        let before = cpu();
        for object in objects {
            pipeline.put(&object.key(), Some(object));
            let changes = pipeline.settle().xds;
            assert_eq!(changes.upserts.len(), 1);
            black_box(changes);
        }
        (cpu() - before) / EDITS as u32
    };
    let route = edits(&|host, edit| kind.route(host, &format!("/edit-{edit}")));
    let endpoint = edits(&|host, edit| slice(host, &format!("192.0.{}.{}", 3 + edit / 250, edit % 250)));
    let new = new_hosts(&mut pipeline, size, kind);

    let each = |from: usize, to: usize| format!("{} B", to.saturating_sub(from) / size);
    println!(
        "| {size} | {} | {} | {:.0} ms | {} | {} | {} | {} | {} | {} |",
        if kind == HostKind::Ingress { INGRESSES } else { HTTP_ROUTES },
        format!("{packing:?}").to_lowercase(),
        build.as_secs_f64() * 1e3,
        micros(new),
        micros(route),
        micros(endpoint),
        each(start, loaded),
        each(loaded, built),
        each(loaded, published),
    );
    print_tables(&pipeline);
}

/// The time for a new host whose Service and endpoints are there already.
fn new_hosts(pipeline: &mut Pipeline, size: usize, kind: HostKind) -> Duration {
    let mut taken = Duration::ZERO;
    for host in size..size + EDITS {
        let [service, slice, route] = kind.objects(host);
        for object in [service, slice] {
            pipeline.put(&object.key(), Some(object));
        }
        black_box(pipeline.settle());
        let before = cpu();
        pipeline.put(&route.key(), Some(route));
        let changes = pipeline.settle().xds;
        taken += cpu() - before;
        assert!(changes.upserts.len() >= 2, "a cluster and a scope or a route configuration");
    }
    taken / EDITS as u32
}

/// What each table holds, the largest first: rows with a value, keys without one (claimed, or asked for in vain), index keys,
/// and records of what rows have read.
fn print_tables(pipeline: &Pipeline) {
    if std::env::var_os("TABLES").is_none() {
        return;
    }
    let mut tables = pipeline.engine().counters();
    tables.sort_by_key(|table| std::cmp::Reverse(table.keys + table.index_keys + table.reads));
    println!("| table | rows | keys without a value | index keys | reads |\n|---|--:|--:|--:|--:|");
    for table in tables.iter().filter(|table| table.keys > 0) {
        let (name, rows, reads) = (table.name, table.rows, table.reads);
        println!("| {name} | {rows} | {} | {} | {reads} |", table.keys - rows, table.index_keys);
    }
}

fn micros(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// The CPU time of this thread, on which all of it runs.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// The memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

fn ingress(host: usize, path: &str) -> kinds::Object {
    let backend = json!({ "service": { "name": format!("web-{host}"), "port": { "number": 80 } } });
    let paths = json!([{ "path": path, "pathType": "Prefix", "backend": backend }]);
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": format!("web-{host}") },
        "spec": { "rules": [{ "host": format!("web-{host}.example.com"), "http": { "paths": paths } }] },
    }))
}

/// The Gateway of all HTTPRoutes, and its class.
fn gateway() -> [kinds::Object; 2] {
    let of = |kind: &str, spec: serde_json::Value| {
        let metadata = json!({ "name": "sesame" });
        object(
            &json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec }),
        )
    };
    let listener = json!({ "name": "http", "protocol": "HTTP", "port": 80 });
    [
        of("GatewayClass", json!({ "controllerName": "projectsesame.io/gateway-controller" })),
        of("Gateway", json!({ "gatewayClassName": "sesame", "listeners": [listener] })),
    ]
}

fn http_route(host: usize, path: &str) -> kinds::Object {
    let group = "gateway.networking.k8s.io";
    let backend = json!({ "group": "", "kind": "Service", "name": format!("web-{host}"), "port": 80, "weight": 1 });
    let path = json!({ "type": "PathPrefix", "value": path });
    object(&json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": { "name": format!("web-{host}") },
        "spec": {
            "parentRefs": [{ "group": group, "kind": "Gateway", "name": "sesame" }],
            "hostnames": [format!("web-{host}.example.com")],
            "rules": [{ "matches": [{ "path": path }], "backendRefs": [backend] }],
        },
    }))
}

fn service(host: usize) -> kinds::Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": format!("web-{host}") },
        "spec": { "ports": [{ "port": 80 }] },
    }))
}

fn slice(host: usize, address: &str) -> kinds::Object {
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": format!("web-{host}"), "labels": { "kubernetes.io/service-name": format!("web-{host}") } },
        "ports": [{ "port": 8080 }], "endpoints": [{ "addresses": [address] }],
    }))
}
