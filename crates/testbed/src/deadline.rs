//! Waiting with a limit, and an error that says what was waited for.
//!
//! In: a future, or a probe to repeat where nothing announces the event. Out: its value, or [`Late`] with the words of
//! the caller and the last thing seen.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use crate::report::debug_as_report;

/// How long a probe rests before it looks again: short beside anything a test waits for, long beside a system call.
pub(crate) const REST: Duration = Duration::from_millis(10);

/// Something did not happen in time.
#[derive(thiserror::Error)]
#[error("waited {limit:?} for {what}{}", .last.as_ref().map(|last| format!("; last seen: {last}")).unwrap_or_default())]
pub struct Late {
    /// What was waited for.
    pub what: String,
    /// For how long.
    pub limit: Duration,
    /// What the last look showed, if there was one.
    pub last: Option<String>,
}
debug_as_report!(Late);

/// Waits for a future, at most `limit`.
pub async fn within<T>(what: impl Display, limit: Duration, event: impl Future<Output = T>) -> Result<T, Late> {
    let late = || Late { what: what.to_string(), limit, last: None };
    tokio::time::timeout(limit, event).await.map_err(|_| late())
}

/// Repeats a probe until it succeeds, at most `limit`. Use it where there is no event to wait for.
pub async fn eventually<T, E: Display>(
    what: impl Display,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, Late> {
    let mut last = None;
    let tries = async {
        loop {
            match probe().await {
                Ok(value) => return value,
                Err(error) => last = Some(error.to_string()),
            }
            tokio::time::sleep(REST).await;
        }
    };
    match tokio::time::timeout(limit, tries).await {
        Ok(value) => Ok(value),
        Err(_) => Err(Late { what: what.to_string(), limit, last }),
    }
}
