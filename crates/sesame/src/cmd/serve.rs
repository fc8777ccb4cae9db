//! `sesame serve`: the controller of a cluster. Contour's flags and variables, and a few of our own.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use admin::LogFilter;
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use model::timeout::parse_duration;
use source::snippet::{self, Style};
use status::Addresses;

use crate::flags::{self, Certificates, ForeignProtection, Names, Packing};
use crate::serve::config::Config;
use crate::serve::plan::Plan;

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Serve what a Kubernetes cluster says about ingress to Envoys
///
/// Takes Contour's flags, variables and configuration file. A flag stands above the file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file
    #[arg(long, short = 'c', value_name = "FILE")]
    pub config_path: Option<PathBuf>,
    /// The ContourConfiguration to read [not supported yet]
    #[arg(long, value_name = "NAME")]
    pub sesame_config_name: Option<String>,
    /// The namespace Sesame runs in
    #[arg(long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    pub namespace: String,

    /// Use the service account of the pod
    #[arg(long)]
    pub incluster: bool,
    /// The kubeconfig; if not given the usual places are tried, then the service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How often a second the API server may be asked; no limit if not given
    #[arg(long, value_name = "NUMBER", value_parser = queries)]
    pub kubernetes_client_qps: Option<f64>,
    /// How often at once, after a rest
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub kubernetes_client_burst: Option<u32>,
    /// How much the library of the API server logs, 0 to 9 [no effect: use --log]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(..=9))]
    pub kubernetes_debug: Option<u8>,
    /// The namespaces that are read, separated by commas; all if not given
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    pub watch_namespaces: Names,

    /// The address of the xDS server
    #[arg(long, value_name = "ADDRESS", default_value_t = LOOPBACK)]
    pub xds_address: IpAddr,
    /// The port of the xDS server
    #[arg(long, value_name = "PORT", default_value = "8001")]
    pub xds_port: u16,
    /// The CA of the Envoys' certificates, in PEM
    #[arg(long, env = "SESAME_CAFILE", value_name = "FILE")]
    pub sesame_cafile: Option<PathBuf>,
    /// The certificate of the xDS server, in PEM
    #[arg(long, env = "SESAME_CERT_FILE", value_name = "FILE")]
    pub sesame_cert_file: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, env = "SESAME_KEY_FILE", value_name = "FILE")]
    pub sesame_key_file: Option<PathBuf>,
    /// Serve xDS without TLS, for development: whoever connects gets every key
    #[arg(long)]
    pub insecure: bool,

    /// The address of /healthz and /readyz
    #[arg(long, value_name = "ADDRESS", default_value_t = ANY)]
    pub health_address: IpAddr,
    /// The port of /healthz and /readyz
    #[arg(long, value_name = "PORT", default_value = "8000")]
    pub health_port: u16,
    /// The address of /metrics; 0.0.0.0 if neither this nor the file says
    #[arg(long, value_name = "ADDRESS")]
    pub http_address: Option<IpAddr>,
    /// The port of /metrics; 8000 if neither this nor the file says
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
    /// The address of /debug
    #[arg(long, value_name = "ADDRESS", default_value_t = LOOPBACK)]
    pub debug_http_address: IpAddr,
    /// The port of /debug
    #[arg(long, value_name = "PORT", default_value = "6060")]
    pub debug_http_port: u16,

    /// Write status without a lease: there is only this replica
    #[arg(long)]
    pub disable_leader_election: bool,
    /// How long other replicas wait for a leader that says nothing
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,
    /// How long a leader that cannot renew its lease goes on
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,
    /// How often the lease is renewed, and looked at by others
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_election_retry_period: Duration,
    /// The name of the Lease
    #[arg(long, value_name = "NAME", default_value = "leader-elect")]
    pub leader_election_resource_name: String,
    /// The namespace of the Lease; that of Sesame if not given
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_election_resource_namespace: Option<String>,

    /// The classes of Ingresses and HTTPProxies that are served, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    pub ingress_class_name: Names,
    /// The addresses in the status of Ingresses, separated by commas; those of the proxies' Service if not given
    #[arg(long, value_name = "ADDRESSES")]
    pub ingress_status_address: Option<Addresses>,
    /// The namespaces that may have root HTTPProxies, separated by commas; all if not given
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    pub root_namespaces: Names,
    /// What is done with objects whose annotations ask another controller for protection, such as an access list
    #[arg(long, value_name = "WHAT", value_enum, default_value = "warn")]
    pub foreign_protection: ForeignProtection,
    /// What is not to be read; none of it is yet
    #[arg(long, value_name = "FEATURE", value_enum)]
    pub disable_feature: Vec<Feature>,

    /// The name of the proxies' Service; envoy if neither this nor the file says
    #[arg(long, value_name = "NAME")]
    pub envoy_service_name: Option<String>,
    /// The namespace of the proxies' Service; that of Sesame if neither this nor the file says
    #[arg(long, value_name = "NAMESPACE")]
    pub envoy_service_namespace: Option<String>,
    /// The address at which proxies listen for HTTP
    #[arg(long, value_name = "ADDRESS", default_value_t = ANY)]
    pub envoy_service_http_address: IpAddr,
    /// The port at which proxies listen for HTTP
    #[arg(long, value_name = "PORT", default_value = "8080")]
    pub envoy_service_http_port: u16,
    /// The address at which proxies listen for HTTPS
    #[arg(long, value_name = "ADDRESS", default_value_t = ANY)]
    pub envoy_service_https_address: IpAddr,
    /// The port at which proxies listen for HTTPS
    #[arg(long, value_name = "PORT", default_value = "8443")]
    pub envoy_service_https_port: u16,
    /// The address at which proxies answer probes and show metrics
    #[arg(long, value_name = "ADDRESS", default_value_t = ANY)]
    pub stats_address: IpAddr,
    /// The port at which proxies answer probes and show metrics
    #[arg(long, value_name = "PORT", default_value = "8002")]
    pub stats_port: u16,
    /// Expect a PROXY protocol preamble on every connection of a client
    #[arg(long)]
    pub use_proxy_protocol: bool,
    /// Where proxies write a line for each request of HTTP
    #[arg(long, value_name = "FILE", default_value = "/dev/stdout")]
    pub envoy_http_access_log: String,
    /// Where proxies write a line for each request of HTTPS
    #[arg(long, value_name = "FILE", default_value = "/dev/stdout")]
    pub envoy_https_access_log: String,
    /// How that line is written; envoy if neither this nor the file says
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub accesslog_format: Option<LogFormat>,

    /// Whether each host travels to proxies by itself, or all hosts of a port together
    #[arg(long, value_name = "HOW", value_enum, default_value = "scoped")]
    pub packing: Packing,
    /// Whether proxies have all certificates from the start, or ask for each when a client does
    #[arg(long, value_name = "HOW", value_enum, default_value = "per-chain")]
    pub certificates: Certificates,
    /// Compare every table with a build from nothing after each batch, and end if one differs
    #[arg(long)]
    pub self_check: bool,
    /// For tests: how many bytes all resources of one type may have together
    #[arg(long, value_name = "BYTES", hide = true)]
    pub table_bytes: Option<usize>,
    /// For tests: make the routes of this path such that Envoy refuses them
    #[arg(long, value_name = "PATH", hide = true)]
    pub spoil: Option<String>,
}

/// How a request is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Envoy's own line
    Envoy,
    /// One JSON object
    Json,
}

/// What Contour can be told not to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Feature {
    /// ExtensionServices
    ExtensionServices,
    /// TLSRoutes
    TlsRoutes,
    /// GRPCRoutes
    GrpcRoutes,
    /// TCPRoutes
    TcpRoutes,
    /// BackendTLSPolicies
    BackendTlsPolicies,
}

/// Serves until SIGTERM or Ctrl-C.
pub async fn run(args: Args, log: LogFilter) -> Result<()> {
    let config = args.config_path.as_deref().map_or_else(|| Ok(Config::default()), read)?;
    let plan = Plan::new(&args, config, |name| std::env::var(name).ok())?;
    if plan.verbose {
        (log.set)("debug").map_err(|why| anyhow!("the log cannot be set to debug: {why}"))?;
    }
    crate::serve::run(plan, log).await
}

/// Reads the configuration file; everything that is wrong with it is shown at its place.
fn read(path: &Path) -> Result<Config> {
    let problems = match Config::read(path) {
        Ok(config) => return Ok(config),
        Err(problems) => problems,
    };
    let style = if std::io::stderr().is_terminal() { Style::Colour } else { Style::Plain };
    for problem in &problems {
        eprintln!("{}\n", snippet::problem(problem, style));
    }
    match problems.len() {
        1 => bail!("there is 1 error in {}", path.display()),
        errors => bail!("there are {errors} errors in {}", path.display()),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn queries(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| format!("`{text}` is not a number"))
}
