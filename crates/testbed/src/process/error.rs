//! What can go wrong with a process, told with the end of its log.

use std::process::ExitStatus;
use std::time::Duration;

use crate::report::debug_as_report;

/// A process that did not do what the test waited for.
#[derive(thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot start {name}")]
    Start {
        /// The process.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended while something was expected of it.
    #[error("{name} {} while the test waited for {what}; the end of its log:\n{log}", super::describe(*.status))]
    Exited {
        /// The process.
        name: String,
        /// What was waited for.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// It runs, but did not get there in time.
    #[error("waited {limit:?} for {what} of {name}{}; the end of its log:\n{log}", last_seen(.last))]
    Late {
        /// The process.
        name: String,
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// What the last look showed, if anything was looked at.
        last: Option<String>,
        /// The last lines of its log.
        log: String,
    },
    /// The system refused.
    #[error("cannot {verb} {name}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// The process.
        name: String,
        /// Why.
        source: std::io::Error,
    },
}
debug_as_report!(Error);

fn last_seen(last: &Option<String>) -> String {
    last.as_ref().map(|last| format!("; last seen: {last}")).unwrap_or_default()
}
