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

pub mod certificates;
pub mod config;
pub mod disk_cache;
pub mod live;
#[cfg(test)]
mod page;
mod pages;
pub mod plan;
mod programmed;
pub mod report;
mod tasks;

use std::sync::Arc;
use std::time::SystemTime;

use admin::{BuildInfo, LogFilter, Readiness, Replica, Views};
use anyhow::{Context, Result, anyhow, bail};
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
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use xds::{Security, Server, Tls, TlsError, TlsFiles};

use crate::cmd::serve::{Args, read};
use crate::control::{Control, GatewayFleets, Secrets};
use crate::problem::Coded;
use crate::proxy_events;
use crate::signals;
use crate::trace::{Exporter, Tracer};
use certificates::{Issuer, mounted};
use config::Config;
use disk_cache::DiskCache;
use live::{ConfigSource, Live};
use pages::{Pages, Prepared, Routers};
use plan::Plan;
use report::BatchReporter;
use tasks::Tasks;

/// What this program was built from.
pub const BUILD: BuildInfo = BuildInfo {
    version: env!("CARGO_PKG_VERSION"),
    revision: match option_env!("SESAME_COMMIT") {
        Some(commit) => commit,
        None => "",
    },
};

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(args: Args, log: LogFilter) -> Result<()> {
    let stop_signal = signals::stop()?;
    let usual_log = (log.get)();
    let env = |name: &str| std::env::var(name).ok();
    let (config, plan, connected, object) = match &args.sesame_config_name {
        Some(name) => {
            let connected = plan::access(&args, &Config::default()).connect().await;
            let connected = connected.coded(Code::ApiServerFailed, || "cannot connect to the API server".to_owned())?;
            let (config, object) = live::object::read(&connected.0, &args.namespace, name).await?;
            let plan = Plan::new(&args, config.clone(), env)?;
            (config, plan, Some(connected), Some(object))
        }
        None => {
            let config = args.config_path.as_deref().map_or_else(|| Ok(Config::default()), read)?;
            let plan = Plan::new(&args, config.clone(), env)?;
            (config, plan, None, None)
        }
    };
    if plan.verbose {
        (log.set)("debug").map_err(|why| anyhow!("the log cannot be set to debug: {why}"))?;
    }
    for (code, warning) in &plan.warnings {
        warn!(%code, "{code}: {warning} ({})", code.help());
    }
    // Certificates and addresses first: an error in them is reported before the API server is contacted.
    let has_tls = plan.security.is_some();
    let ready_made = if plan.issuing.is_none() { security(&plan)? } else { None };
    let prepared = Prepared::new(&plan).await?;
    let xds = pages::bind("--xds-address, --xds-port", plan.xds).await?;
    let (client, connection) = match connected {
        Some(connected) => connected,
        None => {
            let connected = plan.access.connect().await;
            connected.coded(Code::ApiServerFailed, || "cannot connect to the API server".to_owned())?
        }
    };
    let origin = match (&args.config_path, args.sesame_config_name.clone().zip(object)) {
        (_, Some((name, object))) => {
            ConfigSource::Object(client.clone(), args.namespace.clone(), name, Box::new(object))
        }
        (Some(path), None) => ConfigSource::File(path.clone()),
        (None, None) => ConfigSource::Flags,
    };
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
            (Some(GatewayFleets::new(settings.fleet(), (fleets, statuses), tokens)), Some(task))
        }
        None => (None, None),
    };
    let (settings_changes, changed_settings) = mpsc::unbounded_channel();
    let control = Control::new(Pipeline::new(&settings), server.clone(), replicas.clone())
        .fetching(Secrets::new(wants, answered))
        .following(changed_settings)
        .reporting(|kind| kind == kind::SERVICE || pipeline::status_of(kind).is_some())
        .provisioning(gateway_fleets)
        .checking(plan.self_check);
    let (control, exporter) = match &plan.otlp_traces {
        Some(endpoint) => {
            let (tracer, batches) = Tracer::on(server.clone());
            (control.traced(tracer), Some(Exporter::new(endpoint, &plan.status.instance, batches)))
        }
        None => (control, None),
    };
    let status = status::Settings { versions: plan.source.versions.clone(), ..plan.status.clone() };
    let (reporter, writer) = status::channel(client.clone(), status, leadership.clone());
    let (recorder, board) = admin::board();
    let readiness = Readiness::default();
    let (programmed, programmed_status) = programmed::channel(server.clone());
    let first_build = readiness.task_that_waits("the first build", {
        let connection = connection.clone();
        move || {
            let lists = connection.pending_lists().map(|kinds| format!("lists of the API server: {kinds}"));
            Some(lists.unwrap_or_else(|| "everything is listed; the configuration is computed".to_owned()))
        }
    });
    readiness.check({
        let connection = connection.clone();
        move || connection.stalled_watches().map(|kinds| format!("stalled watches of the API server ({kinds})"))
    });
    let mut batch_reporter = BatchReporter::new(reporter.clone(), programmed, recorder, first_build);

    let mut registry = Registry::default();
    BUILD.register(&mut registry);
    board.register(&mut registry);
    control.register(&mut registry);
    server.register(&mut registry);
    admin::proxies::register(&server, &mut registry);
    readiness.register(&mut registry);
    writer.register(&mut registry);
    leadership.register(&mut registry);
    connection.register(&mut registry);
    let metrics = live::Metrics::default();
    metrics.register(&mut registry);
    let disk_cache = disk_cache(&args, &mut registry);
    let issuing = certificates::Metrics::default();
    issuing.register(&mut registry);
    let (is_there, has_certificates) = watch::channel(ready_made.is_some());
    let (waits_for, certificates_wait) = watch::channel(None);
    let issued = plan.issuing.is_some();
    let issuer = plan.issuing.clone().map(|how| Issuer {
        issuing: how,
        store: certgen::store::Store::new(client, &args.namespace),
        replica: plan.status.instance.clone(),
        leadership: leadership.clone(),
        replicas: replicas.clone(),
        server: server.clone(),
        stats_port: plan.pipeline.stats.port,
        metrics: issuing,
        is_there: is_there.clone(),
        waits_for: waits_for.clone(),
    });
    let files = plan.security.clone();
    let accepts_tokens = plan.fleets.is_some();
    let certificates_ready = ready_made.is_none().then(|| {
        let waiting = move || certificates_wait.borrow().clone();
        readiness.task_that_waits("the certificates of the xDS server", waiting)
    });
    let replica = Replica {
        name: plan.status.instance.as_str().into(),
        build: BUILD,
        started: SystemTime::now(),
        readiness: readiness.clone(),
        is_leader: Arc::new({
            let leadership = leadership.clone();
            move || leadership.is_leader()
        }),
        xds_files: plan.security.clone(),
    };
    let routers = Routers {
        health: admin::health(&readiness),
        metrics: admin::metrics(Arc::new(registry), plan.contour_metric_names),
        debug: admin::debug(Views { board, server: server.clone(), log: Some(log.clone()), replica }),
    };

    let stop = CancellationToken::new();
    let mut tasks = Tasks::new(stop.clone());
    let xds_address = xds.local_addr().context("cannot determine the address of the xDS server")?;
    let has_leases = plan.lease.is_some();
    let live = Live {
        pages: Pages::start(prepared, routers, stop.clone()),
        args,
        config,
        plan,
        log,
        usual_log,
        settings: settings_changes,
        reporter: reporter.clone(),
        metrics,
        tracing_problem: batch_reporter.tracing_problem(),
    };
    if let Some(issuer) = issuer {
        tasks.spawn("certificates of xDS connections", issuer.run().map(Ok));
    }
    if let Some(files) = files.clone() {
        let expiry = certificates::expiry::watch(files, live.args.namespace.clone(), reporter.clone());
        // Files of our own issuer may be those of an earlier container until they are written again; others are checked from the start.
        let has_certificates = has_certificates.clone();
        let files_are_own = async move {
            if issued {
                wait_for_certificates(has_certificates).await
            }
        };
        let expiry = files_are_own.then(|()| expiry);
        tasks.spawn("expiry of the certificates of xDS connections", expiry.map(Ok));
    }
    if let Some(exporter) = exporter {
        tasks.spawn("traces of batches", exporter.run().map(Ok));
    }
    if let Some(cache) = disk_cache {
        tasks.spawn("the disk cache", cache.run(server.clone()).map(Ok));
    }
    tasks.spawn_ending("the configuration, and health, metrics and debug pages", live.run(origin, stop.clone()));
    tasks.spawn("log of proxies", {
        let events = server.events();
        async move {
            proxy_events::log(events).await;
            bail!("the xDS server has stopped")
        }
    });
    tasks.spawn_ending("exchange between replicas", replicas.clone().run(stop.clone().cancelled_owned()).map(Ok));
    if let Some(election) = election {
        // Replicas authenticate each other with these certificates.
        let place = place(election.holder(), replicas.clone());
        tasks.spawn("role among replicas", wait_for_certificates(has_certificates.clone()).then(|()| place).map(Ok));
        tasks.spawn_ending("the leader election", election.run(stop.clone().cancelled_owned()).map(Ok));
    }
    if let Some(provisioner) = provisioner {
        tasks.spawn("proxies of Gateways", provisioner.run().map(Ok));
    }
    tasks.spawn("programmed status", programmed_status.run(replicas.clone(), leadership, reporter).map(Ok));
    tasks.spawn_ending("the status writer", writer.run(stop.clone().cancelled_owned()).map(Ok));
    tasks.spawn_ending("the xDS server", {
        let stop = stop.clone();
        async move {
            let security = match (ready_made, files) {
                (Some(security), _) => security,
                (None, None) => bail!("the xDS server has no certificate files"),
                (None, Some(files)) => {
                    let read = || tls(&files, accepts_tokens);
                    let ready = async {
                        if issued {
                            wait_for_certificates(has_certificates).await;
                        }
                        let security = mounted::wait(read, &waits_for).await;
                        is_there.send_replace(true);
                        security
                    };
                    let Some(security) = stop.run_until_cancelled(ready).await else { return Ok(()) };
                    certificates_ready.into_iter().for_each(|task| task.done());
                    security
                }
            };
            server.serve(xds, security, stop.cancelled_owned()).await.context("the xDS server failed")
        }
    });
    tasks.spawn("the control loop", async move {
        let ended = control.run(feed, move |report| batch_reporter.report(report)).await;
        ended.coded(Code::StateDiverged, || "an incremental table differs from a full rebuild".to_owned())
    });
    tasks.spawn("the source", async move {
        let _nobody_listens = cluster.run(objects, answers).await;
        Ok(())
    });
    info!(xds = %xds_address, leases = has_leases, "serving");

    tasks.run(stop_signal).await
}

/// Waits until this replica has certificates, however long the first of them takes.
async fn wait_for_certificates(mut has_certificates: watch::Receiver<bool>) {
    if has_certificates.wait_for(|there| *there).await.is_err() {
        std::future::pending().await
    }
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

/// The disk cache, where there is a folder for it.
fn disk_cache(args: &Args, registry: &mut Registry) -> Option<DiskCache> {
    let metrics = disk_cache::Metrics::default();
    metrics.register(registry);
    let dir = args.cache_dir.clone().unwrap_or_else(|| disk_cache::DIR.into());
    let installation = format!("{}/{}", args.namespace, args.leader_election_resource_name);
    let cache = DiskCache::new(dir.clone(), args.cache_key_file.clone(), installation, metrics);
    match (&cache, &args.cache_dir) {
        (Some(_), _) => {}
        (None, Some(_)) => warn!("no disk cache: {} (--cache-dir) is not a folder", dir.display()),
        (None, None) => info!("no disk cache: there is no folder {} (--cache-dir)", dir.display()),
    }
    cache
}

/// How connections are secured where the controller issues no certificates; nothing while the certificate is not valid.
fn security(plan: &Plan) -> Result<Option<Security>> {
    match &plan.security {
        Some(files) => mounted::load(|| tls(files, plan.fleets.is_some())),
        None => {
            warn!(
                "--insecure: every client that reaches the xDS server gets the private keys of all hosts; use it for development only"
            );
            Ok(Some(Security::Insecure))
        }
    }
}

/// How connections are secured with these files.
fn tls(files: &TlsFiles, accepts_tokens: bool) -> Result<Security, TlsError> {
    let files = files.clone();
    let loaded = if accepts_tokens { Tls::accepting_tokens(files) } else { Tls::load(files) };
    loaded.map(|tls| Security::Tls(Arc::new(tls)))
}
