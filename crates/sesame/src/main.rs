//! `sesame`: the command line. Every subcommand is a thin room in `cmd/` over a library crate.

mod cmd;
mod control;
mod drain;
mod flags;
mod jwks;
mod lint;
mod logging;
mod operate;
mod output;
mod problem;
mod proxy_events;
mod run;
mod serve;
mod signals;
mod trace;

use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser};

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

/// The command line: as `kubectl-sesame`, a plugin of kubectl, only the commands for a running installation.
fn command_line() -> Command {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().and_then(|name| name.to_str());
    match name {
        Some("kubectl-sesame" | "kubectl_sesame") => plugin(Args::command()),
        _ => Args::command(),
    }
}

fn plugin(line: Command) -> Command {
    let line = line.name("kubectl-sesame").bin_name("kubectl sesame").about("Look at a running installation of Sesame");
    line.mut_subcommands(|command| {
        let is_shown = cmd::OPERATE.contains(&command.get_name());
        command.hide(!is_shown)
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    let line = flags::with_contour_names(command_line(), |name| std::env::var_os(name).is_some());
    let matches = line.clone().try_get_matches().unwrap_or_else(|error| flags::refuse(&error));
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| flags::refuse(&error));
    let log = logging::start(args.logging);
    // One provider for every TLS connection of the process; whoever was first is the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match args.command.run(log, line).await {
        Ok(code) => code,
        Err(error) if error.is::<output::OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            problem::log(&error);
            ExitCode::FAILURE
        }
    }
}
