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
    #[error("{name} {} before {what}; the end of its log:\n{log}", super::describe(*.status))]
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
    #[error("waited {limit:?} for {what} of {name}; the end of its log:\n{log}")]
    Late {
        /// The process.
        name: String,
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
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
