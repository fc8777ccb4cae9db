//! `sesame`: the command line. Every subcommand is a thin room in `cmd/` over a library crate.

mod cmd;
mod control;
mod drain;
mod flags;
mod jwks;
mod lint;
mod logging;
mod output;
mod problem;
mod run;
mod serve;
mod signals;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

/// Clients that come and go leave holes in the C library's heap that it does not give back (docs/benchmarks.md).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Ingress for Kubernetes and for folders of YAML, served by fleets of Envoy
#[derive(Debug, Parser)]
#[command(name = "sesame", version, max_term_width = 100)]
struct Args {
    #[command(flatten)]
    logging: logging::Args,
    #[command(subcommand)]
    command: cmd::Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    let matches = flags::with_contour_names(Args::command(), |name| std::env::var_os(name).is_some()).get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let log = logging::start(args.logging);
    // One provider for every TLS connection of the process; whoever was first is the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match args.command.run(log).await {
        Ok(code) => code,
        Err(error) if error.is::<output::NobodyReads>() => ExitCode::SUCCESS,
        Err(error) => {
            problem::tell(&error);
            ExitCode::FAILURE
        }
    }
}
