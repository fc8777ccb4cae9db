//! Route configurations that equal hosts share, where hosts have scopes.
//!
//! In: hosts with the same routes ([`hosts::equal`](crate::hosts::equal)), and where each is looked up. Out: a route configuration for
//! all of them, whose name follows from what they have in common; a scope by which proxies have it at hand ([`scoped::anchor`]); and,
//! for [`packing`](crate::packing), which hosts name it. A thousand hosts with a thousand routes are a thousand short scopes and one
//! list of routes, and an edit of a route is sent once.

use crate::{
    hosts::{
        Placement, Placements,
        equal::{self, EqualHosts, EqualRoutes, Selections},
    },
    large,
    packing::{authors, clusters, refs, slots},
    partition,
    resources::Resource,
    settings::Settings,
    spoil,
    translations::HostKey,
    withheld::WithheldRows,
};
use assemble::shared_routes::Selection;
use engine::{Derived, Index, Reads, Table};
use envoy::{name, packing::scoped};
use model::{PortId, tls::Admission};
use xds::{Kind, Ref};

/// What hosts have in common that share a route configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedRoutesKey {
    /// Where they are looked up.
    pub port: PortId,
    /// Under TLS, the connections that may carry their requests.
    pub admission: Option<Admission>,
    /// What their routes follow from.
    pub selections: Selections,
}

impl SharedRoutesKey {
    /// The name of the route configuration.
    pub fn name(&self) -> String {
        let follows_from: Vec<_> = self.selections.iter().map(Selection::identity).collect();
        name::shared_routes(&self.port, self.admission.as_ref(), &follows_from)
    }
}

/// The route configuration of each host that shares one.
pub struct SharingHosts;

impl Table for SharingHosts {
    type Key = HostKey;
    type Value = SharedRoutesKey;
    const NAME: &'static str = "hosts that share routes";
}

impl Derived for SharingHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<SharedRoutesKey> {
        let selections = reads.get::<EqualHosts>(key).filter(|host| host.is_sharing)?.selections.clone();
        let Placement { port, admission } = Placement::clone(reads.get::<Placements>(key)?);
        Some(SharedRoutesKey { port, admission, selections })
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// These hosts by what they share.
pub struct HostsBySharedRoutes;

impl Index for HostsBySharedRoutes {
    type Of = SharingHosts;
    type Key = SharedRoutesKey;
    const NAME: &'static str = "by shared routes";

    fn keys(_: &HostKey, key: &SharedRoutesKey) -> impl IntoIterator<Item = SharedRoutesKey> {
        [key.clone()]
    }
}

/// The route configurations.
pub struct SharedRouteResources(Option<Box<str>>);

impl Table for SharedRouteResources {
    type Key = SharedRoutesKey;
    type Value = Resource;
    const NAME: &'static str = "shared route resources";
}

impl Derived for SharedRouteResources {
    fn compute(&self, key: &SharedRoutesKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let SharedRoutesKey { port, admission, selections } = key;
        let host = &reads.get::<EqualRoutes>(selections)?.host;
        let place = Placement { port: port.clone(), admission: admission.clone() };
        let body = scoped::shared(port, key.name(), &equal::below(selections), host, admission.as_ref());
        let resource = Resource::of(key.name(), spoil::routes(body, self.0.as_deref()));
        let resource = Resource { refs: refs(clusters(host), slots(&place, host)), ..resource }.in_fleet(port.fleet());
        let stand_in = || scoped::shared_refused(key.name());
        Some(resource.or_stand_in(Kind::Route, authors(host), Some(&stand_in), reads))
    }

    fn is_large(&self, key: &SharedRoutesKey, reads: &mut Reads<'_>) -> bool {
        reads.get::<EqualRoutes>(&key.selections).is_some_and(|equal| large::is_large(&equal.host))
    }
}

/// The scopes by which proxies have them at hand.
pub struct AnchorScopes;

impl Table for AnchorScopes {
    type Key = SharedRoutesKey;
    type Value = Resource;
    const NAME: &'static str = "scopes that keep shared routes at hand";
}

impl Derived for AnchorScopes {
    fn compute(&self, key: &SharedRoutesKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let resource = Resource::of(anchor_name(key), scoped::anchor(&key.port, key.name()));
        let resource = Resource { refs: vec![named(key)], ..resource }.in_fleet(key.port.fleet());
        Some(resource.unless_withheld(Kind::ScopedRoute, reads))
    }
}

/// The name of such a scope.
pub fn anchor_name(key: &SharedRoutesKey) -> String {
    name::scope_of_key(&key.port, &key.name())
}

/// What a scope refers to that names shared routes.
pub(crate) fn named(key: &SharedRoutesKey) -> Ref {
    Ref::To(Kind::Route, key.name().into())
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(SharingHosts).each::<EqualHosts>();
    pipeline.derived(SharedRouteResources(settings.spoil.clone())).per::<HostsBySharedRoutes>().output();
    pipeline.derived(AnchorScopes).per::<HostsBySharedRoutes>().output();
    pipeline.index::<WithheldRows<SharedRouteResources>>();
    pipeline.index::<WithheldRows<AnchorScopes>>();
}
