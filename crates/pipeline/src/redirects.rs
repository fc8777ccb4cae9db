//! The scopes in which redirects are looked up that Envoy follows by itself: see [`envoy::packing::redirects`].
//!
//! In: the hosts of each route table. Out: one scope for each table of which some host follows redirects, with the names of
//! all its hosts. It changes when a host comes or goes, not when one is edited; where nobody follows redirects there is none.

use crate::{
    hosts::{RouteTableOf, VirtualHosts},
    packing::{ExactHostsByTable, ExactMisdirectedByTable, HostsByScope, MisdirectedByScope},
    resources::Resource,
    settings::Settings,
    translations::HostKey,
    withheld::{Withheld, WithheldByObject, WithheldRows},
};
use engine::{Derived, Index, Reads, Table};
use envoy::{
    name,
    packing::{Packing, redirects},
};
use model::{Host, ObjectRef, Route, RouteTableId, route::Action, tls::Termination};
use std::{collections::BTreeSet, sync::Arc};
use xds::Kind;

/// The hosts whose redirects are looked up in the scope of a table, with that table. An exact host with its certificate on
/// demand is not among them: its redirects are looked up in its own scope.
pub struct FollowingHosts;

impl Table for FollowingHosts {
    type Key = HostKey;
    type Value = RouteTableId;
    const NAME: &'static str = "hosts that follow redirects";
}

impl Derived for FollowingHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<RouteTableId> {
        let host = &reads.get::<VirtualHosts>(key)?.host;
        let follows = host.routes.iter().chain(&host.catch_all).any(|route| follows(route));
        let place = reads.get::<RouteTableOf>(key).filter(|_| follows)?;
        let on_demand = place.termination.as_deref().is_some_and(Termination::is_on_demand);
        let own_scope = on_demand && matches!(key.1, Host::Exact(_));
        (!own_scope).then(|| RouteTableId::clone(place))
    }
}

/// These hosts by their table.
pub struct FollowingByTable;

impl Index for FollowingByTable {
    type Of = FollowingHosts;
    type Key = RouteTableId;
    const NAME: &'static str = "by route table";

    fn keys(_: &HostKey, table: &RouteTableId) -> impl IntoIterator<Item = RouteTableId> {
        [table.clone()]
    }
}

/// The scopes.
pub struct RedirectScopes(Packing);

impl Table for RedirectScopes {
    type Key = RouteTableId;
    type Value = Resource;
    const NAME: &'static str = "redirect scopes";
}

impl Derived for RedirectScopes {
    fn compute(&self, table: &RouteTableId, reads: &mut Reads<'_>) -> Option<Resource> {
        if self.0 == Packing::Plain {
            return None;
        }
        let rest = (table.clone(), Host::Any);
        let hosts = reads.probe::<ExactHostsByTable>(table).chain(reads.probe::<HostsByScope>(&rest));
        let hosts = names(hosts);
        let elsewhere = reads.probe::<ExactMisdirectedByTable>(table).chain(reads.probe::<MisdirectedByScope>(&rest));
        let elsewhere = names(elsewhere);
        let resource = Resource::of(name::redirects_scope(table), redirects::scope(table, &hosts, &elsewhere));
        let mut resource = resource.unless_held(Kind::ScopedRoute, reads);
        // Only what is withheld depends on what its hosts hold: else an edit of one would cost the list of all.
        if let Some(refused) = &resource.refused {
            let objects = followers(table, reads);
            resource.refused = Some(Arc::new(Withheld { objects, ..Withheld::clone(refused) }));
        }
        Some(resource)
    }
}

/// The objects whose redirects are looked up in the scope of a table.
fn followers(table: &RouteTableId, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    let mut objects = BTreeSet::new();
    for key in reads.probe::<FollowingByTable>(table) {
        let Some(found) = reads.get::<VirtualHosts>(key) else { continue };
        let routes = found.host.routes.iter().chain(&found.host.catch_all);
        let origins = routes.filter(|route| follows(route)).flat_map(|route| route.origins());
        objects.extend(origins.map(|origin| &origin.object));
    }
    objects.into_iter().cloned().collect()
}

/// Whether proxies follow the redirects of a route's backends.
fn follows(route: &Route) -> bool {
    matches!(&route.action, Action::Forward(forward) if forward.internal_redirect.is_some())
}

fn names<'r>(hosts: impl Iterator<Item = &'r HostKey>) -> Vec<Host> {
    let mut names: Vec<Host> = hosts.map(|(_, host)| host.clone()).collect();
    names.sort();
    names
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(FollowingHosts).each::<RouteTableOf>();
    pipeline.derived(RedirectScopes(settings.packing)).per::<FollowingByTable>().output();
    pipeline.index::<WithheldRows<RedirectScopes>>().index::<WithheldByObject<RedirectScopes>>();
}
