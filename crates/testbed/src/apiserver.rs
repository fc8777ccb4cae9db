//! A real API server: etcd and kube-apiserver, with RBAC on and nothing in it.
//!
//! In: a [`Config`], or nothing for the usual one. Out: an [`ApiServer`] that hands out clients and kubeconfigs, takes
//! CRDs, and can be stopped, killed and restarted on the same data and address for outage tests.
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use testbed::ApiServer;
//!
//! let api = ApiServer::shared().await?; // one per test process; ApiServer::start() for a private one
//! let namespace = api.namespace("routes").await?;
//! let client = api.client()?;
//! # Ok(())
//! # }
//! ```

mod access;
pub(crate) mod apply;
mod audit;
mod config;
mod front;
mod serve;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::process::Process;
use crate::report::debug_as_report;
use crate::start::StartError;
use crate::state::StateDir;

pub use access::User;
pub use audit::AuditEntry;
pub use config::Config;
pub use front::{Fate, Front};
pub use serve::Controllers;

/// How long a start may take: about 3 s on a quiet machine, and tests run on busy ones.
const START: Duration = Duration::from_secs(60);
/// How long a stop may take before it becomes a kill.
const GRACE: Duration = Duration::from_secs(15);

/// A running API server with its etcd.
#[derive(Debug)]
pub struct ApiServer {
    config: Config,
    address: SocketAddr,
    pki: access::Pki,
    /// Dropped first to last: the API server before the etcd it writes to, the folder at the end.
    controllers: Mutex<Option<Process>>,
    server: Mutex<Option<Arc<Process>>>,
    etcd: serve::Etcd,
    state: StateDir,
}

impl ApiServer {
    /// The API server of this test process, started by the first test that asks. For tests that need no more than a
    /// [namespace](Self::namespace) of their own and leave the server as it is.
    pub async fn shared() -> Result<&'static ApiServer, Error> {
        static SHARED: OnceCell<ApiServer> = OnceCell::const_new();
        SHARED.get_or_try_init(ApiServer::start).await
    }

    /// A private one, for tests that stop it or that need the whole cluster for themselves.
    pub async fn start() -> Result<ApiServer, Error> {
        Config::new().start().await
    }

    /// What can be chosen.
    pub fn config() -> Config {
        Config::new()
    }

    /// Where it listens; the same after a restart.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The folder of its files.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// The CA that signed its certificate, as PEM.
    pub fn ca_pem(&self) -> &str {
        self.pki.ca_pem()
    }

    /// The file of that CA.
    pub fn ca_file(&self) -> PathBuf {
        self.state.path().join(access::CA_FILE)
    }

    /// The key that signs the tokens of service accounts.
    pub fn service_account_key_file(&self) -> PathBuf {
        self.state.path().join(access::SERVICE_ACCOUNT_KEY_FILE)
    }

    /// Etcd, for tests that want to hurt it.
    pub fn etcd(&self) -> &Process {
        self.etcd.process()
    }

    /// A new namespace whose name begins with `name`; gives the full name.
    pub async fn namespace(&self, name: &str) -> Result<String, Error> {
        let metadata = ObjectMeta { generate_name: Some(format!("{name}-")), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::<Namespace>::all(self.client()?).create(&PostParams::default(), &namespace).await?;
        made.metadata.name.ok_or(Error::NoName)
    }

    /// Stops the API server in good order; etcd keeps running. Clients see their watches end and then no server.
    pub async fn stop(&self) -> Result<(), Error> {
        let server = self.server.lock().take();
        if let Some(server) = server {
            server.stop(GRACE).await?;
        }
        Ok(())
    }

    /// Kills the API server: connections break in the middle of what they were doing.
    pub async fn kill(&self) -> Result<(), Error> {
        let server = self.server.lock().take();
        if let Some(server) = server {
            server.kill().await?;
        }
        Ok(())
    }

    /// Starts it again on the same data and address, after stopping it if it runs.
    pub async fn restart(&self) -> Result<(), Error> {
        self.stop().await?;
        let server = Arc::new(serve::start(&self.config, self.address, &self.state)?);
        *self.server.lock() = Some(server.clone());
        self.until_ready(&server).await
    }

    /// Whether the API server's process runs.
    pub fn is_running(&self) -> bool {
        self.server.lock().as_ref().is_some_and(|server| server.is_running())
    }

    /// Applies the objects of YAML files (or of all files in a folder), and waits until the CRDs among them can be used.
    pub async fn install(&self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<(), Error> {
        let objects = apply::read(paths)?;
        apply::apply(self.client()?, objects).await
    }

    /// Applies the objects of a YAML text, and waits until the CRDs among them can be used.
    pub async fn apply(&self, yaml: &str) -> Result<(), Error> {
        apply::apply(self.client()?, apply::parse(yaml, "the given text")?).await
    }
}

/// The API server is not available, or failed to do as told.
#[derive(thiserror::Error)]
pub enum Error {
    /// It did not start, or did not go on.
    #[error(transparent)]
    Start(StartError),
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
    /// The proxy in front of it has no socket.
    #[error("nothing can listen at {address}")]
    Front {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why it cannot.
        source: std::io::Error,
    },
    /// The server made an object without a name.
    #[error("the API server gave the object no name")]
    NoName,
    /// Nobody of that name was declared when the server was configured.
    #[error("no user {0}: declare it with Config::user before the start")]
    NoUser(String),
}
debug_as_report!(Error);

impl<E: Into<StartError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Start(error.into())
    }
}
