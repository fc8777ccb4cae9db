//! What can go wrong with an Envoy.

use crate::report::debug_as_report;

/// The Envoy could not be had or did not do as told.
#[derive(thiserror::Error)]
pub enum Error {
    /// The program is not there.
    #[error(transparent)]
    Part(#[from] parts::Missing),
    /// There is no private network.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// Its folder could not be made.
    #[error(transparent)]
    State(#[from] crate::state::Error),
    /// It did not start, or died, or was late.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// Something did not happen in time.
    #[error(transparent)]
    Late(#[from] crate::Late),
    /// The bootstrap is not YAML, or no bootstrap.
    #[error("this is no bootstrap: {0}")]
    Bootstrap(String),
    /// Envoy would not take the bootstrap.
    #[error("Envoy refuses the bootstrap:\n{0}")]
    Refused(String),
    /// The admin interface does not answer.
    #[error("no answer from the admin interface to {path}")]
    Admin {
        /// What was asked.
        path: String,
        /// Why.
        source: crate::http::Error,
    },
    /// The admin interface answers, but with an error.
    #[error("the admin interface answers {path} with {status}: {body}")]
    Status {
        /// What was asked.
        path: String,
        /// The status.
        status: http::StatusCode,
        /// The body.
        body: String,
    },
    /// The answer is not what was asked for.
    #[error("cannot read the answer to {path}: {reason}")]
    Answer {
        /// What was asked.
        path: String,
        /// Why.
        reason: String,
    },
}
debug_as_report!(Error);
