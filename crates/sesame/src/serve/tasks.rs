//! The tasks of a server under one roof.
//!
//! None of them ends by itself. One that does, or that panics, ends the server with its name: half a server would look
//! alive and lose what the other half did. When the server is told to stop, all are told, and given time to end well.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use futures::FutureExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How long tasks may take to end: streams are told to go elsewhere, requests are finished, the lease is handed back.
const GRACE: Duration = Duration::from_secs(15);

/// Tasks with names.
pub struct Tasks {
    running: JoinSet<(&'static str, Result<()>)>,
    stop: CancellationToken,
}

impl Tasks {
    /// None yet; all will be told to stop by `stop`.
    pub fn new(stop: CancellationToken) -> Self {
        Self { running: JoinSet::new(), stop }
    }

    /// Starts a task that has no end of its own: it is dropped when the server is told to stop.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = Result<()>> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn_ending(name, async move { stop.run_until_cancelled_owned(task).await.unwrap_or(Ok(())) });
    }

    /// Starts a task that ends by itself when it is told to stop, and is waited for.
    pub fn spawn_ending(&mut self, name: &'static str, task: impl Future<Output = Result<()>> + Send + 'static) {
        let stop = self.stop.clone();
        self.running.spawn(async move {
            let caught = AssertUnwindSafe(task).catch_unwind().await;
            let ended = caught.unwrap_or_else(|_| Err(anyhow!("{name} panicked; the log has the place")));
            if stop.is_cancelled() || ended.is_err() { (name, ended) } else { (name, Err(anyhow!("{name} ended"))) }
        });
    }

    /// Runs until `signal`, or until one of the tasks has failed; then ends them all.
    pub async fn run(mut self, signal: impl Future<Output = ()>) -> Result<()> {
        let outcome = tokio::select! {
            () = signal => Ok(()),
            failed = self.failure() => failed,
        };
        info!("stopping");
        self.stop.cancel();
        let rest = async {
            let mut outcome = Ok(());
            while let Some(ended) = self.running.join_next().await {
                if let Ok((_, ended @ Err(_))) = ended {
                    outcome = ended;
                }
            }
            outcome
        };
        match tokio::time::timeout(GRACE, rest).await {
            Ok(ended) => outcome.and(ended),
            Err(_) => {
                warn!("some tasks have not ended after {} s", GRACE.as_secs());
                outcome
            }
        }
    }

    async fn failure(&mut self) -> Result<()> {
        match self.running.join_next().await {
            Some(Ok((_, failed))) => failed,
            Some(Err(error)) => bail!("a task was lost: {error}"),
            None => bail!("there is nothing to do"),
        }
    }
}
