//! The objects of which it is not known that proxies have them, and the resources that they wait for.
//!
//! In: what carries each object, what is published, and of which versions proxies have come to have them. Out: versions to ask
//! about, and objects that proxies have all of. Each object waits in the list of *one* resource that proxies do not have; when
//! they do, the object goes on to the next such resource, or is done. So what happens to a resource costs those who wait for
//! it and nobody else, and a resource that all objects share may change as often as it likes while they wait for others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::ObjectRef;
use pipeline::ObjectResource;
use status::Programmed;
use xds::{Kind, Name, Version};

#[cfg(test)]
mod tests;

/// What is to be asked from now on, or no longer.
#[derive(Debug, PartialEq, Eq)]
pub enum Question {
    /// Do proxies have it?
    Ask(Version),
    /// Never mind.
    Forget(Version),
}

type Key = (Kind, Name);

/// An object that waits.
struct Object {
    batch: u64,
    resources: Arc<Vec<ObjectResource>>,
    /// In whose list it is.
    waits_for: Option<Key>,
}

/// A resource that objects wait for.
#[derive(Default)]
struct Resource {
    /// The version that they wait for; none while nothing is published under the name.
    version: Option<u64>,
    /// It is whatever is published, because many objects share it.
    is_shared: bool,
    /// Proxies have it.
    is_programmed: bool,
    /// How many objects are carried by it.
    users: usize,
    waiting: BTreeSet<ObjectRef>,
}

/// All of them.
#[derive(Default)]
pub struct Awaited {
    objects: HashMap<ObjectRef, Object>,
    resources: HashMap<Key, Resource>,
    /// Whether resources are followed; else objects are only remembered.
    is_asking: bool,
    questions: Vec<Question>,
    programmed: Vec<(ObjectRef, Programmed)>,
    /// How many resources were looked at: what all of it has cost.
    looks: u64,
}

impl Awaited {
    /// Takes what carries an object since a batch; nothing if it is no longer ours. `published` knows the version of what
    /// is published.
    pub fn put(
        &mut self,
        object: ObjectRef,
        batch: u64,
        resources: Option<Arc<Vec<ObjectResource>>>,
        published: impl Fn(Kind, &str) -> Option<u64>,
    ) {
        let before = self.objects.remove(&object);
        // An object of which nothing is served has nothing to wait for, and nothing to say.
        if let Some(resources) = resources.filter(|resources| !resources.is_empty()) {
            self.objects.insert(object.clone(), Object { batch, resources: resources.clone(), waits_for: None });
            if self.is_asking {
                self.follow(&resources, &published);
                self.wait(&object);
            }
        }
        // After the new ones: what both have is not asked anew.
        if let Some(before) = before {
            self.leave(&object, &before);
        }
    }

    /// Begins to follow resources.
    pub fn begin(&mut self, published: impl Fn(Kind, &str) -> Option<u64>) {
        self.is_asking = true;
        let all: Vec<_> = self.objects.iter().map(|(object, of)| (object.clone(), of.resources.clone())).collect();
        for (object, resources) in all {
            self.follow(&resources, &published);
            self.wait(&object);
        }
    }

    /// No longer follows resources; what objects are carried by is remembered.
    pub fn end(&mut self) {
        self.is_asking = false;
        self.resources.clear();
        self.questions.clear();
        self.objects.values_mut().for_each(|object| object.waits_for = None);
    }

    /// A resource is published in another version, or no longer.
    pub fn publish(&mut self, kind: Kind, name: &Name, version: Option<u64>) {
        let key = (kind, name.clone());
        if self.resources.get(&key).is_some_and(|resource| resource.is_shared) {
            self.expect(&key, version);
        }
    }

    /// Proxies have come to have a version, or no longer do.
    pub fn answer(&mut self, version: &Version, is_programmed: bool) {
        self.looks += 1;
        let key = (version.kind, version.name.clone());
        let Some(resource) = self.resources.get_mut(&key) else { return };
        if resource.version != Some(version.version) {
            return;
        }
        resource.is_programmed = is_programmed;
        if is_programmed {
            let waiting = std::mem::take(&mut resource.waiting);
            waiting.iter().for_each(|object| self.wait(object));
        }
    }

    /// What is to be asked since the last time.
    pub fn questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    /// The objects that proxies have come to have all of since the last time.
    pub fn programmed(&mut self) -> Vec<(ObjectRef, Programmed)> {
        std::mem::take(&mut self.programmed)
    }

    /// Follows the resources that carry an object.
    fn follow(&mut self, resources: &[ObjectResource], published: &impl Fn(Kind, &str) -> Option<u64>) {
        for part in resources {
            self.looks += 1;
            let key = (part.kind, part.name.clone());
            let resource = self.resources.entry(key.clone()).or_default();
            resource.users += 1;
            resource.is_shared = part.hash.is_none();
            let version = part.hash.or_else(|| published(part.kind, &part.name));
            self.expect(&key, version);
        }
    }

    /// From now on that version of a resource is waited for.
    fn expect(&mut self, key: &Key, version: Option<u64>) {
        self.looks += 1;
        let Some(resource) = self.resources.get_mut(key) else { return };
        let before = std::mem::replace(&mut resource.version, version);
        if before == version {
            return;
        }
        resource.is_programmed = false;
        let of = |version: u64| Version { kind: key.0, name: key.1.clone(), version };
        self.questions.extend(before.map(|version| Question::Forget(of(version))));
        self.questions.extend(version.map(|version| Question::Ask(of(version))));
    }

    /// Puts an object into the list of the first of its resources that proxies do not have; if they have all, it is done.
    fn wait(&mut self, object: &ObjectRef) {
        let Some(of) = self.objects.get_mut(object) else { return };
        for part in of.resources.iter() {
            self.looks += 1;
            let key = (part.kind, part.name.clone());
            let Some(resource) = self.resources.get_mut(&key).filter(|resource| !resource.is_programmed) else {
                continue;
            };
            resource.waiting.insert(object.clone());
            of.waits_for = Some(key);
            return;
        }
        if let Some(of) = self.objects.remove(object) {
            self.programmed.push((object.clone(), Programmed { batch: of.batch, is_programmed: true }));
            self.leave(object, &Object { waits_for: None, ..of });
        }
    }

    /// Forgets what only this object waited for.
    fn leave(&mut self, object: &ObjectRef, of: &Object) {
        if !self.is_asking {
            return;
        }
        // Its new form may wait in the same list.
        let waits_for = self.objects.get(object).and_then(|of| of.waits_for.as_ref());
        if let Some(key) = of.waits_for.as_ref().filter(|key| Some(*key) != waits_for)
            && let Some(resource) = self.resources.get_mut(key)
        {
            resource.waiting.remove(object);
        }
        for part in of.resources.iter() {
            self.looks += 1;
            let key = (part.kind, part.name.clone());
            let Some(resource) = self.resources.get_mut(&key) else { continue };
            resource.users -= 1;
            if resource.users == 0
                && let Some(Resource { version: Some(version), .. }) = self.resources.remove(&key)
            {
                self.questions.push(Question::Forget(Version { kind: key.0, name: key.1, version }));
            }
        }
    }
}
