//! What can go wrong with an API server.

use std::path::PathBuf;

use crate::report::debug_as_report;

/// The API server could not be had or did not do as told.
#[derive(thiserror::Error)]
pub enum Error {
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
    /// No certificate could be made.
    #[error("cannot make the certificates")]
    Certificate(#[from] rcgen::Error),
    /// The kubeconfig is of no use.
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The API server refused, or did not answer.
    #[error("the API server did not do it")]
    Api(#[from] kube::Error),
    /// One object of several was refused.
    #[error("cannot apply {object}")]
    Apply {
        /// Which one.
        object: String,
        /// Why.
        source: kube::Error,
    },
    /// A CRD did not come into use.
    #[error("the CRD {name} did not become established")]
    NotEstablished {
        /// Which one.
        name: String,
        /// Why.
        source: kube::runtime::wait::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A text is not YAML of Kubernetes objects.
    #[error("no Kubernetes objects in {place}: {reason}")]
    Yaml {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// The server made an object without a name.
    #[error("the API server gave the object no name")]
    NoName,
    /// Nobody of that name was declared when the server was configured.
    #[error("no user {0}: declare it with Config::user before the start")]
    NoUser(String),
}
debug_as_report!(Error);
