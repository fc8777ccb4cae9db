//! What is withheld of a type whose resources are too large together.
//!
//! In: the tables as they are. Out: the parts of a type, each a resource or, of a resource that many hosts share, a host; and which of
//! them go first. A part is charged to a namespace: that of the object that it is made from, and of a host the one with most of its
//! routes. The namespace that has the most gives its largest part, again and again until the rest fits: so a namespace of very
//! many small objects makes room by its own, and not by a neighbour's that is larger than each of them. What is no namespace's,
//! such as a listener, goes last. The choice follows from sizes and names. It is made anew when the type is too large again, or when what
//! went last fits, and stands until then: what grows into free room takes nothing from the others.

use crate::{
    client_trust::ClientTrustResources,
    equal_hosts::{AnchorScopes, SharedRouteResources, SharedRoutesKey, SharingHosts},
    fleet_resources::{MetricsSecretResources, RuntimeResources},
    holders::HolderResources,
    hosts::{VirtualHosts, equal::EqualRoutes},
    listeners::ListenerResources,
    packing::{EncodedHosts, HostsByScope, RouteResources, ScopeKey, ScopeResources},
    ports::UdpTarget,
    redirects::{self, RedirectScopes},
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, Resource, Resources, SecretResources,
        StreamResources, TcpResources, UdpClusterResources, UdpEndpointResources,
    },
    translations::{HostKey, TlsByHost, TranslationsByHost},
    withheld::{self, FleetTarget},
};
use engine::Engine;
use model::{FleetId, Host, ObjectRef, PortId, VirtualHost};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    sync::Arc,
};
use xds::{Kind, Role};

/// Something that can be withheld by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub target: FleetTarget,
    /// The hash of its content.
    pub hash: u64,
    /// Its size.
    pub bytes: usize,
    /// The namespace that it is charged to, if it is one's.
    pub namespace: Option<Arc<str>>,
    /// By how many bytes less is sent while it is withheld, where that is known: something is sent in its place.
    pub freed: Option<usize>,
}

/// The parts that go so that at least so many bytes less are sent, in the order in which they go; all of them if that is not enough.
pub fn first_to_go(parts: Vec<Part>, excess: usize) -> Vec<Part> {
    let mut namespaces: BTreeMap<Option<Arc<str>>, Vec<Part>> = BTreeMap::new();
    for part in parts {
        namespaces.entry(part.namespace.clone()).or_default().push(part);
    }
    let mut heaviest: BinaryHeap<(bool, usize, Reverse<usize>)> = BinaryHeap::new();
    let mut namespaces: Vec<Vec<Part>> = namespaces.into_values().collect();
    for (at, parts) in namespaces.iter_mut().enumerate() {
        // The last one goes first.
        parts.sort_by(|a, b| a.bytes.cmp(&b.bytes).then_with(|| b.target.cmp(&a.target)));
        let is_charged = parts.iter().any(|part| part.namespace.is_some());
        heaviest.push((is_charged, parts.iter().map(|part| part.bytes).sum(), Reverse(at)));
    }
    let (mut gone, mut freed) = (Vec::new(), 0);
    while freed < excess {
        let Some((is_charged, bytes, Reverse(at))) = heaviest.pop() else { break };
        let Some(part) = namespaces[at].pop() else { continue };
        freed += part.freed.unwrap_or(part.bytes);
        heaviest.push((is_charged, bytes - part.bytes, Reverse(at)));
        gone.push(part);
    }
    gone
}

/// What a fleet is sent of a type.
#[derive(Default)]
pub struct Sent {
    /// The parts that are sent as they were made.
    pub parts: Vec<Part>,
    /// How many bytes are sent in place of each of the others.
    pub stand_ins: HashMap<FleetTarget, usize>,
}

impl Sent {
    fn add(&mut self, is_own: bool, part: Part) {
        if is_own {
            self.parts.push(part);
        } else {
            self.stand_ins.insert(part.target, part.bytes);
        }
    }

    fn add_resource(&mut self, fleet: &FleetId, kind: Kind, resource: &Resource, namespace: Option<Arc<str>>) {
        let is_withheld = resource.is_withheld_in(fleet);
        let target = FleetTarget::resource(fleet.clone(), kind, resource.name.clone());
        let bytes = if is_withheld { 0 } else { resource.body.len() };
        let part = Part { target, hash: resource.hash, bytes, namespace, freed: None };
        self.add(resource.role == Role::Own && !is_withheld, part);
    }

    /// Adds the resources of a table, each with the namespace that it is charged to.
    fn add_table<T: Resources>(
        &mut self,
        engine: &Engine,
        fleet: &FleetId,
        charged: impl Fn(&T::Key, &Resource) -> Option<Arc<str>>,
    ) {
        for (key, resource) in engine.rows::<T>().filter(|(key, _)| T::fleets(key, engine).contains(fleet)) {
            self.add_resource(fleet, T::KIND, resource, charged(key, resource));
        }
    }

    /// Adds the hosts that share a resource.
    fn add_hosts(&mut self, engine: &Engine, fleet: &FleetId) {
        for (key, host) in engine.rows::<EncodedHosts>().filter(|(key, _)| key.0.fleet() == fleet) {
            let (target, namespace) = (withheld::of_host(key), of_host(engine, key));
            let part = Part { target, hash: host.hash, bytes: host.bytes.len(), namespace, freed: None };
            self.add(host.refused.is_none() && !host.waits, part);
        }
    }

    /// Adds the scopes of exact hosts.
    fn add_scopes(&mut self, engine: &Engine, fleet: &FleetId) {
        let is_own = |(port, host): &ScopeKey| port.fleet() == fleet && *host != Host::Any;
        for (key, resource) in engine.rows::<ScopeResources>().filter(|(key, _)| is_own(key)) {
            self.add_resource(fleet, Kind::ScopedRoute, resource, of_scope(engine, key));
        }
    }
}

/// What a fleet is sent of a type now.
pub fn sent(engine: &Engine, fleet: &FleetId, kind: Kind) -> Sent {
    let mut sent = Sent::default();
    match kind {
        Kind::Cluster => {
            sent.add_table::<ClusterResources>(engine, fleet, of_origin);
            sent.add_table::<HolderResources>(engine, fleet, of_nobody);
            sent.add_table::<UdpClusterResources>(engine, fleet, of_origin);
        }
        Kind::Endpoints => {
            sent.add_table::<EndpointResources>(engine, fleet, of_origin);
            sent.add_table::<UdpEndpointResources>(engine, fleet, |key: &UdpTarget, _: &Resource| most(&*key.objects));
        }
        Kind::Secret => {
            sent.add_table::<SecretResources>(engine, fleet, of_origin);
            // The host that asks for it: one Secret may be shown by hosts of many namespaces.
            sent.add_table::<HostSecretResources>(engine, fleet, |key: &HostKey, resource: &Resource| {
                of_first_object(engine, key).or_else(|| of_origin(key, resource))
            });
            sent.add_table::<CaResources>(engine, fleet, of_origin);
            sent.add_table::<ClientTrustResources>(engine, fleet, of_origin);
            sent.add_table::<MetricsSecretResources>(engine, fleet, of_nobody);
        }
        Kind::Extension => {
            sent.add_table::<TcpResources>(engine, fleet, of_origin);
            sent.add_table::<StreamResources>(engine, fleet, of_origin);
        }
        Kind::Route => {
            if engine.rows::<RouteResources>().next().is_some() {
                sent.add_hosts(engine, fleet);
            }
            sent.add_table::<SharedRouteResources>(engine, fleet, |key: &SharedRoutesKey, _: &Resource| {
                of_shared_routes(engine, key)
            });
        }
        Kind::ScopedRoute => {
            sent.add_hosts(engine, fleet);
            sent.add_scopes(engine, fleet);
            sent.add_table::<RedirectScopes>(engine, fleet, |port: &PortId, _: &Resource| {
                most(&engine.read(|reads| redirects::followers(port, reads)))
            });
            sent.add_table::<AnchorScopes>(engine, fleet, |key: &SharedRoutesKey, _: &Resource| {
                of_shared_routes(engine, key)
            });
        }
        Kind::Listener => sent.add_table::<ListenerResources>(engine, fleet, of_nobody),
        Kind::Runtime => sent.add_table::<RuntimeResources>(engine, fleet, of_nobody),
        Kind::VirtualHost | Kind::TokenBucket => {}
    }
    sent
}

/// That of the object that it is made from.
fn of_origin<K>(_: &K, resource: &Resource) -> Option<Arc<str>> {
    resource.origin.as_ref().map(|origin| origin.namespace.clone())
}

fn of_nobody<K>(_: &K, _: &Resource) -> Option<Arc<str>> {
    None
}

fn of_scope(engine: &Engine, scope: &ScopeKey) -> Option<Arc<str>> {
    of_host(engine, engine.probe::<HostsByScope>(scope).first()?)
}

/// The one with most of a host's routes. A host that has none, or names a list of routes that others share, is its first object's.
fn of_host(engine: &Engine, key: &HostKey) -> Option<Arc<str>> {
    let own = engine.get::<VirtualHosts>(key).filter(|_| engine.get::<SharingHosts>(key).is_none());
    own.and_then(|own| of_routes(&own.host)).or_else(|| of_first_object(engine, key))
}

fn of_shared_routes(engine: &Engine, key: &SharedRoutesKey) -> Option<Arc<str>> {
    of_routes(&engine.get::<EqualRoutes>(&key.selections)?.host)
}

fn of_first_object(engine: &Engine, key: &HostKey) -> Option<Arc<str>> {
    let tls = engine.probe::<TlsByHost>(key);
    let first = tls.first().copied().or_else(|| engine.probe::<TranslationsByHost>(key).first().copied())?;
    Some(first.namespace.clone())
}

fn of_routes(host: &VirtualHost) -> Option<Arc<str>> {
    let routes = host.routes.iter().chain(&host.catch_all);
    most(routes.flat_map(|route| route.origins()).map(|origin| &origin.object))
}

/// The namespace that most of some objects are in, the first by name of several.
fn most<'o>(objects: impl IntoIterator<Item = &'o ObjectRef>) -> Option<Arc<str>> {
    let mut counts: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    for object in objects {
        *counts.entry(&object.namespace).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(namespace, count)| (*count, Reverse(*namespace)));
    most.map(|(namespace, _)| namespace.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts by their namespace, name and size, and which of them go.
    fn gone(parts: &[(&str, &str, usize)], excess: usize) -> Vec<String> {
        let part = |(namespace, name, bytes): &(&str, &str, usize)| Part {
            target: FleetTarget::resource(FleetId::Shared, Kind::ScopedRoute, Arc::from(*name)),
            hash: 0,
            bytes: *bytes,
            namespace: (!namespace.is_empty()).then(|| Arc::from(*namespace)),
            freed: None,
        };
        let forwards = first_to_go(parts.iter().map(part).collect(), excess);
        let backwards = first_to_go(parts.iter().rev().map(part).collect(), excess);
        assert_eq!(forwards, backwards, "who came first does not matter");
        forwards.into_iter().map(|part| part.target.target.name.to_string()).collect()
    }

    #[test]
    fn of_one_namespace_the_largest_go_first() {
        let parts = [("a", "small", 1), ("a", "large", 9), ("a", "b", 5), ("a", "c", 5)];
        assert!(gone(&parts, 0).is_empty());
        assert_eq!(gone(&parts, 9), ["large"]);
        assert_eq!(gone(&parts, 10), ["large", "b"]);
        assert_eq!(gone(&parts, 100), ["large", "b", "c", "small"], "all, if that is not enough");
    }

    #[test]
    fn the_namespace_that_has_the_most_gives_until_it_has_no_more_than_another() {
        let parts = [("tb", "b1", 10), ("tb", "b2", 10), ("tb", "b3", 10), ("tb", "b4", 10), ("ta", "a", 20)];
        assert_eq!(gone(&parts, 11), ["b1", "b2"]);
        assert_eq!(gone(&parts, 21), ["b1", "b2", "a"], "both have 20 left: the first by name");
        assert_eq!(gone(&parts, 41), ["b1", "b2", "a", "b3"]);
    }

    #[test]
    fn what_is_no_namespaces_goes_last() {
        let parts = [("", "listener", 100), ("", "other", 50), ("ta", "a", 1)];
        assert_eq!(gone(&parts, 1), ["a"]);
        assert_eq!(gone(&parts, 2), ["a", "listener"]);
    }

    #[test]
    fn what_is_sent_in_place_of_a_part_is_not_freed() {
        let part = |name: &str, freed| Part {
            target: FleetTarget::resource(FleetId::Shared, Kind::ScopedRoute, Arc::from(name)),
            hash: 0,
            bytes: 10,
            namespace: None,
            freed,
        };
        let gone = |excess| first_to_go(vec![part("a", Some(4)), part("b", None)], excess).len();
        assert_eq!((gone(4), gone(5), gone(14)), (1, 2, 2));
    }
}
