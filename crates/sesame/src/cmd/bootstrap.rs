//! `sesame bootstrap`: what an Envoy is started with.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use envoy::bootstrap::{Bootstrap, DnsFamily, Node, Overload, Stats, Tls, XdsServer};
use envoy_api::json;
use model::{Code, FleetId};
use tracing::warn;

use crate::problem::{Coded, Problem};
use crate::{flags, output};

/// Write the bootstrap of an Envoy that takes its configuration from Sesame
///
/// Run beside Envoy, as an init container. All three TLS files or none; with --resources-dir Envoy watches the files and
/// uses renewed certificates without a restart.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to write, in JSON; - for standard output
    path: PathBuf,
    /// The Unix socket of Envoy's admin interface
    #[arg(long, value_name = "PATH", default_value = "/admin/admin.sock", value_parser = socket)]
    admin_address: PathBuf,
    /// Accepted for old manifests; the admin interface is a socket
    #[arg(long, hide = true)]
    admin_port: Option<u16>,
    /// The address of the xDS server: a DNS name or an IP address
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    xds_address: String,
    /// The port of the xDS server
    #[arg(long, value_name = "PORT", default_value = "8001")]
    xds_port: u16,
    /// Accepted for old manifests; there is no other version
    #[arg(long, hide = true, value_parser = ["v3"], default_value = "v3")]
    xds_resource_version: String,
    /// Which addresses of the xDS server's DNS name are used
    #[arg(long, value_enum, default_value = "auto", value_name = "FAMILY")]
    dns_lookup_family: Family,
    /// The CA of the xDS server's certificate, in PEM
    #[arg(long, env = "ENVOY_CAFILE", value_name = "FILE")]
    envoy_cafile: Option<PathBuf>,
    /// Envoy's own certificate, in PEM
    #[arg(long, env = "ENVOY_CERT_FILE", value_name = "FILE")]
    envoy_cert_file: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, env = "ENVOY_KEY_FILE", value_name = "FILE")]
    envoy_key_file: Option<PathBuf>,
    /// A folder for the files by which Envoy watches its certificates
    #[arg(long, value_name = "FOLDER")]
    resources_dir: Option<PathBuf>,
    /// The namespace the xDS server runs in
    #[arg(long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    namespace: String,
    /// The name of this Envoy; else Envoy's own flag --service-node says it
    #[arg(long, env = "SESAME_NODE_ID", value_name = "NAME")]
    node_id: Option<String>,
    /// The name of its group; else Envoy's own flag --service-cluster says it
    #[arg(long, env = "SESAME_NODE_CLUSTER", value_name = "NAME")]
    node_cluster: Option<String>,
    /// The fleet whose configuration it asks for; the shared one if not given
    #[arg(long, env = "SESAME_FLEET", value_name = "NAMESPACE/NAME", value_parser = flags::fleet)]
    fleet: Option<FleetId>,
    /// The heap in bytes at which Envoy refuses requests rather than be killed; 0 for no limit
    #[arg(long, value_name = "BYTES", default_value = "0")]
    overload_max_heap: u64,
    /// The number of client connections beyond which new ones are closed; 0 for no limit
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    overload_downstream_max_conn: u32,
    /// Which statistics Envoy keeps
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
    /// Those that dashboards and alerts for an ingress use
    Lean,
    /// All that Envoy has: hundreds per backend
    Full,
}

/// Writes the files.
pub fn run(args: Args) -> Result<()> {
    if args.admin_port.is_some() {
        warn!("--admin-port has no effect: the admin interface listens on {}", args.admin_address.display());
    }
    let path = args.path.clone();
    let rendered = chosen(args)?.render();
    let bootstrap =
        json::to_json(&rendered.bootstrap).coded(Code::CommandLine, || "this cannot be written".to_owned())?;
    // Before the bootstrap, which points to them.
    for (path, content) in rendered.files {
        output::write(&path, &format!("{content:#}\n"))?;
    }
    output::write(&path, &format!("{bootstrap:#}\n"))
}

fn chosen(args: Args) -> Result<Bootstrap> {
    let tls = tls(args.envoy_cafile, args.envoy_cert_file, args.envoy_key_file, args.resources_dir)?;
    if tls.is_none() && !is_loopback(&args.xds_address) {
        warn!("no TLS files are given: the connection to {} is neither encrypted nor proven", args.xds_address);
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
        (Some(ca), Some(certificate), Some(key)) => Ok(Some(Tls { ca, certificate, key, resources_dir })),
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
