//! Virtual hosts as resources: which ones each port has, and which resources carry them.
//!
//! In: hosts and where each is looked up. Out: route configurations and scopes, in the packing that the operator wants
//! (see [`envoy::packing`]). With scopes, what one host's edit reaches here is one row, whatever the number of hosts: every
//! probe on its way is about wildcards, which are few, or stops at the first answer. Hosts that have the same routes name those of
//! [`equal_hosts`].
//!
//! What proxies refused is replaced here: a host that has a resource of its own by a stand-in, a host that shares one with
//! others by a substitute inside of it, so that the others move on.

use crate::{
    equal_hosts::{self, SharingHosts},
    hosts::{ChainPorts, Placement, Placements, PortsOfChains, VirtualHosts},
    large, partition,
    ports::{PlaintextPorts, PortRow, Ports},
    resources::Resource,
    settings::Settings,
    slots::jwt,
    spoil,
    translations::HostKey,
    withheld::{self, Withheld, WithheldRows, WithholdReason, Withholdable},
};
use bytes::Bytes;
use engine::{Derived, Index, PartIndex, Reads, Table};
use envoy::{
    listener::slots::Slot,
    name,
    packing::{self, Packing, plain, scoped},
};
use model::{Host, ListenerId, ObjectRef, PortId, route::Authorization, tls::Admission};
use std::{collections::BTreeSet, sync::Arc};
use xds::{Kind, Ref};

/// A scope: the port, and an exact host, or [`Host::Any`] for all others.
pub type ScopeKey = (PortId, Host);

fn scope(port: &PortId, host: &Host) -> ScopeKey {
    let host = if matches!(host, Host::Exact(_)) { host } else { &Host::Any };
    (port.clone(), host.clone())
}

/// Hosts by the scope that they are looked up in.
pub struct HostsByScope;

impl Index for HostsByScope {
    type Of = Placements;
    type Key = ScopeKey;
    const NAME: &'static str = "by scope";

    fn keys((_, host): &HostKey, place: &Placement) -> impl IntoIterator<Item = ScopeKey> {
        [scope(&place.port, host)]
    }
}

/// Which connections may carry the requests of a host.
impl PartIndex for HostsByScope {
    type Part<'v> = Option<&'v Admission>;

    fn part<'v>(_: &ScopeKey, place: &'v Placement) -> Option<&'v Admission> {
        place.admission.as_ref()
    }
}

/// Exact hosts by the port that they are looked up at.
pub struct ExactHostsByPort;

impl Index for ExactHostsByPort {
    type Of = Placements;
    type Key = PortId;
    const NAME: &'static str = "exact by port";

    fn keys((_, host): &HostKey, place: &Placement) -> impl IntoIterator<Item = PortId> {
        matches!(host, Host::Exact(_)).then(|| place.port.clone())
    }
}

/// Which connections may carry the requests of a host.
impl PartIndex for ExactHostsByPort {
    type Part<'v> = Option<&'v Admission>;

    fn part<'v>(_: &PortId, place: &'v Placement) -> Option<&'v Admission> {
        place.admission.as_ref()
    }
}

/// Hosts that share a scope with others: all that are not exact.
pub struct WideHosts;

impl Index for WideHosts {
    type Of = Placements;
    type Key = HostKey;
    const NAME: &'static str = "wide";

    fn keys(key: &HostKey, _: &Placement) -> impl IntoIterator<Item = HostKey> {
        (!matches!(key.1, Host::Exact(_))).then(|| key.clone())
    }
}

/// The scopes of wildcards, one for each port.
pub struct CatchAllOfPlaintextPorts;

impl Index for CatchAllOfPlaintextPorts {
    type Of = Ports;
    type Key = ScopeKey;
    const NAME: &'static str = "plaintext HTTP, by scope";

    fn keys(id: &PortId, port: &PortRow) -> impl IntoIterator<Item = ScopeKey> {
        PlaintextPorts::keys(id, port).into_iter().map(|port| (port, Host::Any)).collect::<Vec<_>>()
    }
}

/// The same for TLS ports.
pub struct CatchAllOfTlsPorts;

impl Index for CatchAllOfTlsPorts {
    type Of = ChainPorts;
    type Key = ScopeKey;
    const NAME: &'static str = "by scope";

    fn keys(_: &ListenerId, port: &PortId) -> impl IntoIterator<Item = ScopeKey> {
        [(port.clone(), Host::Any)]
    }
}

/// A virtual host, encoded, and the clusters it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBytes {
    /// It, or what is sent in its place.
    pub bytes: Bytes,
    /// The clusters that this uses.
    pub clusters: Vec<Arc<str>>,
    /// The slots that its routes name.
    pub slots: Vec<Arc<str>>,
    /// The hash of what was made of the objects, sent or not.
    pub hash: u64,
    /// Whose it is, if it is of one object alone.
    pub author: Option<ObjectRef>,
    /// It waits until others have been tried.
    pub waits: bool,
    /// What is said while it is withheld.
    pub refused: Option<Arc<Withheld>>,
}

impl Withholdable for HostBytes {
    fn refused(&self) -> &[Withheld] {
        self.refused.as_deref().map(std::slice::from_ref).unwrap_or_default()
    }
}

/// The virtual hosts that share a resource with others.
pub struct EncodedHosts(Packing, Option<Box<str>>);

impl Table for EncodedHosts {
    type Key = HostKey;
    type Value = HostBytes;
    const NAME: &'static str = "encoded hosts";
}

impl Derived for EncodedHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<HostBytes> {
        let place = reads.get::<Placements>(key)?;
        let host = &reads.get::<VirtualHosts>(key)?.host;
        let bytes = packing::encode(self.0, &place.port, host, place.admission.as_ref());
        let bytes = spoil::host(bytes, self.1.as_deref());
        let hash = xds::content_version(&bytes);
        let target = withheld::of_host(key);
        let substitute = || {
            let (clusters, slots) = Default::default();
            let author = host.only_author().cloned();
            let bytes = packing::refused(&key.1, author.as_ref());
            HostBytes { bytes, clusters, slots, hash, author, waits: false, refused: None }
        };
        Some(match withheld::why(&target, hash, reads) {
            None => HostBytes { bytes, clusters: clusters(host), slots: slots(place, host), ..substitute() },
            Some(WithholdReason::Waits(None)) => HostBytes { waits: true, ..substitute() },
            Some(WithholdReason::Waits(Some(before))) => {
                let HostBytes { bytes, clusters, slots, .. } = HostBytes::clone(before);
                HostBytes { bytes, clusters, slots, waits: true, ..substitute() }
            }
            Some(why) => {
                let withheld = why
                    .reported()
                    .map(|reason| Withheld::new(target, format!("host {}", key.1), reason, authors(host)));
                HostBytes { refused: withheld.map(Arc::new), ..substitute() }
            }
        })
    }

    fn is_large(&self, key: &HostKey, reads: &mut Reads<'_>) -> bool {
        reads.get::<VirtualHosts>(key).is_some_and(|host| large::is_large(&host.host))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// Whose routes a host has, those for deeper names among them.
pub(crate) fn authors(host: &model::VirtualHost) -> Vec<ObjectRef> {
    let origins = host.routes.iter().chain(&host.catch_all).flat_map(|route| route.origins());
    let authors: BTreeSet<_> = origins.map(|origin| &origin.object).collect();
    authors.into_iter().cloned().collect()
}

pub(crate) fn clusters(host: &model::VirtualHost) -> Vec<Arc<str>> {
    let mut clusters = BTreeSet::new();
    for route in host.routes.iter().chain(&host.catch_all) {
        clusters.extend(route.targets().map(|cluster| Arc::from(name::cluster(cluster))));
    }
    clusters.into_iter().collect()
}

/// The slots that routes of a host name, where it is looked up.
pub(crate) fn slots(place: &Placement, host: &model::VirtualHost) -> Vec<Arc<str>> {
    let policies = || host.routes.iter().chain(&host.catch_all).map(|route| &route.policy);
    let asks_fleet = policies().any(|policy| matches!(policy.authorization, Authorization::AskFleet(_)));
    let runs_script = policies().any(|policy| policy.runs_script);
    let slots = [(Slot::ExtAuthzOfFleet, asks_fleet), (Slot::Script, runs_script)];
    let named = slots.into_iter().filter(|(_, is_named)| *is_named);
    let named = named.map(|(slot, _)| name::slot(&place.port, slot).into());
    jwt::required(place, host).into_keys().chain(named).collect()
}

/// What a resource with these clusters and slots refers to.
pub(crate) fn refs(
    clusters: impl IntoIterator<Item = Arc<str>>,
    slots: impl IntoIterator<Item = Arc<str>>,
) -> Vec<Ref> {
    let clusters = clusters.into_iter().map(|name| Ref::To(Kind::Cluster, name));
    clusters.chain(slots.into_iter().map(|name| Ref::To(Kind::Extension, name))).collect()
}

/// Hosts that share a resource, in their order.
struct Shared {
    hosts: Vec<(Host, Option<ObjectRef>, Bytes)>,
    refs: Vec<Ref>,
}

impl Shared {
    fn gather<'r>(hosts: impl Iterator<Item = &'r HostKey>, reads: &mut Reads<'r>) -> Self {
        let mut all: Vec<(Host, Option<ObjectRef>, Bytes)> = Vec::new();
        let (mut clusters, mut slots) = (BTreeSet::new(), BTreeSet::new());
        for key in hosts {
            let Some(host) = reads.get::<EncodedHosts>(key) else { continue };
            clusters.extend(&host.clusters);
            slots.extend(&host.slots);
            all.push((key.1.clone(), host.author.clone(), host.bytes.clone()));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Self { hosts: all, refs: refs(clusters.into_iter().cloned(), slots.into_iter().cloned()) }
    }

    fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.hosts.iter().map(|(_, _, bytes)| bytes)
    }

    /// The same hosts, all of which answer that they are refused.
    fn refused(&self) -> Vec<Bytes> {
        self.hosts.iter().map(|(host, author, _)| packing::refused(host, author.as_ref())).collect()
    }
}

/// Route configurations.
pub struct RouteResources(Packing);

impl Table for RouteResources {
    type Key = PortId;
    type Value = Resource;
    const NAME: &'static str = "route resources";
}

impl Derived for RouteResources {
    fn compute(&self, port: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
        if self.0 == Packing::Scoped {
            return None;
        }
        let rest = (port.clone(), Host::Any);
        let hosts = reads.probe::<ExactHostsByPort>(port).chain(reads.probe::<HostsByScope>(&rest));
        let shared = Shared::gather(hosts, reads);
        let body = plain::route_table(port, shared.iter());
        let resource =
            Resource { refs: shared.refs.clone(), ..Resource::of(name::port(port), body) }.in_fleet(port.fleet());
        let stand_in = || plain::route_table(port, shared.refused().iter());
        Some(resource.or_stand_in(Kind::Route, Vec::new(), Some(&stand_in), reads))
    }
}

/// Scopes.
pub struct ScopeResources(Packing, Option<Box<str>>);

impl Table for ScopeResources {
    type Key = ScopeKey;
    type Value = Resource;
    const NAME: &'static str = "scope resources";
}

impl Derived for ScopeResources {
    fn compute(&self, key: &ScopeKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let (port, host) = key;
        if self.0 == Packing::Plain {
            return None;
        }
        if *host == Host::Any {
            let shared = Shared::gather(reads.probe::<HostsByScope>(key), reads);
            let body = scoped::catch_all(port, shared.iter());
            let resource = Resource { refs: shared.refs.clone(), ..Resource::of(scope_name(key), body) };
            let resource = resource.in_fleet(port.fleet());
            let stand_in = || scoped::catch_all(port, shared.refused().iter());
            return Some(resource.or_stand_in(Kind::ScopedRoute, Vec::new(), Some(&stand_in), reads));
        }
        // Of the listeners of a port, one takes a host.
        let own = reads.probe::<HostsByScope>(key).next()?;
        if let Some(shared) = reads.get::<SharingHosts>(own) {
            let body = scoped::sharing(port, host, shared.name());
            let resource = Resource { refs: vec![equal_hosts::named(shared)], ..Resource::of(scope_name(key), body) };
            return Some(resource.in_fleet(port.fleet()).unless_withheld(Kind::ScopedRoute, reads));
        }
        let place = reads.get::<Placements>(own)?;
        let host = &reads.get::<VirtualHosts>(own)?.host;
        let refs = refs(clusters(host), slots(place, host));
        let body = spoil::scope(scoped::host(port, host, place.admission.as_ref()), self.1.as_deref());
        let resource = Resource { refs, ..Resource::of(scope_name(key), body) }.in_fleet(port.fleet());
        let stand_in = || scoped::refused(port, &host.host, host.only_author());
        Some(resource.or_stand_in(Kind::ScopedRoute, authors(host), Some(&stand_in), reads))
    }

    fn is_large(&self, key: &ScopeKey, reads: &mut Reads<'_>) -> bool {
        let own = reads.probe::<HostsByScope>(key).next().filter(|_| key.1 != Host::Any);
        let own = own.filter(|own| reads.get::<SharingHosts>(own).is_none());
        own.and_then(|own| reads.get::<VirtualHosts>(own)).is_some_and(|host| large::is_large(&host.host))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        let (port, host) = key;
        // All others share one.
        (*host != Host::Any).then(|| partition::of_name(port.fleet(), host))
    }
}

/// What a listener waits for before it takes requests.
pub fn awaited(port: &PortId, packing: Packing) -> Ref {
    match packing {
        Packing::Plain => Ref::To(Kind::Route, name::port(port).into()),
        Packing::Scoped => Ref::Under(Kind::ScopedRoute, name::scope_group(port).into()),
    }
}

/// The scope that requests for an exact host are looked up in: a connection that is made for the host before a proxy has it
/// would not be served.
pub fn scope_of(key: &HostKey, packing: Packing, reads: &mut Reads<'_>) -> Option<Ref> {
    let is_scoped = packing == Packing::Scoped && matches!(key.1, Host::Exact(_));
    let place = reads.get::<Placements>(key).filter(|_| is_scoped)?;
    Some(Ref::To(Kind::ScopedRoute, scope_name(&scope(&place.port, &key.1)).into()))
}

/// The name of a scope.
pub fn scope_name((port, host): &ScopeKey) -> String {
    name::scope(port, host)
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    let packing = settings.packing;
    pipeline.parts::<HostsByScope>().parts::<ExactHostsByPort>();
    let encoded = pipeline.derived(EncodedHosts(packing, settings.spoil.clone()));
    match packing {
        Packing::Plain => encoded.each::<Placements>(),
        Packing::Scoped => encoded.per::<WideHosts>(),
    };
    pipeline.derived(RouteResources(packing)).per::<PlaintextPorts>().per::<PortsOfChains>().sums_up().output();
    pipeline
        .derived(ScopeResources(packing, settings.spoil.clone()))
        .per::<HostsByScope>()
        .per::<CatchAllOfPlaintextPorts>()
        .per::<CatchAllOfTlsPorts>()
        .output();
    pipeline.index::<WithheldRows<EncodedHosts>>();
    pipeline.index::<WithheldRows<RouteResources>>();
    pipeline.index::<WithheldRows<ScopeResources>>();
}
