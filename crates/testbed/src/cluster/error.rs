//! What can go wrong with a cluster.

use std::path::PathBuf;
use std::process::ExitStatus;

use crate::report::debug_as_report;
use crate::start::StartError;

/// The cluster is not available, or failed to do as told.
#[derive(thiserror::Error)]
pub enum Error {
    /// Nodes cannot be made by this user.
    #[error(
        "a cluster needs root: its nodes mount file systems and make control groups (or name one with SESAME_KUBECONFIG)"
    )]
    NeedsRoot,
    /// The process has all the clusters that there are addresses for.
    #[error("this process has {0} clusters already; stop one")]
    Full(u8),
    /// Only a cluster of the testbed can do this.
    #[error("{0} can only be done with the testbed's own cluster, and SESAME_KUBECONFIG names another")]
    BedOnly(&'static str),
    /// One of its processes did not start, or did not go on.
    #[error(transparent)]
    Start(StartError),
    /// Its API server is not available, or rejected a request.
    #[error(transparent)]
    ApiServer(#[from] crate::apiserver::Error),
    /// An image could not be made.
    #[error(transparent)]
    Image(#[from] crate::image::ImageError),
    /// The kubeconfig is of no use.
    #[error("cannot use the kubeconfig {}", path.display())]
    Kubeconfig {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// The API server refused, or did not answer.
    #[error("the API server did not do it")]
    Api(#[from] kube::Error),
    /// A command failed.
    #[error("{name} failed ({status}); the end of its log:\n{log}")]
    Command {
        /// Which one.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        log: String,
    },
    /// A file could not be made.
    #[error("cannot make {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The kernel's control groups refused.
    #[error("cannot {verb} the control group {}", path.display())]
    Cgroup {
        /// What was tried.
        verb: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The system refused a thread or a process.
    #[error("cannot start {what}")]
    Spawn {
        /// What.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
}
debug_as_report!(Error);

impl<E: Into<StartError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Start(error.into())
    }
}
