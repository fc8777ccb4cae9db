//! The objects that proxies have not acknowledged yet, and the resources that they wait for.
//!
//! In: the resources of each object, each of a fleet, the published versions, and the versions that proxies of the fleet have
//! acknowledged. Out: versions to ask about, and objects of which proxies have acknowledged every resource. Each object waits in the list of *one* resource
//! that is not acknowledged; when it is, the object moves on to the next such resource, or is done. So an acknowledgement
//! costs the objects that wait for it and no others, and a resource that all objects share may change any number of times
//! while they wait for other resources.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::status::ProxyCounts;
use model::{FleetId, ObjectRef};
use pipeline::ObjectResource;
use status::Programmed;
use xds::{Kind, Name, Version};

#[cfg(test)]
mod tests;

/// A version to ask the replicas about, or no longer.
#[derive(Debug, PartialEq, Eq)]
pub enum Question {
    /// Have proxies of the fleet acknowledged it?
    Ask(FleetId, Version),
    /// The answer no longer matters.
    Forget(FleetId, Version),
}

type Key = (FleetId, Kind, Name);

/// An object that waits.
struct Object {
    batch: u64,
    resources: Arc<Vec<ObjectResource>>,
    /// The resource in whose list it is.
    waits_for: Option<Key>,
}

/// A resource that objects wait for.
#[derive(Default)]
struct Resource {
    /// The version that they wait for; none while nothing is published under the name.
    version: Option<u64>,
    /// Many objects share it, so the version is whatever is published.
    is_shared: bool,
    /// The proxies that have acknowledged it; none while some have not answered.
    programmed: Option<ProxyCounts>,
    /// How many objects consist of it.
    users: usize,
    waiting: BTreeSet<ObjectRef>,
}

/// All of them.
#[derive(Default)]
pub struct Awaited {
    objects: HashMap<ObjectRef, Object>,
    resources: HashMap<Key, Resource>,
    /// Whether acknowledgements are followed; otherwise objects are only remembered.
    is_asking: bool,
    questions: Vec<Question>,
    programmed: Vec<(ObjectRef, Programmed)>,
    /// How many resources were looked at: the cost so far.
    looks: u64,
}

impl Awaited {
    /// Takes the resources of an object as of a batch; none if it is no longer ours. `published` gives the published version
    /// of a resource.
    pub fn put(
        &mut self,
        object: ObjectRef,
        batch: u64,
        resources: Option<Arc<Vec<ObjectResource>>>,
        published: impl Fn(&FleetId, Kind, &str) -> Option<u64>,
    ) {
        let before = self.objects.remove(&object);
        // An object without resources has nothing to wait for, and nothing to report.
        if let Some(resources) = resources.filter(|resources| !resources.is_empty()) {
            self.objects.insert(object.clone(), Object { batch, resources: resources.clone(), waits_for: None });
            if self.is_asking {
                self.follow(&resources, &published);
                self.wait(&object);
            }
        }
        // After the new ones: a resource that both have is not asked about again.
        if let Some(before) = before {
            self.leave(&object, &before);
        }
    }

    /// The fleets that serve the objects.
    pub fn fleets(&self) -> BTreeSet<FleetId> {
        self.objects.values().flat_map(|object| object.resources.iter()).map(|part| part.fleet.clone()).collect()
    }

    /// Begins to follow acknowledgements.
    pub fn begin(&mut self, published: impl Fn(&FleetId, Kind, &str) -> Option<u64>) {
        self.is_asking = true;
        let all: Vec<_> = self.objects.iter().map(|(object, of)| (object.clone(), of.resources.clone())).collect();
        for (object, resources) in all {
            self.follow(&resources, &published);
            self.wait(&object);
        }
    }

    /// No longer follows acknowledgements; the resources of objects are remembered.
    pub fn end(&mut self) {
        self.is_asking = false;
        self.resources.clear();
        self.questions.clear();
        self.objects.values_mut().for_each(|object| object.waits_for = None);
    }

    /// A resource of a fleet was published in another version, or removed.
    pub fn publish(&mut self, fleet: &FleetId, kind: Kind, name: &Name, version: Option<u64>) {
        let key = (fleet.clone(), kind, name.clone());
        if self.resources.get(&key).is_some_and(|resource| resource.is_shared) {
            self.expect(&key, version);
        }
    }

    /// Proxies of a fleet have acknowledged a version, or no longer have.
    pub fn answer(&mut self, fleet: &FleetId, version: &Version, programmed: Option<ProxyCounts>) {
        self.looks += 1;
        let key = (fleet.clone(), version.kind, version.name.clone());
        let Some(resource) = self.resources.get_mut(&key) else { return };
        if resource.version != Some(version.version) {
            return;
        }
        resource.programmed = programmed;
        if programmed.is_some() {
            let waiting = std::mem::take(&mut resource.waiting);
            waiting.iter().for_each(|object| self.wait(object));
        }
    }

    /// The questions since the last call.
    pub fn questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    /// The objects that proxies have acknowledged since the last call.
    pub fn programmed(&mut self) -> Vec<(ObjectRef, Programmed)> {
        std::mem::take(&mut self.programmed)
    }

    /// Follows the resources of an object.
    fn follow(&mut self, resources: &[ObjectResource], published: &impl Fn(&FleetId, Kind, &str) -> Option<u64>) {
        for part in resources {
            self.looks += 1;
            let key = key(part);
            let resource = self.resources.entry(key.clone()).or_default();
            resource.users += 1;
            resource.is_shared = part.hash.is_none();
            let version = part.hash.or_else(|| published(&part.fleet, part.kind, &part.name));
            self.expect(&key, version);
        }
    }

    /// Waits for that version of a resource from now on.
    fn expect(&mut self, key: &Key, version: Option<u64>) {
        self.looks += 1;
        let Some(resource) = self.resources.get_mut(key) else { return };
        let before = std::mem::replace(&mut resource.version, version);
        if before == version {
            return;
        }
        resource.programmed = None;
        let of = |version: u64| Version { kind: key.1, name: key.2.clone(), version };
        self.questions.extend(before.map(|version| Question::Forget(key.0.clone(), of(version))));
        self.questions.extend(version.map(|version| Question::Ask(key.0.clone(), of(version))));
    }

    /// Puts an object into the list of the first of its resources that is not acknowledged; if all are, it is done.
    fn wait(&mut self, object: &ObjectRef) {
        let Some(of) = self.objects.get_mut(object) else { return };
        let mut fewest: Option<ProxyCounts> = None;
        for part in of.resources.iter() {
            self.looks += 1;
            let key = key(part);
            let Some(resource) = self.resources.get_mut(&key) else { continue };
            let Some(proxies) = resource.programmed else {
                resource.waiting.insert(object.clone());
                of.waits_for = Some(key);
                return;
            };
            fewest = Some(fewest.filter(|fewest| fewest.acknowledged <= proxies.acknowledged).unwrap_or(proxies));
        }
        if let Some(of) = self.objects.remove(object) {
            let proxies = Some(fewest.unwrap_or_default());
            self.programmed.push((object.clone(), Programmed { batch: of.batch, proxies }));
            self.leave(object, &Object { waits_for: None, ..of });
        }
    }

    /// Forgets the resources that only this object waited for.
    fn leave(&mut self, object: &ObjectRef, of: &Object) {
        if !self.is_asking {
            return;
        }
        // Its new version may wait in the same list.
        let waits_for = self.objects.get(object).and_then(|of| of.waits_for.as_ref());
        if let Some(key) = of.waits_for.as_ref().filter(|key| Some(*key) != waits_for)
            && let Some(resource) = self.resources.get_mut(key)
        {
            resource.waiting.remove(object);
        }
        for part in of.resources.iter() {
            self.looks += 1;
            let key = key(part);
            let Some(resource) = self.resources.get_mut(&key) else { continue };
            resource.users -= 1;
            if resource.users == 0
                && let Some(Resource { version: Some(version), .. }) = self.resources.remove(&key)
            {
                self.questions.push(Question::Forget(key.0, Version { kind: key.1, name: key.2, version }));
            }
        }
    }
}

fn key(part: &ObjectResource) -> Key {
    (part.fleet.clone(), part.kind, part.name.clone())
}
