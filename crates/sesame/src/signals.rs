//! The signals that end a program which serves.

use std::future::Future;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM or Ctrl-C. From now on they no longer kill.
pub fn stop() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
