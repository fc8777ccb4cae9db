//! The subcommands. Each has its flags and its `run`, and leaves the work to a library.

mod bootstrap;
mod bug_report;
mod certgen;
mod certs;
mod cli;
mod completion;
mod dump;
mod echo;
mod envoy;
mod lint;
mod log;
mod precheck;
mod rbac;
mod run;
pub mod serve;
mod status;
mod supervised;
mod verdicts;
mod version;

use std::process::ExitCode;

use admin::LogFilter;
use anyhow::Result;
use clap::Subcommand;

/// The commands for those who look at a running installation: all that there are under the name `kubectl-sesame`.
pub const OPERATE: [&str; 11] =
    ["bug-report", "certs", "completion", "dump", "help", "lint", "log", "precheck", "status", "verdicts", "version"];

/// What `sesame` can be told to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Bootstrap(bootstrap::Args),
    BugReport(Box<bug_report::Args>),
    Certgen(certgen::Args),
    Certs(Box<certs::Args>),
    Cli(cli::Args),
    Completion(completion::Args),
    Dump(Box<dump::Args>),
    Echo(echo::Args),
    Envoy(envoy::Args),
    Lint(Box<lint::Args>),
    Log(Box<log::Args>),
    Precheck(precheck::Args),
    Rbac(rbac::Args),
    Run(run::Args),
    Serve(Box<serve::Args>),
    Status(Box<status::Args>),
    Supervised(supervised::Args),
    Verdicts(Box<verdicts::Args>),
    /// Print version information
    Version,
}

impl Command {
    /// Does it, and gives the exit code. What is logged can be changed by `log`; `line` is the command line that this is one of.
    pub async fn run(self, log: LogFilter, line: clap::Command) -> Result<ExitCode> {
        let done = match self {
            Command::Bootstrap(args) => bootstrap::run(args),
            Command::BugReport(args) => return Ok(bug_report::run(*args).await),
            Command::Certs(args) => return Ok(certs::run(*args).await),
            Command::Completion(args) => completion::run(&args, line),
            Command::Dump(args) => return Ok(dump::run(*args).await),
            Command::Log(args) => return Ok(log::run(*args).await),
            Command::Precheck(args) => return Ok(precheck::run(args).await),
            Command::Status(args) => return Ok(status::run(*args).await),
            Command::Verdicts(args) => return Ok(verdicts::run(*args).await),
            Command::Certgen(args) => certgen::run(args).await,
            Command::Cli(args) => cli::run(args).await,
            Command::Echo(args) => echo::run(args).await,
            Command::Envoy(args) => envoy::run(args).await,
            Command::Lint(args) => return Ok(lint::run(&args)),
            Command::Rbac(args) => rbac::run(args),
            Command::Run(args) => run::run(args, log).await,
            Command::Serve(args) => serve::run(*args, log).await,
            Command::Supervised(args) => supervised::run(args),
            Command::Version => version::run(),
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}
