//! What is withheld, and until when: after a refusal, and of resources that are too large to be sent.
//!
//! In: outcomes of the [`AckMonitor`](xds::AckMonitor), what other replicas withhold, and which types are too large. Out: rows
//! of [`WithheldVersions`]. A resource that belongs to one object or one host is withheld as a whole. One that many hosts share
//! is rejected as a whole, so the host has to be found: hosts whose bytes the rejecting proxy already has cannot be the cause;
//! if more than one is left and the error names none, half of them wait, with the bytes that proxies have or, if new, answering
//! 503, and the other half is tried. Whether that is accepted or rejected, the next try has at most half as many candidates; so
//! a thousand hosts take about twenty tries, and no host that was served stops being served.
//!
//! Everything here is found by index, so that a refusal or a batch costs what changed, whatever the size of the tables.

mod active;
mod shared;

pub use active::{ActiveTargets, WithheldByObject, declare};

use crate::{
    equal_hosts::SharedRouteResources,
    oversize::{self, Part, Sent},
    packing::{EncodedHosts, HostBytes, ScopeResources},
    redirects::RedirectScopes,
    resources::{EndpointResources, UdpEndpointResources},
    translations::HostKey,
    withheld::{self, FleetTarget, QuarantineTarget, Quarantined, WithheldVersions, WithholdReason},
};
use bytes::Bytes;
use engine::Engine;
use envoy::packing::{plain, scoped};
use model::FleetId;
use shared::SharedResource;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use xds::{Entry, Kind, Name, Outcome, Ref, ResourceOutcome, Role};

/// A resource that many hosts of a fleet share, by type and name.
type ResourceId = (FleetId, Kind, Name);

/// A host that waits: the version that does, and what proxies have of it.
type Waiting = (u64, Option<Arc<HostBytes>>);

/// What several replicas withhold in a fleet.
type ByTarget = BTreeMap<QuarantineTarget, Vec<Quarantined>>;

/// What is withheld, by this replica and by others, and which hosts wait for a try.
#[derive(Default)]
pub struct Quarantine {
    own: BTreeMap<FleetTarget, Quarantined>,
    /// What others withhold.
    others: BTreeMap<FleetId, ByTarget>,
    /// The hosts that wait for a try of each resource, and the same by host.
    tried: BTreeMap<ResourceId, BTreeSet<FleetTarget>>,
    waiting: BTreeMap<FleetTarget, BTreeMap<ResourceId, Waiting>>,
    /// What is withheld for its size, with the reason. Other replicas reach the same result by themselves.
    large: BTreeMap<FleetTarget, Large>,
    /// What was let go last of a type, and how much room there was for it. Where that did not fit after all, it takes more room to try again.
    readmitted: BTreeMap<(FleetId, Kind), (FleetTarget, usize)>,
    /// Targets withheld since [`Self::tidy`] last ran: their outcome may have been about an earlier version.
    unchecked: BTreeSet<FleetTarget>,
    /// The fleets of which what this replica withholds has changed.
    changed: BTreeSet<FleetId>,
}

/// Something that is withheld for its size.
struct Large {
    /// The type of the resources that are too large together.
    kind: Kind,
    /// How large they may be.
    limit: usize,
    part: Part,
    /// Its place in the order in which parts go. The last is the first that comes back.
    rank: usize,
    text: Arc<str>,
}

impl Large {
    fn new(kind: Kind, limit: usize, rank: usize, part: Part) -> Self {
        let bytes = part.bytes;
        let why = format!("it has {bytes} bytes, and all {kind} resources together exceed the limit of {limit} bytes");
        let text = match &part.namespace {
            Some(namespace) => {
                format!("{why}; of the namespaces that have the most, such as {namespace}, the largest are withheld")
            }
            None => why,
        };
        Self { kind, limit, part, rank, text: text.into() }
    }
}

impl Quarantine {
    /// Takes the outcome of a resource.
    pub fn on_outcome(&mut self, engine: &mut Engine, fleet: &FleetId, outcome: &ResourceOutcome) {
        let resource = (fleet.clone(), outcome.kind, outcome.name.clone());
        let Outcome::Rejected { text, held } = &outcome.outcome else {
            self.release(engine, &resource);
            return;
        };
        let target = FleetTarget::resource(fleet.clone(), outcome.kind, outcome.name.clone());
        // A stand-in that is rejected leaves nothing to try.
        if engine.get::<ActiveTargets>(&target).is_some() {
            return;
        }
        let Some(shared) = SharedResource::find(engine, &resource) else {
            // An outcome of an earlier version withholds nothing, and `tidy` drops it.
            self.hold(engine, target, outcome.content, text);
            return;
        };
        if shared.resource.role == Role::Own && shared.resource.hash == outcome.content {
            self.search(engine, resource, &shared, text, held.as_deref());
        }
    }

    /// Takes everything that other replicas withhold in a fleet.
    pub fn share(&mut self, engine: &mut Engine, fleet: &FleetId, withheld: Vec<Quarantined>) {
        let mut now = ByTarget::new();
        for hold in withheld {
            now.entry(hold.target.clone()).or_default().push(hold);
        }
        let before = self.others.remove(fleet).unwrap_or_default();
        let mut changed: BTreeSet<QuarantineTarget> =
            before.iter().filter(|(target, holds)| now.get(*target) != Some(holds)).map(key).collect();
        changed.extend(now.iter().filter(|(target, _)| !before.contains_key(*target)).map(key));
        if !now.is_empty() {
            self.others.insert(fleet.clone(), now);
        }
        for target in changed {
            self.write(engine, &FleetTarget { fleet: fleet.clone(), target });
        }
    }

    /// Withholds of a type what goes first ([`oversize`]), because all of it together has `excess` bytes more than `limit`; says
    /// whether that changed anything. What is computed on another thread is withheld when that is done.
    pub fn shed(&mut self, engine: &mut Engine, fleet: &FleetId, kind: Kind, excess: usize, limit: usize) -> bool {
        self.rebalance(engine, fleet, kind, limit, |held| held + excess)
    }

    /// Lets go of what was withheld for its size and fits by now, what went last first; says whether there was any. Who does not
    /// fit holds up those who went before: else who came first would decide. So only the last one is looked at where it does not.
    pub fn readmit(&mut self, engine: &mut Engine, room: impl Fn(&FleetId, Kind) -> usize) -> bool {
        self.readmitted.retain(|_, (target, _)| self.large.contains_key(target));
        let mut last: BTreeMap<(&FleetId, Kind), &Large> = BTreeMap::new();
        for large in self.large.values() {
            let last = last.entry((&large.part.target.fleet, large.kind)).or_insert(large);
            if last.rank < large.rank {
                *last = large;
            }
        }
        let fits = last.into_iter().filter_map(|((fleet, kind), large)| {
            let room = room(fleet, kind);
            let before = self.readmitted.get(&(fleet.clone(), kind));
            let was_too_large = before.is_some_and(|(_, tried)| room <= *tried);
            let fits = room > 0 && !was_too_large && large.part.freed.is_none_or(|bytes| bytes <= room);
            fits.then(|| (large.part.target.clone(), kind, large.limit, room))
        });
        let fits: Vec<(FleetTarget, Kind, usize, usize)> = fits.collect();
        let mut any = false;
        for (target, kind, limit, room) in fits {
            let fleet = target.fleet.clone();
            self.readmitted.insert((fleet.clone(), kind), (target, room));
            any |= self.rebalance(engine, &fleet, kind, limit, |held| held.saturating_sub(room));
        }
        any
    }

    /// Decides anew what is withheld of a type for its size. `excess` says by how many bytes all of it is too large, given what is
    /// saved by what is withheld now. Says whether anything has changed.
    fn rebalance(
        &mut self,
        engine: &mut Engine,
        fleet: &FleetId,
        kind: Kind,
        limit: usize,
        excess: impl FnOnce(usize) -> usize,
    ) -> bool {
        let mut sent = oversize::sent(engine, fleet, kind);
        let held = self.held(fleet, kind, &sent);
        let saved = held.iter().filter_map(|part| part.freed).sum();
        sent.parts.extend(held);
        let mut back: BTreeSet<FleetTarget> =
            self.large_of(fleet, kind).map(|large| large.part.target.clone()).collect();
        let mut any = false;
        for (rank, part) in oversize::first_to_go(sent.parts, excess(saved)).into_iter().enumerate() {
            back.remove(&part.target);
            any |= self.hold_large(engine, Large::new(kind, limit, rank, part));
        }
        any |= !back.is_empty();
        for target in back {
            self.large.remove(&target);
            self.write(engine, &target);
        }
        any
    }

    fn large_of(&self, fleet: &FleetId, kind: Kind) -> impl Iterator<Item = &Large> {
        self.large.values().filter(move |large| large.kind == kind && large.part.target.fleet == *fleet)
    }

    /// The parts of a type that are withheld for their size, with what that saves.
    fn held(&self, fleet: &FleetId, kind: Kind, sent: &Sent) -> Vec<Part> {
        let still_sent: HashSet<&FleetTarget> = sent.parts.iter().map(|part| &part.target).collect();
        let held = self.large_of(fleet, kind).filter(|large| !still_sent.contains(&large.part.target));
        let with_saved = |Large { part, .. }: &Large| {
            let stand_in = sent.stand_ins.get(&part.target).copied().unwrap_or_default();
            Part { freed: Some(part.bytes.saturating_sub(stand_in)), ..part.clone() }
        };
        held.map(with_saved).collect()
    }

    /// Says whether it was not withheld for its size before.
    fn hold_large(&mut self, engine: &mut Engine, large: Large) -> bool {
        let target = large.part.target.clone();
        let before = self.large.get(&target);
        let is_new = before.is_none_or(|before| before.part.hash != large.part.hash);
        self.large.insert(target.clone(), large);
        if is_new {
            self.unchecked.insert(target.clone());
            self.write(engine, &target);
        }
        is_new
    }

    /// What is withheld for its size although no object can be told: a listener, which all share.
    pub fn unreported(&self) -> Option<String> {
        let listeners = self.large.values().filter(|large| large.kind == Kind::Listener);
        let listener = listeners.max_by_key(|large| large.part.bytes)?;
        Some(format!("listener {} is withheld: {}", listener.part.target.target.name, listener.text))
    }

    /// Drops what no longer applies because its objects have changed; says whether there was any. To be called when the
    /// engine has settled.
    pub fn tidy(&mut self, engine: &mut Engine) -> bool {
        let mut targets = std::mem::take(&mut self.unchecked);
        targets.extend(engine.changes::<ActiveTargets>().gone);
        let (computing, targets): (BTreeSet<_>, BTreeSet<_>) =
            targets.into_iter().partition(|target| is_computing(engine, target));
        self.unchecked = computing;
        let mut any = false;
        for target in targets.iter().filter(|target| engine.get::<ActiveTargets>(target).is_none()).collect::<Vec<_>>()
        {
            let (own, large) = (self.own.remove(target).is_some(), self.large.remove(target).is_some());
            if own {
                self.changed.insert(target.fleet.clone());
            }
            if own || large {
                self.write(engine, target);
                any = true;
            }
        }
        let gone = |resource: &&ResourceId| SharedResource::find(engine, resource).is_none();
        let ended: Vec<ResourceId> = self.tried.keys().filter(gone).cloned().collect();
        ended.iter().for_each(|resource| self.release(engine, resource));
        any || !ended.is_empty()
    }

    /// What this replica withholds in each fleet of which that has changed since the last time.
    pub fn take_changes(&mut self) -> Vec<(FleetId, Vec<Quarantined>)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let withheld = |fleet: &FleetId| {
            let from_here = self.own.range(FleetTarget::least_of(fleet.clone())..);
            let here = from_here.take_while(|(target, _)| target.fleet == *fleet);
            here.map(|(_, withheld)| withheld.clone()).collect()
        };
        changed.map(|fleet| (fleet.clone(), withheld(&fleet))).collect()
    }

    /// The resources that are being tried.
    pub fn probes(&self) -> impl Iterator<Item = ResourceId> {
        self.tried.keys().cloned()
    }

    fn search(
        &mut self,
        engine: &mut Engine,
        resource: ResourceId,
        shared: &SharedResource,
        text: &Arc<str>,
        held: Option<&Entry>,
    ) {
        let split = if resource.1 == Kind::Route { plain::hosts } else { scoped::hosts };
        let body = &shared.resource.body;
        let before: HashMap<String, Bytes> =
            held.map(|held| split(&held.body)).unwrap_or_default().into_iter().collect();
        let mut suspects: Vec<(&HostKey, Arc<HostBytes>)> = shared
            .hosts
            .iter()
            .filter_map(|key| Some((key, engine.get::<EncodedHosts>(key)?.clone())))
            .filter(|(_, host)| host.refused.is_none() && !host.waits)
            .filter(|(key, host)| before.get(&key.1.to_string()) != Some(&host.bytes))
            .collect();
        let named = named(text, &split(body));
        if suspects.iter().any(|(key, _)| named.contains(&key.1.to_string())) {
            suspects.retain(|(key, _)| named.contains(&key.1.to_string()));
        }
        match suspects.as_slice() {
            [] => {
                self.release(engine, &resource);
                let hash = xds::content_version(body);
                let (fleet, kind, name) = resource;
                self.hold(engine, FleetTarget::resource(fleet, kind, name), hash, text);
            }
            [(key, host)] => {
                self.release(engine, &resource);
                self.hold(engine, withheld::of_host(key), host.hash, text);
            }
            many => {
                // Which host uses which of the clusters that proxies have is unknown: the first brings them all.
                let mut clusters = held.map(clusters).unwrap_or_default();
                for (key, host) in &many[many.len() / 2..] {
                    let instead = before.get(&key.1.to_string()).map(|bytes| {
                        let clusters = std::mem::take(&mut clusters);
                        Arc::new(HostBytes { bytes: bytes.clone(), clusters, ..HostBytes::clone(host) })
                    });
                    let target = withheld::of_host(key);
                    self.tried.entry(resource.clone()).or_default().insert(target.clone());
                    let waiting = self.waiting.entry(target.clone()).or_default();
                    waiting.insert(resource.clone(), (host.hash, instead));
                    self.write(engine, &target);
                }
            }
        }
    }

    fn hold(&mut self, engine: &mut Engine, target: FleetTarget, hash: u64, text: &Arc<str>) {
        let withheld = Quarantined { target: target.target.clone(), hash, text: text.clone() };
        self.own.insert(target.clone(), withheld);
        self.changed.insert(target.fleet.clone());
        self.write(engine, &target);
        self.unchecked.insert(target);
    }

    /// Lets all hosts of a resource be tried together again.
    fn release(&mut self, engine: &mut Engine, resource: &ResourceId) {
        for target in self.tried.remove(resource).unwrap_or_default() {
            if let Some(waiting) = self.waiting.get_mut(&target) {
                waiting.remove(resource);
                if waiting.is_empty() {
                    self.waiting.remove(&target);
                }
            }
            self.write(engine, &target);
        }
    }

    /// Writes everything that is known about a target into its row.
    fn write(&self, engine: &mut Engine, target: &FleetTarget) {
        let others = self.others.get(&target.fleet).and_then(|withheld| withheld.get(&target.target));
        let others = others.into_iter().flatten();
        let held = self.own.get(target).into_iter().chain(others);
        let mut row: BTreeMap<u64, WithholdReason> = BTreeMap::new();
        for hold in held {
            row.entry(hold.hash).or_insert_with(|| WithholdReason::Withheld(hold.text.clone()));
        }
        if let Some(large) = self.large.get(target) {
            row.entry(large.part.hash).or_insert_with(|| WithholdReason::TooLarge(large.text.clone()));
        }
        for (hash, instead) in self.waiting.get(target).into_iter().flat_map(BTreeMap::values) {
            row.entry(*hash).or_insert_with(|| WithholdReason::Waits(instead.clone()));
        }
        if row.is_empty() {
            engine.remove::<WithheldVersions>(target);
        } else {
            engine.set::<WithheldVersions>(target, row.into_iter().collect::<Vec<_>>());
        }
    }
}

fn clusters(entry: &Entry) -> Vec<Arc<str>> {
    let names = entry.refs.iter().filter_map(|to| match to {
        Ref::To(Kind::Cluster, name) => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

/// Whether a row that may be withheld is still computed on another thread, or waits to be computed, and does not know of it yet.
fn is_computing(engine: &Engine, target: &FleetTarget) -> bool {
    if engine.backlog() > 0 {
        return true;
    }
    match &target.target {
        QuarantineTarget { host: Some(_), .. } => engine.offloaded_of::<EncodedHosts>() > 0,
        QuarantineTarget { kind: Kind::Route, .. } => engine.offloaded_of::<SharedRouteResources>() > 0,
        QuarantineTarget { kind: Kind::ScopedRoute, .. } => {
            engine.offloaded_of::<ScopeResources>() + engine.offloaded_of::<RedirectScopes>() > 0
        }
        QuarantineTarget { kind: Kind::Endpoints, .. } => {
            engine.offloaded_of::<EndpointResources>() + engine.offloaded_of::<UdpEndpointResources>() > 0
        }
        _ => false,
    }
}

fn key<V>((target, _): (&QuarantineTarget, V)) -> QuarantineTarget {
    target.clone()
}

/// The hosts that a text names: by name, or by their place in the list.
fn named(text: &str, hosts: &[(String, Bytes)]) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for mark in ["virtual_hosts[", "VirtualHosts["] {
        for (at, _) in text.match_indices(mark) {
            let digits = text[at + mark.len()..].split(']').next().unwrap_or_default();
            let host = digits.parse::<usize>().ok().and_then(|place| hosts.get(place));
            named.extend(host.map(|(name, _)| name.clone()));
        }
    }
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '*' | '_');
    for word in text.split(|c: char| !inside(c)).map(|word| word.trim_end_matches('.')) {
        if word.contains('.') && hosts.iter().any(|(name, _)| name == word) {
            named.insert(word.to_owned());
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_hosts_by_name_or_by_place() {
        let hosts = ["a.example.com", "b.a.example.com", "*.example.com"].map(|name| (name.to_owned(), Bytes::new()));
        let named = |text: &str| named(text, &hosts).into_iter().collect::<Vec<_>>();
        assert_eq!(named("VirtualHosts[1]: embedded message failed validation"), ["b.a.example.com"]);
        assert_eq!(named("only one match for domain 'a.example.com'."), ["a.example.com"]);
        assert_eq!(named("duplicate domain *.example.com in b.example.com"), ["*.example.com"]);
        assert!(named("missing ): (").is_empty());
    }
}
