//! `make e2e`: progress on standard error, the table at the end.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use e2e::{Installation, SCENARIOS, Scenario, table};

/// Run scenarios of the life of an installation under load, on a Kubernetes of two nodes
#[derive(Debug, Parser)]
struct Args {
    /// The program whose image the cluster gets
    #[arg(long, value_name = "FILE", required_unless_present = "list")]
    sesame: Option<PathBuf>,
    /// The folder with the previous version, as `cargo xtask previous` makes it; without it there is no `upgrade`
    #[arg(long, value_name = "DIR")]
    previous: Option<PathBuf>,
    /// Run these scenarios only
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// List the scenarios
    #[arg(long)]
    list: bool,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let Some(sesame) = args.sesame.filter(|_| !args.list) else {
        SCENARIOS.iter().for_each(|scenario| println!("{:22} {}", scenario.name, scenario.about));
        return Ok(ExitCode::SUCCESS);
    };
    let mut chosen = Scenario::chosen(&args.only)?;
    if args.only.is_empty() && args.previous.is_none() {
        chosen.retain(|scenario| scenario.name != "upgrade");
    }
    let installation = Installation::start(&sesame, args.previous, |step| eprintln!("e2e: {step}")).await?;
    let mut rows = Vec::new();
    for scenario in chosen {
        eprintln!("e2e: {}: {}", scenario.name, scenario.about);
        let row = scenario.run(&installation).await;
        row.traffic.failures.iter().chain(&row.error).for_each(|failure| eprintln!("e2e: {}: {failure}", row.name));
        let is_lost = row.error.is_some() && row.name == SCENARIOS[0].name;
        rows.push(row);
        if is_lost {
            break;
        }
    }
    installation.stop().await?;
    print!("{}", table(&rows));
    Ok(if rows.iter().all(e2e::Row::is_good) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
