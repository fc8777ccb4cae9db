//! Events of large objects, decoded beside the watch.
//!
//! An object may be some megabytes long, and to decode it takes as long as hundreds of small ones: on the watch's own task, the
//! events of everybody else would wait for it. So the event of a large object is decoded by another thread, and what comes after
//! it is told meanwhile. The order of one object's events is kept: the newest of them waits behind the one that is being decoded,
//! and replaces one that waited before, so that whoever writes an object again and again delays nobody. The end of the watch waits
//! for all of them, because the version to go on from is that of the last event that arrived.

use crate::cluster::{
    api::Failure,
    known::Names,
    wire::{Event, Head, Opening},
};
use bytes::Bytes;
use futures::{StreamExt, stream::FuturesUnordered};
use kinds::{DecodeError, Decoded, Kind};
use std::collections::BTreeMap;
use tokio::task::JoinHandle;

/// From how many bytes on an event is large: its object takes some milliseconds.
pub const LARGE: usize = 256 << 10;

/// How many bytes of events are decoded, or wait for that, at a time.
const MOST: usize = 64 << 20;

/// An object that was decoded.
pub struct Read {
    pub names: Names,
    pub version: u64,
    pub decoded: Result<Decoded, DecodeError>,
}

/// The large events of a watch that are being decoded.
#[derive(Default)]
pub struct LargeEvents {
    tasks: FuturesUnordered<JoinHandle<(Names, Result<Read, Failure>)>>,
    objects: BTreeMap<Names, InProgress>,
}

/// The events of one object.
struct InProgress {
    /// How many bytes the one that is being decoded has.
    size: usize,
    /// The newest that arrived since.
    waiting: Option<Bytes>,
}

impl LargeEvents {
    /// Whether so much is being decoded that nothing can be added.
    pub fn is_full(&self) -> bool {
        let bytes = |object: &InProgress| object.size + object.waiting.as_ref().map_or(0, Bytes::len);
        self.objects.values().map(bytes).sum::<usize>() > MOST
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Begins to decode the object of an event.
    pub fn decode(&mut self, kind: Kind, line: Bytes, names: Names) {
        self.objects.insert(names.clone(), InProgress { size: line.len(), waiting: None });
        self.tasks.push(tokio::task::spawn_blocking(move || (names.clone(), read(kind, &line, names))));
    }

    /// Has an event wait if one of its object is being decoded; whether it does.
    pub fn queue(&mut self, names: &Names, line: &Bytes) -> bool {
        let Some(object) = self.objects.get_mut(names) else { return false };
        object.waiting = Some(line.clone());
        true
    }

    /// The next that is decoded, and the event that waits for it; for ever none if there is none.
    pub async fn next(&mut self) -> Result<(Read, Option<Bytes>), Failure> {
        // The version to go on from is that of a later event: what is lost here is found by a list only.
        let lost = |why: String| Failure::Expired(format!("a large object cannot be decoded: {why}"));
        match self.tasks.next().await {
            Some(Ok((names, read))) => {
                let waiting = self.objects.remove(&names).and_then(|object| object.waiting);
                Ok((read.map_err(|failure| lost(failure.to_string()))?, waiting))
            }
            Some(Err(error)) => Err(lost(error.to_string())),
            None => std::future::pending().await,
        }
    }
}

fn read(kind: Kind, line: &[u8], names: Names) -> Result<Read, Failure> {
    let event = Event::of(line)?;
    let version = Head::of(event.object)?.version();
    Ok(Read { names, version, decoded: kinds::decode_json(kind, event.object.get().as_bytes()) })
}

/// What an event is about, if it is large and that can be told from its beginning.
pub fn opening(line: &[u8]) -> Option<Opening<'_>> {
    if line.len() < LARGE { None } else { Opening::of(line) }
}
