//! `sesame`: the command line. Every subcommand is a thin room in `cmd/` over a library crate.

mod cmd;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Ingress for Kubernetes and for folders of YAML, served by fleets of Envoy
#[derive(Debug, Parser)]
#[command(name = "sesame", version, max_term_width = 100)]
struct Args {
    /// What to log: off, error, warn, info, debug or trace, also per module (`info,echo=debug`)
    #[arg(long, global = true, env = "SESAME_LOG", default_value = "info", value_name = "FILTER")]
    log: EnvFilter,
    #[command(subcommand)]
    command: cmd::Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt().with_env_filter(args.log).with_writer(std::io::stderr).init();
    match args.command.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
