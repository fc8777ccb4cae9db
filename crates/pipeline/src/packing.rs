//! Virtual hosts as resources: which ones each route table has, and which resources carry them.
//!
//! In: hosts and where each is looked up. Out: route configurations and scopes, in the arrangement that the operator wants
//! (see [`envoy::packing`]). With scopes, what one host's edit reaches here is one row, whatever the number of hosts: every
//! probe on its way is about wildcards, which are few, or stops at the first answer.
//!
//! What proxies refused is replaced here: a host that has a resource of its own by a stand-in, a host that shares one with
//! others by a substitute inside of it, so that the others move on.

use crate::{
    hosts::{Chains, RouteTableOf, TlsHosts, VirtualHosts},
    large,
    resources::Resource,
    settings::Settings,
    spoil,
    translations::HostKey,
    withheld::{self, Withheld, WithheldByObject, WithheldRows, WithholdReason, Withholdable},
};
use bytes::Bytes;
use engine::{Derived, Index, Reads, Table};
use envoy::{
    name,
    packing::{self, Arrangement, Contents, Packing, plain, scoped},
};
use model::{Fqdn, Host, ListenerId, ObjectRef, RouteTableId, route::Action, tls::Chain};
use std::{collections::BTreeSet, sync::Arc};
use xds::{Kind, Ref};

/// The tables in which a host is misdirected: it is looked up elsewhere, but lies below one of their wildcards, so that a
/// request for it on one of their connections would be taken for the wildcard's.
pub struct MisdirectedHosts;

impl Table for MisdirectedHosts {
    type Key = HostKey;
    type Value = Vec<RouteTableId>;
    const NAME: &'static str = "misdirected";
}

impl Derived for MisdirectedHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Vec<RouteTableId>> {
        let (listener, host) = key;
        let own = match reads.get::<RouteTableOf>(key) {
            Some(place) => Some(place.termination.as_deref()?),
            // Its connections are passed on, so no table has it.
            None => reads.get::<TlsHosts>(key)?.mode.http(),
        };
        let mut tables = BTreeSet::new();
        for above in wildcards_above(host) {
            if let Some(other) = reads.get::<TlsHosts>(&(listener.clone(), above))
                && let Some(other) = other.mode.http()
                && own != Some(other)
            {
                let termination = Some(Arc::new(other.clone()));
                tables.insert(RouteTableId { listener: listener.clone(), termination });
            }
        }
        (!tables.is_empty()).then(|| tables.into_iter().collect())
    }
}

/// The wildcards that Envoy would take a host for, at any depth.
pub(crate) fn wildcards_above(host: &Host) -> Vec<Host> {
    let (Host::Exact(name) | Host::Wildcard(name)) = host else { return Vec::new() };
    let above = std::iter::successors(name.as_str().split_once('.'), |(_, rest)| rest.split_once('.'));
    above.filter_map(|(_, rest)| Fqdn::parse(rest).ok().map(Host::Wildcard)).collect()
}

/// A scope: the table, and an exact host, or [`Host::Any`] for all others.
pub type ScopeKey = (RouteTableId, Host);

fn scope(table: &RouteTableId, host: &Host) -> ScopeKey {
    let host = if matches!(host, Host::Exact(_)) { host } else { &Host::Any };
    (table.clone(), host.clone())
}

/// Hosts by the scope that they are looked up in.
pub struct HostsByScope;

impl Index for HostsByScope {
    type Of = RouteTableOf;
    type Key = ScopeKey;
    const NAME: &'static str = "by scope";

    fn keys((_, host): &HostKey, place: &RouteTableId) -> impl IntoIterator<Item = ScopeKey> {
        [scope(place, host)]
    }
}

/// Hosts by the scopes in which they are misdirected.
pub struct MisdirectedByScope;

impl Index for MisdirectedByScope {
    type Of = MisdirectedHosts;
    type Key = ScopeKey;
    const NAME: &'static str = "by scope";

    fn keys((_, host): &HostKey, tables: &Vec<RouteTableId>) -> impl IntoIterator<Item = ScopeKey> {
        tables.iter().map(|table| scope(table, host)).collect::<Vec<_>>()
    }
}

/// Exact hosts by the table that they are looked up in.
pub struct ExactHostsByTable;

impl Index for ExactHostsByTable {
    type Of = RouteTableOf;
    type Key = RouteTableId;
    const NAME: &'static str = "exact by route table";

    fn keys((_, host): &HostKey, place: &RouteTableId) -> impl IntoIterator<Item = RouteTableId> {
        matches!(host, Host::Exact(_)).then(|| place.clone())
    }
}

/// Exact hosts by the tables in which they are misdirected.
pub struct ExactMisdirectedByTable;

impl Index for ExactMisdirectedByTable {
    type Of = MisdirectedHosts;
    type Key = RouteTableId;
    const NAME: &'static str = "exact by route table";

    fn keys((_, host): &HostKey, tables: &Vec<RouteTableId>) -> impl IntoIterator<Item = RouteTableId> {
        if matches!(host, Host::Exact(_)) { tables.clone() } else { Vec::new() }
    }
}

/// Chains by the route table that their requests are looked up in: the same key, as an index, so that there is a table
/// for each chain, also for one without routes. A listener waits for every table that it names.
pub struct TablesOfChains;

impl Index for TablesOfChains {
    type Of = Chains;
    type Key = RouteTableId;
    const NAME: &'static str = "by route table";

    fn keys(table: &RouteTableId, _: &Chain) -> impl IntoIterator<Item = RouteTableId> {
        [table.clone()]
    }
}

/// The same for the scope of wildcards.
pub struct ScopesOfChains;

impl Index for ScopesOfChains {
    type Of = Chains;
    type Key = ScopeKey;
    const NAME: &'static str = "by scope";

    fn keys(table: &RouteTableId, _: &Chain) -> impl IntoIterator<Item = ScopeKey> {
        [(table.clone(), Host::Any)]
    }
}

/// How the hosts of each route table travel.
pub struct Arrangements(Packing);

impl Table for Arrangements {
    type Key = RouteTableId;
    type Value = Arrangement;
    const NAME: &'static str = "arrangements";
}

impl Derived for Arrangements {
    fn compute(&self, table: &RouteTableId, reads: &mut Reads<'_>) -> Option<Arrangement> {
        let mut contents = Contents { exact: false, wildcard: false };
        if self.0 == Packing::Scoped && table.termination.is_some() {
            contents.exact = reads.probe::<ExactHostsByTable>(table).len() > 0
                || reads.probe::<ExactMisdirectedByTable>(table).len() > 0;
            contents.wildcard = reads.probe::<HostsByScope>(&(table.clone(), Host::Any)).len() > 0;
        }
        Some(self.0.arrangement(table, contents))
    }
}

/// A virtual host, encoded, and the clusters it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBytes {
    /// It, or what is sent in its place.
    pub bytes: Bytes,
    /// The clusters that this uses.
    pub clusters: Vec<Arc<str>>,
    /// The hash of what was made of the objects, sent or not.
    pub hash: u64,
    /// It waits until others have been tried.
    pub waits: bool,
    /// What is said while it is withheld.
    pub refused: Option<Arc<Withheld>>,
}

impl Withholdable for HostBytes {
    fn refused(&self) -> Option<&Withheld> {
        self.refused.as_deref()
    }
}

/// The virtual hosts that share a resource with others.
pub struct EncodedHosts(Option<Box<str>>);

impl Table for EncodedHosts {
    type Key = HostKey;
    type Value = HostBytes;
    const NAME: &'static str = "encoded hosts";
}

impl Derived for EncodedHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<HostBytes> {
        let place = shares_resource(key, reads)?;
        let host = &reads.get::<VirtualHosts>(key)?.host;
        let bytes = spoil::host(packing::encode(place, host), self.0.as_deref());
        let hash = xds::content_version(&bytes);
        let target = withheld::of_host(key);
        let substitute =
            || HostBytes { bytes: packing::refused(&key.1), clusters: Vec::new(), hash, waits: false, refused: None };
        Some(match withheld::why(&target, hash, reads) {
            None => HostBytes { bytes, clusters: clusters(host), ..substitute() },
            Some(WithholdReason::Waits(None)) => HostBytes { waits: true, ..substitute() },
            Some(WithholdReason::Waits(Some(before))) => {
                let (bytes, clusters) = (before.bytes.clone(), before.clusters.clone());
                HostBytes { bytes, clusters, waits: true, ..substitute() }
            }
            Some(why) => {
                let told = why.told().map(|told| Withheld::new(target, format!("host {}", key.1), told, authors(host)));
                HostBytes { refused: told.map(Arc::new), ..substitute() }
            }
        })
    }

    fn is_large(&self, key: &HostKey, reads: &mut Reads<'_>) -> bool {
        shares_resource(key, reads).is_some()
            && reads.get::<VirtualHosts>(key).is_some_and(|host| large::is_large(&host.host))
    }
}

/// The table of a host that shares a resource with others.
fn shares_resource<'r>(key: &HostKey, reads: &mut Reads<'r>) -> Option<&'r RouteTableId> {
    let place = reads.get::<RouteTableOf>(key)?;
    let arrangement = **reads.get::<Arrangements>(place)?;
    let is_alone = arrangement == Arrangement::Scopes && matches!(key.1, Host::Exact(_));
    (!is_alone).then_some(&**place)
}

/// Whose routes a host has, those for deeper names among them.
fn authors(host: &model::VirtualHost) -> Vec<ObjectRef> {
    let origins = host.routes.iter().chain(&host.catch_all).flat_map(|route| route.origins());
    let authors: BTreeSet<_> = origins.map(|origin| &origin.object).collect();
    authors.into_iter().cloned().collect()
}

fn clusters(host: &model::VirtualHost) -> Vec<Arc<str>> {
    let mut clusters = BTreeSet::new();
    for route in host.routes.iter().chain(&host.catch_all) {
        if let Action::Forward(forward) = &route.action {
            clusters.extend(forward.targets().map(|cluster| Arc::from(name::cluster(cluster))));
        }
    }
    clusters.into_iter().collect()
}

/// Hosts that share a resource, in their order, and misdirected ones among them.
struct Shared {
    hosts: Vec<(Host, Bytes)>,
    refs: Vec<Ref>,
}

impl Shared {
    fn gather<'r>(
        table: &RouteTableId,
        hosts: impl Iterator<Item = &'r HostKey>,
        misdirected: impl Iterator<Item = &'r HostKey>,
        reads: &mut Reads<'r>,
    ) -> Self {
        let mut all: Vec<(Host, Bytes)> =
            misdirected.map(|(_, host)| (host.clone(), packing::misdirected(table, host))).collect();
        let mut clusters = BTreeSet::new();
        for key in hosts {
            let Some(host) = reads.get::<EncodedHosts>(key) else { continue };
            clusters.extend(&host.clusters);
            all.push((key.1.clone(), host.bytes.clone()));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Self { hosts: all, refs: clusters.into_iter().map(|name| Ref::To(Kind::Cluster, name.clone())).collect() }
    }

    fn iter(&self) -> impl Iterator<Item = (&Host, &Bytes)> {
        self.hosts.iter().map(|(host, bytes)| (host, bytes))
    }

    /// The same hosts, all of which answer that they are refused.
    fn refused(&self) -> Vec<(Host, Bytes)> {
        self.hosts.iter().map(|(host, _)| (host.clone(), packing::refused(host))).collect()
    }
}

/// Route configurations.
pub struct RouteResources;

impl Table for RouteResources {
    type Key = RouteTableId;
    type Value = Resource;
    const NAME: &'static str = "route resources";
}

impl Derived for RouteResources {
    fn compute(&self, table: &RouteTableId, reads: &mut Reads<'_>) -> Option<Resource> {
        if **reads.get::<Arrangements>(table)? != Arrangement::Table {
            return None;
        }
        let rest = (table.clone(), Host::Any);
        let hosts = reads.probe::<ExactHostsByTable>(table).chain(reads.probe::<HostsByScope>(&rest));
        let misdirected = reads.probe::<ExactMisdirectedByTable>(table).chain(reads.probe::<MisdirectedByScope>(&rest));
        let shared = Shared::gather(table, hosts, misdirected, reads);
        let body = plain::route_table(table, shared.iter());
        let resource = Resource { refs: shared.refs.clone(), ..Resource::of(name::route_table(table), body) };
        let stand_in = || plain::route_table(table, shared.refused().iter().map(|(host, bytes)| (host, bytes)));
        Some(resource.or_stand_in(Kind::Route, Vec::new(), Some(&stand_in), reads))
    }
}

/// Scopes. A chain whose last exact host went is looked up in a table from then on, but its connections of before are still
/// looked up in scopes while they are let go: so there are scopes of every table.
pub struct ScopeResources(Packing, Option<Box<str>>);

impl Table for ScopeResources {
    type Key = ScopeKey;
    type Value = Resource;
    const NAME: &'static str = "scope resources";
}

impl Derived for ScopeResources {
    fn compute(&self, key: &ScopeKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let (table, host) = key;
        if self.0 == Packing::Plain {
            return None;
        }
        if *host == Host::Any {
            let hosts = reads.probe::<HostsByScope>(key);
            let shared = Shared::gather(table, hosts, reads.probe::<MisdirectedByScope>(key), reads);
            let body = scoped::catch_all(table, shared.iter());
            let resource = Resource { refs: shared.refs.clone(), ..Resource::of(scope_name(key), body) };
            let stand_in = || scoped::catch_all(table, shared.refused().iter().map(|(host, bytes)| (host, bytes)));
            return Some(resource.or_stand_in(Kind::ScopedRoute, Vec::new(), Some(&stand_in), reads));
        }
        let Some(own) = reads.probe::<HostsByScope>(key).next() else {
            let resource = Resource::of(scope_name(key), scoped::misdirected(table, host));
            return Some(resource.unless_held(Kind::ScopedRoute, reads));
        };
        let host = &reads.get::<VirtualHosts>(own)?.host;
        let refs = clusters(host).into_iter().map(|name| Ref::To(Kind::Cluster, name)).collect();
        let body = spoil::scope(scoped::host(table, host), self.1.as_deref());
        let resource = Resource { refs, ..Resource::of(scope_name(key), body) };
        let stand_in = || scoped::refused(table, &host.host);
        Some(resource.or_stand_in(Kind::ScopedRoute, authors(host), Some(&stand_in), reads))
    }

    fn is_large(&self, key: &ScopeKey, reads: &mut Reads<'_>) -> bool {
        let own = reads.probe::<HostsByScope>(key).next().filter(|_| key.1 != Host::Any);
        own.and_then(|own| reads.get::<VirtualHosts>(own)).is_some_and(|host| large::is_large(&host.host))
    }
}

/// What a listener waits for before it takes requests for a table.
pub fn awaited(table: &RouteTableId, arrangement: Arrangement) -> Ref {
    match arrangement {
        Arrangement::Table => Ref::To(Kind::Route, name::route_table(table).into()),
        Arrangement::Scopes => Ref::Under(Kind::ScopedRoute, name::scope_group(table).into()),
    }
}

/// The scope that requests for an exact host are looked up in: a connection that is made for the host before a proxy has it
/// would be told that it is misdirected.
pub fn scope_of(key: &HostKey, reads: &mut Reads<'_>) -> Option<Ref> {
    let table = reads.get::<RouteTableOf>(key)?;
    let is_scoped = **reads.get::<Arrangements>(table)? == Arrangement::Scopes && matches!(key.1, Host::Exact(_));
    is_scoped.then(|| Ref::To(Kind::ScopedRoute, scope_name(&scope(table, &key.1)).into()))
}

/// The name of a scope.
pub fn scope_name((table, host): &ScopeKey) -> String {
    name::scope(table, host)
}

/// The route table of the plaintext port.
pub fn in_the_clear() -> RouteTableId {
    RouteTableId { listener: ListenerId::http(), termination: None }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(MisdirectedHosts).each::<VirtualHosts>();
    pipeline.index::<HostsByScope>().index::<MisdirectedByScope>();
    pipeline.index::<ExactHostsByTable>().index::<ExactMisdirectedByTable>();
    pipeline.derived(Arrangements(settings.packing)).per::<TablesOfChains>().always(in_the_clear());
    pipeline.derived(EncodedHosts(settings.spoil.clone())).each::<RouteTableOf>();
    pipeline.derived(RouteResources).per::<TablesOfChains>().always(in_the_clear()).output();
    pipeline
        .derived(ScopeResources(settings.packing, settings.spoil.clone()))
        .per::<HostsByScope>()
        .per::<MisdirectedByScope>()
        .per::<ScopesOfChains>()
        .always((in_the_clear(), Host::Any))
        .output();
    pipeline.index::<WithheldRows<EncodedHosts>>().index::<WithheldByObject<EncodedHosts>>();
    pipeline.index::<WithheldRows<RouteResources>>();
    pipeline.index::<WithheldRows<ScopeResources>>().index::<WithheldByObject<ScopeResources>>();
}
