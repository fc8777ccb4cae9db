//! What a client has been sent: resources by kind and name, responses, counts, and how the stream ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use envoy_api::Name;

use super::wire::Resource;
use super::{Kind, Reply};

/// What a client has.
#[derive(Default)]
pub struct State {
    /// Every response in the order of arrival; empty in clients that only count.
    pub responses: Vec<Response>,
    /// How the stream ended, if it did; with a stream per kind, the first that ended.
    pub end: Option<End>,
    pub(super) kinds: BTreeMap<Kind, Of>,
}

/// All about one kind.
#[derive(Default)]
pub(super) struct Of {
    pub counts: Counts,
    pub all: bool,
    pub names: BTreeSet<String>,
    pub held: BTreeMap<String, Held>,
    /// Names that the server said are not there.
    pub gone: BTreeSet<String>,
    /// State of the world: the version that was last taken, and the nonce that was last seen.
    pub version: String,
    pub nonce: String,
    /// Responses that wait for an answer.
    pub pending: VecDeque<Response>,
}

/// A resource that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its version.
    pub version: String,
    /// The encoded message; none in clients that only count.
    pub message: Option<Bytes>,
}

/// One response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The kind of its resources.
    pub kind: Kind,
    /// Its nonce.
    pub nonce: String,
    /// The version of the whole, which in delta is for people only.
    pub version: String,
    /// When it arrived.
    pub at: Instant,
    /// The size of the encoded message.
    pub bytes: usize,
    /// How many resources it holds.
    pub count: usize,
    /// They themselves; empty in clients that only count.
    pub resources: Vec<Resource>,
    /// Names that are gone.
    pub removed: Vec<String>,
    /// What it was answered with.
    pub reply: Reply,
}

impl Response {
    /// The names of its resources.
    pub fn names(&self) -> Vec<&str> {
        self.resources.iter().map(|resource| resource.name.as_str()).collect()
    }
}

/// Sums over the responses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Responses.
    pub responses: u64,
    /// Resources in them.
    pub resources: u64,
    /// Removals in them.
    pub removed: u64,
    /// Bytes of the encoded messages.
    pub bytes: u64,
    /// Responses taken.
    pub acked: u64,
    /// Responses refused.
    pub nacked: u64,
    /// When the last one arrived.
    pub last: Option<Instant>,
}

/// How a stream ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The gRPC status; none when the connection broke.
    pub status: Option<u32>,
    /// What was said about it.
    pub message: String,
}

impl State {
    pub(super) fn of(&mut self, kind: Kind) -> &mut Of {
        self.kinds.entry(kind).or_default()
    }

    /// How many resources of a kind it has.
    pub fn count(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).map_or(0, |of| of.held.len())
    }

    /// The names of those.
    pub fn names(&self, kind: Kind) -> Vec<&str> {
        self.kinds.get(&kind).map(|of| of.held.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The names that it asks for, other than by asking for all.
    pub fn asked(&self, kind: Kind) -> Vec<&str> {
        self.kinds.get(&kind).map(|of| of.names.iter().map(String::as_str).collect()).unwrap_or_default()
    }

    /// One resource.
    pub fn held(&self, kind: Kind, name: &str) -> Option<&Held> {
        self.kinds.get(&kind)?.held.get(name)
    }

    /// Whether the server has said that there is no such resource.
    pub fn is_gone(&self, kind: Kind, name: &str) -> bool {
        self.kinds.get(&kind).is_some_and(|of| of.gone.contains(name))
    }

    /// One resource, decoded; its type says its kind.
    ///
    /// # Panics
    /// When it cannot be decoded.
    pub fn get<M: Name + Default>(&self, name: &str) -> Option<M> {
        let kind = Kind::from_type_url(&M::type_url())?;
        let message = self.held(kind, name)?.message.clone()?;
        Some(M::decode(message).unwrap_or_else(|e| panic!("{kind:?} {name}: {e}")))
    }

    /// The sums of one kind.
    pub fn counts(&self, kind: Kind) -> Counts {
        self.kinds.get(&kind).map(|of| of.counts).unwrap_or_default()
    }

    /// How many responses of a kind wait for an answer.
    pub fn on_hold(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).map_or(0, |of| of.pending.len())
    }
}

/// Names and sums: what a person wants to see when a test waited in vain.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, of) in &self.kinds {
            let names: Vec<&String> = of.held.keys().take(20).collect();
            write!(f, "\n  {kind:?}: has {} {names:?}", of.held.len())?;
            let Counts { responses, resources, removed, bytes, acked, nacked, .. } = of.counts;
            write!(f, ", got {responses} responses with {resources} resources, {removed} removals, {bytes} bytes")?;
            write!(f, ", took {acked}, refused {nacked}, holds {}", of.pending.len())?;
        }
        match &self.end {
            Some(end) => write!(f, "\n  ended: {end:?}"),
            None => Ok(()),
        }
    }
}
