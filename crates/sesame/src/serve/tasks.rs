//! Supervises the tasks of a server.
//!
//! No task ends by itself. If one does, or panics, the server exits with the name of the task: a server without it would look
//! healthy and do only part of its work. On shutdown all tasks are asked to stop and given time to finish.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use futures::FutureExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Grace period of a shutdown: streams are closed, requests are finished, the lease is released.
const GRACE: Duration = Duration::from_secs(15);

/// Tasks with names.
pub struct Tasks {
    running: JoinSet<(&'static str, Result<()>)>,
    stop: CancellationToken,
}

impl Tasks {
    /// No tasks yet; `stop` asks all of them to stop.
    pub fn new(stop: CancellationToken) -> Self {
        Self { running: JoinSet::new(), stop }
    }

    /// Starts a task that is dropped on shutdown.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = Result<()>> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn_ending(name, async move { stop.run_until_cancelled_owned(task).await.unwrap_or(Ok(())) });
    }

    /// Starts a task that ends by itself on shutdown; the server waits for it.
    pub fn spawn_ending(&mut self, name: &'static str, task: impl Future<Output = Result<()>> + Send + 'static) {
        let stop = self.stop.clone();
        self.running.spawn(async move {
            let caught = AssertUnwindSafe(task).catch_unwind().await;
            let ended = caught.unwrap_or_else(|_| Err(anyhow!("{name} panicked; see the log for the location")));
            if stop.is_cancelled() || ended.is_err() { (name, ended) } else { (name, Err(anyhow!("{name} ended"))) }
        });
    }

    /// Runs until `signal`, or until a task fails; then stops all of them.
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
            Some(Err(error)) => bail!("a task was aborted: {error}"),
            None => bail!("no tasks were started"),
        }
    }
}
