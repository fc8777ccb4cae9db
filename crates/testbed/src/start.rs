//! Why a part did not start, or did not go on: what all parts of the bed have in common.
//!
//! In: the failures of what a part is made of. Out: one error. A part that has nothing else to say uses it as it is; an error of its own
//! has it as one of its variants, with a `From` for whatever turns into it.

use std::path::PathBuf;

use crate::report::debug_as_report;

/// The part is not available, failed to start, ended early or was late.
#[derive(thiserror::Error)]
pub enum StartError {
    /// A program is not there.
    #[error(transparent)]
    Part(#[from] parts::Missing),
    /// There is no private network.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// Its folder could not be made.
    #[error(transparent)]
    State(#[from] crate::state::Error),
    /// A process did not start, or died, or was late.
    #[error(transparent)]
    Process(#[from] crate::process::Error),
    /// Something did not happen in time.
    #[error(transparent)]
    Late(#[from] crate::Late),
    /// One of its files could not be written or read.
    #[error("cannot use the file {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
debug_as_report!(StartError);
