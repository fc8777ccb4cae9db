//! Where the facts of a kind stand in its status, and how its lists are shared with other controllers.

use super::{StatusFacts, StatusInput};
use std::time::Duration;

/// All that the writer must know about the status of a kind.
#[derive(Clone, Copy, Debug)]
pub struct StatusKind {
    /// Where the facts stand.
    pub layout: StatusLayout,
    /// What the status of an object of the kind must say.
    pub facts: fn(&StatusInput<'_>) -> StatusFacts,
    /// What an acknowledgement of the object by proxies means for the status.
    pub acknowledgement: Acknowledgement,
    /// The shortest time between two writes to one object: for a status that counts other objects, which come by the thousand.
    pub interval: Duration,
}

/// What an acknowledgement by proxies means for the status of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// Nothing.
    Ignored,
    /// The status says it.
    Reported,
    /// The status is written after it, or some seconds later without it: who reads that a route is accepted can use it.
    Awaited,
}

/// Where the facts of a kind stand in its status.
#[derive(Clone, Copy, Debug)]
pub struct StatusLayout {
    /// The fields that are ours, without `conditions` and the lists.
    pub fields: &'static [&'static str],
    /// The types of conditions that are ours: one that is there and no longer stated is removed.
    pub conditions: &'static [&'static str],
    /// The lists whose entries have conditions of their own.
    pub lists: &'static [ListLayout],
    /// How a status shows that we wrote it: what is then no longer ours is withdrawn, also by a process that has not written it.
    pub marks: &'static [Mark],
}

impl StatusLayout {
    /// Nothing.
    pub const EMPTY: Self = Self { fields: &[], conditions: &[], lists: &[], marks: &[] };

    /// Whether a list is replaced as a whole by a server-side apply, so that our entries must be patched one by one.
    pub fn is_atomic(&self) -> bool {
        self.lists.iter().any(|list| list.atomic.is_some())
    }
}

/// A list of entries with conditions of their own.
#[derive(Clone, Copy, Debug)]
pub struct ListLayout {
    /// Its field.
    pub field: &'static str,
    /// The fields of an entry that are ours, besides its identity and `conditions`.
    pub fields: &'static [&'static str],
    /// The types of conditions of an entry that are ours.
    pub conditions: &'static [&'static str],
    /// How it is shared. None: the API server merges the list by its keys (`x-kubernetes-list-type: map`).
    pub atomic: Option<AtomicList>,
}

/// A list that the API server does not merge (`x-kubernetes-list-type: atomic`) and that several controllers write.
#[derive(Clone, Copy, Debug)]
pub struct AtomicList {
    /// The field of an entry that names the controller it belongs to.
    pub owner: &'static str,
    /// The most entries that the API server takes.
    pub limit: usize,
}

/// How a status shows that we wrote it. Server-side apply only removes what we own, so a mark may be wrong without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The text of this field begins with these characters.
    TextPrefix(&'static str, &'static str),
    /// This field holds addresses of a load balancer, and all of them are ours.
    LoadBalancer(&'static str),
    /// The message of the condition of this type begins with one of these texts.
    Condition(&'static str, &'static [&'static str]),
}
