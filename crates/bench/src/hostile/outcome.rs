//! What one attack did to others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Attack, LATE};
use crate::usage::Usage;

/// What the others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The path of an Ingress changes.
    RouteEdit,
    /// The address in an EndpointSlice changes.
    Endpoints,
}

impl Change {
    /// In the order in which they take turns.
    pub const ALL: [Change; 2] = [Change::RouteEdit, Change::Endpoints];
}

/// What one change took, in milliseconds from the moment the write was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Until the API server had answered.
    pub write: f64,
    /// Until the client that follows had it.
    pub client: f64,
    /// Until it was served, where there is an Envoy.
    pub served: Option<f64>,
}

/// What the changes of one kind took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// The writes themselves.
    pub write: Vec<f64>,
    /// Until the client had it.
    pub client: Vec<f64>,
    /// Until it was served.
    pub served: Vec<f64>,
}

impl Times {
    fn take(&mut self, sample: Sample) {
        self.write.push(sample.write);
        self.client.push(sample.client);
        self.served.extend(sample.served);
    }
}

/// A figure without the attack and during it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pair<T> {
    /// Without.
    pub before: T,
    /// During.
    pub during: T,
}

/// One row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Of which attack.
    pub attack: Attack,
    /// The others' changes.
    pub changes: BTreeMap<Change, Pair<Times>>,
    /// How long a new client took until it had all hosts, in milliseconds.
    pub connected: Pair<Option<f64>>,
    /// The controller's memory in MiB: before the attack, and the most that it was during it.
    pub memory: Pair<f64>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why there is no more of it.
    pub failed: Option<String>,
}

impl Outcome {
    /// A row with nothing in it yet.
    pub fn new(attack: Attack) -> Outcome {
        Outcome {
            attack,
            changes: BTreeMap::new(),
            connected: Pair::default(),
            memory: Pair::default(),
            notes: Vec::new(),
            failed: None,
        }
    }

    /// A change that was made without the attack.
    pub fn before(&mut self, change: Change, sample: Sample) {
        self.changes.entry(change).or_default().before.take(sample);
    }

    /// A change that was made during it.
    pub fn during(&mut self, change: Change, sample: Sample) {
        self.changes.entry(change).or_default().during.take(sample);
    }

    /// What the controller had, and what it has had at most since.
    pub fn memory(&mut self, before: Usage, after: Usage) {
        self.memory = Pair { before: before.rss, during: after.peak };
    }

    /// Tells the reader something.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Whether a time says that something never came.
    pub fn is_late(milliseconds: f64) -> bool {
        milliseconds >= LATE.as_secs_f64() * 1000.0
    }
}

/// What became of two replicas with many hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fleet {
    /// How many hosts.
    pub hosts: usize,
    /// Milliseconds until the clients of both had all of them.
    pub clients: f64,
    /// How many objects said that they are programmed in the end, and after how many milliseconds.
    pub programmed: (usize, f64),
    /// The memory of each replica in MiB, at most.
    pub memory: Vec<f64>,
}
