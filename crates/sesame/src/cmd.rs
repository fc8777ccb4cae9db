//! The subcommands. Each has its flags and its `run`, and leaves the work to a library.

mod bootstrap;
mod certgen;
mod cli;
mod echo;
mod envoy;
mod lint;
mod rbac;
mod run;
pub mod serve;
mod supervised;
mod version;

use std::process::ExitCode;

use admin::LogFilter;
use anyhow::Result;
use clap::Subcommand;

/// What `sesame` can be told to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Bootstrap(bootstrap::Args),
    Certgen(certgen::Args),
    Cli(cli::Args),
    Echo(echo::Args),
    Envoy(envoy::Args),
    Lint(Box<lint::Args>),
    Rbac(rbac::Args),
    Run(run::Args),
    Serve(Box<serve::Args>),
    Supervised(supervised::Args),
    /// Print version information
    Version,
}

impl Command {
    /// Does it, and gives the exit code. What is logged can be changed by `log`.
    pub async fn run(self, log: LogFilter) -> Result<ExitCode> {
        let done = match self {
            Command::Bootstrap(args) => bootstrap::run(args),
            Command::Certgen(args) => certgen::run(args).await,
            Command::Cli(args) => cli::run(args).await,
            Command::Echo(args) => echo::run(args).await,
            Command::Envoy(args) => envoy::run(args).await,
            Command::Lint(args) => return Ok(lint::run(&args)),
            Command::Rbac(args) => rbac::run(args),
            Command::Run(args) => run::run(args).await,
            Command::Serve(args) => serve::run(*args, log).await,
            Command::Supervised(args) => supervised::run(args),
            Command::Version => version::run(),
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}
