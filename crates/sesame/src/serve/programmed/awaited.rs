//! The objects that proxies have not acknowledged yet, and the resources that they wait for.
//!
//! In: the resources of each object, each of a fleet, the published versions, the versions that proxies of the fleet have
//! acknowledged, and whether the fleet has proxies. Out: versions to ask about, and what became of objects: proxies have acknowledged
//! every resource, or there are none. Each object waits in the list of *one* resource that is not acknowledged; when it is, the
//! object moves on to the next such resource, or is done. So an acknowledgement costs the objects that wait for it and no others, and
//! a resource that all objects share may change any number of times while they wait for other resources.
//!
//! An object of which a proxy refuses a resource that the others have is done, too, and stays in the list of that resource for as
//! long as it is refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use model::status::{ProxyCounts, ProxyRefusal, ProxyState};
use model::{FleetId, ObjectRef};
use pipeline::{ObjectResource, ServedObject};
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

/// Whether a fleet has proxies, over all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetProxies {
    /// Some are connected.
    Present,
    /// None is connected.
    Absent,
    /// None has been connected for so long that what earlier ones acknowledged no longer counts.
    LongAbsent,
}

type Key = (FleetId, Kind, Name);

/// An object that is served.
struct Object {
    batch: u64,
    resources: Arc<ServedObject>,
    /// Whether its resources are followed: not when proxies have acknowledged all of them.
    is_followed: bool,
    /// The resource in whose list it is.
    waits_for: Option<Key>,
    /// What was last reported.
    reported: Option<ProxyState>,
}

/// A resource that objects wait for.
#[derive(Default)]
struct Resource {
    /// The version that they wait for; none while nothing is published under the name.
    version: Option<u64>,
    /// Many objects share it, so the version is whatever is published.
    is_shared: bool,
    /// The proxies that have acknowledged it; none while some have not answered.
    programmed: Option<(ProxyCounts, Option<Arc<ProxyRefusal>>)>,
    /// How many objects consist of it.
    users: usize,
    waiting: BTreeSet<ObjectRef>,
}

/// All of them.
#[derive(Default)]
pub struct Awaited {
    objects: HashMap<ObjectRef, Object>,
    resources: HashMap<Key, Resource>,
    /// The fleets without proxies, and whether that has lasted.
    absent: BTreeMap<FleetId, bool>,
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
        resources: Option<Arc<ServedObject>>,
        published: impl Fn(&FleetId, Kind, &str) -> Option<u64>,
    ) {
        let before = self.objects.remove(&object);
        // An object without resources has nothing to wait for, and nothing to report.
        if let Some(resources) = resources.filter(|resources| !resources.is_empty()) {
            let of = Object { batch, resources, is_followed: false, waits_for: None, reported: None };
            self.objects.insert(object.clone(), of);
            if self.is_asking {
                self.follow(&object, &published);
                self.report_absence(&object);
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
        for object in self.objects.keys().cloned().collect::<Vec<_>>() {
            self.follow(&object, &published);
            self.wait(&object);
        }
    }

    /// No longer follows acknowledgements; the resources of objects are remembered.
    pub fn end(&mut self) {
        self.is_asking = false;
        self.resources.clear();
        self.questions.clear();
        self.absent.clear();
        for object in self.objects.values_mut() {
            (object.is_followed, object.waits_for, object.reported) = (false, None, None);
        }
    }

    /// A fleet has proxies, or none. Objects that have waited for them are told, and in the end all that the fleet serves.
    pub fn set_proxies(
        &mut self,
        fleet: &FleetId,
        proxies: FleetProxies,
        published: impl Fn(&FleetId, Kind, &str) -> Option<u64>,
    ) {
        match proxies {
            FleetProxies::Present => _ = self.absent.remove(fleet),
            FleetProxies::Absent => _ = self.absent.insert(fleet.clone(), false),
            FleetProxies::LongAbsent => _ = self.absent.insert(fleet.clone(), true),
        }
        let is_concerned = |object: &Object| {
            (!object.is_done() || proxies == FleetProxies::LongAbsent)
                && object.resources.iter().any(|part| part.fleet == *fleet)
        };
        let concerned =
            self.objects.iter().filter(|(_, object)| is_concerned(object)).map(|(object, _)| object.clone());
        for object in concerned.collect::<Vec<_>>() {
            let Some(of) = self.objects.get(&object) else { continue };
            let (is_followed, is_absent) = (of.is_followed, matches!(of.reported, Some(ProxyState::NoProxies { .. })));
            if proxies != FleetProxies::Present {
                self.report_absence(&object);
            } else if is_absent {
                self.report(&object, ProxyState::Waiting);
            }
            if !is_followed {
                self.follow(&object, &published);
                self.wait(&object);
            }
        }
    }

    /// A fleet is gone.
    pub fn forget(&mut self, fleet: &FleetId) {
        self.absent.remove(fleet);
    }

    /// A resource of a fleet was published in another version, or removed.
    pub fn publish(&mut self, fleet: &FleetId, kind: Kind, name: &Name, version: Option<u64>) {
        let key = (fleet.clone(), kind, name.clone());
        if self.resources.get(&key).is_some_and(|resource| resource.is_shared) {
            self.expect(&key, version);
        }
    }

    /// Proxies of a fleet have acknowledged a version, or no longer have.
    pub fn answer(&mut self, fleet: &FleetId, version: &Version, state: Option<ProxyState>) {
        self.looks += 1;
        let key = (fleet.clone(), version.kind, version.name.clone());
        let Some(resource) = self.resources.get_mut(&key) else { return };
        if resource.version != Some(version.version) {
            return;
        }
        resource.programmed = match state {
            Some(ProxyState::Acknowledged { counts, refusal }) => Some((counts, refusal)),
            _ => None,
        };
        if resource.programmed.is_some() {
            let waiting = std::mem::take(&mut resource.waiting);
            waiting.iter().for_each(|object| self.wait(object));
        }
    }

    /// The questions since the last call.
    pub fn questions(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.questions)
    }

    /// What has become of objects since the last call.
    pub fn programmed(&mut self) -> Vec<(ObjectRef, Programmed)> {
        std::mem::take(&mut self.programmed)
    }

    /// Follows the resources of an object, unless they are followed.
    fn follow(&mut self, object: &ObjectRef, published: &impl Fn(&FleetId, Kind, &str) -> Option<u64>) {
        let Some(of) = self.objects.get_mut(object) else { return };
        if std::mem::replace(&mut of.is_followed, true) {
            return;
        }
        let resources = of.resources.clone();
        for part in resources.iter() {
            self.looks += 1;
            let key = key(part);
            let resource = self.resources.entry(key.clone()).or_default();
            resource.users += 1;
            resource.is_shared = part.hash.is_none();
            let version = part.hash.or_else(|| published(&part.fleet, part.kind, &part.name));
            self.expect(&key, version);
        }
    }

    /// Says of an object that a fleet that serves it has no proxies, if that is so.
    fn report_absence(&mut self, object: &ObjectRef) {
        let Some(of) = self.objects.get(object).filter(|_| !self.absent.is_empty()) else { return };
        let absent = of.resources.iter().filter_map(|part| self.absent.get(&part.fleet).copied());
        if let Some(is_lasting) = absent.max() {
            self.report(object, ProxyState::NoProxies { is_lasting });
        }
    }

    fn report(&mut self, object: &ObjectRef, state: ProxyState) {
        let Some(of) = self.objects.get_mut(object) else { return };
        if of.reported.as_ref() != Some(&state) {
            of.reported = Some(state.clone());
            self.programmed.push((object.clone(), Programmed { batch: of.batch, proxies: Some(state) }));
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

    /// Puts an object into the list of the first of its resources that is not acknowledged; if all are, it is done. One that is
    /// refused by a proxy keeps it in its list.
    fn wait(&mut self, object: &ObjectRef) {
        let Some(of) = self.objects.get_mut(object).filter(|of| of.is_followed) else { return };
        let mut fewest: Option<ProxyCounts> = None;
        let mut refused: Option<(Key, Arc<ProxyRefusal>)> = None;
        of.waits_for = None;
        for part in of.resources.iter() {
            self.looks += 1;
            let key = key(part);
            let Some(resource) = self.resources.get_mut(&key) else { continue };
            let Some((proxies, refusal)) = &resource.programmed else {
                resource.waiting.insert(object.clone());
                of.waits_for = Some(key);
                return;
            };
            fewest = Some(fewest.filter(|fewest| fewest.acknowledged <= proxies.acknowledged).unwrap_or(*proxies));
            if let Some(refusal) = refusal.as_ref().filter(|_| refused.is_none()) {
                refused = Some((key, refusal.clone()));
            }
        }
        let counts = fewest.unwrap_or_default();
        let refusal = refused.as_ref().map(|(_, refusal)| refusal.clone());
        if let Some((key, _)) = refused {
            if let Some(resource) = self.resources.get_mut(&key) {
                resource.waiting.insert(object.clone());
            }
            of.waits_for = Some(key);
        } else {
            of.is_followed = false;
            let resources = of.resources.clone();
            self.unfollow(&resources);
        }
        self.report(object, ProxyState::Acknowledged { counts, refusal });
    }

    /// Forgets the resources that only this object waited for.
    fn leave(&mut self, object: &ObjectRef, of: &Object) {
        if !of.is_followed {
            return;
        }
        // Its new version may wait in the same list.
        let waits_for = self.objects.get(object).and_then(|of| of.waits_for.as_ref());
        if let Some(key) = of.waits_for.as_ref().filter(|key| Some(*key) != waits_for)
            && let Some(resource) = self.resources.get_mut(key)
        {
            resource.waiting.remove(object);
        }
        self.unfollow(&of.resources);
    }

    fn unfollow(&mut self, resources: &[ObjectResource]) {
        for part in resources {
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
        // After the first build everything waits, and hardly anything ever again.
        if self.resources.len() < self.resources.capacity() / 8 {
            self.resources.shrink_to(self.resources.capacity() / 4);
        }
    }
}

impl Object {
    /// Whether proxies have acknowledged all of it.
    fn is_done(&self) -> bool {
        matches!(self.reported, Some(ProxyState::Acknowledged { .. }))
    }
}

fn key(part: &ObjectResource) -> Key {
    (part.fleet.clone(), part.kind, part.name.clone())
}
