//! A real Envoy: started from a bootstrap, asked through its admin interface, drained, stopped or killed.
//!
//! In: a bootstrap as JSON or YAML. Out: an [`Envoy`] that is ready for requests. Listeners take addresses from
//! [`Net`](crate::Net), so any number of Envoys run side by side with the ports they would have in earnest.
//!
//! ```no_run
//! # async fn test(bootstrap: serde_json::Value) -> anyhow::Result<()> {
//! use testbed::Envoy;
//!
//! let envoy = Envoy::start(bootstrap).await?;
//! assert_eq!(envoy.stat("cluster_manager.active_clusters").await?, Some(1));
//! # Ok(())
//! # }
//! ```

mod admin;
mod config;

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::time::Duration;

use crate::process::Process;
use crate::report::debug_as_report;
use crate::start::StartError;
use crate::state::StateDir;

pub use admin::Admin;
pub use config::{Bootstrap, Config};

/// How long a start may take: a tenth of a second on a quiet machine, and tests run on busy ones.
const START: Duration = Duration::from_secs(30);
/// How long a stop may take before it becomes a kill.
const GRACE: Duration = Duration::from_secs(5);

/// What Envoy warns of, and nothing is to be done about.
const KNOWN: [&str; 2] =
    ["marked as work-in-progress", "There is no configured limit to the number of allowed active downstream"];

/// A running Envoy.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    admin: Admin,
    state: StateDir,
}

impl Envoy {
    /// Starts one and waits until it is ready, which is when all that its bootstrap names has arrived.
    pub async fn start(bootstrap: impl Into<Bootstrap>) -> Result<Envoy, Error> {
        Config::new().start(bootstrap).await
    }

    /// What can be chosen.
    pub fn config() -> Config {
        Config::new()
    }

    /// Asks Envoy whether it would take this bootstrap; the error carries its answer.
    pub async fn validate(bootstrap: impl Into<Bootstrap>) -> Result<(), Error> {
        Config::new().validate(bootstrap).await
    }

    /// Waits until it is ready; for one that was [launched](Config::launch) before its configuration could be had.
    pub async fn ready(&self) -> Result<(), Error> {
        self.process.expect_ok("/ready to answer LIVE", START, async || self.admin.get("/ready").await).await?;
        Ok(())
    }

    /// Its admin interface.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    /// Its process: log, id, signals.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The folder of its files.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// What it warned of in its log, each once: all but that a matcher is marked as work in progress, of which whoever starts Envoy
    /// in earnest does not hear (`envoy::bootstrap::COMPONENT_LOG_LEVEL`), and that connections have no limit, which is for the
    /// operator to set (`sesame bootstrap --overload-downstream-max-conn`).
    pub fn warnings(&self) -> BTreeSet<String> {
        let text = self.process.log().text();
        let is_warning = |line: &&str| ["[warning]", "[error]", "[critical]"].iter().any(|level| line.contains(level));
        let lines = text.lines().filter(is_warning).filter(|line| !KNOWN.iter().any(|known| line.contains(known)));
        // Without the time and the thread.
        lines
            .map(|line| {
                line.split_once("][")
                    .and_then(|(_, rest)| rest.split_once("]["))
                    .map_or(line, |(_, rest)| rest)
                    .to_owned()
            })
            .collect()
    }

    /// Ends it as Kubernetes would (SIGTERM). Connections break: see [`drain`](Self::drain) for a gentle end.
    pub async fn stop(&self) -> Result<ExitStatus, Error> {
        Ok(self.process.stop(GRACE).await?)
    }

    /// Answers health checks with 503 from now on, and tells clients to go: connections are closed after their current
    /// request, over the drain time, and then the listeners close.
    pub async fn drain(&self) -> Result<(), Error> {
        self.post("/healthcheck/fail").await?;
        self.post("/drain_listeners?graceful").await?;
        Ok(())
    }

    /// How many connections clients have open.
    pub async fn connections(&self) -> Result<u64, Error> {
        let open = self.stats(r"^listener\..*\.downstream_cx_active$").await?;
        // One count per listener and one per worker of it; and the question itself, on the admin listener.
        let whole = |name: &str| !name.starts_with("listener.admin.") && !name.contains(".worker_");
        Ok(open.iter().filter(|(name, _)| whole(name)).map(|(_, count)| count).sum())
    }

    /// Drains it, waits until no connection is left or `limit` is over, and stops it.
    pub async fn shut_down(&self, limit: Duration) -> Result<ExitStatus, Error> {
        self.drain().await?;
        let idle = async || match self.connections().await {
            Ok(0) => Ok(()),
            Ok(open) => Err(format!("{open} connections")),
            Err(error) => Err(error.to_string()),
        };
        // Those who stay to the end are cut off, as in a cluster.
        let _ = crate::eventually("all connections to be gone", limit, idle).await;
        self.stop().await
    }

    /// Kills it.
    pub async fn kill(&self) -> Result<ExitStatus, Error> {
        Ok(self.process.kill().await?)
    }
}

/// A running Envoy is asked as its admin interface is.
impl std::ops::Deref for Envoy {
    type Target = Admin;

    fn deref(&self) -> &Admin {
        &self.admin
    }
}

/// The Envoy is not available, or failed to do as told.
#[derive(thiserror::Error)]
pub enum Error {
    /// It did not start, or did not go on.
    #[error(transparent)]
    Start(StartError),
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

impl<E: Into<StartError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Start(error.into())
    }
}
