//! Turns a batch of changes into the next snapshot of a fleet.
//!
//! In: the resources that changed and the names that went. Out: a [`Snapshot`] in which two things always hold:
//!
//! - A cluster that something still points at is there, and so are the endpoints that a cluster uses. A removal that comes
//!   too early waits for the last referrer to go, so that no client is ever asked to break what it uses.
//! - The version of an endpoint set covers the clusters that use it. Envoy warms a changed cluster until its endpoints
//!   are sent again, so they must look changed, to any client, on any replica, after any cut.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Resource, content_version};
use crate::table::Snapshot;

#[cfg(test)]
mod tests;

/// What changes in one fleet, all of it at once.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Resources that are new or have changed. One that is equal to what is there costs nothing.
    pub upserts: Vec<Resource>,
    /// Resources that are gone.
    pub removes: Vec<(Kind, Name)>,
}

/// Keeps what must be known to build the next snapshot from the current one at the cost of the change alone.
#[derive(Default)]
pub(crate) struct Writer {
    snapshot: Snapshot,
    /// How many entries point at each cluster.
    referrers: HashMap<Name, usize>,
    /// Clusters that were removed while something pointed at them.
    lingering: HashSet<Name>,
    /// Endpoint sets that were removed while a cluster used them.
    lingering_endpoints: HashSet<Name>,
    /// The clusters that use each endpoint set, with their versions, by name. Most have one.
    users: HashMap<Name, Vec<(Name, u64)>>,
}

impl Writer {
    /// Whether a batch only removes what is not there.
    pub fn has_none_of(&self, changes: &Changes) -> bool {
        changes.upserts.is_empty()
            && changes.removes.iter().all(|(kind, name)| self.snapshot.get(*kind, name).is_none())
    }

    /// Counts the batches that were applied.
    pub fn generation(&self) -> u64 {
        self.snapshot.generation
    }

    /// Applies one batch.
    pub fn apply(&mut self, changes: Changes) -> Arc<Snapshot> {
        let mut endpoints = BTreeSet::new();
        for (kind, name) in changes.removes {
            match kind {
                Kind::Cluster if self.snapshot.get(kind, &name).is_some() => _ = self.lingering.insert(name),
                Kind::Cluster => {}
                Kind::Endpoints if self.users.contains_key(&name) => _ = self.lingering_endpoints.insert(name),
                _ => self.remove(kind, &name, &mut endpoints),
            }
        }
        for resource in changes.upserts {
            self.upsert(resource, &mut endpoints);
        }
        self.remove_clusters(&mut endpoints);
        let unused = self.lingering_endpoints.iter().filter(|name| !self.users.contains_key(*name)).cloned();
        for name in unused.collect::<Vec<_>>() {
            self.lingering_endpoints.remove(&name);
            self.remove(Kind::Endpoints, &name, &mut endpoints);
        }
        for name in endpoints {
            self.reversion(&name);
        }
        self.snapshot.generation += 1;
        Arc::new(self.snapshot.clone())
    }

    fn upsert(&mut self, resource: Resource, endpoints: &mut BTreeSet<Name>) {
        let kind = resource.kind;
        let hash = match kind {
            Kind::Endpoints => self.endpoints_hash(&resource.name, &resource.body),
            _ => content_version(&resource.body),
        };
        match kind {
            Kind::Cluster => _ = self.lingering.remove(&resource.name),
            Kind::Endpoints => _ = self.lingering_endpoints.remove(&resource.name),
            _ => {}
        }
        let entry = Arc::new(Entry::new(resource, hash));
        let version = entry.version;
        self.count(kind, &entry, endpoints);
        if let Some(old) = self.snapshot.tables[kind.index()].put(entry) {
            self.discount(kind, &old, version, endpoints);
        }
    }

    fn remove(&mut self, kind: Kind, name: &str, endpoints: &mut BTreeSet<Name>) {
        if let Some(old) = self.snapshot.tables[kind.index()].take(name) {
            self.discount(kind, &old, 0, endpoints);
        }
    }

    /// Takes out the clusters nothing points at. Clusters may point at clusters, so taking one out can free another.
    fn remove_clusters(&mut self, endpoints: &mut BTreeSet<Name>) {
        loop {
            let free: Vec<Name> =
                self.lingering.iter().filter(|name| !self.referrers.contains_key(*name)).cloned().collect();
            if free.is_empty() {
                return;
            }
            for name in free {
                self.lingering.remove(&name);
                self.remove(Kind::Cluster, &name, endpoints);
            }
        }
    }

    /// Notes what a new entry points at.
    fn count(&mut self, kind: Kind, entry: &Arc<Entry>, endpoints: &mut BTreeSet<Name>) {
        for to in &entry.refs {
            match to {
                Ref::To(Kind::Cluster, name) => *self.referrers.entry(name.clone()).or_default() += 1,
                Ref::To(Kind::Endpoints, name) if kind == Kind::Cluster => {
                    let users = self.users.entry(name.clone()).or_default();
                    match users.binary_search_by(|(user, _)| user.cmp(&entry.name)) {
                        Ok(at) if users[at].1 == entry.version => continue,
                        Ok(at) => users[at].1 = entry.version,
                        Err(at) => {
                            if users.is_empty() {
                                users.reserve_exact(1);
                            }
                            users.insert(at, (entry.name.clone(), entry.version));
                        }
                    }
                    endpoints.insert(name.clone());
                }
                _ => {}
            }
        }
    }

    /// Forgets what an old entry pointed at; `now` is the version that replaced it, 0 if none did.
    fn discount(&mut self, kind: Kind, old: &Entry, now: u64, endpoints: &mut BTreeSet<Name>) {
        for to in &old.refs {
            match to {
                Ref::To(Kind::Cluster, name) => {
                    if let Some(count) = self.referrers.get_mut(name) {
                        *count -= 1;
                        if *count == 0 {
                            self.referrers.remove(name);
                        }
                    }
                }
                Ref::To(Kind::Endpoints, name) if kind == Kind::Cluster => {
                    let still = now != 0 && self.snapshot.get(kind, &old.name).is_some_and(|new| new.refs.contains(to));
                    if still {
                        continue;
                    }
                    if let Some(users) = self.users.get_mut(name) {
                        users.retain(|(user, _)| *user != old.name);
                        if users.is_empty() {
                            self.users.remove(name);
                        }
                        endpoints.insert(name.clone());
                    }
                }
                _ => {}
            }
        }
    }

    /// Gives an endpoint set the version that its users call for.
    fn reversion(&mut self, name: &Name) {
        let Some(entry) = self.snapshot.get(Kind::Endpoints, name) else { return };
        let version = entry.role.version(self.endpoints_hash(name, &entry.body));
        if entry.version != version {
            let entry = Arc::new(Entry { version, ..Entry::clone(entry) });
            self.snapshot.tables[Kind::Endpoints.index()].put(entry);
        }
    }

    fn endpoints_hash(&self, name: &Name, body: &[u8]) -> u64 {
        let content = content_version(body);
        let Some(users) = self.users.get(name) else { return content };
        let mut hash = Xxh3::with_seed(content);
        for (cluster, version) in users {
            hash.update(cluster.as_bytes());
            hash.update(&version.to_le_bytes());
        }
        hash.digest()
    }
}
