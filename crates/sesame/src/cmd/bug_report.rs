//! `sesame bug-report`: one archive with what somebody else needs to see, and without keys.

mod bundle;
mod cluster;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::operate::controllers::{Controller, ControllerFlags};
use crate::operate::{Outcome, exit, redact};
use bundle::Bundle;

/// The pages of every replica.
const PAGES: [(&str, &str); 8] = [
    ("status.json", "/debug/status?proxies=all"),
    ("fleets.json", "/debug/fleets"),
    ("verdicts.json", "/debug/verdicts"),
    ("batches.json", "/debug/batches"),
    ("tables.json", "/debug/tables"),
    ("certificates.json", "/debug/certificates"),
    ("log-level.txt", "/debug/log"),
    ("metrics.txt", "/metrics"),
];
/// What proxies are sent; all replicas publish the same.
const DUMP: &str = "/debug/config_dump";

/// Write an archive for a bug report, without keys and Secrets
///
/// It has the debug pages and metrics of every replica, what proxies are sent with keys redacted, and, from a cluster, the logs of the
/// controllers and the objects of their namespace other than Secrets and ConfigMaps. Values of environment variables, private keys
/// and tokens are redacted everywhere. Names of hosts, objects and nodes are in it: look through it before you send it.
///
/// Exit code: 0 if everything is in it, 1 if something could not be collected (errors.txt in the archive lists it), 2 if nothing was written.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    controllers: ControllerFlags,
    /// Where to write it; `-` is standard output [default: sesame-bug-report-TIME.tar.gz]
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Leave out the xDS resources, which may be large
    #[arg(long)]
    no_dump: bool,
}

/// Writes the archive.
pub async fn run(args: Args) -> ExitCode {
    exit(write(&args).await)
}

async fn write(args: &Args) -> Result<Outcome> {
    let mut bundle = Bundle::default();
    bundle.add("version.txt", super::version::text());
    // Also what the cluster says about pods that are not there.
    let controllers = match args.controllers.find().await {
        Ok(controllers) => controllers,
        Err(error) if args.controllers.address.is_empty() => {
            bundle.failed("controllers", &error);
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let answers = pages(&mut bundle, &controllers, !args.no_dump).await;
    if args.controllers.address.is_empty() {
        let client = args.controllers.cluster.connect().await?;
        let objects = cluster::collect(&mut bundle, &client, &args.controllers).await;
        if let (0, Err(error)) = (answers, objects) {
            return Err(error);
        }
    } else if answers == 0 {
        return Err(bundle.first_failure());
    }
    let file = args.file.clone().unwrap_or_else(name);
    let has_failures = bundle.has_failures();
    bundle.write(&file)?;
    if file != Path::new("-") {
        eprintln!("wrote {}", file.display());
    }
    Ok(Outcome::of(has_failures))
}

/// The pages of all replicas; gives how many of them answer.
async fn pages(bundle: &mut Bundle, controllers: &[Controller], has_dump: bool) -> usize {
    let (mut answers, mut wants_dump) = (0, has_dump);
    for controller in controllers {
        let folder = format!("replicas/{}", controller.name.replace([':', '/'], "_"));
        let mut is_up = true;
        for (name, path) in PAGES {
            if !is_up {
                break;
            }
            is_up = page(bundle, controller, &format!("{folder}/{name}"), path).await || name != PAGES[0].0;
        }
        answers += usize::from(is_up);
        if is_up && wants_dump {
            wants_dump = !page(bundle, controller, &format!("{folder}/config_dump.json"), DUMP).await;
        }
    }
    answers
}

async fn page(bundle: &mut Bundle, controller: &Controller, name: &str, path: &str) -> bool {
    let page = async { controller.get(path).await?.bytes().await };
    match page.await {
        Ok(page) => {
            bundle.add(name, redact::text(&String::from_utf8_lossy(&page)));
            true
        }
        Err(error) => {
            bundle.failed(name, &error);
            false
        }
    }
}

fn name() -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("sesame-bug-report-{seconds}.tar.gz").into()
}
