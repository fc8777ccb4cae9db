//! Emissary's half: its compiler makes Envoy's configuration of a set, and an Envoy of its own loads that.
//!
//! In: sets. Out: for each a running Envoy, or why there is none. All sets are compiled by one process, because the start of the
//! compiler takes longer than a set. What it makes is changed where it cannot be loaded as it is, mechanically and nowhere else:
//!
//! - it becomes the static resources of a bootstrap, where Emissary sends them by xDS;
//! - listeners have an address of this Envoy's own instead of all of them;
//! - extensions that are only named get the empty configuration of their type, which Envoy looks up no longer by name;
//! - names of Services in clusters become the addresses of backends, beside the name, or nothing where there is no such Service: there
//!   is no DNS;
//! - access logs go, and so does the listener for probes of Emissary itself.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use testbed::{Command, Envoy, StateDir};

use crate::backends::Backends;
use crate::set::Set;

const COMPILER: &str = include_str!("emissary/compile.py");
/// Extensions that the compiler names without a configuration.
const EMPTY: [(&str, &str); 5] = [
    ("envoy.filters.http.cors", "envoy.extensions.filters.http.cors.v3.Cors"),
    ("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router"),
    ("envoy.filters.http.grpc_web", "envoy.extensions.filters.http.grpc_web.v3.GrpcWeb"),
    ("envoy.filters.listener.tls_inspector", "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"),
    ("envoy.filters.listener.proxy_protocol", "envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"),
];

/// What the compiler made of a set.
#[derive(Debug, Deserialize)]
pub struct Compiled {
    number: usize,
    /// Listeners and clusters.
    #[serde(default)]
    pub resources: Value,
    /// The errors that it posted.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Why there is nothing.
    pub failed: Option<String>,
    /// How long it took, without the start of the process.
    #[serde(default)]
    pub seconds: f64,
    /// The most memory that the process had by then, in bytes.
    #[serde(default)]
    pub memory: u64,
}

/// Compiles all sets. The folder keeps the certificates that the result refers to.
pub async fn compile(sets: &[Set], folder: &StateDir) -> Result<BTreeMap<usize, Compiled>> {
    let part = parts::folder("emissary-compiler")?;
    let lines: String =
        sets.iter().map(|set| format!("{}\n", json!({ "number": set.number, "objects": set.objects }))).collect();
    let (script, given) = (folder.write("compile.py", COMPILER)?, folder.write("sets.jsonl", lines)?);
    let python = std::env::join_paths([part.clone(), part.join("lib")])?;
    let made = folder.path().join("compiled.jsonl");
    let process = Command::new("python3")
        .name("compiler")
        .args([script.as_path(), folder.path(), &given, &made])
        .env("PYTHONPATH", python)
        .env("AMBASSADOR_NAMESPACE", "default")
        .start_in(folder)?;
    if !process.exited().await?.success() {
        bail!("Emissary's compiler failed:\n{}", process.log().tail());
    }
    let text = std::fs::read_to_string(&made).with_context(|| made.display().to_string())?;
    let compiled = text.lines().map(serde_json::from_str::<Compiled>).collect::<Result<Vec<_>, _>>()?;
    Ok(compiled.into_iter().map(|compiled| (compiled.number, compiled)).collect())
}

/// Starts an Envoy with what was compiled, at an address of its own.
pub async fn serve(compiled: &Compiled, address: Ipv4Addr, backends: &Backends) -> Result<Envoy> {
    if let Some(why) = &compiled.failed {
        bail!("the compiler failed: {why}");
    }
    let mut resources = compiled.resources.clone();
    let listeners = resources["listeners"].as_array_mut().context("there are no listeners")?;
    listeners.retain(|listener| !listener["name"].as_str().unwrap_or_default().contains("-ready-"));
    for listener in listeners {
        listener["address"]["socket_address"]["address"] = json!(address);
    }
    for cluster in resources["clusters"].as_array_mut().into_iter().flatten() {
        resolve(cluster, backends);
    }
    complete(&mut resources);
    Ok(Envoy::config().name("emissary").log_level("error").start(json!({ "static_resources": resources })).await?)
}

/// Gives a cluster the addresses behind the names of its endpoints.
fn resolve(cluster: &mut Value, backends: &Backends) {
    let named = |endpoint: &mut Value| {
        let socket = &mut endpoint["endpoint"]["address"]["socket_address"];
        let name = socket["address"].as_str().unwrap_or_default().to_owned();
        let address = name.parse::<IpAddr>().ok().or_else(|| backends.of_service(&name).map(IpAddr::from));
        let Some(address) = address else { return false };
        socket["address"] = json!(address);
        // What a rewrite to the name of the backend writes.
        endpoint["endpoint"]["hostname"] = json!(name);
        true
    };
    for locality in cluster["load_assignment"]["endpoints"].as_array_mut().into_iter().flatten() {
        if let Some(endpoints) = locality["lb_endpoints"].as_array_mut() {
            endpoints.retain_mut(named);
        }
    }
    cluster["type"] = json!("STATIC");
    if let Some(cluster) = cluster.as_object_mut() {
        cluster.remove("dns_lookup_family");
    }
}

/// Gives extensions that are only named the empty configuration of their type, and leaves out access logs.
fn complete(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("access_log");
            let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
            if let Some((_, of)) = EMPTY.iter().find(|(empty, _)| *empty == name) {
                fields.entry("typed_config").or_insert_with(|| json!({ "@type": format!("type.googleapis.com/{of}") }));
            }
            fields.values_mut().for_each(complete);
        }
        Value::Array(items) => items.iter_mut().for_each(complete),
        _ => {}
    }
}
