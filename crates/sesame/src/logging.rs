//! What is logged, and in which form.

use std::fmt::Debug;
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};

use admin::LogFilter;
use clap::ValueEnum;
use source::snippet::Style;
use tracing::field::{Field, Visit};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};
use tracing_subscriber::reload::Handle;

use crate::output;

/// Flags that every subcommand has.
#[derive(Debug, clap::Args)]
#[group(id = "logging")]
pub struct Args {
    /// Log level: off, error, warn, info, debug or trace; also per module, such as `info,echo=debug`
    #[arg(long, global = true, env = "SESAME_LOG", value_parser = checked, default_value = "info", value_name = "FILTER")]
    log: String,
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
    let filter = if args.debug { "debug" } else { &args.log };
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(without_library(filter)))
        .with_ansi(output::style(std::io::stderr().is_terminal()) == Style::Colour)
        .with_writer(std::io::stderr);
    match args.log_format {
        Format::Text => {
            let log = log.fmt_fields(TextFields).with_filter_reloading();
            let filter = changeable(log.reload_handle());
            log.init();
            filter
        }
        Format::Json => {
            // Flat, so that every line has `code` and `message` in one place, those of findings too; docs/operate.md lists the keys.
            let log = log.json().flatten_event(true).with_filter_reloading();
            let filter = changeable(log.reload_handle());
            log.init();
            filter
        }
    }
}

/// The fields of a line of text. The message begins with the error code, so `code` is left out; in JSON it is a key of its own.
struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> std::fmt::Result {
        let mut visitor = WithoutCode(DefaultVisitor::new(writer, true));
        fields.record(&mut visitor);
        visitor.0.finish()
    }
}

struct WithoutCode<'writer>(DefaultVisitor<'writer>);

impl Visit for WithoutCode<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != CODE {
            self.0.record_str(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.record_error(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != CODE {
            self.0.record_debug(field, value);
        }
    }
}

/// The field of the error code.
const CODE: &str = "code";

/// The module of the library that talks to the API server.
const LIBRARY: &str = "kube_client";

/// The filter, with the lines of the library off unless it names them: the library calls every failed connection an error, and whoever made the
/// request logs what comes of it.
fn without_library(filter: &str) -> String {
    if filter.contains(LIBRARY) { filter.to_owned() } else { format!("{LIBRARY}=off,{filter}") }
}

/// A filter that can be read.
fn checked(filter: &str) -> Result<String, String> {
    EnvFilter::try_new(filter).map(|_| filter.to_owned()).map_err(|error| error.to_string())
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
            let filter = EnvFilter::try_new(without_library(text)).map_err(|error| error.to_string())?;
            handle.reload(filter).map_err(|error| error.to_string())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::{Registry, reload};

    #[test]
    fn the_library_is_off_unless_the_filter_names_it() {
        assert_eq!(without_library("info"), "kube_client=off,info");
        assert_eq!(without_library("debug,xds=trace"), "kube_client=off,debug,xds=trace");
        assert_eq!(without_library("info,kube_client=debug"), "info,kube_client=debug");
    }

    #[test]
    fn a_filter_that_is_set_later_leaves_it_off_too() {
        let (_layer, handle) = reload::Layer::<EnvFilter, Registry>::new(EnvFilter::new("info"));
        let filter = changeable(handle);
        for (text, is_off) in [("debug", true), ("info,xds=debug", true), ("info,kube_client=debug", false)] {
            assert_eq!((filter.set)(text), Ok(()));
            let set = (filter.get)();
            assert_eq!(set.contains("kube_client=off"), is_off, "{text}: {set}");
        }
        assert!((filter.set)("info,xds=loud").is_err());
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_refused_on_the_command_line() {
        assert_eq!(checked("info,echo=debug").as_deref(), Ok("info,echo=debug"));
        assert!(checked("info,echo=loud").is_err());
    }
}
