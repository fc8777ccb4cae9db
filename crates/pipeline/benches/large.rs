//! What one edit of an object at its bounds costs the control loop, and what it costs another thread.
//!
//! The objects are those of the attacks of `make bench HOSTILE=1`; beside them, hosts that come one by one to 10,000 others where one
//! follows internal redirects, for which all of them are listed. Each is edited as the control loop would: everything at
//! once on its own thread, and with large rows on another. Everybody else waits for the longest stretch. Times are CPU times
//! of their thread, which hold on a busy machine too. Each row is measured in a process of its own, so that memory is its own.
//! `EDITS=5` makes other than 20 edits.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use engine::{Offloading, Progress};
use kinds::Object;
use pipeline::{Output, Pipeline, Settings, partition::AT_ONCE};
use serde_json::{Value, json};
use std::{process::Command, time::Duration};
use testbed::cases::object;
use xds::{Batch, Fleet, Server};

/// That of the product.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [attack, offloads] = &words[..] {
        return measure(attack, offloads == "offloaded");
    }
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!(
        "| object | large rows | control loop, in all | longest stretch | median | other thread | memory | at most |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    for attack in ["large-root", "over-limit", "wide-ingress", "flapping-endpoints", "internal-redirects"] {
        for offloads in ["inline", "offloaded"] {
            let own = std::env::current_exe().unwrap();
            assert!(Command::new(own).args([attack, offloads]).status().unwrap().success());
        }
    }
}

/// The loop as the controller has it.
struct Loop {
    pipeline: Pipeline,
    server: Server,
    output: Output,
    busy: Duration,
    stretches: Vec<Duration>,
    other_thread: Duration,
}

impl Loop {
    fn stretch<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let before = cpu();
        let result = work(self);
        let took = cpu() - before;
        self.busy += took;
        self.stretches.push(took);
        result
    }

    fn batch(&mut self) {
        while self.pipeline.step(&mut self.output) == Progress::More {}
        self.pipeline.finish(&mut self.output);
        let changes = std::mem::take(&mut self.output).xds;
        self.server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    }

    /// Works off what an edit that reached many hosts has left.
    fn parts(&mut self) {
        while self.pipeline.backlog() > 0 {
            self.stretch(|own| {
                own.pipeline.admit(AT_ONCE);
                own.batch();
            });
        }
    }

    fn edit(&mut self, object: Object) {
        self.stretch(|own| {
            own.pipeline.put(&object.key(), Some(object));
            own.batch();
        });
        self.parts();
        while let Some(job) = self.pipeline.next_job() {
            self.pipeline.share_tables();
            let thread = std::thread::spawn(move || {
                let before = cpu();
                let finished = job.run();
                (finished, cpu() - before)
            });
            let (finished, took) = thread.join().unwrap();
            self.pipeline.reclaim_tables();
            self.other_thread += took;
            let replaced = self.stretch(|own| {
                let replaced = own.pipeline.finish_job(finished);
                own.batch();
                replaced
            });
            std::thread::spawn(move || drop(replaced)).join().unwrap();
            self.parts();
        }
    }
}

fn measure(attack: &str, offloads: bool) {
    let (first, edit): (Vec<Object>, Box<dyn Fn(usize) -> Object>) = match attack {
        "large-root" => {
            unfold(700, 700, |n, round| route(&if n == 0 { format!("/edited-{round}") } else { format!("/r{n}") }))
        }
        "over-limit" => unfold(950, 600, |n, round| {
            let mut route = route(&format!("/r{n}-{round}"));
            route["responseHeadersPolicy"] = json!({ "set": [{ "name": "x-large", "value": "x".repeat(2000) }] });
            route
        }),
        "flapping-endpoints" => {
            let root = json!({ "virtualhost": { "fqdn": "a.hostile.example.net" }, "routes": [route("/")] });
            let slices = (0..SLICES).map(|number| slice(number, true));
            let flap = |round: usize| slice(round.div_ceil(2) % SLICES, round.is_multiple_of(2));
            ([service(), proxy("root", root)].into_iter().chain(slices).collect(), Box::new(flap))
        }
        "internal-redirects" => {
            let mut followed = route("/");
            followed["internalRedirectPolicy"] = json!({});
            let root = json!({ "virtualhost": { "fqdn": "follows.hostile.example.net" }, "routes": [followed] });
            let host = |name: String| {
                let host = json!({ "fqdn": format!("{name}.others.example.net") });
                proxy(&name, json!({ "virtualhost": host, "routes": [route("/")] }))
            };
            let others = (0..OTHERS).map(|number| host(format!("h{number}")));
            let all = [service(), proxy("follows", root)].into_iter().chain(others).collect();
            (all, Box::new(move |round: usize| host(format!("new-{round}"))))
        }
        _ => (vec![service()], Box::new(wide)),
    };
    let mut own = Loop {
        pipeline: Pipeline::new(&Settings::default()),
        server: Server::new(xds::Config::default()),
        output: Output::default(),
        busy: Duration::ZERO,
        stretches: Vec::new(),
        other_thread: Duration::ZERO,
    };
    for object in first {
        own.pipeline.put(&object.key(), Some(object));
    }
    own.batch();
    let before = memory("VmRSS:");
    if offloads {
        own.pipeline.set_offloading(Offloading::Large);
    }
    own.edit(edit(0));
    (own.busy, own.other_thread) = Default::default();
    own.stretches.clear();
    let edits: usize = std::env::var("EDITS").map_or(20, |edits| edits.parse().unwrap());
    for round in 1..=edits {
        own.edit(edit(round));
    }
    own.stretches.sort();
    let milliseconds = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    println!(
        "| {attack} | {} | {} | {} | {} | {} | {} MiB | {} MiB |",
        if offloads { "other thread" } else { "inline" },
        milliseconds(own.busy / edits as u32),
        milliseconds(own.stretches[own.stretches.len() - 1]),
        milliseconds(own.stretches[own.stretches.len() / 2]),
        milliseconds(own.other_thread / edits as u32),
        before >> 20,
        memory("VmHWM:") >> 20,
    );
}

/// A root that includes a child so often; the child is edited.
fn unfold(
    includes: usize,
    routes: usize,
    route: impl Fn(usize, usize) -> Value + 'static,
) -> (Vec<Object>, Box<dyn Fn(usize) -> Object>) {
    let include = |n: usize| json!({ "name": "child", "conditions": [{ "prefix": format!("/i{n}") }] });
    let includes: Vec<Value> = (0..includes).map(include).collect();
    let root = proxy("root", json!({ "virtualhost": { "fqdn": "a.hostile.example.net" }, "includes": includes }));
    let child = move |round: usize| {
        proxy("child", json!({ "routes": (0..routes).map(|n| route(n, round)).collect::<Vec<_>>() }))
    };
    (vec![service(), root], Box::new(child))
}

/// How many hosts are there that redirects may lead to.
const OTHERS: usize = 10_000;

/// How many EndpointSlices the Service has.
const SLICES: usize = 50;

/// One of them, with 100 endpoints that are ready or not.
fn slice(number: usize, ready: bool) -> Object {
    let endpoint =
        |n: usize| json!({ "addresses": [format!("10.0.{number}.{}", n + 1)], "conditions": { "ready": ready } });
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": format!("web-{number}"), "labels": { "kubernetes.io/service-name": "web" } },
        "ports": [{ "port": 80 }], "endpoints": (0..100).map(endpoint).collect::<Vec<_>>(),
    }))
}

/// An Ingress of 1,000 hosts with 28 paths each; one path of one host is edited.
fn wide(round: usize) -> Object {
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let rule = |host: usize| {
        let path = |n: usize| {
            let edit = if host == 0 && n == 0 { round } else { 0 };
            json!({ "path": format!("/p{n}-{edit}"), "pathType": "Prefix", "backend": backend })
        };
        json!({ "host": format!("a{host}.hostile.example.net"), "http": { "paths": (0..28).map(path).collect::<Vec<_>>() } })
    };
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "wide" },
        "spec": { "rules": (0..1000).map(rule).collect::<Vec<_>>() },
    }))
}

fn proxy(name: &str, spec: Value) -> Object {
    let metadata = json!({ "name": name });
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": metadata, "spec": spec }))
}

fn route(prefix: &str) -> Value {
    json!({ "conditions": [{ "prefix": prefix }], "services": [{ "name": "web", "port": 80 }] })
}

fn service() -> Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] },
    }))
}

/// The CPU time of this thread.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Some memory of this process, in bytes.
fn memory(what: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
