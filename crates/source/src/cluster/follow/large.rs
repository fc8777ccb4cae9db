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

impl InProgress {
    fn waiting_bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, Bytes::len)
    }
}

/// What becomes of an event that arrives while others are being decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is processed.
    Now,
    /// It waits for one of its object that is being decoded.
    Waits,
    /// There is no room for it before another is decoded.
    Full,
}

impl LargeEvents {
    /// How many bytes are being decoded or wait for that.
    fn bytes(&self) -> usize {
        self.objects.values().map(|object| object.size + object.waiting_bytes()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Begins to decode the object of an event.
    pub fn decode(&mut self, kind: Kind, line: Bytes, names: Names) {
        self.objects.insert(names.clone(), InProgress { size: line.len(), waiting: None });
        self.tasks.push(tokio::task::spawn_blocking(move || (names.clone(), read(kind, &line, names))));
    }

    /// What becomes of an event that arrives. It waits if one of its object is being decoded; nothing that waits or is decoded
    /// comes to more than the limit, except one event that is larger by itself.
    pub fn turn(&mut self, names: &Names, line: &Bytes) -> Turn {
        let held = self.bytes();
        match self.objects.get_mut(names) {
            Some(object) if held - object.waiting_bytes() + line.len() > MOST => Turn::Full,
            Some(object) => {
                object.waiting = Some(line.clone());
                Turn::Waits
            }
            None if line.len() >= LARGE && held > 0 && held + line.len() > MOST => Turn::Full,
            None => Turn::Now,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind;

    fn names(name: &str) -> Names {
        Names { namespace: "n".into(), name: name.into() }
    }

    fn event(name: &str, bytes: usize) -> Bytes {
        let object = format!(r#"{{"metadata": {{"name": "{name}", "namespace": "n", "resourceVersion": "1"}}}}"#);
        let mut line = format!(r#"{{"type": "ADDED", "object": {object}}}"#);
        line.extend(std::iter::repeat_n(' ', bytes - line.len()));
        line.into()
    }

    #[tokio::test]
    async fn what_waits_counts_as_what_is_decoded_does() {
        let mut large = LargeEvents::default();
        for name in ["a", "b"] {
            large.decode(kind::SERVICE, event(name, MOST / 4), names(name));
        }
        assert_eq!(large.turn(&names("a"), &event("a", MOST / 4)), Turn::Waits);
        assert_eq!(large.turn(&names("a"), &event("a", MOST / 2)), Turn::Waits, "it replaces what waited");
        assert_eq!(large.bytes(), MOST);
        assert_eq!(large.turn(&names("b"), &event("b", 100)), Turn::Full);
        assert_eq!(large.turn(&names("c"), &event("c", LARGE)), Turn::Full);
        assert_eq!(large.turn(&names("c"), &event("c", 100)), Turn::Now, "small events of others wait for nobody");
        while !large.is_empty() {
            assert!(large.next().await.is_ok());
        }
        assert_eq!(large.bytes(), 0);
        assert_eq!(large.turn(&names("c"), &event("c", 2 * MOST)), Turn::Now, "nothing will make room for it");
    }
}
