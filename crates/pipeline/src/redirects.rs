//! The scopes in which redirects are looked up that Envoy follows by itself: see [`envoy::packing::redirects`].
//!
//! In: the hosts of each route table. Out: one scope for each table of which some host follows redirects, with the names of
//! all its hosts. It changes when a host comes or goes, not when one is edited; where nobody follows redirects there is none.

use crate::{
    hosts::{Places, VirtualHosts},
    packing::{ExactHostsByTable, ExactStrangersByTable, HostsByScope, StrangersByScope},
    resources::Resource,
    settings::Settings,
    units::HostKey,
};
use engine::{Derived, Index, Reads, Table};
use envoy::{
    name,
    packing::{Packing, redirects},
};
use model::{Host, RouteTableId, route::Action};

/// The hosts that follow redirects, each with the table that it is looked up in.
pub struct FollowingHosts;

impl Table for FollowingHosts {
    type Key = HostKey;
    type Value = RouteTableId;
    const NAME: &'static str = "hosts that follow redirects";
}

impl Derived for FollowingHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<RouteTableId> {
        let host = &reads.get::<VirtualHosts>(key)?.host;
        let mut actions = host.routes.iter().chain(&host.deeper).map(|route| &route.action);
        let follows =
            actions.any(|action| matches!(action, Action::Forward(forward) if forward.internal_redirect.is_some()));
        if follows { reads.get::<Places>(key).map(|place| RouteTableId::clone(place)) } else { None }
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
        let elsewhere = reads.probe::<ExactStrangersByTable>(table).chain(reads.probe::<StrangersByScope>(&rest));
        let elsewhere = names(elsewhere);
        Some(Resource::of(name::redirects_scope(table), redirects::scope(table, &hosts, &elsewhere)))
    }
}

fn names<'r>(hosts: impl Iterator<Item = &'r HostKey>) -> Vec<Host> {
    let mut names: Vec<Host> = hosts.map(|(_, host)| host.clone()).collect();
    names.sort();
    names
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(FollowingHosts).each::<Places>();
    pipeline.derived(RedirectScopes(settings.packing)).per::<FollowingByTable>().output();
}
