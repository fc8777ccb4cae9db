//! What is logged, and in which form.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// Flags that every subcommand has.
#[derive(Debug, clap::Args)]
#[group(id = "logging")]
pub struct Args {
    /// What to log: off, error, warn, info, debug or trace, also per module (`info,echo=debug`)
    #[arg(long, global = true, env = "SESAME_LOG", default_value = "info", value_name = "FILTER")]
    log: EnvFilter,
    /// How to log it
    #[arg(long, global = true, env = "SESAME_LOG_FORMAT", value_enum, default_value = "text", value_name = "FORMAT")]
    log_format: Format,
    /// Log everything down to debug; short for --log debug
    #[arg(long, short = 'd', global = true)]
    debug: bool,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For machines: one JSON object a line
    Json,
}

/// Sets up the log of the process, on standard error.
pub fn start(args: Args) {
    let filter = if args.debug { EnvFilter::new("debug") } else { args.log };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match args.log_format {
        Format::Text => log.init(),
        Format::Json => log.json().init(),
    }
}
