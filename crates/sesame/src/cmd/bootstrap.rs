//! `sesame bootstrap`: what an Envoy is started with.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use certgen::rotation::Certificate;
use clap::ValueEnum;
use envoy::bootstrap::{Bootstrap, CertificateFiles, DnsFamily, Node, Overload, Stats, Tls, Token, XdsServer};
use envoy_api::json;
use model::{Code, FleetName};
use tracing::warn;

use crate::problem::{Coded, Problem};
use crate::{flags, output};

/// Write the bootstrap configuration of an Envoy that connects to Sesame
///
/// Runs as an init container of Envoy. Give all three TLS files or none; with --resources-dir Envoy watches the files and
/// picks up renewed certificates without a restart. In place of a certificate, Envoy can authenticate with a token.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Path of the JSON file to write; - for standard output
    path: PathBuf,
    /// Path of the Unix socket of Envoy's admin interface
    #[arg(long, value_name = "PATH", default_value = "/admin/admin.sock", value_parser = socket)]
    admin_address: PathBuf,
    /// Ignored, for compatibility: the admin interface is a Unix socket
    #[arg(long, hide = true)]
    admin_port: Option<u16>,
    /// Address of the xDS server: a DNS name or an IP address
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    xds_address: String,
    /// Port of the xDS server
    #[arg(long, value_name = "PORT", default_value = "8001")]
    xds_port: u16,
    /// Ignored, for compatibility: v3 is the only version
    #[arg(long, hide = true, value_parser = ["v3"], default_value = "v3")]
    xds_resource_version: String,
    /// DNS lookup family for the xDS server's name
    #[arg(long, value_enum, default_value = "auto", value_name = "FAMILY")]
    dns_lookup_family: Family,
    /// CA bundle (PEM) that the xDS server's certificate must chain to
    #[arg(long, env = "ENVOY_CAFILE", value_name = "FILE")]
    envoy_cafile: Option<PathBuf>,
    /// Client certificate (PEM) of Envoy
    #[arg(long, env = "ENVOY_CERT_FILE", value_name = "FILE")]
    envoy_cert_file: Option<PathBuf>,
    /// Private key (PEM) of the client certificate
    #[arg(long, env = "ENVOY_KEY_FILE", value_name = "FILE")]
    envoy_key_file: Option<PathBuf>,
    /// CA bundle (PEM text) that the xDS server's certificate must chain to, for an Envoy with a token
    #[arg(long, env = "ENVOY_CA", value_name = "PEM", conflicts_with = "envoy_cafile", requires = "envoy_token_file")]
    envoy_ca: Option<String>,
    /// File of the token by which Envoy authenticates; read again when it is replaced
    #[arg(long, env = "ENVOY_TOKEN_FILE", value_name = "FILE", requires_all = ["envoy_ca", "resources_dir"])]
    #[arg(conflicts_with_all = ["envoy_cert_file", "envoy_key_file"])]
    envoy_token_file: Option<PathBuf>,
    /// Directory for the SDS files through which Envoy reloads its certificates
    #[arg(long, value_name = "FOLDER")]
    resources_dir: Option<PathBuf>,
    /// Namespace of the xDS server
    #[arg(long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    namespace: String,
    /// Node ID [default: Envoy's flag --service-node]
    #[arg(long, env = "SESAME_NODE_ID", value_name = "NAME")]
    node_id: Option<String>,
    /// Node cluster [default: Envoy's flag --service-cluster]
    #[arg(long, env = "SESAME_NODE_CLUSTER", value_name = "NAME")]
    node_cluster: Option<String>,
    /// Fleet that this Envoy belongs to, namespace/name [default: the shared fleet]
    #[arg(long, env = "SESAME_FLEET", value_name = "NAMESPACE/NAME", value_parser = flags::fleet)]
    fleet: Option<FleetName>,
    /// Maximum heap size in bytes for the overload manager; 0 for no limit
    #[arg(long, value_name = "BYTES", default_value = "0")]
    overload_max_heap: u64,
    /// Maximum number of downstream connections; 0 for no limit
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    overload_downstream_max_conn: u32,
    /// Which statistics Envoy creates
    #[arg(long, value_enum, default_value = "lean", value_name = "WHICH")]
    stats: Which,
}

/// Which addresses of a DNS name are used.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Family {
    /// IPv6, or IPv4 if there are none
    Auto,
    /// IPv4
    V4,
    /// IPv6
    V6,
    /// Both
    All,
}

/// Which statistics exist.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// Those used by dashboards and alerts
    Lean,
    /// All statistics: hundreds for each cluster
    Full,
}

/// Writes the files.
pub fn run(args: Args) -> Result<()> {
    if args.admin_port.is_some() {
        warn!("--admin-port has no effect: the admin interface listens on {}", args.admin_address.display());
    }
    let path = args.path.clone();
    let rendered = chosen(args)?.render();
    let bootstrap = json::to_json(&rendered.bootstrap)
        .coded(Code::CommandLine, || "failed to render the bootstrap configuration".to_owned())?;
    // Before the bootstrap, which points to them.
    for (path, content) in rendered.files {
        output::write(&path, &format!("{content:#}\n"))?;
    }
    output::write(&path, &format!("{bootstrap:#}\n"))
}

fn chosen(args: Args) -> Result<Bootstrap> {
    let tls = match (args.envoy_ca, args.envoy_token_file, &args.resources_dir) {
        (Some(ca), Some(file), Some(dir)) => {
            let ca_expirations = Certificate::all(&ca).unwrap_or_default().iter().map(|ca| ca.expires).collect();
            Some(Tls::Token(Token { ca, ca_expirations, file, resources_dir: dir.clone() }))
        }
        _ => tls(args.envoy_cafile, args.envoy_cert_file, args.envoy_key_file, args.resources_dir)?,
    };
    if tls.is_none() && !is_loopback(&args.xds_address) {
        warn!("no TLS files are given: the connection to {} is neither encrypted nor authenticated", args.xds_address);
    }
    Ok(Bootstrap {
        node: Node { id: args.node_id, cluster: args.node_cluster, fleet: args.fleet },
        server: XdsServer {
            host: args.xds_address,
            port: args.xds_port,
            dns_family: match args.dns_lookup_family {
                Family::Auto => DnsFamily::Auto,
                Family::V4 => DnsFamily::V4,
                Family::V6 => DnsFamily::V6,
                Family::All => DnsFamily::All,
            },
            namespace: Some(args.namespace),
        },
        tls,
        admin_socket: args.admin_address,
        overload: Overload {
            max_heap: (args.overload_max_heap > 0).then_some(args.overload_max_heap),
            max_downstream_connections: (args.overload_downstream_max_conn > 0)
                .then_some(args.overload_downstream_max_conn),
        },
        stats: match args.stats {
            Which::Lean => Stats::Lean,
            Which::Full => Stats::Full,
        },
    })
}

/// All three files, or none.
fn tls(
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    resources_dir: Option<PathBuf>,
) -> Result<Option<Tls>> {
    match (ca, certificate, key) {
        (Some(ca), Some(certificate), Some(key)) => {
            Ok(Some(Tls::Certificate(CertificateFiles { ca, certificate, key, resources_dir })))
        }
        (None, None, None) => Ok(None),
        _ => Err(Problem::of(
            Code::CommandLine,
            "--envoy-cafile, --envoy-cert-file and --envoy-key-file go together: give all three, or none",
        )),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// The path of a Unix socket: an address and port would open the admin interface to the network.
fn socket(text: &str) -> Result<PathBuf, String> {
    if text.parse::<std::net::SocketAddr>().is_ok() || text.parse::<IpAddr>().is_ok() || text.is_empty() {
        return Err("the admin interface listens on a Unix socket only: give its path".to_owned());
    }
    Ok(Path::new(text).to_owned())
}
