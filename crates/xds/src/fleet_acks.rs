//! The acks of answers: per client and type what it has, what it refused, with which words, since when.
//!
//! In: sessions, which know what their client has, and rejections as they happen. Out: answers about a resource *and its
//! hash*, never about a generation of this process, so that several replicas' answers can be added up; and the memory
//! of rejections, so that a client that comes back is not sent again what it refused.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use parking_lot::Mutex;
use serde::Serialize;

use crate::identity::Identity;
use crate::kind::Kind;
use crate::resource::{Entry, Name, ResourceOrigin};
use crate::session::RejectedResource;
use crate::table::Snapshot;

/// How many refused versions are remembered per fleet; what is refused is gone with the next version.
const REMEMBERED: usize = 10_000;
/// How many clients that refused one version are remembered: clients choose their ids. Who is forgotten may refuse it once more.
const REMEMBERED_CLIENTS: usize = 64;

/// Whose problem a rejection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RejectionCause {
    /// The resource cannot be used by this client.
    Resource,
    /// The machine that the client runs on cannot do what the resource asks for: its port is taken.
    Node,
}

impl RejectionCause {
    /// Only listeners are bound. The text about anything else may quote what a tenant wrote.
    fn of(kind: Kind, text: &str) -> RejectionCause {
        if kind != Kind::Listener {
            return RejectionCause::Resource;
        }
        let text = text.to_ascii_lowercase();
        let taken =
            ["address already in use", "address in use", "permission denied", "cannot assign requested address"];
        let bind = text.contains("bind") || text.contains("address");
        if bind && taken.iter().any(|words| text.contains(words)) {
            RejectionCause::Node
        } else {
            RejectionCause::Resource
        }
    }
}

/// A client refused a resource.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// Who refused.
    pub client: Arc<Identity>,
    /// The type of the resource.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: u64,
    /// The hash of its message alone: the version, save for endpoints.
    pub content: u64,
    /// What the client goes on with, where that is known.
    pub held: Option<Arc<Entry>>,
    /// The client's words.
    pub text: Arc<str>,
    /// Whose problem it is.
    pub cause: RejectionCause,
    /// Where the resource came from.
    pub origin: Option<Arc<dyn ResourceOrigin>>,
    /// When.
    pub at: SystemTime,
    /// Counts the rejections of its fleet.
    pub(crate) sequence: u64,
}

impl Rejection {
    pub(crate) fn new(client: Arc<Identity>, refused: &RejectedResource) -> Self {
        Self {
            client,
            kind: refused.kind,
            name: refused.entry.name.clone(),
            version: refused.entry.version,
            content: refused.entry.content(),
            held: refused.held.clone(),
            text: refused.text.clone(),
            cause: RejectionCause::of(refused.kind, &refused.text),
            origin: refused.entry.origin.clone(),
            at: SystemTime::now(),
            sequence: 0,
        }
    }
}

/// What happened to a fleet's clients, for whoever reports it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client's stream has begun.
    Joined(Arc<Identity>),
    /// A client's stream has ended.
    Left {
        /// Whose.
        client: Arc<Identity>,
        /// Why, in a word or two: `left` if the client closed it.
        reason: &'static str,
    },
    /// A client refused a resource. One of many is a report, not a verdict on the resource.
    Rejected(Rejection),
}

/// How a fleet's clients stand to one version of one resource.
#[derive(Clone, Debug, Default)]
pub struct ResourceAcks {
    /// They have it.
    pub have: Vec<Arc<Identity>>,
    /// They do not have it yet, and since when they have been behind.
    pub behind: Vec<(Arc<Identity>, Instant)>,
    /// They refused it.
    pub refused: Vec<Arc<Identity>>,
}

/// How one session stands to one version of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckState {
    /// It has it.
    Acked,
    /// It does not have it yet, since then.
    Pending(Instant),
    /// It rejected it.
    Rejected,
    /// It is not subscribed to it.
    NotSubscribed,
}

type Key = (Kind, Name);

/// The rejections of one fleet.
#[derive(Default)]
pub(crate) struct Rejections {
    by_resource: Mutex<HashMap<Key, BTreeMap<u64, Vec<Rejection>>>>,
    sequence: AtomicU64,
}

impl Rejections {
    /// Notes a rejection, if `is_current` says that its version is published; a client's later one replaces its earlier one.
    pub fn note(&self, rejection: &mut Rejection, is_current: impl FnOnce() -> bool) {
        rejection.sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let mut all = self.by_resource.lock();
        let is_full = all.len() >= REMEMBERED && !all.contains_key(&(rejection.kind, rejection.name.clone()));
        if is_full || !is_current() {
            return;
        }
        let versions = all.entry((rejection.kind, rejection.name.clone())).or_default();
        let clients = versions.entry(rejection.version).or_default();
        clients.retain(|known| known.client.node != rejection.client.node);
        if clients.len() >= REMEMBERED_CLIENTS {
            clients.remove(0);
        }
        clients.push(rejection.clone());
    }

    /// Forgets what a node refused, of one type or of all: it has started anew and gets a new chance.
    pub fn forget(&self, node: &str, only: Option<Kind>) {
        self.by_resource.lock().retain(|(kind, _), versions| {
            if only.is_some_and(|only| only != *kind) {
                return true;
            }
            versions.values_mut().for_each(|clients| clients.retain(|known| &*known.client.node != node));
            versions.retain(|_, clients| !clients.is_empty());
            !versions.is_empty()
        });
    }

    /// Forgets the versions that are no longer published. To be called when the newer snapshot is, so that none is
    /// [noted](Self::note) afterwards. It costs what differs between the two.
    pub fn prune(&self, older: &Snapshot, newer: &Snapshot) {
        let mut all = self.by_resource.lock();
        if all.is_empty() {
            return;
        }
        for kind in Kind::ALL {
            for change in older.table(kind).changes(newer.table(kind)) {
                let key = (kind, change.name.clone());
                let Some(versions) = all.get_mut(&key) else { continue };
                versions.retain(|version, _| change.new.is_some_and(|entry| entry.version == *version));
                if versions.is_empty() {
                    all.remove(&key);
                }
            }
        }
    }

    /// What one node refused.
    pub fn of_node(&self, node: &str, version: &str) -> HashSet<(Kind, Name, u64)> {
        let all = self.by_resource.lock();
        let mut refused = HashSet::new();
        for ((kind, name), versions) in all.iter() {
            for (hash, clients) in versions {
                if clients.iter().any(|known| &*known.client.node == node && &*known.client.version == version) {
                    refused.insert((*kind, name.clone(), *hash));
                }
            }
        }
        refused
    }

    /// Who refused a resource, in any version that is still published.
    pub fn of_resource(&self, kind: Kind, name: &Name) -> Vec<Rejection> {
        let all = self.by_resource.lock();
        all.get(&(kind, name.clone())).into_iter().flat_map(BTreeMap::values).flatten().cloned().collect()
    }

    /// All rejections.
    pub fn all(&self) -> Vec<Rejection> {
        self.by_resource.lock().values().flat_map(BTreeMap::values).flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Fleet;

    fn rejection(node: usize) -> Rejection {
        let client = Identity {
            fleet: Fleet::Shared,
            node: format!("envoy-{node}").into(),
            version: "1.40.0".into(),
            address: None,
            ca_expirations: Vec::new(),
        };
        Rejection {
            client: client.into(),
            kind: Kind::Route,
            name: "r".into(),
            version: 1,
            content: 1,
            held: None,
            text: "no".into(),
            cause: RejectionCause::Resource,
            origin: None,
            at: SystemTime::UNIX_EPOCH,
            sequence: 0,
        }
    }

    /// Clients choose their ids, and come and go.
    #[test]
    fn of_the_clients_that_refuse_a_version_the_latest_are_remembered() {
        let rejections = Rejections::default();
        for node in 0..1_000 {
            rejections.note(&mut rejection(node), || true);
        }
        assert_eq!(rejections.all().len(), REMEMBERED_CLIENTS);
        assert!(rejections.of_node("envoy-0", "1.40.0").is_empty());
        assert_eq!(rejections.of_node("envoy-999", "1.40.0").len(), 1);
    }

    #[test]
    fn only_about_listeners_a_text_says_that_the_node_is_at_fault() {
        let text = "cannot bind '0.0.0.0:80': Address already in use";
        assert_eq!(RejectionCause::of(Kind::Listener, text), RejectionCause::Node);
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Listener) {
            assert_eq!(RejectionCause::of(kind, text), RejectionCause::Resource, "{kind:?}");
        }
    }
}
