//! The scopes in which redirects are looked up that Envoy follows by itself: see [`envoy::packing::redirects`].
//!
//! In: the hosts of each port. Out: one scope for each port of which some host follows redirects, with the names of
//! all its hosts, but for those that no other host's connection serves. It changes when a host comes or goes, not when one is edited;
//! where nobody follows redirects there is none. Of a port with many hosts it is computed on another thread ([`large::HOSTS`]).

use crate::{
    hosts::{Placements, VirtualHosts},
    large,
    packing::{ExactHostsByPort, HostsByScope, ScopeKey},
    partition,
    resources::Resource,
    settings::Settings,
    translations::HostKey,
    withheld::WithheldRows,
};
use assemble::virtual_host::Assembled;
use engine::{Derived, Index, Reads, Table};
use envoy::{
    name,
    packing::{Packing, redirects},
};
use model::{Host, ObjectRef, PortId, route::VirtualHost, tls::Admission};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};
use xds::Kind;

/// Virtual hosts with a route whose redirects proxies follow.
pub struct HostsWithRedirects;

impl Index for HostsWithRedirects {
    type Of = VirtualHosts;
    type Key = HostKey;
    const NAME: &'static str = "with redirects to follow";

    fn keys(key: &HostKey, assembled: &Assembled) -> impl IntoIterator<Item = HostKey> {
        let VirtualHost { routes, catch_all, .. } = &assembled.host;
        (routes.follows_redirects() || catch_all.follows_redirects()).then(|| key.clone())
    }
}

/// The hosts whose redirects are looked up in the scope of a port, with that port. An exact host with its certificate on
/// demand is not among them: its redirects are looked up in its own scope.
pub struct FollowingHosts;

impl Table for FollowingHosts {
    type Key = HostKey;
    type Value = PortId;
    const NAME: &'static str = "hosts that follow redirects";
}

impl Derived for FollowingHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<PortId> {
        let place = reads.get::<Placements>(key)?;
        (!uses_own_scope(&key.1, place.admission.as_ref())).then(|| place.port.clone())
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// These hosts by their port.
pub struct FollowingByPort;

impl Index for FollowingByPort {
    type Of = FollowingHosts;
    type Key = PortId;
    const NAME: &'static str = "by port";

    fn keys(_: &HostKey, port: &PortId) -> impl IntoIterator<Item = PortId> {
        [port.clone()]
    }
}

/// The scopes.
pub struct RedirectScopes(Packing);

impl Table for RedirectScopes {
    type Key = PortId;
    type Value = Resource;
    const NAME: &'static str = "redirect scopes";
}

impl Derived for RedirectScopes {
    fn compute(&self, port: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
        if self.0 == Packing::Plain {
            return None;
        }
        let groups = listed(port, reads);
        let resource = Resource::of(name::redirects_scope(port), redirects::scope(port, &groups));
        let resource = resource.in_fleet(port.fleet()).unless_withheld(Kind::ScopedRoute, reads);
        // Only what is withheld depends on what its hosts hold: else an edit of one would cost the list of all.
        Some(resource.reported_on(|| followers(port, reads)))
    }

    fn is_large(&self, port: &PortId, reads: &mut Reads<'_>) -> bool {
        let wide = reads.probe::<HostsByScope>(&wide_hosts(port)).len();
        self.0 == Packing::Scoped && wide + reads.probe::<ExactHostsByPort>(port).len() > large::HOSTS
    }
}

/// What all hosts of a port but the exact ones are found by.
fn wide_hosts(port: &PortId) -> ScopeKey {
    (port.clone(), Host::Any)
}

/// The hosts of a port that a redirect may lead to, by the connections that may carry their requests. A host that no other host's
/// connection serves is left out, unless a wider host would be found in its place.
fn listed<'r>(port: &PortId, reads: &mut Reads<'r>) -> Vec<redirects::Group<'r>> {
    let wide = reads.parts::<HostsByScope>(&wide_hosts(port));
    let exact = reads.parts::<ExactHostsByPort>(port);
    let wider: HashSet<&Host> = wide.iter().map(|(key, _)| &key.1).collect();
    let is_covered = |host: &Host| {
        wider.contains(&Host::Any) || host.wildcards_above().iter().any(|wildcard| wider.contains(wildcard))
    };
    let mut groups: BTreeMap<Option<&[Arc<str>]>, Vec<Host>> = BTreeMap::new();
    for (key, admission) in wide.iter().chain(&exact).copied() {
        if !is_alone(&key.1, admission) || is_covered(&key.1) {
            let chains = admission.map(|admission| &admission.chains[..]);
            groups.entry(chains).or_default().push(key.1.clone());
        }
    }
    groups.values_mut().for_each(|hosts| hosts.sort());
    groups.into_iter().collect()
}

/// Whether the redirects of a host are looked up in its own scope: an exact host with its certificate on demand.
fn uses_own_scope(host: &Host, admission: Option<&Admission>) -> bool {
    matches!(host, Host::Exact(_)) && admission.is_some_and(|admission| admission.by_server_name)
}

/// Whether only connections that were made for a host may carry its requests: those of the fallback certificate may not, either.
fn is_alone(host: &Host, admission: Option<&Admission>) -> bool {
    uses_own_scope(host, admission) && admission.is_some_and(|admission| admission.chains.len() == 1)
}

/// The objects whose redirects are looked up in the scope of a port.
pub(crate) fn followers(port: &PortId, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    let mut objects = BTreeSet::new();
    for key in reads.probe::<FollowingByPort>(port) {
        let Some(found) = reads.get::<VirtualHosts>(key) else { continue };
        let routes = found.host.routes.iter().chain(&found.host.catch_all);
        let origins = routes.filter(|route| route.follows_redirects()).flat_map(|route| route.origins());
        objects.extend(origins.map(|origin| &origin.object));
    }
    objects.into_iter().cloned().collect()
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(FollowingHosts).per::<HostsWithRedirects>();
    pipeline.derived(RedirectScopes(settings.packing)).per::<FollowingByPort>().sums_up().output();
    pipeline.index::<WithheldRows<RedirectScopes>>();
}
