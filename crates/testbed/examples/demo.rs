//! `make demo`: three echo backends behind a local Envoy with a static configuration; sends a few requests, shows what came
//! of them, and ends. With `--stay` it stays up until Ctrl-C, for requests of one's own.
//!
//! It uses loopback addresses and ports that the system picks, so it runs anywhere and beside anything.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use echo::grpc::{Reply, Request};
use echo::{Echo, Running};
use serde_json::{Value, json};
use testbed::Client;
use testbed::client::GrpcAnswer;
use testbed::envoy::Admin;
use tokio::process::{Child, Command};

#[tokio::main]
async fn main() -> Result<()> {
    let stay = std::env::args().any(|arg| arg == "--stay");
    let mut backends = Vec::new();
    for name in ["a", "b", "c"] {
        backends.push(Echo::builder().name(name).http(([127, 0, 0, 1], 0).into()).start().await?);
    }
    let folder = tempfile::tempdir()?;
    let (mut envoy, addr) = start_envoy(&backends, folder.path()).await?;
    println!("backends a, b and c behind Envoy on http://{addr}\n");
    show(addr).await?;
    if stay {
        println!("\ntry: curl -H 'host: a.example.com' http://{addr}/   (Ctrl-C ends)");
        tokio::signal::ctrl_c().await?;
    }
    envoy.kill().await?;
    Ok(())
}

/// A few requests, each with what came back.
async fn show(addr: SocketAddr) -> Result<()> {
    let client = Client::new(addr);
    for (host, path) in
        [("a.example.com", "/"), ("b.example.com", "/x?y=1"), ("a.example.com", "/api/v1"), ("d.example.com", "/")]
    {
        let answer = client.clone().host(host).get(path).await?;
        let became = match answer.try_echo() {
            Some(seen) => format!("from {}, which saw {} of {}", seen.name, seen.path, seen.host.unwrap_or_default()),
            None => "from Envoy".into(),
        };
        println!("  GET  {host}{path:<8} → {} {became}", answer.status.as_u16());
    }
    let mut socket = client.clone().host("a.example.com").websocket("/chat").await?;
    let said = socket.ask("hello").await?;
    println!("  WS   a.example.com/chat    → {said:?} came back from {}", socket.answer.backend().unwrap_or("nobody"));
    let request = Request { message: "hello".into(), count: 3 };
    let call: GrpcAnswer<Reply> = client.host("b.example.com").grpc("/sesame.echo.v1.Echo/Say", &request).await?;
    let name = call.replies.first().map_or("nobody", |reply| &reply.name);
    println!("  gRPC b.example.com         → {} replies from {name}", call.replies.len());
    Ok(())
}

async fn start_envoy(backends: &[Running], folder: &std::path::Path) -> Result<(Child, SocketAddr)> {
    let socket = folder.join("admin.sock");
    let log = folder.join("envoy.log");
    let mut envoy = Command::new(parts::program("envoy")?)
        .args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning", "--config-yaml"])
        .arg(bootstrap(backends, &socket).to_string())
        .stderr(std::fs::File::create(&log)?)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start Envoy")?;
    let admin = Admin::Unix(socket);
    let ready = testbed::eventually("Envoy to be ready", Duration::from_secs(20), async || admin.get("/ready").await);
    tokio::select! {
        ready = ready => ready.map(drop)?,
        ended = envoy.wait() => bail!("Envoy ended with {}:\n{}", ended?, std::fs::read_to_string(&log)?),
    }
    let listeners = admin.listeners().await?;
    let bound = &listeners["listener_statuses"][0]["local_address"]["socket_address"];
    let port = bound["port_value"].as_u64().and_then(|port| port.try_into().ok()).context("Envoy has no listener")?;
    Ok((envoy, ([127, 0, 0, 1], port).into()))
}

/// Hosts a and b go to the backends of their names, everything below `/api` to c, without that prefix.
fn bootstrap(backends: &[Running], admin: &std::path::Path) -> Value {
    let address = |addr: SocketAddr| json!({"socket_address": {"address": addr.ip(), "port_value": addr.port()}});
    let http_filters = json!([{
        "name": "router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    }]);
    let virtual_host = |name: &str| {
        json!({
            "name": name,
            "domains": [format!("{name}.example.com")],
            "routes": [
                {"match": {"prefix": "/api/"}, "route": {"cluster": "c", "prefix_rewrite": "/"}},
                {"match": {"prefix": "/"}, "route": {"cluster": name}},
            ],
        })
    };
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "demo",
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "route_config": {"virtual_hosts": [virtual_host("a"), virtual_host("b")]},
        "http_filters": http_filters,
    });
    let cluster = |backend: &Running| {
        let endpoint = json!({"endpoint": {"address": address(backend.http())}});
        json!({
            "name": backend.name(),
            "type": "STATIC",
            "load_assignment": {"cluster_name": backend.name(), "endpoints": [{"lb_endpoints": [endpoint]}]},
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                // What a request came in by, so that both WebSocket and gRPC reach the backend as they should.
                "use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": {}},
            }},
        })
    };
    json!({
        "admin": {"address": {"pipe": {"path": admin}}},
        "static_resources": {
            "listeners": [{
                "name": "http",
                "address": address(([127, 0, 0, 1], 0).into()),
                "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
            }],
            "clusters": backends.iter().map(cluster).collect::<Vec<_>>(),
        },
    })
}
