//! What is logged, and in which form.

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};

use admin::LogFilter;
use clap::ValueEnum;
use source::snippet::Style;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;

use crate::output;

/// Flags that every subcommand has.
#[derive(Debug, clap::Args)]
#[group(id = "logging")]
pub struct Args {
    /// Log level: off, error, warn, info, debug or trace; also per module, such as `info,echo=debug`
    // The library of the API server calls every failed connection an error; what comes of it is said by those who ask.
    #[arg(long, global = true, env = "SESAME_LOG", default_value = "info,kube_client=off", value_name = "FILTER")]
    log: EnvFilter,
    /// Log format
    #[arg(long, global = true, env = "SESAME_LOG_FORMAT", value_enum, default_value = "text", value_name = "FORMAT")]
    log_format: Format,
    /// Short for --log debug
    #[arg(long, short = 'd', global = true)]
    debug: bool,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

/// Sets up the log of the process, on standard error; gives the way to change what is logged.
pub fn start(args: Args) -> LogFilter {
    // Set once, at the beginning of the process.
    let _ = JSON.set(args.log_format == Format::Json);
    let filter = if args.debug { EnvFilter::new("debug") } else { args.log };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(output::style(std::io::stderr().is_terminal()) == Style::Colour)
        .with_writer(std::io::stderr);
    match args.log_format {
        Format::Text => {
            let log = log.with_filter_reloading();
            let filter = changeable(log.reload_handle());
            log.init();
            filter
        }
        Format::Json => {
            let log = log.json().with_filter_reloading();
            let filter = changeable(log.reload_handle());
            log.init();
            filter
        }
    }
}

static JSON: OnceLock<bool> = OnceLock::new();

/// Whether everything on standard error is JSON.
pub fn is_json() -> bool {
    JSON.get().copied().unwrap_or_default()
}

fn changeable<S: 'static>(handle: Handle<EnvFilter, S>) -> LogFilter {
    let reading = handle.clone();
    LogFilter {
        get: Arc::new(move || reading.with_current(ToString::to_string).unwrap_or_default()),
        set: Arc::new(move |text| {
            let filter = EnvFilter::try_new(text).map_err(|error| error.to_string())?;
            handle.reload(filter).map_err(|error| error.to_string())
        }),
    }
}
