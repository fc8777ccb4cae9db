//! `sesame serve`: watches a Kubernetes API server, serves xDS to fleets of Envoy, and writes status and events.
//!
//! ```text
//! source::Cluster ──objects, answers──→ Control ──resources──→ xds::Server ⇄ Envoys
//!                                          ├──→ status (events, addresses; the lease holder writes)
//!                                          ├──→ provision (proxies of Gateways; the lease holder creates them)
//!                                          └──→ admin (health, metrics, debug pages)
//! ```
//!
//! Every part is a supervised task ([`tasks`]): if one fails the process exits and is restarted, and proxies meanwhile keep
//! their configuration. An API server that cannot be reached is no failure.

pub mod config;
mod listen;
#[cfg(test)]
mod page;
pub mod plan;
mod programmed;
mod report;
mod tasks;

use std::sync::Arc;

use admin::{BuildInfo, LogFilter, Readiness, Views};
use anyhow::{Context, Result};
use futures::FutureExt;
use kinds::kind;
use model::Code;
use pipeline::Pipeline;
use prometheus_client::registry::Registry;
use provision::Tokens;
use replicas::{Replicas, Role};
use source::Cluster;
use source::feed::CAPACITY;
use status::lease::Holder;
use status::{Election, Leadership};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use xds::{Security, Server, Tls};

use crate::control::{Control, GatewayFleets, Secrets};
use crate::problem::Coded;
use crate::signals;
use listen::Listeners;
use plan::Plan;
use report::BatchReporter;
use tasks::Tasks;

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(plan: Plan, log: LogFilter) -> Result<()> {
    let stop_signal = signals::stop()?;
    for (code, warning) in &plan.warnings {
        warn!("{code}: {warning} ({})", code.help());
    }
    // Certificates and addresses first: an error in them is reported before the API server is contacted.
    let security = security(&plan)?;
    let has_tls = matches!(security, Security::Tls(_));
    let listeners = Listeners::bind(&plan).await?;
    let client = plan.access.connect().await;
    let (client, connection) = client.coded(Code::ApiServerFailed, || "cannot connect to the API server".to_owned())?;
    let election = plan.lease.clone().map(|lease| Election::new(client.clone(), lease)).transpose();
    let election = election.coded(Code::CommandLine, || "the leader election settings are not valid".to_owned())?;
    let election = election.map(|election| election.reporting(connection.for_caller("leader lease")));
    let leadership = election.as_ref().map_or_else(Leadership::always, Election::leadership);

    // Without TLS nobody shows a token: what a node says is believed.
    let tokens = plan.fleets.as_ref().filter(|_| has_tls).map(|_| Arc::new(Tokens::new(client.clone())));
    let usual = xds::Config::default();
    let server = Server::new(xds::Config {
        identifier: plan.status.instance.clone(),
        resolver: plan.pipeline.resolver(),
        required_envoy: plan.pipeline.required_envoy(),
        table_bytes: plan.table_bytes.unwrap_or(usual.table_bytes),
        authenticator: tokens.clone().map(|tokens| tokens as Arc<dyn xds::Authenticator>),
        ..usual
    });
    let options = source::cluster::Options { connection: connection.clone(), ..plan.source.clone() };
    let (cluster, wants) = Cluster::new(client.clone(), options);
    let ((objects, feed), (answers, answered)) = (source::feed(CAPACITY), source::feed(CAPACITY));
    let replicas = Replicas::new(server.clone(), plan.security.clone());
    let settings = pipeline::Settings { fetched_secrets: true, ..plan.pipeline.clone() };
    let (gateway_fleets, provisioner) = match plan.fleets.clone() {
        Some(fleets) => {
            let (fleets, statuses, task) = provision::channel(client.clone(), fleets, leadership.clone());
            (Some(GatewayFleets { settings: settings.fleet(), fleets, statuses, tokens }), Some(task))
        }
        None => (None, None),
    };
    let control = Control::new(Pipeline::new(&settings), server.clone(), replicas.clone())
        .fetching(Secrets::new(wants, answered))
        .telling(|kind| kind == kind::SERVICE || pipeline::status_of(kind).is_some())
        .provisioning(gateway_fleets)
        .checking(plan.self_check);
    let (reporter, writer) = status::channel(client, plan.status.clone(), leadership.clone());
    let (recorder, board) = admin::board();
    let readiness = Readiness::default();
    let (programmed, programmed_status) = programmed::channel(server.clone());
    let first_build = readiness.task("the first build");
    let mut batch_reporter = BatchReporter::new(reporter.clone(), programmed, recorder, first_build);

    let mut registry = Registry::default();
    BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: option_env!("SESAME_COMMIT").unwrap_or_default() }
        .register(&mut registry);
    board.register(&mut registry);
    server.register(&mut registry);
    writer.register(&mut registry);
    leadership.register(&mut registry);
    connection.register(&mut registry);
    let health = admin::health(&readiness);
    let metrics = admin::metrics(Arc::new(registry));
    let debug = admin::debug(Views { board, server: server.clone(), log: Some(log) });

    let stop = CancellationToken::new();
    let mut tasks = Tasks::new(stop.clone());
    let xds_address = listeners.xds.local_addr().context("cannot determine the address of the xDS server")?;
    let (xds, pages) = listeners.pages(health, metrics, debug);
    for (listener, router) in pages {
        let served = admin::serve(listener, router, stop.clone().cancelled_owned());
        tasks.spawn_ending("health, metrics and debug pages", async {
            served.await.context("cannot serve health, metrics and debug pages")
        });
    }
    tasks.spawn("log of rejected resources", {
        let events = server.events();
        async move { report::refusals(events).await }
    });
    tasks.spawn_ending("exchange between replicas", replicas.clone().run(stop.clone().cancelled_owned()).map(Ok));
    if let Some(election) = election {
        tasks.spawn("role among replicas", place(election.holder(), replicas.clone()).map(Ok));
        tasks.spawn_ending("the leader election", election.run(stop.clone().cancelled_owned()).map(Ok));
    }
    if let Some(provisioner) = provisioner {
        tasks.spawn("proxies of Gateways", provisioner.run().map(Ok));
    }
    tasks.spawn("programmed status", programmed_status.run(replicas.clone(), leadership, reporter).map(Ok));
    tasks.spawn_ending("the status writer", writer.run(stop.clone().cancelled_owned()).map(Ok));
    tasks.spawn_ending("the xDS server", {
        let stop = stop.clone();
        async move { server.serve(xds, security, stop.cancelled_owned()).await.context("the xDS server failed") }
    });
    tasks.spawn("the control loop", async move {
        let ended = control.run(feed, move |report| batch_reporter.report(report)).await;
        ended.coded(Code::StateDiverged, || "an incremental table differs from a full rebuild".to_owned())
    });
    tasks.spawn("the source", async move {
        let _nobody_listens = cluster.run(objects, answers).await;
        Ok(())
    });
    info!(xds = %xds_address, leases = plan.lease.is_some(), "serving");

    tasks.run(stop_signal).await
}

/// Follows the holder of the lease, and takes the role among the replicas that follows from it.
async fn place(mut holder: watch::Receiver<Holder>, replicas: Replicas) {
    loop {
        let place = match &*holder.borrow_and_update() {
            Holder::Ourselves => Role::Leader,
            Holder::Another(Some(address)) => Role::Follower(address.as_str().into()),
            Holder::Another(None) | Holder::Unknown => Role::Alone,
        };
        replicas.take(place);
        if holder.changed().await.is_err() {
            return;
        }
    }
}

fn security(plan: &Plan) -> Result<Security> {
    let Some(files) = plan.security.clone() else {
        warn!(
            "--insecure: every client that reaches the xDS server gets the private keys of all hosts; use it for development only"
        );
        return Ok(Security::Insecure);
    };
    let loaded = if plan.fleets.is_some() { Tls::accepting_tokens(files) } else { Tls::load(files) };
    let tls =
        loaded.coded(Code::CertificateFiles, || "the certificates of the xDS server cannot be used".to_owned())?;
    Ok(Security::Tls(Arc::new(tls)))
}
