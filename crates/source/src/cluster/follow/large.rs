//! Events of large objects, decoded beside the watch.
//!
//! An object may be some megabytes long, and to decode it takes as long as hundreds of small ones: on the watch's own task, the
//! events of everybody else would wait for it. So the event of a large object is decoded by another thread, and what comes after
//! it is told meanwhile. The order of one object's events is kept: the next of them waits, and so does the end of the watch,
//! because the version to go on from is that of the last event that arrived.

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

/// How many bytes of events are decoded at a time.
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
    /// How many bytes each takes.
    sizes: BTreeMap<Names, usize>,
}

impl LargeEvents {
    /// Whether an event of this object is being decoded, or too much is.
    pub fn blocks(&self, names: &Names) -> bool {
        self.sizes.contains_key(names) || self.sizes.values().sum::<usize>() > MOST
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Begins to decode the object of an event.
    pub fn decode(&mut self, kind: Kind, line: Bytes, names: Names) {
        self.sizes.insert(names.clone(), line.len());
        self.tasks.push(tokio::task::spawn_blocking(move || (names.clone(), read(kind, &line, names))));
    }

    /// The next that is decoded; for ever none if there is none.
    pub async fn next(&mut self) -> Result<Read, Failure> {
        match self.tasks.next().await {
            Some(Ok((names, read))) => {
                self.sizes.remove(&names);
                read
            }
            Some(Err(error)) => Err(Failure::Other(format!("a large object cannot be decoded: {error}"))),
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
