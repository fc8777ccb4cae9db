//! `sesame rbac`: the roles that `serve` needs, from the table that the program itself has.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use manifest::Values;
use model::Code;
use serde_json::{Map, Value, json};

use crate::flags::{self, Names, NamespacedNames};
use crate::output;
use crate::problem::Problem;

/// The usual name of the Lease.
const LEASE: &str = "leader-elect";

/// Print the RBAC roles and bindings that `sesame serve` needs, as YAML
///
/// The comment at the top lists the flags that `serve` needs with these permissions. Pipe the output to `kubectl apply -f -`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scope of the permissions
    #[arg(long, value_enum, value_name = "MODE", default_value = "cluster")]
    mode: Mode,
    /// Comma-separated list of namespaces to watch [default: all, with a ClusterRole]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = flags::names)]
    namespaces: Names,
    /// With --namespaces: a ClusterRole for the kinds that are in no namespace, which Gateway API and IngressClasses need
    #[arg(long)]
    cluster_scoped: bool,
    /// With --mode named-secrets: comma-separated list of Secrets to read, NAMESPACE/NAME
    #[arg(long, value_name = "SECRETS", default_value = "", hide_default_value = true, value_parser = flags::namespaced_names)]
    secrets: NamespacedNames,
    /// Also the permissions to issue the certificates of xDS connections (`serve --xds-certificates-dir`)
    #[arg(long)]
    issue_certificates: bool,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = LEASE)]
    leader_election_resource_name: String,
    /// Namespace of the Lease [default: the namespace of Sesame]
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    leader_election_resource_namespace: String,
    /// Namespace that Sesame runs in
    #[arg(long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    namespace: String,
    /// ServiceAccount that Sesame runs as
    #[arg(long, value_name = "NAME", default_value = "sesame")]
    service_account: String,
}

/// Scope of the permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// All namespaces, by a ClusterRole
    Cluster,
    /// The namespaces of --namespaces, by a Role in each of them
    Namespaces,
    /// Secrets by name only: no Secret but those of --secrets can be read or listed
    NamedSecrets,
}

/// Prints the roles.
pub fn run(args: Args) -> Result<()> {
    output::write(Path::new("-"), &text(&args)?)
}

fn text(args: &Args) -> Result<String> {
    let refused = |why: &str| Err(Problem::of(Code::CommandLine, why.to_owned()));
    match args.mode {
        Mode::Cluster if !args.namespaces.is_empty() => {
            return refused("--namespaces has no effect with --mode cluster: use --mode namespaces");
        }
        Mode::Namespaces if args.namespaces.is_empty() => return refused("--mode namespaces needs --namespaces"),
        Mode::NamedSecrets if args.secrets.is_empty() => {
            return refused("--mode named-secrets needs --secrets=NAMESPACE/NAME,…");
        }
        Mode::Cluster | Mode::Namespaces if !args.secrets.is_empty() => {
            return refused("--secrets has no effect without --mode named-secrets");
        }
        _ => {}
    }
    if let Some((namespace, name)) = args.secrets.iter().find(|(namespace, _)| !is_watched(args, namespace)) {
        let why = format!("--secrets has {namespace}/{name}, and {namespace} is not one of --namespaces");
        return Err(Problem::of(Code::CommandLine, why));
    }
    let mut secrets = Map::new();
    for (namespace, name) in args.secrets.iter() {
        let names = secrets.entry(&**namespace).or_insert_with(|| json!([]));
        names.as_array_mut().into_iter().for_each(|names| names.push(Value::from(&**name)));
    }
    let mode = args.mode.to_possible_value();
    let settings = json!({
        "rbac": {
            "mode": mode.as_ref().map(|mode| mode.get_name()),
            "namespaces": args.namespaces.iter().collect::<Vec<_>>(),
            "clusterScoped": args.cluster_scoped,
            "secrets": secrets,
        },
        "leaderElection": {
            "name": args.leader_election_resource_name,
            "namespace": args.leader_election_resource_namespace,
        },
        "certificates": { "issuer": if args.issue_certificates { "controller" } else { "none" } },
        "serviceAccount": { "name": args.service_account },
    });
    let roles = manifest::yaml(&rbac::documents(), Values { settings: &settings, namespace: &args.namespace });
    Ok(format!("# Permissions of: sesame serve{}\n{roles}", serve_flags(args)))
}

fn is_watched(args: &Args, namespace: &str) -> bool {
    args.namespaces.is_empty() || args.namespaces.iter().any(|name| &**name == namespace)
}

/// What `serve` must be told, so that it asks for no more than this.
fn serve_flags(args: &Args) -> String {
    let mut flags = format!(" --namespace={}", args.namespace);
    if !args.namespaces.is_empty() {
        flags += &format!(" --watch-namespaces={}", args.namespaces.join(","));
        flags += if args.cluster_scoped { "" } else { " --namespaced-only" };
    }
    if args.leader_election_resource_name != LEASE {
        flags += &format!(" --leader-election-resource-name={}", args.leader_election_resource_name);
    }
    if !args.leader_election_resource_namespace.is_empty() {
        flags += &format!(" --leader-election-resource-namespace={}", args.leader_election_resource_namespace);
    }
    if args.issue_certificates {
        flags += " --xds-certificates-dir=/certs";
    }
    if args.mode == Mode::NamedSecrets {
        let names: Vec<String> = args.secrets.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        flags += &format!(" --named-secrets={}", names.join(","));
    }
    flags
}
