//! `make conformance`: progress and verdict on the terminal, the report in a file.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use conformance::{Installation, Outcome, Packing, Run, Suite};

/// Run the Gateway API conformance suite against Sesame on a Kubernetes node
#[derive(Debug, Parser)]
struct Args {
    /// The program whose image the cluster gets
    #[arg(long, value_name = "FILE")]
    sesame: PathBuf,
    /// Run this test only
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// How routes are written for Envoy
    #[arg(long, value_enum, default_value = "scoped")]
    packing: Packing,
    /// The folder for the report, the suite's output and the controller's logs
    #[arg(long, value_name = "FOLDER", default_value = "target/conformance")]
    out: PathBuf,
    /// Arguments of the suite's own
    #[arg(last = true)]
    suite: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let out = fs::canonicalize(&args.out)?;
    let begun = Instant::now();
    let installation = Installation::start(&args.sesame, args.packing, |step| eprintln!("conformance: {step}")).await?;
    eprintln!("conformance: ready after {:.1} s; the suite begins", begun.elapsed().as_secs_f64());
    let suite = Suite { test: args.test, report: out.join("report.yaml"), arguments: args.suite };
    let mut log = File::create(out.join("suite.log"))?;
    let suite_begun = Instant::now();
    let run = suite.run(&installation, |line, ended| {
        _ = writeln!(log, "{line}");
        match ended {
            Some((_, Outcome::Skipped, _)) | None => {}
            Some((test, outcome, seconds)) => println!("{} {test} ({seconds:.1} s)", word(outcome)),
        }
    });
    let run = run.await?;
    let seconds = suite_begun.elapsed().as_secs_f64();
    for (number, text) in installation.controller_logs().await?.into_iter().enumerate() {
        fs::write(out.join(format!("controller-{number}.log")), text)?;
    }
    installation.stop().await?;
    let conformant = report(&run, &suite);
    println!("{}", run.results.table(&command(&suite, args.packing), packing(args.packing), seconds));
    println!("output, report and logs are in {}; {:.0} s in all", out.display(), begun.elapsed().as_secs_f64());
    Ok(if conformant { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what came of it, and says whether all of it holds.
fn report(run: &Run, suite: &Suite) -> bool {
    for line in run.report.iter().flat_map(conformance::Report::lines) {
        println!("{line}");
    }
    let objections = run.objections(suite);
    objections.iter().for_each(|objection| println!("error: {objection}"));
    let count = |outcome| run.results.of(outcome).count();
    let (passed, failed, skipped) = (count(Outcome::Passed), count(Outcome::Failed), count(Outcome::Skipped));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    objections.is_empty()
}

/// What one types for a run.
fn command(suite: &Suite, packing: Packing) -> String {
    let test = suite.test.as_ref().map(|test| format!(" TEST={test}"));
    let packing = (packing == Packing::Plain).then_some(" PACKING=plain");
    format!("make conformance{}{}", test.unwrap_or_default(), packing.unwrap_or_default())
}

fn packing(packing: Packing) -> &'static str {
    match packing {
        Packing::Plain => "plain",
        Packing::Scoped => "scoped",
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed ",
        Outcome::Failed => "FAILED ",
        Outcome::Skipped => "skipped",
    }
}
