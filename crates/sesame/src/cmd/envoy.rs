//! `sesame envoy`: what runs beside an Envoy, to end it without losing requests.
//!
//! Two commands with Contour's contract. Envoy's container has `GET /shutdown` of the shutdown manager for a preStop hook, which
//! answers when the file is there that `sesame envoy shutdown` writes, the preStop hook of the shutdown manager's own container.
//! So whoever reaches the port can only wait: nothing that can be asked over the network drains a proxy.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Subcommand;
use model::Code;
use tokio::net::TcpListener;
use tracing::warn;

use super::serve::duration;
use crate::drain::{Drain, Hooks};
use crate::problem::Coded;
use crate::signals;

/// Sidecar commands that shut Envoy down gracefully
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Shutdown(Shutdown),
    ShutdownManager(ShutdownManager),
}

/// Drain Envoy: the preStop hook of the shutdown manager's container
///
/// Fails Envoy's readiness, waits until its connections have closed or the drain timeout has passed, and writes the file
/// that the shutdown manager waits for.
#[derive(Debug, clap::Args)]
struct Shutdown {
    /// Path of the Unix socket of Envoy's admin interface
    #[arg(long, value_name = "PATH", default_value = "/admin/admin.sock")]
    admin_address: PathBuf,
    /// Ignored, for compatibility: the admin interface is a Unix socket
    #[arg(long, hide = true)]
    admin_port: Option<u16>,
    /// Delay before draining starts, for load balancers to notice that the pod is terminating
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    drain_delay: Duration,
    /// Delay before the first check of open connections
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    check_delay: Duration,
    /// Interval between checks of open connections
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    check_interval: Duration,
    /// Number of open connections at which Envoy counts as drained
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    min_open_connections: u64,
    /// Maximum time to drain; must be less than the pod's termination grace period
    #[arg(long, value_name = "DURATION", default_value = "270s", value_parser = duration)]
    timeout: Duration,
    /// Path of the file to write when draining is done
    #[arg(long, value_name = "PATH", default_value = "/admin/ok")]
    ready_file: PathBuf,
}

/// Delay the termination of Envoy until it is drained
///
/// Serves GET /shutdown, the preStop hook of Envoy's container, which responds when `sesame envoy shutdown` is done, and logs
/// the number of open connections meanwhile. An Envoy that is still draining when this starts is made ready again.
#[derive(Debug, clap::Args)]
struct ShutdownManager {
    /// Listen port of /shutdown and /healthz
    #[arg(long, value_name = "PORT", default_value = "8090")]
    serve_port: u16,
    /// Path of the Unix socket of Envoy's admin interface
    #[arg(long, value_name = "PATH", default_value = "/admin/admin.sock")]
    admin_address: PathBuf,
    /// Path of the file that is written when draining is done
    #[arg(long, value_name = "PATH", default_value = "/admin/ok")]
    ready_file: PathBuf,
}

/// Runs one of them.
pub async fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Shutdown(args) => shutdown(args).await,
        Command::ShutdownManager(args) => manager(args).await,
    }
}

async fn shutdown(args: Shutdown) -> Result<()> {
    let drain = Drain {
        admin: args.admin_address,
        drain_delay: args.drain_delay,
        check_delay: args.check_delay,
        interval: args.check_interval.max(Duration::from_millis(100)),
        open: args.min_open_connections,
        timeout: args.timeout,
    };
    finish(&drain, &args.ready_file).await
}

/// Drains Envoy, and writes the file. Also if Envoy could not be asked: it is to end, and would be killed at the end of the grace period
/// otherwise.
async fn finish(drain: &Drain, ready_file: &Path) -> Result<()> {
    let drained = drain.run().await;
    let written = std::fs::write(ready_file, "");
    drained.and(written.with_context(|| format!("cannot write {}", ready_file.display())))
}

async fn manager(args: ShutdownManager) -> Result<()> {
    let stop = signals::stop()?;
    let hooks = Hooks::new(args.ready_file.clone(), args.admin_address.clone())?;
    let listener = listen(args.serve_port)
        .await
        .coded(Code::AddressInUse, || format!("cannot listen on port {} (--serve-port)", args.serve_port))?;
    tokio::spawn(hooks.clone().undrain());
    tokio::spawn(hooks.clone().follow());
    let pages = admin::shutdown({
        let hooks = hooks.clone();
        move || hooks.clone().drained()
    });
    let stop = async move {
        stop.await;
        if hooks.any() && !hooks.is_drained() {
            warn!("terminated before `sesame envoy shutdown` was done; draining Envoy now");
            let drain = Drain {
                admin: args.admin_address,
                drain_delay: Duration::ZERO,
                check_delay: Duration::ZERO,
                interval: Duration::from_secs(1),
                open: 0,
                timeout: Duration::from_secs(270),
            };
            tokio::select! {
                // The hook has ended after all.
                () = hooks.clone().drained() => {}
                finished = finish(&drain, &args.ready_file) => if let Err(error) = finished {
                    warn!("{error:#}");
                },
            }
        }
    };
    admin::serve(listener, pages, stop).await?;
    Ok(())
}

/// Listens on every address, of both families where there are both: a kubelet asks at the pod's, of whichever family.
async fn listen(port: u16) -> std::io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}
