//! Hooks of Envoy containers that wait until their Envoy is drained.
//!
//! In: the file that says so. Out: an answer for each hook. The file is looked for in one place however many wait, and what an Envoy
//! still has open is logged meanwhile: what a hook in a container writes is seen by nobody.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{PROGRESS, Progress, count_open, undrain};

/// How often the file is looked for. A hook of another container writes it: there is nothing else to wait for.
const LOOK: Duration = Duration::from_millis(200);
/// How often an Envoy that does not answer is asked whether it is draining.
const RETRY: Duration = Duration::from_secs(1);

/// The hooks that wait. Clones are handles of the same.
#[derive(Clone)]
pub struct Hooks {
    file: Arc<Path>,
    admin: Arc<Path>,
    /// Whether the file is there. Whoever waits has a receiver, and nobody else.
    drained: Arc<watch::Sender<bool>>,
}

impl Hooks {
    /// Nobody waits yet. A file that is there is of a container that ran here before, and is removed.
    ///
    /// # Errors
    /// That the file cannot be removed.
    pub fn new(file: PathBuf, admin: PathBuf) -> Result<Self> {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", file.display()));
            }
            _ => {}
        }
        Ok(Self { file: file.into(), admin: admin.into(), drained: Arc::new(watch::Sender::new(false)) })
    }

    /// Whether somebody waits.
    pub fn any(&self) -> bool {
        self.drained.receiver_count() > 0
    }

    /// Whether Envoy may end. The file may be newer than the last look for it.
    pub fn is_drained(&self) -> bool {
        *self.drained.borrow() || self.file.exists()
    }

    /// Waits until Envoy may end.
    pub async fn drained(self) {
        let mut drained = self.drained.subscribe();
        // The sender is ours.
        let _ = drained.wait_for(|is_drained| *is_drained).await;
    }

    /// Looks for the file; logs what Envoy has open while somebody waits.
    pub async fn follow(self) {
        let (mut progress, mut asked) = (Progress::default(), None::<Instant>);
        while !self.file.exists() {
            sleep(LOOK).await;
            if !self.any() {
                asked = None;
                continue;
            }
            if asked.is_none() {
                info!("Envoy is shutting down; waiting until it is drained");
            }
            if asked.is_none_or(|at| at.elapsed() >= PROGRESS / 2) {
                asked = Some(Instant::now());
                match count_open(&self.admin).await {
                    Ok(open) => progress.log(open, None),
                    Err(error) => warn!("cannot count the connections of Envoy: {error:#}"),
                }
            }
        }
        if self.any() {
            info!("draining is done or has timed out; Envoy may exit");
        }
        self.drained.send_replace(true);
    }

    /// Ends the drain of an Envoy that has outlived a container like this: the hook that drains also runs where the container is
    /// restarted alone, and no container is restarted in a pod that ends.
    pub async fn undrain(self) {
        loop {
            match undrain(&self.admin).await {
                Ok(true) => {
                    return warn!("Envoy was still draining, but its pod is not terminating; made it ready again");
                }
                Ok(false) => return,
                Err(error) => warn!("cannot ask Envoy whether it is draining: {error:#}"),
            }
            sleep(RETRY).await;
            if self.any() {
                return;
            }
        }
    }
}
