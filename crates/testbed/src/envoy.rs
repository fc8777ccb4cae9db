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
mod bootstrap;
mod config;
mod drain;
mod error;

use std::process::ExitStatus;
use std::time::Duration;

use crate::process::Process;
use crate::state::StateDir;

pub use admin::Admin;
pub use bootstrap::Bootstrap;
pub use config::Config;
pub use error::Error;

/// How long a start may take: a tenth of a second on a quiet machine, and tests run on busy ones.
const START: Duration = Duration::from_secs(30);
/// How long a stop may take before it becomes a kill.
const GRACE: Duration = Duration::from_secs(5);

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

    /// Ends it as Kubernetes would (SIGTERM). Connections break: see [`drain`](Self::drain) for a gentle end.
    pub async fn stop(&self) -> Result<ExitStatus, Error> {
        Ok(self.process.stop(GRACE).await?)
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
