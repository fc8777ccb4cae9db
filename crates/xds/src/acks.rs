//! Which clients have acknowledged which versions of resources, for those who wait for it: pushed, at the cost of the change.
//!
//! In: the versions of resources that somebody waits for ([`AckWatch::watch`]), and the names whose state each session says may
//! have changed ([`Touched`]). Out: counts of those versions whose counts may have changed ([`AckWatch::next`]). An answer of a client costs one look for each name in it that is waited for; a version that is newly
//! waited for costs one look at each client. Nobody is held up: a session is locked for the time of a look, and whoever
//! publishes takes no lock that is taken here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::ack_counts::{FleetAckCounts, STUCK};
use crate::fleet::{Client, FleetRuntime};
use crate::fleet_acks::{AckState, Rejection};
use crate::identity::Fleet;
use crate::kind::Kind;
use crate::resource::Name;
use crate::server::Server;

#[cfg(test)]
pub(crate) mod tests;

/// How many names of one kind a session lists before it only says that any of them may be meant.
const LISTED: usize = 4096;

/// How much of an error is told to whoever waits for a version, in bytes.
const LONGEST_ERROR: usize = 1024;

/// The names of one kind about which a client's answer may have changed.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    all: bool,
    names: HashSet<Name>,
}

impl Touched {
    /// One name.
    pub fn name(&mut self, name: &Name) {
        if !self.all {
            self.names.insert(name.clone());
            if self.names.len() > LISTED {
                self.all();
            }
        }
    }

    /// Any name.
    pub fn all(&mut self) {
        self.all = true;
        self.names = HashSet::new();
    }

    pub fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty()
    }

    fn add(&mut self, other: Touched) {
        if other.all {
            self.all();
        }
        other.names.iter().for_each(|name| self.name(name));
    }
}

/// What one session was touched in, by kind.
pub(crate) type TouchedKinds = [Touched; Kind::COUNT];

/// What has happened to one client since it was last looked at.
#[derive(Default)]
struct ClientChanges {
    joined: Option<Arc<Client>>,
    left: bool,
    touched: TouchedKinds,
}

/// Changes of clients, queued for one watch.
#[derive(Default)]
struct ChangeQueue {
    changes: Mutex<BTreeMap<u64, ClientChanges>>,
    is_filled: Notify,
}

/// The watches of one fleet.
#[derive(Default)]
pub(crate) struct Watches(Mutex<Vec<Arc<ChangeQueue>>>);

impl Watches {
    /// Adds a watch. Clients join and leave under the same lock, so none is missed.
    fn open(&self, clients: impl FnOnce() -> Vec<(u64, Arc<Client>)>) -> Arc<ChangeQueue> {
        let mut watches = self.0.lock();
        let queue = Arc::new(ChangeQueue::default());
        let changes = |client| ClientChanges { joined: Some(client), ..ClientChanges::default() };
        *queue.changes.lock() = clients().into_iter().map(|(id, client)| (id, changes(client))).collect();
        queue.is_filled.notify_one();
        watches.push(queue.clone());
        queue
    }

    fn close(&self, queue: &Arc<ChangeQueue>) {
        self.0.lock().retain(|open| !Arc::ptr_eq(open, queue));
    }

    /// A client has joined; `join` makes it known to those who watch later.
    pub fn joined(&self, id: u64, client: &Arc<Client>, join: impl FnOnce()) {
        let watches = self.0.lock();
        join();
        for queue in watches.iter() {
            queue.push(id, |changes| changes.joined = Some(client.clone()));
        }
    }

    /// A client has left.
    pub fn left(&self, id: u64, leave: impl FnOnce()) {
        let watches = self.0.lock();
        leave();
        for queue in watches.iter() {
            queue.push(id, |changes| changes.left = true);
        }
    }

    /// What a client has may have changed.
    pub fn touched(&self, id: u64, touched: TouchedKinds) {
        if touched.iter().all(Touched::is_empty) {
            return;
        }
        let watches = self.0.lock();
        let Some((last, others)) = watches.split_last() else { return };
        for queue in others {
            queue.push(id, |changes| {
                for (all, new) in changes.touched.iter_mut().zip(&touched) {
                    all.add(Touched { all: new.all, names: new.names.clone() });
                }
            });
        }
        last.push(id, |changes| changes.touched.iter_mut().zip(touched).for_each(|(all, new)| all.add(new)));
    }
}

impl ChangeQueue {
    fn push(&self, id: u64, change: impl FnOnce(&mut ClientChanges)) {
        change(self.changes.lock().entry(id).or_default());
        self.is_filled.notify_one();
    }
}

/// How one client stands to one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Has,
    /// It has not; at that time it will count as stuck.
    Behind(Instant),
    Stuck,
    Rejected,
}

/// A version that is waited for.
struct Watched {
    since: Instant,
    /// By client, in order. Those who did not ask for the resource are not in it.
    states: Vec<(u64, State)>,
    /// When the next of those that are behind will count as stuck.
    deadline: Option<Instant>,
}

/// One version of one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The type of the resource.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// The hash of its content.
    pub version: u64,
}

/// A client that rejected a version of a resource (NACK).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Nack {
    /// The id of its node.
    pub node: Arc<str>,
    /// Its error; of a long one the beginning.
    pub text: Arc<str>,
}

type Versions = BTreeMap<u64, Watched>;

/// Counts, for the versions that somebody waits for, how the clients of this replica stand to them.
pub struct AckWatch {
    runtime: Arc<FleetRuntime>,
    queue: Arc<ChangeQueue>,
    clients: HashMap<u64, Arc<Client>>,
    watched: [HashMap<Name, Versions>; Kind::COUNT],
    deadlines: BTreeSet<(Instant, Version)>,
    changed: HashSet<Version>,
    looks: u64,
}

impl AckWatch {
    /// Nothing is waited for yet.
    pub fn new(server: &Server, fleet: &Fleet) -> Self {
        Self::of(server.0.runtime(fleet))
    }

    pub(crate) fn of(runtime: Arc<FleetRuntime>) -> Self {
        let queue = runtime.watches.open(|| runtime.clients_by_id());
        Self {
            runtime,
            queue,
            clients: HashMap::new(),
            watched: Default::default(),
            deadlines: BTreeSet::new(),
            changed: HashSet::new(),
            looks: 0,
        }
    }

    /// Cancelled when the fleet goes: one of its name that comes later is another, with clients of its own.
    pub fn gone(&self) -> CancellationToken {
        self.runtime.gone.clone()
    }

    /// The versions that are waited for.
    pub fn watched(&self) -> Vec<Version> {
        let of_kind = |kind: Kind| {
            let names = self.watched[kind.index()].iter();
            names.flat_map(move |(name, versions)| {
                versions.keys().map(move |version| Version { kind, name: name.clone(), version: *version })
            })
        };
        Kind::ALL.into_iter().flat_map(of_kind).collect()
    }

    /// Waits for a version; its counts are told first.
    pub fn watch(&mut self, version: Version, now: Instant) {
        let Version { kind, name, version: hash } = &version;
        let versions = self.watched[kind.index()].entry(name.clone()).or_default();
        if versions.contains_key(hash) {
            return;
        }
        let mut watched = Watched { since: now, states: Vec::new(), deadline: None };
        for (id, client) in &self.clients {
            self.looks += 1;
            if let Some(state) = look(client, &version, now, now) {
                watched.states.push((*id, state));
            }
        }
        watched.states.sort_unstable_by_key(|(id, _)| *id);
        versions.insert(*hash, watched);
        self.note(version);
    }

    /// No longer waits for a version.
    pub fn forget(&mut self, version: &Version) {
        let table = &mut self.watched[version.kind.index()];
        let Some(versions) = table.get_mut(&version.name) else { return };
        if let Some(Watched { deadline: Some(at), .. }) = versions.remove(&version.version) {
            self.deadlines.remove(&(at, version.clone()));
        }
        if versions.is_empty() {
            table.remove(&version.name);
            // After the first build everything is waited for, and hardly anything ever again.
            if table.len() < table.capacity() / 8 {
                table.shrink_to(table.capacity() / 4);
            }
        }
        self.changed.remove(version);
    }

    /// Of which versions the counts may have changed, with the counts. May be dropped and called again at any time: nothing
    /// is lost.
    pub async fn next(&mut self) -> Vec<(Version, FleetAckCounts)> {
        loop {
            self.absorb(Instant::now());
            if !self.changed.is_empty() {
                let changed = std::mem::take(&mut self.changed);
                return changed
                    .into_iter()
                    .filter_map(|version| Some((version.clone(), self.counts(&version)?)))
                    .collect();
            }
            let stuck = async {
                match self.deadlines.first() {
                    Some((at, _)) => time::sleep_until((*at).into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.queue.is_filled.notified() => {}
                () = stuck => {}
            }
        }
    }

    /// The counts of a version that is waited for, as they were last found.
    pub fn counts(&self, version: &Version) -> Option<FleetAckCounts> {
        let watched = self.watched[version.kind.index()].get(&version.name)?.get(&version.version)?;
        let mut counts = FleetAckCounts::new();
        for (id, state) in &watched.states {
            let Some(client) = self.clients.get(id) else { continue };
            let ack_counts = match counts.get_mut(&client.identity.version) {
                Some(ack_counts) => ack_counts,
                None => counts.entry(client.identity.version.clone()).or_default(),
            };
            match state {
                State::Has => ack_counts.have += 1,
                State::Behind(_) => ack_counts.behind += 1,
                State::Stuck => ack_counts.stuck += 1,
                State::Rejected => ack_counts.refused += 1,
            }
        }
        Some(counts)
    }

    /// One of the clients that refuse a version that is waited for, with its error: the first by the id of its node, so that it stays
    /// the same while others come and go.
    pub fn refusal(&self, version: &Version) -> Option<Nack> {
        let watched = self.watched[version.kind.index()].get(&version.name)?.get(&version.version)?;
        let refused = watched.states.iter().filter(|(_, state)| *state == State::Rejected);
        let nodes = refused.filter_map(|(id, _)| Some(&self.clients.get(id)?.identity.node));
        let node = nodes.min()?;
        let rejections = self.runtime.rejections.of_resource(version.kind, &version.name);
        let of_version = |known: &&Rejection| known.version == version.version;
        let of_node = |known: &&Rejection| of_version(known) && known.client.node == *node;
        // Of many that refuse it not all are remembered.
        let text = rejections.iter().find(of_node).or_else(|| rejections.iter().find(of_version));
        let text = text.map_or("", |known| &*known.text);
        Some(Nack { node: node.clone(), text: text[..text.floor_char_boundary(LONGEST_ERROR)].into() })
    }

    /// The counts of a version that is waited for, found by a look at every client now.
    pub(crate) fn recount(&mut self, version: &Version, now: Instant) -> Option<FleetAckCounts> {
        self.absorb(now);
        let clients: Vec<u64> = self.clients.keys().copied().collect();
        clients.into_iter().for_each(|id| self.look_at(id, version.kind, &version.name, now));
        self.counts(version)
    }

    /// How often a client was looked at: what all of it has cost.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// Takes the changes of clients, and finds who is stuck by now.
    fn absorb(&mut self, now: Instant) {
        let changes = std::mem::take(&mut *self.queue.changes.lock());
        for (id, ClientChanges { joined, left, touched }) in changes {
            if left {
                self.leave(id);
                continue;
            }
            if let Some(client) = joined {
                self.clients.insert(id, client);
                Kind::ALL.into_iter().for_each(|kind| self.look_at_all(id, kind, now));
                continue;
            }
            for (kind, touched) in Kind::ALL.into_iter().zip(touched) {
                if touched.all {
                    self.look_at_all(id, kind, now);
                }
                touched.names.iter().for_each(|name| self.look_at(id, kind, name, now));
            }
        }
        while let Some((at, version)) = self.deadlines.first().filter(|(at, _)| *at <= now).cloned() {
            self.deadlines.remove(&(at, version.clone()));
            if let Some(watched) = self.find(&version) {
                watched.deadline = None;
                for (_, state) in &mut watched.states {
                    if matches!(state, State::Behind(at) if *at <= now) {
                        *state = State::Stuck;
                    }
                }
            }
            self.note(version);
        }
    }

    fn leave(&mut self, id: u64) {
        self.clients.remove(&id);
        let mut changed = Vec::new();
        for kind in Kind::ALL {
            for (name, versions) in &mut self.watched[kind.index()] {
                for (version, watched) in versions {
                    if let Ok(at) = watched.states.binary_search_by_key(&id, |(id, _)| *id) {
                        watched.states.remove(at);
                        changed.push(Version { kind, name: name.clone(), version: *version });
                    }
                }
            }
        }
        changed.into_iter().for_each(|version| self.note(version));
    }

    fn look_at_all(&mut self, id: u64, kind: Kind, now: Instant) {
        let names: Vec<Name> = self.watched[kind.index()].keys().cloned().collect();
        names.iter().for_each(|name| self.look_at(id, kind, name, now));
    }

    /// Looks how a client stands to the versions of a name that are waited for.
    fn look_at(&mut self, id: u64, kind: Kind, name: &Name, now: Instant) {
        let (Some(client), Some(versions)) = (self.clients.get(&id), self.watched[kind.index()].get_mut(name)) else {
            return;
        };
        let mut changed = Vec::new();
        for (hash, watched) in versions {
            self.looks += 1;
            let version = Version { kind, name: name.clone(), version: *hash };
            let state = look(client, &version, watched.since, now);
            match (watched.states.binary_search_by_key(&id, |(id, _)| *id), state) {
                (Ok(at), Some(state)) if watched.states[at].1 == state => continue,
                (Ok(at), Some(state)) => watched.states[at].1 = state,
                (Ok(at), None) => _ = watched.states.remove(at),
                (Err(at), Some(state)) => watched.states.insert(at, (id, state)),
                (Err(_), None) => continue,
            }
            changed.push(version);
        }
        changed.into_iter().for_each(|version| self.note(version));
    }

    fn find(&mut self, version: &Version) -> Option<&mut Watched> {
        self.watched[version.kind.index()].get_mut(&version.name)?.get_mut(&version.version)
    }

    /// Notes that the counts of a version may have changed.
    fn note(&mut self, version: Version) {
        let Some(watched) = self.find(&version) else { return };
        let next = watched.states.iter().filter_map(|(_, state)| match state {
            State::Behind(at) => Some(*at),
            _ => None,
        });
        let next = next.min();
        let before = std::mem::replace(&mut watched.deadline, next);
        if before != next {
            if let Some(at) = before {
                self.deadlines.remove(&(at, version.clone()));
            }
            if let Some(at) = next {
                self.deadlines.insert((at, version.clone()));
            }
        }
        self.changed.insert(version);
    }
}

impl Drop for AckWatch {
    fn drop(&mut self) {
        self.runtime.watches.close(&self.queue);
    }
}

/// How a client stands to a version that is waited for since then; nothing if it did not ask for the resource.
fn look(client: &Client, version: &Version, since: Instant, now: Instant) -> Option<State> {
    let state = client.session.lock().ack_state(version.kind, &version.name, version.version);
    match state {
        AckState::Acked => Some(State::Has),
        AckState::Rejected => Some(State::Rejected),
        // A client may have been without it before anybody could expect it to have it.
        AckState::Pending(behind) => {
            let stuck = behind.max(since) + STUCK;
            Some(if stuck <= now { State::Stuck } else { State::Behind(stuck) })
        }
        AckState::NotSubscribed => None,
    }
}
