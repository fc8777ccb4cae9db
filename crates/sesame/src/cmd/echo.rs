//! `sesame echo`: the backend that answers with what it saw, until it is told to end.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use echo::{Echo, Kind, Tls};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

/// Run an echo backend that responds with the request it received, for demos, tests and debugging
///
/// The --http ports serve HTTP/1.1, h2c, gRPC and WebSocket; the --https ports serve the same over TLS, with HTTP/2 by
/// ALPN. Responses are JSON: the name of the backend, and the method, path, headers, body and TLS session of the request.
/// TCP and UDP echo what they receive, and answer "who?" with the name of the backend.
#[derive(Debug, clap::Args)]
#[command(after_long_help = DIRECTIVES)]
pub struct Args {
    /// Backend name in responses
    #[arg(long, default_value = "echo")]
    name: String,
    /// Listen address for HTTP: ADDRESS:PORT, or PORT for all addresses; 8080 if no listen address is given. May be
    /// repeated, like the following ones
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Vec<SocketAddr>,
    /// Listen address for HTTPS
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    https: Vec<SocketAddr>,
    /// Listen address for TCP
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    tcp: Vec<SocketAddr>,
    /// Listen address for TCP over TLS
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    tls: Vec<SocketAddr>,
    /// Listen address for UDP
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    udp: Vec<SocketAddr>,
    /// Certificate chain (PEM) [default: self-signed]
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Require client certificates that chain to this CA bundle (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    client_ca: Option<PathBuf>,
    /// Seconds to wait for requests in flight after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    grace: u64,
    /// Pod name in responses
    #[arg(long, env = "POD_NAME", hide_env_values = true)]
    pod: Option<String>,
    /// Pod namespace in responses
    #[arg(long, env = "NAMESPACE", hide_env_values = true)]
    namespace: Option<String>,
}

/// The second half of `sesame echo --help`; the table stands in full in the documentation of the crate.
const DIRECTIVES: &str = "\
A request asks for a special answer by its headers:
  x-echo-delay: 250ms            wait before answering
  x-echo-status: 503             this status
  x-echo-header: name: value     this header (may be repeated)
  x-echo-trailer: name: value    this trailer (may be repeated)
  x-echo-size: 1000              a body of that many bytes
  x-echo-chunk: 100              the body in pieces of that many bytes
  x-echo-pause: 10ms             a pause between the pieces
  x-echo-reset: before           cut off before the headers; also: headers (after them), body
  x-echo-grpc-status: 14         end a gRPC call with this status";

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(args: Args) -> Result<()> {
    // Before anything listens: who starts us may end us as soon as we answer.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
    let mut builder =
        Echo::builder().name(args.name).pod(args.pod).namespace(args.namespace).grace(Duration::from_secs(args.grace));
    if let (Some(cert), Some(key)) = (&args.cert, &args.key) {
        builder = builder.tls(Tls::from_files(cert, key, args.client_ca.as_deref())?);
    }
    let mut listeners = Vec::new();
    for (kind, addrs) in [
        (Kind::Http, args.http),
        (Kind::Https, args.https),
        (Kind::Tcp, args.tcp),
        (Kind::Tls, args.tls),
        (Kind::Udp, args.udp),
    ] {
        listeners.extend(addrs.into_iter().map(|addr| (kind, addr)));
    }
    if listeners.is_empty() {
        listeners.push((Kind::Http, (Ipv4Addr::UNSPECIFIED, 8080).into()));
    }
    for (kind, addr) in listeners {
        builder = builder.listen(kind, addr);
    }
    let running = builder.start().await?;
    let addrs: Vec<String> = running.addrs().iter().map(|(kind, addr)| format!("{kind} {addr}")).collect();
    info!("{} listens on {}", running.name(), addrs.join(", "));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping, after {} requests", running.requests());
    if !running.stop().await {
        warn!("closed connections that were still open after {} s", args.grace);
    }
    Ok(())
}

/// `8080`, `:8080` or `127.0.0.1:8080`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        Err(_) => text.parse().map_err(|_| "not ADDRESS:PORT or PORT".into()),
    }
}
