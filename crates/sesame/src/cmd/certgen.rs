//! `sesame certgen`: the certificates of the connection between Sesame and its Envoys.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use certgen::cluster::{self, ClusterError, Outcome};
use certgen::files::{self, FilesError};
use certgen::{Certificates, Format, Request, secrets, yaml};
use clap::ValueEnum;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use model::{Code, FleetName};
use tracing::info;

use crate::problem::{Coded, Problem};
use crate::{flags, output};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Generate the certificates for xDS connections between Sesame and Envoy
///
/// Creates a CA that signs one certificate for the xDS server and one for Envoy; the CA's private key is discarded.
/// With --kube, also creates the key of the disk cache, if there is none.
/// Called as `contour`, the Secret of the xDS server is `contourcert`, else `sesamecert`.
/// Outputs: --kube, --yaml, --pem, or several of them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output directory of --pem
    #[arg(default_value = "certs")]
    outputdir: PathBuf,
    /// Write the Secrets to the cluster
    #[arg(long)]
    kube: bool,
    /// Print the Secrets as YAML
    #[arg(long)]
    yaml: bool,
    /// Write PEM files to the output directory
    #[arg(long)]
    pem: bool,
    /// Namespace of the Secrets and of the xDS server
    #[arg(long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    namespace: String,
    /// Fleet that the Envoy certificate authenticates, namespace/name [default: the shared fleet]
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = flags::fleet)]
    fleet: Option<FleetName>,
    /// Lifetime of the certificates in days
    #[arg(long, value_name = "DAYS", default_value = "365", value_parser = clap::value_parser!(u32).range(1..=36500))]
    certificate_lifetime: u32,
    /// Overwrite existing Secrets or files
    #[arg(long)]
    overwrite: bool,
    /// Format of the Secrets
    #[arg(long, value_enum, default_value = "compact", value_name = "FORMAT")]
    secrets_format: Layout,
    /// Suffix of the Secrets' names
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    secrets_name_suffix: String,
    /// Connect to the API server with the pod's service account
    #[arg(long)]
    incluster: bool,
    /// Path of the kubeconfig [default: KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE", conflicts_with = "incluster")]
    kubeconfig: Option<PathBuf>,
}

/// The format of the Secrets.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Layout {
    /// Two Secrets, each with ca.crt, tls.crt and tls.key
    Compact,
    /// Three, with the CA apart as cacert.pem
    Legacy,
}

/// Generates the certificates and writes them to the outputs.
pub async fn run(args: Args) -> Result<()> {
    if !(args.kube || args.yaml || args.pem) {
        return Err(Problem::of(Code::CommandLine, "no output is given: use --kube, --yaml or --pem"));
    }
    let request = Request {
        namespace: args.namespace.clone(),
        fleet: args.fleet.clone(),
        lifetime: DAY * args.certificate_lifetime,
        now: SystemTime::now(),
    };
    let certificates = Certificates::issue(&request)
        .coded(Code::CertificatesNotMade, || "failed to generate the certificates".to_owned())?;
    if args.pem {
        write_files(&certificates, &args.outputdir, args.overwrite)?;
    }
    let format = match args.secrets_format {
        Layout::Compact => Format::Compact,
        Layout::Legacy => Format::Legacy,
    };
    let mut secrets = secrets(&certificates, &args.namespace, format, &args.secrets_name_suffix);
    if flags::is_called_contour() {
        let names = secrets.iter_mut().filter_map(|secret| secret.metadata.name.as_mut());
        names.for_each(|name| *name = name.replacen("sesamecert", "contourcert", 1));
    }
    if args.yaml {
        output::write(Path::new("-"), &yaml(&secrets).context("the Secrets cannot be encoded as YAML")?)?;
    }
    if args.kube {
        let client =
            client(&args).await.coded(Code::ApiServerFailed, || "failed to connect to the cluster".to_owned())?;
        let created = cluster::create_cache_key(client.clone(), &args.namespace).await;
        if created.coded(Code::ApiServerFailed, || "failed to write the key of the disk cache".to_owned())? {
            info!("wrote the Secret sesame-cache-key into namespace {}", args.namespace);
        }
        let outcome = cluster::write(client, &secrets, args.overwrite).await;
        let code = match outcome {
            Err(ClusterError::Mixed { .. }) => Code::OutputExists,
            _ => Code::ApiServerFailed,
        };
        match outcome.coded(code, || "failed to write the Secrets".to_owned())? {
            Outcome::Written => info!("wrote {} Secrets into namespace {}", secrets.len(), args.namespace),
            Outcome::Kept => info!(
                "the Secrets already exist in namespace {} and are left unchanged; use --overwrite to replace them",
                args.namespace
            ),
        }
    }
    Ok(())
}

fn write_files(certificates: &Certificates, folder: &Path, overwrite: bool) -> Result<()> {
    let written = files::write(certificates, folder, overwrite);
    let code = match written {
        Err(FilesError::Exists(_)) => Code::OutputExists,
        _ => Code::FileNotWritable,
    };
    for path in written.coded(code, || "failed to write the files".to_owned())? {
        info!("wrote {}", path.display());
    }
    Ok(())
}

async fn client(args: &Args) -> Result<Client> {
    let config = if args.incluster {
        Config::incluster()?
    } else if let Some(path) = &args.kubeconfig {
        let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("{} cannot be used", path.display()))?;
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
    } else {
        Config::infer().await?
    };
    Ok(Client::try_from(config)?)
}
