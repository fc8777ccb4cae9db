//! `sesame run -f DIR`: a folder of YAML served by an Envoy on this machine, with no cluster at all.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::sync::Arc;

use admin::LogFilter;
use anyhow::{Context, Result, bail};
use envoy::listener::access_log::DEFAULT_FIELDS;
use model::Code;
use model::listener::{AccessLogFormat, AccessLogLevel};
use pipeline::Pipeline;
use pipeline::settings::{Bind, PortShift, Settings};
use replicas::Replicas;
use source::folder::{Input, Limits};
use source::{Folder, Problem};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use xds::{Security, Server, Tls};

use crate::cmd::serve::read;
use crate::control::Control;
use crate::flags::objects::{ObjectFlags, SelfSigned};
use crate::flags::{Certificates, Packing};
use crate::lint::{self, Endpoints};
use crate::output;
use crate::problem::Coded;
use crate::proxy_events;
use crate::run::pages::Pages;
use crate::run::proxy::{self, Proxy};
use crate::run::terminal::{Terminal, announce};
use crate::run::workdir::EnvoyWorkdir;
use crate::serve::config::Config;
use crate::serve::live::file::FollowedFile;
use crate::signals;

/// Serve a directory of YAML manifests with a local Envoy
///
/// Reads every *.yaml, *.yml and *.json below the directory, starts Envoy, and applies changes of the files as they are
/// written. Gateways of class sesame are served, on ports of this machine; those below 1024 are moved. Endpoints of a Service come from EndpointSlices or from its annotation projectsesame.io/endpoints:
/// host:port,host:port. TLS hosts whose Secret does not exist get a self-signed certificate.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of manifests
    #[arg(short = 'f', long = "folder", value_name = "DIR")]
    folder: PathBuf,
    /// Port of the HTTP listener
    #[arg(long, value_name = "PORT", default_value = "8080")]
    http: u16,
    /// Port of the HTTPS listener
    #[arg(long, value_name = "PORT", default_value = "8443")]
    https: u16,
    /// Address of both listeners; 0.0.0.0 for those of all interfaces
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Port of Envoy's readiness and metrics listener on loopback; 0 picks a free one, so that objects may have any port
    #[arg(long, value_name = "PORT", default_value = "0")]
    stats: u16,
    /// Path of the Envoy binary [default: SESAME_ENVOY, then PATH, then the one fetched by `make parts`]
    #[arg(long, value_name = "FILE")]
    envoy: Option<PathBuf>,
    /// Access log path, such as /dev/stdout [default: no access log]
    #[arg(long, value_name = "FILE")]
    access_log: Option<String>,
    /// Access log format [default: accesslog-format of the configuration file, else envoy]
    #[arg(long, value_name = "FORMAT", value_enum)]
    access_log_format: Option<LogFormat>,
    #[command(flatten)]
    objects: ObjectFlags,
    /// How virtual hosts are packed into xDS resources
    #[arg(long, value_name = "HOW", value_enum, default_value = "scoped")]
    packing: Packing,
    /// How Envoy loads the certificates of TLS hosts
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    certificates: Certificates,
    /// Address of health, metrics and debug pages, for `sesame status --address` and the other commands [default: none]
    #[arg(long, value_name = "HOST:PORT")]
    debug_address: Option<SocketAddr>,
    /// Validate only; do not start Envoy
    #[arg(long)]
    check: bool,
    /// Exit after reading the directory once; the exit code is 0 if there are no errors
    #[arg(long, requires = "check")]
    once: bool,
}

/// The access log format.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    /// Envoy's default text format
    Envoy,
    /// One JSON object for each request, including the Kubernetes object whose route it matched
    Json,
}

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(mut args: Args, log: LogFilter) -> Result<()> {
    if args.stats == 0 {
        args.stats = free_port()?;
    }
    let config = args.objects.config_path.as_deref().map_or_else(|| Ok(Config::default()), read)?;
    let settings = args.settings(config)?;
    if args.once {
        return check_once(&args, &settings);
    }
    output::append();
    let stop = signals::stop()?;
    let opened = Folder::open(&args.folder, Limits::default());
    let folder = opened.coded(Code::FileNotReadable, || "failed to open the directory".to_owned())?;
    let server = Server::new(xds::Config {
        resolver: settings.resolver(),
        required_envoy: settings.required_envoy(),
        ..xds::Config::default()
    });
    let (feeder, feed) = source::feed(source::feed::CAPACITY);
    let replicas = Replicas::new(server.clone(), None);
    let (changes, changed_settings) = mpsc::unbounded_channel();
    let control = Control::new(Pipeline::new(&settings), server.clone(), replicas).following(changed_settings);
    let mut pages = match args.debug_address {
        Some(address) => Some(Pages::open(address, &args.folder, &control, &server, log).await?),
        None => None,
    };
    let mut terminal = Terminal::new();
    let control = control.run(feed, move |news| {
        if let Some(pages) = &mut pages {
            pages.note(&news);
        }
        terminal.batch(&news);
    });
    let reading = async {
        let _nobody_listens = folder.run(feeder).await;
    };
    let following = follow(&args, settings.clone(), changes);
    let work = async {
        tokio::select! {
            _ = async { tokio::join!(control, reading) } => {}
            () = following => {}
        }
    };
    if args.check {
        tokio::select! { () = work => {}, () = stop => {} }
        return Ok(());
    }
    let ended = CancellationToken::new();
    let envoy = serve(&args, &settings, server, ended.clone());
    let mut envoy = tokio::spawn(envoy);
    tokio::select! {
        () = work => {}
        () = stop => {}
        done = &mut envoy => return done.context("the task that keeps Envoy running has failed")?,
    }
    announce("stopping Envoy on this machine");
    ended.cancel();
    envoy.await.context("the task that keeps Envoy running has failed")?
}

/// Applies a configuration file that changes; a bad one is refused as a whole.
async fn follow(args: &Args, mut current: Settings, changes: mpsc::UnboundedSender<Settings>) {
    let Some(path) = &args.objects.config_path else { return std::future::pending().await };
    let mut file = FollowedFile::new(path.clone());
    loop {
        let config = file.next().await.and_then(|text| Config::parse(path, &text));
        let settings = config.and_then(|config| {
            args.settings(config).map_err(|error| vec![Problem::new(Code::ConfigValue, format!("{error:#}"))])
        });
        match settings {
            Ok(settings) if settings == current => {}
            Ok(settings) => {
                announce("the changed configuration is in effect");
                current = settings.clone();
                // It ends with the server.
                let _ = changes.send(settings);
            }
            Err(problems) => {
                for problem in &problems {
                    warn!(code = %problem.code, "{problem} ({})", problem.code.help());
                }
                let code = Code::ConfigRejected;
                warn!(%code, "{code}: {}: {} ({})", path.display(), code.title(), code.help());
            }
        }
    }
}

/// The xDS server, and an Envoy that is kept running.
fn serve(
    args: &Args,
    settings: &Settings,
    server: Server,
    ended: CancellationToken,
) -> impl Future<Output = Result<()>> + Send + use<> {
    let binds = [("--http", settings.http), ("--https", settings.https), ("--stats", settings.stats)];
    let program = proxy::find(args.envoy.as_deref());
    async move {
        let program = program?;
        for (flag, bind) in binds {
            is_free(flag, bind)?;
        }
        let workdir = EnvoyWorkdir::make()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen on loopback")?;
        let port = listener.local_addr().context("cannot determine the local port")?.port();
        let security = Security::Tls(Arc::new(Tls::load(workdir.server_files())?));
        let proxy = Proxy { program, bootstrap: workdir.bootstrap(port)?, log: workdir.log() };
        let [http, https, _] = binds.map(|(_, bind)| SocketAddr::new(bind.address, bind.port));
        announce(&format!("serving http://{http} and https://{https}"));
        let events = server.events();
        let logging = async move {
            proxy_events::log(events).await;
            std::future::pending::<()>().await;
        };
        let serving = server.serve(listener, security, ended.clone().cancelled_owned());
        let serving = async { serving.await.context("the xDS server failed") };
        tokio::select! {
            () = logging => Ok(()),
            done = async { tokio::try_join!(serving, proxy.supervise(ended.cancelled())) } => done.map(drop),
        }
    }
}

/// A port on loopback that nobody listens on.
fn free_port() -> Result<u16> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    Ok(listener.local_addr().context("cannot determine the local port")?.port())
}

fn is_free(flag: &str, bind: Bind) -> Result<()> {
    let address = SocketAddr::new(bind.address, bind.port);
    let bound = StdListener::bind(address);
    bound.coded(Code::AddressInUse, || format!("cannot listen on {address} ({flag})")).map(drop)
}

fn check_once(args: &Args, settings: &Settings) -> Result<()> {
    let report = lint::check(&[Input::Path(args.folder.clone())], settings, Endpoints::Known)?;
    Terminal::new().report(&report);
    match report.summary.errors {
        0 => Ok(()),
        1 => bail!("there is 1 error"),
        errors => bail!("there are {errors} errors"),
    }
}

impl Args {
    /// Settings of proxies: those of the configuration, overridden by flags.
    fn settings(&self, config: Config) -> Result<Settings> {
        let stats = Bind { address: Ipv4Addr::LOCALHOST.into(), port: self.stats };
        let json = self.access_log_format.map_or(config.json_log, |format| matches!(format, LogFormat::Json));
        let named_fields = !config.json_fields.is_empty();
        let mut settings = Settings {
            http: Bind { address: self.address, port: self.http },
            https: Bind { address: self.address, port: self.https },
            admin_port: 0,
            packing: self.packing.into(),
            certificates: self.certificates.into(),
            ..config.settings(stats, json)
        };
        for http in [&mut settings.http_settings, &mut settings.https_settings] {
            match &self.access_log {
                Some(path) => http.access_log.path = path.as_str().into(),
                None => http.access_log.level = AccessLogLevel::Disabled,
            }
            if json && !named_fields {
                http.access_log.format = AccessLogFormat::Json(DEFAULT_FIELDS.map(Into::into).to_vec());
            }
        }
        self.objects.apply(&mut settings, SelfSigned::Allowed);
        // Backends of a folder are on this machine.
        settings.resolve.local_endpoints = true;
        settings.ingress.https_port = Some(self.https).filter(|&port| port != 443);
        settings.http_proxy.https_port = settings.ingress.https_port;
        settings.emissary.https_port = settings.ingress.https_port;
        settings.emissary.address = self.address;
        settings.gateway.address = self.address;
        settings.gateway.ports = PortShift { by: 8000, privileged_only: true };
        settings.check_binds().coded(Code::CommandLine, || "the listeners of Envoy cannot share a port".to_owned())?;
        Ok(settings)
    }
}
