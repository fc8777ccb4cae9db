//! A list: everything there is of a target, told as the difference to what was known.

use super::{Follower, Presence, Stop};
use crate::{
    Closed, Update,
    cluster::{
        api::Failure,
        head::{Head, Page},
    },
};
use std::time::Instant;
use tracing::debug;

impl Follower {
    /// Lists the target and tells what differs, all at once; gives the version to watch from.
    pub(super) async fn list(&mut self) -> Result<String, Stop> {
        let begun = Instant::now();
        let (mut update, mut notes) = (Update::default(), Vec::new());
        let mut next: Option<String> = None;
        self.known.begin();
        let version = loop {
            let body = self.api.list(&self.target, self.is_paged, next.as_deref()).await?;
            let page: Page<'_> = serde_json::from_slice(&body)
                .map_err(|error| Failure::Other(format!("the list is not one: {error}")))?;
            for item in page.items.into_iter().flatten() {
                self.see(&Head::of(item)?, item, &mut update, &mut notes);
            }
            if page.metadata.r#continue.is_empty() {
                break page.metadata.resource_version;
            }
            next = Some(page.metadata.r#continue);
        };
        self.well().await?;
        // Noted first: what the list holds must be known before what it does not hold is looked for.
        let told = notes.len();
        self.note(notes);
        for (names, was_faulty) in self.known.end() {
            self.tell_gone(names, was_faulty, &mut update);
        }
        debug!(target = %self.target, objects = self.known.len(), told, took = ?begun.elapsed(), "listed");
        self.presence = Presence::There;
        self.is_paged = true;
        self.failed_watches = 0;
        self.patience.reset();
        self.tell(update).await?;
        self.feeder.synced();
        Ok(version)
    }

    /// Tells that there is nothing.
    pub(super) async fn empty(&mut self) -> Result<(), Closed> {
        let mut update = Update::default();
        self.known.begin();
        for (names, was_faulty) in self.known.end() {
            self.tell_gone(names, was_faulty, &mut update);
        }
        self.tell(update).await?;
        self.feeder.synced();
        Ok(())
    }

    pub(super) async fn tell(&self, update: Update) -> Result<(), Closed> {
        match update == Update::default() {
            true => Ok(()),
            false => self.feeder.send(update).await,
        }
    }
}
