//! Who is measured: a controller that reads the API server and configures an Envoy.
//!
//! In: a [`Implementation`], which knows only its own command lines, and a [`Instance`]. Out: a [`Running`] controller that can be
//! restarted and that bootstraps Envoys. Every row is written once, for all implementations.

mod contour;
mod sesame;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::{Command, Envoy, Net, Process, StateDir};

use crate::world::Wording;

pub use contour::Contour;
pub use sesame::Sesame;

/// How long a controller may take until its xDS port accepts; a peer first reads and builds everything.
const START: Duration = Duration::from_secs(1200);
/// How long it may take to end.
const GRACE: Duration = Duration::from_secs(20);

/// What differs between controllers.
pub trait Implementation {
    /// Its name in tables.
    fn name(&self) -> &'static str;
    /// Its version.
    fn version(&self) -> String;
    /// Whether it gives all kinds on one delta stream, so that the client that counts can follow it.
    fn is_delta(&self) -> bool;
    /// Whether it takes a changed configuration file while it runs.
    fn reloads_configuration(&self) -> bool;
    /// Whether it is measured with what people write so.
    fn serves(&self, wording: Wording) -> bool;
    /// How the controller is started.
    fn serve(&self, instance: &Instance) -> Result<Command>;
    /// Whether it can start from a disk cache, and shows its metrics as Sesame does.
    fn has_disk_cache(&self) -> bool;
    /// How the bootstrap of an Envoy is written to a file.
    fn bootstrap(&self, instance: &Instance, admin: &Path, file: &Path) -> Result<Command>;
}

/// Where a controller reads, where it and its Envoy listen, and who it is among others.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name among replicas, which share a lease; without one it is alone and needs none.
    pub replica: Option<String>,
    /// How its xDS server proves itself and whom it lets in; anybody without.
    pub tls: Option<TlsFiles>,
    /// How to reach the API server.
    pub kubeconfig: PathBuf,
    /// Its xDS server; health and metrics are on other ports of this address.
    pub xds: SocketAddr,
    /// Its Envoy's listener for HTTP.
    pub http: SocketAddr,
    /// Its Envoy's listener for HTTPS.
    pub https: SocketAddr,
    /// Whether that Envoy serves Gateways, too; otherwise each would get proxies of its own.
    pub serves_gateways: bool,
    /// Its configuration file, if it has one.
    pub configuration: Option<PathBuf>,
    /// Its disk cache, if it has one.
    pub cache: Option<DiskCache>,
}

/// Where a disk cache is.
#[derive(Clone, Debug)]
pub struct DiskCache {
    /// The folder.
    pub folder: PathBuf,
    /// The key that seals it.
    pub key: PathBuf,
}

/// The files of an xDS server that speaks TLS.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The CA of its clients.
    pub ca: PathBuf,
    /// Its certificate.
    pub certificate: PathBuf,
    /// The key of that.
    pub key: PathBuf,
}

impl Instance {
    /// Addresses that nobody else has.
    pub fn new(kubeconfig: PathBuf) -> Result<Instance> {
        let net = Net::here()?;
        let envoy = net.address();
        let (xds, http, https) = (net.socket(8001), (envoy, 80).into(), (envoy, 443).into());
        Ok(Instance {
            replica: None,
            tls: None,
            kubeconfig,
            xds,
            http,
            https,
            serves_gateways: false,
            configuration: None,
            cache: None,
        })
    }

    /// Replaces its configuration file.
    pub fn configure(&self, text: &str) -> Result<()> {
        let file = self.configuration.as_ref().context("there is no configuration file")?;
        let next = file.with_extension("next");
        std::fs::write(&next, text)
            .and_then(|()| std::fs::rename(&next, file))
            .with_context(|| format!("writing {}", file.display()))
    }
}

/// A controller at work.
pub struct Running<'a> {
    implementation: &'a dyn Implementation,
    instance: Instance,
    process: Process,
    state: StateDir,
}

impl<'a> Running<'a> {
    /// Starts it. It may not listen yet.
    pub fn start(implementation: &'a dyn Implementation, instance: &Instance) -> Result<Running<'a>> {
        let state = StateDir::new(implementation.name())?;
        let process = implementation.serve(instance)?.start_in(&state)?;
        Ok(Running { implementation, instance: instance.clone(), process, state })
    }

    /// Waits until its xDS port accepts.
    pub async fn listening(&self) -> Result<()> {
        Ok(self.process.expect_port(self.instance.xds, START).await?)
    }

    /// Waits for something that it brings about; when it ends instead, the error shows its log.
    pub async fn brings<T>(&self, what: &str, limit: Duration, event: impl Future<Output = Result<T>>) -> Result<T> {
        self.process.expect(what, limit, event).await?
    }

    /// Ends it in good order and starts it again.
    pub async fn restart(&mut self) -> Result<()> {
        self.end().await?;
        self.start_again().await
    }

    /// Ends it in good order, to be started again.
    pub async fn end(&self) -> Result<()> {
        self.process.stop(GRACE).await?;
        Ok(())
    }

    /// Starts it after it was ended, and waits until its xDS port accepts.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process = self.implementation.serve(&self.instance)?.start_in(&self.state)?;
        self.listening().await
    }

    /// Ends it.
    pub async fn stop(self) -> Result<()> {
        self.end().await
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Starts an Envoy that takes its configuration from it.
    pub async fn envoy(&self) -> Result<Envoy> {
        let admin = self.state.path().join("admin.sock");
        let file = self.state.path().join("bootstrap.json");
        let made =
            self.implementation.bootstrap(&self.instance, &admin, &file)?.name("bootstrap").start_in(&self.state)?;
        ensure!(
            made.exited().await?.success(),
            "no bootstrap of {}:\n{}",
            self.implementation.name(),
            made.log().tail()
        );
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let bootstrap: Value = serde_json::from_str(&text).context("the bootstrap is not JSON")?;
        let config = Envoy::config().name(format!("envoy-of-{}", self.implementation.name())).log_level("warning");
        Ok(config.launch(bootstrap).await?)
    }
}

/// The flags of `serve`, which all implementations have from Contour. Unless the place says otherwise nothing is encrypted between
/// controller and Envoy, and there is one replica, so no lease.
fn serve_flags(command: Command, instance: &Instance) -> Command {
    let own = instance.xds.ip().to_string();
    let command = match &instance.tls {
        Some(files) => command
            .flag("contour-cafile", &files.ca)
            .flag("contour-cert-file", &files.certificate)
            .flag("contour-key-file", &files.key),
        None => command.arg("--insecure"),
    };
    let command = match &instance.replica {
        Some(name) => command.env("POD_NAME", name).flag("leader-election-resource-namespace", "default"),
        None => command.arg("--disable-leader-election"),
    };
    let command = match &instance.configuration {
        Some(file) => command.flag("config-path", file),
        None => command,
    };
    command
        .flag("kubeconfig", &instance.kubeconfig)
        .flag("xds-address", &own)
        .flag("xds-port", instance.xds.port().to_string())
        .flag("http-address", &own)
        .flag("health-address", &own)
        .flag("debug-http-address", &own)
        .flag("stats-address", instance.http.ip().to_string())
        .flag("envoy-service-http-address", instance.http.ip().to_string())
        .flag("envoy-service-http-port", instance.http.port().to_string())
        .flag("envoy-service-https-address", instance.https.ip().to_string())
        .flag("envoy-service-https-port", instance.https.port().to_string())
        .flag("envoy-http-access-log", "/dev/null")
        .flag("envoy-https-access-log", "/dev/null")
}

fn bootstrap_flags(command: Command, instance: &Instance, admin: &Path, file: &Path) -> Command {
    command
        .arg(file)
        .flag("admin-address", admin)
        .flag("xds-address", instance.xds.ip().to_string())
        .flag("xds-port", instance.xds.port().to_string())
}
