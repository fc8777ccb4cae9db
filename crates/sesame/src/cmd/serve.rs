//! `sesame serve`: the controller of a cluster. Contour's flags and variables, and a few of our own.

use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admin::LogFilter;
use anyhow::{Result, bail};
use clap::{ValueEnum, builder::FalseyValueParser};
use model::timeout::parse_duration;
use source::snippet;
use status::Addresses;

use crate::flags::emissary::EmissaryFlags;
use crate::flags::{self, Certificates, ForeignProtection, Names, NamespacedNames, Packing};
use crate::logging;
use crate::output;
use crate::serve::config::Config;
use crate::serve::disk_cache;
use crate::trace::Endpoint;

/// Run the controller: translate the ingress objects of a Kubernetes cluster for Envoy fleets
///
/// Accepts Contour's flags, environment variables and configuration file. Flags override the configuration file.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Path of the configuration file
    #[arg(long, short = 'c', value_name = "FILE")]
    pub config_path: Option<PathBuf>,
    /// Name of the ContourConfiguration to read, in the namespace of Sesame, instead of a file
    #[arg(long, value_name = "NAME", conflicts_with = "config_path")]
    pub sesame_config_name: Option<String>,
    /// Namespace that Sesame runs in
    #[arg(long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    pub namespace: String,

    /// Connect to the API server with the pod's service account
    #[arg(long)]
    pub incluster: bool,
    /// Path of the kubeconfig [default: KUBECONFIG, ~/.kube/config, then the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Maximum requests per second to the API server [default: unlimited]
    #[arg(long, value_name = "NUMBER", value_parser = queries)]
    pub kubernetes_client_qps: Option<f64>,
    /// Maximum burst of requests to the API server [default: unlimited]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub kubernetes_client_burst: Option<u32>,
    /// Log verbosity of the Kubernetes client, 0 to 9 [no effect: use --log]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(..=9))]
    pub kubernetes_debug: Option<u8>,
    /// Comma-separated list of namespaces to watch [default: all]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    pub watch_namespaces: Names,
    /// Read namespaced kinds only, so that Roles suffice: without IngressClasses, Namespaces and Gateway API
    #[arg(long, requires = "watch_namespaces")]
    pub namespaced_only: bool,
    /// Comma-separated list of Secrets, NAMESPACE/NAME: the only ones that are read, each by its name [default: all that
    /// objects refer to]
    #[arg(long, value_name = "SECRETS", value_parser = flags::namespaced_names)]
    pub named_secrets: Option<NamespacedNames>,

    /// Listen address of the xDS server [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub xds_address: Option<IpAddr>,
    /// Listen port of the xDS server [default: 8001]
    #[arg(long, value_name = "PORT")]
    pub xds_port: Option<u16>,
    /// CA bundle (PEM) that client certificates of proxies must chain to
    #[arg(long, env = "SESAME_CAFILE", value_name = "FILE")]
    pub sesame_cafile: Option<PathBuf>,
    /// Certificate (PEM) of the xDS server
    #[arg(long, env = "SESAME_CERT_FILE", value_name = "FILE")]
    pub sesame_cert_file: Option<PathBuf>,
    /// Private key (PEM) of the xDS server
    #[arg(long, env = "SESAME_KEY_FILE", value_name = "FILE")]
    pub sesame_key_file: Option<PathBuf>,
    /// Issue and rotate the certificates of xDS connections, which are kept in Secrets in the namespace of Sesame; directory for
    /// the files of this replica
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sesame_cafile", "sesame_cert_file", "sesame_key_file", "insecure"])]
    pub xds_certificates_dir: Option<PathBuf>,
    /// Lifetime of the issued CA in days; at least three times that of certificates
    #[arg(long, value_name = "DAYS", default_value = "3650", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub xds_ca_lifetime: u32,
    /// Lifetime of issued certificates in days; they are renewed when a third of it is left
    #[arg(long, value_name = "DAYS", default_value = "120", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub xds_certificate_lifetime: u32,
    /// How long each step of a CA rotation takes at least: the time in which every kubelet refreshes a mounted Secret
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub xds_certificate_settle_time: Duration,
    /// Serve xDS without TLS. For development only: any client can read every private key
    #[arg(long)]
    pub insecure: bool,

    /// Directory of the disk cache, from which new proxies are served while the API server does not answer after a restart
    /// [default: /cache, if it exists]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// File with the keys that seal the disk cache, one on each line: the current one, then previous ones
    #[arg(long, value_name = "FILE", default_value = disk_cache::KEY_FILE)]
    pub cache_key_file: PathBuf,

    /// Listen address of /healthz and /readyz [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub health_address: Option<IpAddr>,
    /// Listen port of /healthz and /readyz [default: 8000]
    #[arg(long, value_name = "PORT")]
    pub health_port: Option<u16>,
    /// Listen address of /metrics [default: metrics.contour.address, else 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub http_address: Option<IpAddr>,
    /// Listen port of /metrics [default: metrics.contour.port, else 8000]
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
    /// Also expose the metrics that Contour has under Contour's names
    #[arg(long)]
    pub contour_metric_names: bool,
    /// Listen address of /debug [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub debug_http_address: Option<IpAddr>,
    /// Listen port of /debug [default: 6060]
    #[arg(long, value_name = "PORT")]
    pub debug_http_port: Option<u16>,

    /// Send a trace of each batch of changes to this collector (OTLP over gRPC, plaintext) [default: none]
    #[arg(long, value_name = "URL")]
    pub otlp_traces: Option<Endpoint>,

    /// Write status without leader election; run a single replica only
    #[arg(long)]
    pub disable_leader_election: bool,
    /// How long replicas wait before taking over a lease that is not renewed
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,
    /// How long the leader retries renewing its lease before it gives up leadership
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,
    /// Interval between attempts to acquire or renew the lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_election_retry_period: Duration,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "leader-elect")]
    pub leader_election_resource_name: String,
    /// Namespace of the Lease [default: the namespace of Sesame]
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_election_resource_namespace: Option<String>,

    /// Comma-separated list of ingress classes to serve, for Ingress and HTTPProxy
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    pub ingress_class_name: Names,
    /// Comma-separated list of addresses to publish in status.loadBalancer [default: those of the Envoy Service]
    #[arg(long, value_name = "ADDRESSES")]
    pub ingress_status_address: Option<Addresses>,
    /// Comma-separated list of namespaces that may contain root HTTPProxies [default: all]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    pub root_namespaces: Names,
    /// How to handle objects with protecting annotations of other ingress controllers, such as access lists
    #[arg(long, value_name = "WHAT", value_enum, default_value = "warn")]
    pub foreign_protection: ForeignProtection,
    /// Controller name of the GatewayClasses whose Gateways are served [default: gateway.controllerName of the configuration
    /// file, else projectsesame.io/gateway-controller]
    #[arg(long, value_name = "NAME")]
    pub gateway_controller_name: Option<String>,
    /// Instance ID of Emissary objects to read; those without ambassador_id belong to `default`. With --emissary-ingress-class also of
    /// Ingresses and IngressClasses
    #[arg(long, env = "AMBASSADOR_ID", value_name = "ID", default_value = flags::AMBASSADOR_ID)]
    pub ambassador_id: String,
    /// Watch the namespace of Sesame only, as Emissary does; --watch-namespaces overrides it
    #[arg(long, env = "AMBASSADOR_SINGLE_NAMESPACE", value_parser = FalseyValueParser::new())]
    pub ambassador_single_namespace: bool,
    /// Label selector of Emissary's objects, Services, Ingresses and IngressClasses: others are not read
    #[arg(long, env = "AMBASSADOR_LABEL_SELECTOR", value_name = "SELECTOR")]
    pub ambassador_label_selector: Option<String>,
    /// Field selector of the same kinds, such as metadata.namespace!=kube-system
    #[arg(long, env = "AMBASSADOR_FIELD_SELECTOR", value_name = "SELECTOR")]
    pub ambassador_field_selector: Option<String>,
    #[command(flatten)]
    pub emissary: EmissaryFlags,
    /// Kinds to ignore; may be repeated
    #[arg(long, value_name = "FEATURE", value_enum)]
    pub disable_feature: Vec<Feature>,

    /// Serve Gateways by the shared fleet instead of creating proxies for each of them
    #[arg(long)]
    pub disable_fleets: bool,
    /// Image of Envoy for the proxies of Gateways
    #[arg(long, value_name = "IMAGE", default_value = flags::ENVOY_IMAGE)]
    pub envoy_image: String,
    /// Image of Sesame for the proxies of Gateways
    #[arg(long, value_name = "IMAGE", default_value = flags::SESAME_IMAGE)]
    pub sesame_image: String,
    /// Number of proxies for each Gateway
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    pub fleet_replicas: u32,
    /// Address of the xDS server for the proxies of Gateways [default: sesame.NAMESPACE.svc]
    #[arg(long, value_name = "HOST")]
    pub fleet_xds_address: Option<String>,

    /// Name of the Envoy Service [default: envoy-service-name of the configuration file, else envoy]
    #[arg(long, value_name = "NAME")]
    pub envoy_service_name: Option<String>,
    /// Namespace of the Envoy Service [default: envoy-service-namespace of the configuration file, else that of Sesame]
    #[arg(long, value_name = "NAMESPACE")]
    pub envoy_service_namespace: Option<String>,
    /// Address of Envoy's HTTP listener [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub envoy_service_http_address: Option<IpAddr>,
    /// Port of Envoy's HTTP listener [default: 8080]
    #[arg(long, value_name = "PORT")]
    pub envoy_service_http_port: Option<u16>,
    /// Address of Envoy's HTTPS listener [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub envoy_service_https_address: Option<IpAddr>,
    /// Port of Envoy's HTTPS listener [default: 8443]
    #[arg(long, value_name = "PORT")]
    pub envoy_service_https_port: Option<u16>,
    /// Address of Envoy's readiness and metrics listener [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS")]
    pub stats_address: Option<IpAddr>,
    /// Port of Envoy's readiness and metrics listener [default: 8002]
    #[arg(long, value_name = "PORT")]
    pub stats_port: Option<u16>,
    /// Require the PROXY protocol on downstream connections
    #[arg(long)]
    pub use_proxy_protocol: bool,
    /// Access log path of the HTTP listener [default: /dev/stdout]
    #[arg(long, value_name = "FILE")]
    pub envoy_http_access_log: Option<String>,
    /// Access log path of the HTTPS listener [default: /dev/stdout]
    #[arg(long, value_name = "FILE")]
    pub envoy_https_access_log: Option<String>,
    /// Access log format [default: accesslog-format of the configuration file, else envoy]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub accesslog_format: Option<LogFormat>,

    /// How virtual hosts are packed into xDS resources
    #[arg(long, value_name = "HOW", value_enum, default_value = "scoped")]
    pub packing: Packing,
    /// How Envoy loads the certificates of TLS hosts
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    pub certificates: Certificates,
    /// Compare all tables with a full rebuild after each batch, and exit if they differ
    #[arg(long)]
    pub self_check: bool,
    /// For tests: how many bytes all resources of one type may have together
    #[arg(long, value_name = "BYTES", hide = true)]
    pub table_bytes: Option<usize>,
    /// For tests: generate routes for this path that Envoy rejects
    #[arg(long, value_name = "PATH", hide = true)]
    pub spoil: Option<String>,
}

/// The access log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Envoy's default text format
    Envoy,
    /// One JSON object for each request
    Json,
}

/// Kinds that can be ignored.
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
    crate::serve::run(args, log).await
}

/// Reads the configuration file; prints every problem with its line and column.
pub fn read(path: &Path) -> Result<Config> {
    let problems = match Config::read(path) {
        Ok(config) => return Ok(config),
        Err(problems) => problems,
    };
    let style = output::style(std::io::stderr().is_terminal());
    for problem in &problems {
        if logging::is_json() {
            tracing::error!(code = %problem.code, help = problem.code.help(), "{problem}");
        } else {
            eprintln!("{}\n", snippet::problem(problem, style));
        }
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
