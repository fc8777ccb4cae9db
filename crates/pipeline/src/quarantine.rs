//! What is done about a refusal, and about resources that are too large: which part is to blame, and what is held for how
//! long.
//!
//! In: outcomes of the clients' monitor, what other replicas hold, and which types are too large to be sent. Out: rows of
//! [`WithheldVersions`]. A resource that is one object's,
//! or one host's, is held as a whole. One that many hosts share is refused as a whole, so the host has to be found: those
//! that the refusing proxy already has as they are cannot be it; if more than one is left and the proxy's words name none,
//! half of them wait, as proxies have them or, if new, answering 503, and the other half is tried. Whether that is taken or
//! refused, the next try has at most half as many to look at; so a thousand hosts take about twenty tries, and no host that
//! served before stops serving.

use crate::{
    hosts::RouteTableOf,
    listeners::ListenerResources,
    oversize::{self, Part},
    packing::{EncodedHosts, HostBytes, RouteResources, ScopeResources},
    redirects::RedirectScopes,
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, Resource, Resources, SecretResources,
        TcpResources,
    },
    translations::HostKey,
    withheld::{self, Quarantined, Target, WithheldRows, WithheldVersions, WithholdReason},
};
use bytes::Bytes;
use engine::Engine;
use envoy::packing::{plain, scoped};
use model::{Host, RouteTableId};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use xds::{Entry, Kind, Name, Outcome, Ref, ResourceOutcome, Role};

/// A host that waits: the version that does, and what proxies have of it.
type Waiting = (u64, Option<Arc<HostBytes>>);

/// What is held, by us and by others, and which hosts wait for a try.
#[derive(Default)]
pub struct Quarantine {
    own: BTreeMap<Target, Quarantined>,
    others: BTreeMap<Target, Vec<Quarantined>>,
    waiting: BTreeMap<(Kind, Name), BTreeMap<Target, Waiting>>,
    /// What is withheld for its size, with the words for it. Other replicas come to the same by themselves.
    large: BTreeMap<Target, Large>,
    changed: bool,
}

/// Something that is withheld for its size.
struct Large {
    /// The type of the resources that are too large together.
    kind: Kind,
    part: Part,
    text: Arc<str>,
}

impl Quarantine {
    /// Takes what clients made of a resource.
    pub fn on_outcome(&mut self, engine: &mut Engine, outcome: &ResourceOutcome) {
        let resource = (outcome.kind, outcome.name.clone());
        let Outcome::Refused { text, held } = &outcome.outcome else {
            self.release(engine, &resource);
            return;
        };
        // A stand-in that is refused leaves nothing to try; anything else but what is made now is out of date.
        let Some(current) = find(engine, outcome.kind, &outcome.name) else { return };
        if current.role != Role::Own || current.hash != outcome.content {
            return;
        }
        match shared(engine, outcome.kind, &outcome.name) {
            None => self.hold(engine, Target::resource(outcome.kind, outcome.name.clone()), current.hash, text),
            Some(hosts) => self.search(engine, resource, &current.body, &hosts, text, held.as_deref()),
        }
    }

    /// Takes all that other replicas hold.
    pub fn share(&mut self, engine: &mut Engine, withheld: Vec<Quarantined>) {
        let mut touched: BTreeSet<Target> = std::mem::take(&mut self.others).into_keys().collect();
        for hold in withheld {
            self.others.entry(hold.target.clone()).or_default().push(hold);
        }
        touched.extend(self.others.keys().cloned());
        touched.iter().for_each(|target| self.write(engine, target));
    }

    /// Withholds the largest of a type, because all of them together have `excess` bytes more than `limit`; says whether
    /// there was anything left to withhold.
    pub fn shed(&mut self, engine: &mut Engine, kind: Kind, excess: usize, limit: usize) -> bool {
        let parts = oversize::largest(engine, kind, excess);
        let any = !parts.is_empty();
        for part in parts {
            let bytes = part.bytes;
            let text =
                format!("it has {bytes} bytes, and all {kind} resources together exceed the limit of {limit} bytes");
            let target = part.target.clone();
            self.large.insert(target.clone(), Large { kind, part, text: text.into() });
            self.write(engine, &target);
        }
        any
    }

    /// Lets go of what was withheld for its size and fits by now, the smallest first; says whether there was any.
    pub fn readmit(&mut self, engine: &mut Engine, room: impl Fn(Kind) -> usize) -> bool {
        let mut waiting: Vec<(usize, Kind, Target)> =
            self.large.iter().map(|(target, large)| (large.part.bytes, large.kind, target.clone())).collect();
        waiting.sort_unstable();
        let mut rooms: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut any = false;
        for (bytes, kind, target) in waiting {
            let left = rooms.entry(kind).or_insert_with(|| room(kind));
            // Whoever does not fit holds up those who are larger: else who came first would decide.
            let Some(rest) = left.checked_sub(bytes) else {
                *left = 0;
                continue;
            };
            *left = rest;
            self.large.remove(&target);
            self.write(engine, &target);
            any = true;
        }
        any
    }

    /// What is withheld for its size although no object can be told: a listener, which all share.
    pub fn untold(&self) -> Option<String> {
        let listeners = self.large.values().filter(|large| large.kind == Kind::Listener);
        let listener = listeners.max_by_key(|large| large.part.bytes)?;
        Some(format!("listener {} is withheld: {}", listener.part.target.name, listener.text))
    }

    /// Forgets what no longer applies, because the objects have changed; says whether anything did. To be called when the
    /// engine has settled.
    pub fn tidy(&mut self, engine: &mut Engine) -> bool {
        let gone: Vec<Target> = self.own.keys().filter(|target| !in_force(engine, target)).cloned().collect();
        for target in &gone {
            self.own.remove(target);
            self.changed = true;
            self.write(engine, target);
        }
        let small: Vec<Target> = self.large.keys().filter(|target| !in_force(engine, target)).cloned().collect();
        for target in &small {
            self.large.remove(target);
            self.write(engine, target);
        }
        let ended: Vec<_> =
            self.waiting.keys().filter(|(kind, name)| find(engine, *kind, name).is_none()).cloned().collect();
        ended.iter().for_each(|resource| self.release(engine, resource));
        !gone.is_empty() || !small.is_empty() || !ended.is_empty()
    }

    /// What this replica withholds, if it has changed since the last time.
    pub fn news(&mut self) -> Option<Vec<Quarantined>> {
        std::mem::take(&mut self.changed).then(|| self.own.values().cloned().collect())
    }

    /// The resources that are being tried.
    pub fn probes(&self) -> impl Iterator<Item = (Kind, Name)> {
        self.waiting.keys().cloned()
    }

    fn search(
        &mut self,
        engine: &mut Engine,
        resource: (Kind, Name),
        body: &Bytes,
        hosts: &[HostKey],
        text: &Arc<str>,
        held: Option<&Entry>,
    ) {
        let split = if resource.0 == Kind::Route { plain::hosts } else { scoped::hosts };
        let before: HashMap<String, Bytes> =
            held.map(|held| split(&held.body)).unwrap_or_default().into_iter().collect();
        let mut suspects: Vec<(&HostKey, Arc<HostBytes>)> = hosts
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
                self.hold(engine, Target::resource(resource.0, resource.1), hash, text);
            }
            [(key, host)] => {
                self.release(engine, &resource);
                self.hold(engine, withheld::of_host(key), host.hash, text);
            }
            many => {
                // Nobody knows which host uses which of the clusters that proxies have: the first brings them all.
                let mut clusters = held.map(clusters).unwrap_or_default();
                for (key, host) in &many[many.len() / 2..] {
                    let instead = before.get(&key.1.to_string()).map(|bytes| {
                        let clusters = std::mem::take(&mut clusters);
                        Arc::new(HostBytes { bytes: bytes.clone(), clusters, ..HostBytes::clone(host) })
                    });
                    let target = withheld::of_host(key);
                    let waiting = self.waiting.entry(resource.clone()).or_default();
                    waiting.insert(target.clone(), (host.hash, instead));
                    self.write(engine, &target);
                }
            }
        }
    }

    fn hold(&mut self, engine: &mut Engine, target: Target, hash: u64, text: &Arc<str>) {
        self.own.insert(target.clone(), Quarantined { target: target.clone(), hash, text: text.clone() });
        self.changed = true;
        self.write(engine, &target);
    }

    /// Lets all hosts of a resource be tried together again.
    fn release(&mut self, engine: &mut Engine, resource: &(Kind, Name)) {
        let waited = self.waiting.remove(resource).unwrap_or_default();
        waited.keys().for_each(|target| self.write(engine, target));
    }

    /// Writes all that is known about a target into its row.
    fn write(&self, engine: &mut Engine, target: &Target) {
        let held = self.own.get(target).into_iter().chain(self.others.get(target).into_iter().flatten());
        let mut row: BTreeMap<u64, WithholdReason> = BTreeMap::new();
        for hold in held {
            row.entry(hold.hash).or_insert_with(|| WithholdReason::Withheld(hold.text.clone()));
        }
        if let Some(large) = self.large.get(target) {
            row.entry(large.part.hash).or_insert_with(|| WithholdReason::TooLarge(large.text.clone()));
        }
        for (hash, instead) in self.waiting.values().filter_map(|waiting| waiting.get(target)) {
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

/// Whether what is held is what is made now.
fn in_force(engine: &Engine, target: &Target) -> bool {
    if target.host.is_some() {
        return !engine.probe::<WithheldRows<EncodedHosts>>(target).is_empty();
    }
    match target.kind {
        Kind::Cluster => !engine.probe::<WithheldRows<ClusterResources>>(target).is_empty(),
        Kind::Endpoints => !engine.probe::<WithheldRows<EndpointResources>>(target).is_empty(),
        Kind::Secret => {
            !engine.probe::<WithheldRows<SecretResources>>(target).is_empty()
                || !engine.probe::<WithheldRows<HostSecretResources>>(target).is_empty()
                || !engine.probe::<WithheldRows<CaResources>>(target).is_empty()
        }
        Kind::Route => !engine.probe::<WithheldRows<RouteResources>>(target).is_empty(),
        Kind::ScopedRoute => {
            !engine.probe::<WithheldRows<ScopeResources>>(target).is_empty()
                || !engine.probe::<WithheldRows<RedirectScopes>>(target).is_empty()
        }
        Kind::Listener => !engine.probe::<WithheldRows<ListenerResources>>(target).is_empty(),
        Kind::Extension => !engine.probe::<WithheldRows<TcpResources>>(target).is_empty(),
        Kind::Runtime | Kind::VirtualHost => false,
    }
}

/// The resource as it is made now. Looks at all rows: refusals are few.
fn find(engine: &Engine, kind: Kind, name: &str) -> Option<Arc<Resource>> {
    fn by_name<T: Resources>(engine: &Engine, name: &str) -> Option<Arc<Resource>> {
        engine.rows::<T>().find(|(_, resource)| *resource.name == *name).map(|(_, resource)| resource.clone())
    }
    match kind {
        Kind::Cluster => by_name::<ClusterResources>(engine, name),
        Kind::Endpoints => by_name::<EndpointResources>(engine, name),
        Kind::Secret => by_name::<SecretResources>(engine, name)
            .or_else(|| by_name::<HostSecretResources>(engine, name))
            .or_else(|| by_name::<CaResources>(engine, name)),
        Kind::Route => by_name::<RouteResources>(engine, name),
        Kind::ScopedRoute => {
            by_name::<ScopeResources>(engine, name).or_else(|| by_name::<RedirectScopes>(engine, name))
        }
        Kind::Listener => by_name::<ListenerResources>(engine, name),
        Kind::Extension => by_name::<TcpResources>(engine, name),
        Kind::Runtime | Kind::VirtualHost => None,
    }
}

/// The hosts that share a resource; nothing if it is not of that kind.
fn shared(engine: &Engine, kind: Kind, name: &str) -> Option<Vec<HostKey>> {
    let (table, any): (&RouteTableId, bool) = match kind {
        Kind::Route => (engine.rows::<RouteResources>().find(|(_, resource)| *resource.name == *name)?.0, false),
        Kind::ScopedRoute => {
            let ((table, host), _) = engine.rows::<ScopeResources>().find(|(_, found)| *found.name == *name)?;
            if *host != Host::Any {
                return None;
            }
            (table, true)
        }
        _ => return None,
    };
    let here = |key: &HostKey| engine.get::<RouteTableOf>(key).is_some_and(|place| **place == *table);
    let fits = |key: &HostKey| here(key) && !(any && matches!(key.1, Host::Exact(_)));
    Some(engine.rows::<EncodedHosts>().map(|(key, _)| key).filter(|key| fits(key)).cloned().collect())
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
