//! `sesame status`: replicas, the leader, fleets, and proxies that are in step, behind or reject something.

mod sum;

use std::process::ExitCode;

use anyhow::Result;

use crate::operate::controllers::ControllerFlags;
use crate::operate::print::OutputFlags;
use crate::operate::table::{Table, age};
use crate::operate::{Outcome, ask, exit};
use sum::{Page, Status, sum};

/// Show controllers, fleets and proxies
///
/// Queries every replica of the controller, by a port-forward through the API server or by --address, and combines the answers.
///
/// Exit code: 0 if all is well; 1 if a replica is not ready or cannot be reached, there is not exactly one leader, replicas publish
/// different configurations, or a proxy has been behind for 10 s or rejects something; 2 if no replica could be reached.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    controllers: ControllerFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// List all proxies, not only those that are behind or reject something
    #[arg(short = 'a', long)]
    all: bool,
}

/// Prints the status.
pub async fn run(args: Args) -> ExitCode {
    exit(print(&args).await)
}

async fn print(args: &Args) -> Result<Outcome> {
    let controllers = args.controllers.find().await?;
    let path = if args.all { "/debug/status?proxies=all" } else { "/debug/status" };
    let pages = ask::each::<Page>(&controllers, path).await;
    let status = sum(pages)?;
    args.output.print(&status, || text(&status))?;
    Ok(Outcome::of(!status.findings.is_empty()))
}

fn text(status: &Status) -> String {
    let mut replicas = Table::new(["REPLICA", "STATE", "ROLE", "VERSION", "AGE", "PROXIES", "ERRORS", "WARNINGS"]);
    for replica in &status.replicas {
        let count = |severity: &str| replica.verdicts.get(severity).copied().unwrap_or_default().to_string();
        let role = if replica.leader { "leader" } else { "follower" };
        let known = |text: String| if replica.error.is_some() { String::new() } else { text };
        replicas.row([
            replica.name.clone(),
            replica.state.to_owned(),
            known(role.to_owned()),
            replica.version.clone(),
            known(age(replica.age)),
            known(replica.proxies.to_string()),
            known(count("error")),
            known(count("warning")),
        ]);
    }
    let mut fleets = Table::new(["FLEET", "RESOURCES", "PROXIES", "IN STEP", "BEHIND", "REJECTED"]);
    for fleet in &status.fleets {
        fleets.row([
            fleet.fleet.clone(),
            fleet.resources.to_string(),
            fleet.proxies.to_string(),
            fleet.in_step.to_string(),
            fleet.behind.to_string(),
            fleet.rejected.to_string(),
        ]);
    }
    let mut proxies = Table::new(["PROXY", "FLEET", "ENVOY", "REPLICA", "STATE", "FOR", "WHAT"]);
    for proxy in &status.proxies {
        proxies.row([
            proxy.node.clone(),
            proxy.fleet.clone(),
            proxy.envoy.clone(),
            proxy.replica.clone(),
            proxy.state.replace('_', " "),
            if proxy.state == "in_step" { String::new() } else { age(proxy.seconds) },
            proxy.detail.clone(),
        ]);
    }
    let tables = [replicas, fleets, proxies].into_iter().filter(|table| !table.is_empty());
    let mut parts: Vec<String> = tables.map(|table| table.text()).collect();
    if !status.findings.is_empty() {
        parts.push(status.findings.iter().map(|finding| format!("! {finding}\n")).collect());
    }
    parts.join("\n")
}
