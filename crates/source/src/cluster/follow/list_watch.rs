//! A list and a watch: everything there is of a target, told as the difference to what was known, and then every
//! change of it as it comes.

use super::{
    Follower, Presence, Stop,
    large::{self, LargeEvents, Read, Turn},
};
use crate::{
    Closed, Update,
    cluster::{
        api::Failure,
        known::Names,
        target::Content,
        wire::{Event, Head, HeadMeta, Opening, Page, PageMeta, Status},
    },
};
use bytes::Bytes;
use http::StatusCode;
use std::time::{Duration, Instant};
use tokio::{
    task::{JoinSet, yield_now},
    time::timeout,
};
use tracing::{debug, trace};

impl Follower {
    /// Lists the target and tells what differs, all at once; gives the version to watch from.
    pub(super) async fn list(&mut self) -> Result<String, Stop> {
        let begun = Instant::now();
        let (mut update, mut notes) = (Update::default(), Vec::new());
        self.known.begin();
        let mut body = self.api.list(&self.target, self.is_paged, None).await?;
        let version = loop {
            let page: Page<'_> = serde_json::from_slice(&body)
                .map_err(|error| Failure::Other(format!("the list is not one: {error}")))?;
            let PageMeta { resource_version, r#continue } = page.metadata;
            let mut next = self.request_page(r#continue).await;
            for item in page.items.into_iter().flatten() {
                self.see(&Head::of(item)?, item, &mut update, &mut notes);
            }
            match next.join_next().await {
                Some(read) => body = read.map_err(|error| Failure::Other(error.to_string()))??,
                None => break resource_version,
            }
        };
        self.reached().await?;
        self.api.connection.connection.saw_event(self.target.kind);
        if !self.failed_in_stream {
            self.well().await?;
        }
        // Noted first: what the list holds must be known before what it does not hold is looked for.
        let noted = notes.len();
        self.note(notes);
        for (names, was_faulty) in self.known.end() {
            self.push_gone(names, was_faulty, &mut update);
        }
        debug!(resource = %self.target, objects = self.known.len(), noted, took = ?begun.elapsed(), "listed");
        self.presence = Presence::There;
        self.unserved_since = None;
        self.api.versions.found(self.target.kind, self.target.version);
        self.is_paged = true;
        if self.failed_watches == 0 {
            self.backoff.reset();
        }
        if std::mem::take(&mut self.was_silent) {
            self.stalled(noted > 0 || update != Update::default()).await?;
        }
        self.send(update).await?;
        self.api.connection.connection.listed(&self.target.to_string());
        self.feeder.synced();
        Ok(version)
    }

    /// Requests the page that begins there, if one follows, so that the API server and the network work on it while the one before is
    /// decoded. There is never more than one: a list takes the memory of two pages besides its objects. Dropped, it is cancelled.
    async fn request_page(&self, token: String) -> JoinSet<Result<Bytes, Failure>> {
        let mut request = JoinSet::new();
        if !token.is_empty() {
            let (api, target, is_paged) = (self.api.clone(), self.target.clone(), self.is_paged);
            request.spawn(async move { api.list(&target, is_paged, Some(&token)).await });
            // It may have been given to this thread, which is about to decode: it is sent first.
            yield_now().await;
        }
        request
    }

    /// Tells that there is nothing.
    pub(super) async fn empty(&mut self) -> Result<(), Closed> {
        let mut update = Update::default();
        self.known.begin();
        for (names, was_faulty) in self.known.end() {
            self.push_gone(names, was_faulty, &mut update);
        }
        self.send(update).await?;
        self.api.connection.connection.listed(&self.target.to_string());
        self.feeder.synced();
        Ok(())
    }

    pub(super) async fn send(&self, update: Update) -> Result<(), Closed> {
        match update == Update::default() {
            true => Ok(()),
            false => self.feeder.send(update).await,
        }
    }
}

/// A watch that ended sooner, with nothing in it, was no watch; and one that failed sooner, after others that failed, proves
/// nothing, whatever it brought.
const WORTH_IT: Duration = Duration::from_secs(5);

impl Follower {
    /// Watches from a version on, and keeps that version up to date. Ends without an error when it may go on at once.
    pub(super) async fn watch(&mut self, version: &mut String) -> Result<(), Stop> {
        let begun = Instant::now();
        let mut is_silent = true;
        let mut lines = self.api.watch(&self.target, version).await?;
        self.reached().await?;
        if !self.failed_in_stream {
            self.well().await?;
        }
        let mut is_proven = self.failed_watches == 0;
        trace!(resource = %self.target, version, "watching");
        let mut large = LargeEvents::default();
        loop {
            let next = tokio::select! {
                biased;
                read = large.next() => {
                    self.send_large(read, &mut large).await?;
                    continue;
                }
                next = timeout(self.api.timing.silence, lines.next()) => next,
                () = tokio::time::sleep_until((begun + WORTH_IT).into()), if !is_proven => {
                    is_proven = true;
                    self.failed_watches = 0;
                    self.failed_in_stream = false;
                    self.backoff.reset();
                    self.well().await?;
                    continue;
                }
                () = self.feeder.closed() => return Err(Stop::Closed),
            };
            let Ok(next) = next else {
                self.send_all(&mut large).await?;
                return Err(Failure::Silent.into());
            };
            let Some(lines) = self.or_send_all(next.map_err(Failure::Unreachable), &mut large).await? else {
                self.send_all(&mut large).await?;
                debug!(resource = %self.target, lasted = ?begun.elapsed(), "the watch ended");
                let is_worth_it = !is_silent || begun.elapsed() >= WORTH_IT;
                return if is_worth_it { Ok(()) } else { Err(Failure::Ended.into()) };
            };
            is_silent = false;
            self.stalled(false).await?;
            self.api.connection.connection.saw_event(self.target.kind);
            if is_proven {
                self.backoff.reset();
            }
            let mut update = Update { began: self.feeder.began(), ..Update::default() };
            let mut ended = Ok(());
            for line in lines.into_iter().filter(|line| !line.is_empty()) {
                if let Some(arrived) = self.after_large(&line, &mut update, &mut large).await? {
                    *version = arrived;
                    continue;
                }
                match self.event(&line, &mut update, &mut large) {
                    Ok(arrived) => arrived.into_iter().for_each(|arrived| *version = arrived),
                    Err(failure) => {
                        ended = Err(failure);
                        break;
                    }
                }
            }
            self.send(update).await?;
            self.failed_in_stream |= matches!(&ended, Err(failure) if !matches!(failure, Failure::Expired(_)));
            self.or_send_all(ended, &mut large).await?;
        }
    }

    /// Has an event wait for one of its object that is being decoded; its version if it does.
    async fn after_large(
        &mut self,
        line: &Bytes,
        update: &mut Update,
        large: &mut LargeEvents,
    ) -> Result<Option<String>, Stop> {
        if large.is_empty() {
            return Ok(None);
        }
        let Some(Opening { metadata, .. }) = Opening::of(line) else {
            // Without a beginning that can be read, nobody knows which object it is about.
            self.send(std::mem::take(update)).await?;
            self.send_all(large).await?;
            return Ok(None);
        };
        if metadata.resource_version.is_empty() {
            return Ok(None);
        }
        let names = Names::of(&metadata);
        loop {
            match large.turn(&names, line) {
                Turn::Now => return Ok(None),
                Turn::Waits => return Ok(Some(metadata.resource_version.into_owned())),
                Turn::Full => {
                    self.send(std::mem::take(update)).await?;
                    let read = large.next().await;
                    self.send_large(read, large).await?;
                }
            }
        }
    }

    /// What went wrong, after all that came before it is told.
    async fn or_send_all<T>(&mut self, found: Result<T, Failure>, large: &mut LargeEvents) -> Result<T, Stop> {
        if found.is_err() {
            self.send_all(large).await?;
        }
        Ok(found?)
    }

    /// Tells of all events that are being decoded.
    async fn send_all(&mut self, large: &mut LargeEvents) -> Result<(), Stop> {
        while !large.is_empty() {
            let read = large.next().await;
            self.send_large(read, large).await?;
        }
        Ok(())
    }

    /// Tells of one, and goes on with the event that waited for it.
    async fn send_large(
        &mut self,
        read: Result<(Read, Option<Bytes>), Failure>,
        large: &mut LargeEvents,
    ) -> Result<(), Stop> {
        let (mut update, mut notes) = (Update::default(), Vec::new());
        let (Read { names, version, decoded }, waiting) = read?;
        self.decoded(names, version, decoded, &mut update, &mut notes);
        self.note(notes);
        if let Some(line) = waiting {
            // Its version was taken when it arrived: what is lost of it is found by a list only.
            let lost = |failure: Failure| Failure::Expired(failure.to_string());
            self.event(&line, &mut update, large).map_err(lost)?;
        }
        Ok(self.send(update).await?)
    }

    /// Tells of an event, or begins to decode it; the version that it is of, if it says so.
    fn event(&mut self, line: &Bytes, update: &mut Update, large: &mut LargeEvents) -> Result<Option<String>, Failure> {
        let version =
            |metadata: HeadMeta<'_>| Some(metadata.resource_version.into_owned()).filter(|version| !version.is_empty());
        if let Some(Opening { kind, metadata }) = large::opening(line)
            && ["ADDED", "MODIFIED"].contains(&&*kind)
            && self.target.content != Content::Names
            && !metadata.name.is_empty()
        {
            large.decode(self.target.kind, line.clone(), Names::of(&metadata));
            return Ok(version(metadata));
        }
        let event = Event::of(line)?;
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
        Ok(version(head.metadata))
    }
}
