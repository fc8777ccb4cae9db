//! `sesame precheck`: whether a cluster is ready for Sesame, before anything is installed.

mod crds;
mod nodes;
mod permissions;

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use serde::Serialize;

use crate::operate::cluster::{ClusterFlags, refusal};
use crate::operate::print::OutputFlags;
use crate::operate::table::Table;
use crate::operate::{Outcome, exit};

/// The oldest minor version of Kubernetes 1 that the manifests are made for.
const OLDEST_MINOR: u32 = 31;

/// Check a cluster before the installation: permissions, CRDs, versions, ports
///
/// Changes nothing. What cannot be read is reported, and does not count as a problem of the cluster.
///
/// Exit code: 0 if nothing prevents it, 1 if something does, 2 if the API server could not be reached.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// Ports of nodes that Envoys listen on, as in deploy/sesame.yaml; without a value, none, as in deploy/sesame-deployment.yaml
    #[arg(long, value_name = "PORTS", value_delimiter = ',', num_args = 0.., default_values_t = [80, 443])]
    host_ports: Vec<u16>,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckResult {
    Ok,
    /// Worth knowing.
    Note,
    /// It prevents something.
    Warning,
    /// The installation would fail.
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    result: CheckResult,
    message: String,
}

impl Check {
    fn new(check: &'static str, result: CheckResult, message: impl Into<String>) -> Self {
        Self { check, result, message: message.into() }
    }
}

/// Prints what was found.
pub async fn run(args: Args) -> ExitCode {
    exit(print(&args).await)
}

async fn print(args: &Args) -> Result<Outcome> {
    let client = args.cluster.connect().await?;
    let mut checks = vec![version(&client).await?];
    checks.extend(permissions::check(&client, &args.cluster.namespace).await?);
    checks.extend(crds::check(&client).await);
    checks.extend(nodes::check(&client, &args.host_ports).await);
    args.output.print(&checks, || text(&checks))?;
    Ok(Outcome::of(checks.iter().any(|check| matches!(check.result, CheckResult::Warning | CheckResult::Error))))
}

async fn version(client: &Client) -> Result<Check> {
    let version = client.apiserver_version().await;
    Ok(version_check(version.map_err(|error| refusal(error, "the version of the API server"))?))
}

fn version_check(version: Info) -> Check {
    // Some clouds write `33+`.
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok();
    let minor = digits(&version.minor).filter(|_| version.major == "1");
    let found = version.git_version;
    let warning = |message: String| Check::new("kubernetes", CheckResult::Warning, message);
    match minor {
        Some(minor) if minor >= OLDEST_MINOR => Check::new("kubernetes", CheckResult::Ok, found),
        Some(_) => warning(format!("{found} is older than 1.{OLDEST_MINOR}, which the manifests are made for")),
        None => warning(format!("{found} cannot be compared with 1.{OLDEST_MINOR}, which the manifests are made for")),
    }
}

/// What cannot be read is no finding about the cluster.
fn unread(check: &'static str, what: &str, error: kube::Error) -> Check {
    Check::new(check, CheckResult::Note, format!("not checked: {:#}", refusal(error, what)))
}

fn text(checks: &[Check]) -> String {
    let mut table = Table::new(["CHECK", "RESULT", "WHAT"]);
    for check in checks {
        let result = serde_json::to_value(check.result).unwrap_or_default();
        let result = result.as_str().unwrap_or_default().to_owned();
        table.row([check.check.to_owned(), result, check.message.clone()]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(major: &str, minor: &str) -> (CheckResult, String) {
        let git_version = format!("v{major}.{minor}.2");
        let info = Info { major: major.to_owned(), minor: minor.to_owned(), git_version, ..Info::default() };
        let check = version_check(info);
        (check.result, check.message)
    }

    #[test]
    fn an_old_kubernetes_and_one_that_does_not_say_its_version_are_warned_of() {
        for (major, minor) in [("1", "31"), ("1", "31+"), ("1", "37")] {
            assert_eq!(check(major, minor), (CheckResult::Ok, format!("v{major}.{minor}.2")));
        }
        for (minor, is) in [("30", "is older than"), ("30+", "is older than"), ("", "cannot be compared with")] {
            let expected = format!("v1.{minor}.2 {is} 1.31, which the manifests are made for");
            assert_eq!(check("1", minor), (CheckResult::Warning, expected));
        }
        for (major, minor) in [("1", "new"), ("0", "31"), ("2", "0"), ("", "")] {
            let expected = format!("v{major}.{minor}.2 cannot be compared with 1.31, which the manifests are made for");
            assert_eq!(check(major, minor), (CheckResult::Warning, expected));
        }
    }
}
