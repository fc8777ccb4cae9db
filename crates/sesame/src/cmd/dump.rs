//! `sesame dump`: what proxies are sent, by fleet and type, without keys.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use model::Code;
use serde::Deserialize;
use serde_json::Value;

use crate::operate::controllers::{Controller, ControllerFlags};
use crate::operate::print::{Format, OutputFlags, yaml};
use crate::operate::table::Table;
use crate::operate::{Outcome, exit};
use crate::output::OutputClosed;
use crate::problem::Coded;

/// Show the xDS resources that are sent to proxies, without keys
///
/// The table lists them; `-o json` and `-o yaml` print them as well, with private keys, key sets and the values of headers that carry
/// credentials redacted. All replicas publish the same, so the first one that answers is used.
///
/// Exit code: 0 if they were printed, 2 if no replica could be reached.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this fleet: `shared`, or NAMESPACE/NAME of a Gateway
    #[arg(long, value_name = "FLEET")]
    fleet: Option<String>,
    /// Only this type
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<Kind>,
    /// Only resources whose names contain this text
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    #[command(flatten)]
    controllers: ControllerFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// The types of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Listeners
    Lds,
    /// Scopes: the routes of one host
    Srds,
    /// Route configurations
    Rds,
    /// Clusters
    Cds,
    /// Endpoints
    Eds,
    /// Certificates
    Sds,
    /// HTTP filters
    Ecds,
    /// Runtime settings
    Rtds,
    /// Token buckets of access logs
    #[value(name = "token_bucket")]
    TokenBucket,
}

#[derive(Deserialize)]
struct Page {
    fleets: Vec<OfFleet>,
}

#[derive(Deserialize)]
struct OfFleet {
    fleet: String,
    resources: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    version: String,
    #[serde(default)]
    origin: String,
}

/// Prints the resources.
pub async fn run(args: Args) -> ExitCode {
    exit(print(&args).await)
}

async fn print(args: &Args) -> Result<Outcome> {
    let path = format!("/debug/config_dump?{}", query(args));
    let controllers = args.controllers.find().await?;
    let mut failed = None;
    for controller in &controllers {
        match from(controller, &path, args.output.format).await {
            Err(error) if !error.is::<OutputClosed>() => _ = failed.get_or_insert(error),
            done => return done.map(|()| Outcome::Fine),
        }
    }
    // There is at least one controller.
    failed.map_or(Ok(Outcome::Fine), Err)
}

async fn from(controller: &Controller, path: &str, format: Format) -> Result<()> {
    let answer = controller.get(path).await?;
    match format {
        Format::Table => {
            let page: Page = answer.json().await?;
            write(text(&page).as_bytes())
        }
        Format::Json => answer.each(write).await,
        Format::Yaml => {
            let page: Value = answer.json().await?;
            write(yaml(&page)?.as_bytes())
        }
    }
}

fn query(args: &Args) -> String {
    let kind = args.kind.and_then(|kind| Some(kind.to_possible_value()?.get_name().to_owned()));
    let mut query = form_urlencoded::Serializer::new(String::new());
    let parts = [("fleet", args.fleet.clone()), ("type", kind), ("name", args.name.clone())];
    query.extend_pairs(parts.into_iter().filter_map(|(key, value)| Some((key, value?))));
    if args.output.format == Format::Table {
        query.append_pair("bodies", "false");
    }
    query.finish()
}

fn text(page: &Page) -> String {
    let mut table = Table::new(["FLEET", "TYPE", "NAME", "VERSION", "OF"]);
    for fleet in &page.fleets {
        for row in &fleet.resources {
            table.row([
                fleet.fleet.clone(),
                row.kind.clone(),
                row.name.clone(),
                row.version.clone(),
                row.origin.clone(),
            ]);
        }
    }
    if table.is_empty() { "there are no such resources\n".to_owned() } else { table.text() }
}

fn write(bytes: &[u8]) -> Result<()> {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        result => result.coded(Code::FileNotWritable, || "cannot print".to_owned()),
    }
}
