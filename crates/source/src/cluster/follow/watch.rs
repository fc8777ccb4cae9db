//! A watch: every change of a target from a version on.

use super::{Follower, Stop};
use crate::{
    Update,
    cluster::{
        api::Failure,
        head::{Event, Head, Status},
    },
};
use http::StatusCode;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tracing::{debug, trace};

/// A watch that ended sooner, with nothing in it, was no watch.
const WORTH_IT: Duration = Duration::from_secs(5);

impl Follower {
    /// Watches from a version on, and keeps that version up to date. Ends without an error when it may go on at once.
    pub(super) async fn watch(&mut self, version: &mut String) -> Result<(), Stop> {
        let begun = Instant::now();
        let mut is_silent = true;
        let mut lines = self.api.watch(&self.target, version).await?;
        self.well().await?;
        self.failed_watches = 0;
        trace!(target = %self.target, version, "watching");
        loop {
            let next = tokio::select! {
                next = timeout(self.api.timing.silence, lines.next()) => next,
                () = self.feeder.closed() => return Err(Stop::Closed),
            };
            let Ok(next) = next else {
                debug!(target = %self.target, "the watch has been silent for too long");
                return Ok(());
            };
            let Some(lines) = next.map_err(Failure::Link)? else {
                debug!(target = %self.target, lasted = ?begun.elapsed(), "the watch ended");
                let is_worth_it = !is_silent || begun.elapsed() >= WORTH_IT;
                return if is_worth_it { Ok(()) } else { Err(Failure::Ended.into()) };
            };
            is_silent = false;
            self.patience.reset();
            let mut update = Update::default();
            let mut ended = Ok(());
            for line in lines {
                ended = self.event(&line, version, &mut update);
                if ended.is_err() {
                    break;
                }
            }
            self.tell(update).await?;
            ended?;
        }
    }

    fn event(&mut self, line: &[u8], version: &mut String, update: &mut Update) -> Result<(), Failure> {
        if line.is_empty() {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_slice(line)
            .map_err(|error| Failure::Other(format!("an event cannot be read: {error}")))?;
        if event.kind == "ERROR" {
            let Status { message, code } = serde_json::from_str(event.object.get()).unwrap_or_default();
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Err(Failure::of(code, message, None));
        }
        let head = Head::of(event.object)?;
        match &*event.kind {
            "ADDED" | "MODIFIED" => {
                let mut notes = Vec::new();
                self.see(&head, event.object, update, &mut notes);
                self.note(notes);
            }
            "DELETED" => self.lose(&head.metadata, update),
            // A bookmark says nothing but the version.
            _ => {}
        }
        if !head.metadata.resource_version.is_empty() {
            *version = head.metadata.resource_version.into_owned();
        }
        Ok(())
    }
}
