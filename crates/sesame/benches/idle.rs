//! What objects that nothing refers to cost: `sesame serve` beside many Secrets and EndpointSlices of nobody.
//!
//! A real API server is filled with them, first none, then `N` of each (`N=50000`). Printed are the memory of the process once
//! it has read everything, the CPU time that it uses in twenty seconds of rest, and that of a thousand changed Secrets.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]
#![allow(missing_docs, reason = "a program, not a library")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use testbed::{ApiServer, Command, Net, Process, StateDir};

/// How many writes are under way at once.
const AT_ONCE: usize = 32;
const REST: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(300);

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let many = std::env::var("N").ok().and_then(|text| text.parse().ok()).unwrap_or(50_000);
    tokio::runtime::Runtime::new().unwrap().block_on(run(many));
}

async fn run(many: usize) {
    let api = ApiServer::start().await.unwrap();
    println!("| Secrets and EndpointSlices of nobody | ready after | memory | CPU in {} s of rest |", REST.as_secs());
    println!("|--:|--:|--:|--:|");
    measure(&api, 0).await;
    fill(&api, many).await;
    let process = measure(&api, many).await;
    let before = cpu(&process);
    let secrets = Api::<Secret>::namespaced(api.client().unwrap(), "default");
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "touched": "yes" } } }));
    let touched = stream::iter(0..1000.min(many)).for_each_concurrent(AT_ONCE, async |number| {
        secrets.patch(&format!("s{number}"), &PatchParams::default(), &patch).await.unwrap();
    });
    touched.await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("\n1,000 of the Secrets changed: {:.0} ms of CPU", (cpu(&process) - before).as_secs_f64() * 1e3);
}

async fn measure(api: &ApiServer, many: usize) -> Process {
    let state = StateDir::new("idle").unwrap();
    let address = Net::here().unwrap().address().to_string();
    let process = Command::new(env!("CARGO_BIN_EXE_sesame"))
        .name("sesame")
        .args(["serve", "--insecure", "--disable-leader-election", "--ingress-status-address=192.0.2.1"])
        .flag("kubeconfig", api.kubeconfig().unwrap())
        .flag("xds-address", &address)
        .flag("health-address", &address)
        .flag("http-address", &address)
        .flag("debug-http-address", &address)
        .start_in(&state)
        .unwrap();
    let begun = Instant::now();
    process.expect_http(format!("{address}:8000").parse().unwrap(), "/readyz", TIMEOUT).await.unwrap();
    let ready = begun.elapsed();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = cpu(&process);
    tokio::time::sleep(REST).await;
    let used = cpu(&process) - before;
    let memory = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let memory = memory.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim().to_owned();
    println!("| {many} | {ready:.1?} | {memory} | {:.0} ms |", used.as_secs_f64() * 1e3);
    process
}

async fn fill(api: &ApiServer, many: usize) {
    let client = api.client().unwrap();
    let secrets = Api::<Secret>::namespaced(client.clone(), "default");
    let slices = Api::<EndpointSlice>::namespaced(client, "default");
    let named = |name: String| ObjectMeta { name: Some(name), ..ObjectMeta::default() };
    let write = stream::iter(0..many).for_each_concurrent(AT_ONCE, async |number| {
        let data = BTreeMap::from([("key".to_owned(), ByteString(vec![7; 1024]))]);
        let secret = Secret { metadata: named(format!("s{number}")), data: Some(data), ..Secret::default() };
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let slice = json!({
            "metadata": { "name": format!("e{number}"), "labels": { "kubernetes.io/service-name": format!("nobody{number}") } },
            "addressType": "IPv4",
            "ports": [{ "port": 80 }],
            "endpoints": [{ "addresses": ["192.0.2.9"] }],
        });
        slices.create(&PostParams::default(), &serde_json::from_value(slice).unwrap()).await.unwrap();
        if number % 10_000 == 9_999 {
            eprintln!("{} of {many} written", number + 1);
        }
    });
    write.await;
}

/// The CPU time that a process has used.
fn cpu(process: &Process) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
