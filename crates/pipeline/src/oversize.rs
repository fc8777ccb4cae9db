//! What can be withheld of a type whose resources are too large together, with its size.
//!
//! In: the tables as they are. Out: every resource that is sent as it was made and, of those that many hosts share, every
//! host instead. The largest goes first, so whoever is large makes room for those who are small, and which one goes does not
//! depend on who came first: replicas agree.

use crate::{
    client_trust::ClientTrustResources,
    equal_hosts::{AnchorScopes, SharedRouteResources},
    fleet_resources::{MetricsSecretResources, RuntimeResources},
    holders::HolderResources,
    listeners::ListenerResources,
    packing::{EncodedHosts, HostBytes, RouteResources, ScopeResources},
    redirects::RedirectScopes,
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, Resource, Resources, SecretResources,
        StreamResources, TcpResources, UdpClusterResources, UdpEndpointResources,
    },
    withheld::{self, FleetTarget},
};
use engine::Engine;
use model::{FleetId, Host};
use std::{cmp::Reverse, sync::Arc};
use xds::{Kind, Role};

/// Something that can be withheld by itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub target: FleetTarget,
    /// The hash of its content.
    pub hash: u64,
    /// Its size.
    pub bytes: usize,
}

/// The largest parts of a type in a fleet that make room for so many bytes together; all of them if that is not enough.
pub fn largest(engine: &Engine, fleet: &FleetId, kind: Kind, excess: usize) -> Vec<Part> {
    let mut parts = parts(engine, fleet, kind);
    parts.sort_by(|a, b| (Reverse(a.bytes), &a.target).cmp(&(Reverse(b.bytes), &b.target)));
    let mut room = 0;
    let enough = parts.iter().position(|part| {
        room += part.bytes;
        room >= excess
    });
    parts.truncate(enough.map_or(parts.len(), |last| last + 1));
    parts
}

fn parts(engine: &Engine, fleet: &FleetId, kind: Kind) -> Vec<Part> {
    let mut parts = Vec::new();
    match kind {
        Kind::Cluster => {
            of_table::<ClusterResources>(engine, fleet, &mut parts);
            of_table::<HolderResources>(engine, fleet, &mut parts);
            of_table::<UdpClusterResources>(engine, fleet, &mut parts);
        }
        Kind::Endpoints => {
            of_table::<EndpointResources>(engine, fleet, &mut parts);
            of_table::<UdpEndpointResources>(engine, fleet, &mut parts);
        }
        Kind::Secret => {
            of_table::<SecretResources>(engine, fleet, &mut parts);
            of_table::<HostSecretResources>(engine, fleet, &mut parts);
            of_table::<CaResources>(engine, fleet, &mut parts);
            of_table::<ClientTrustResources>(engine, fleet, &mut parts);
            of_table::<MetricsSecretResources>(engine, fleet, &mut parts);
        }
        Kind::Extension => {
            of_table::<TcpResources>(engine, fleet, &mut parts);
            of_table::<StreamResources>(engine, fleet, &mut parts);
        }
        Kind::Route => {
            if engine.rows::<RouteResources>().next().is_some() {
                hosts(engine, fleet, &mut parts);
            }
            of_table::<SharedRouteResources>(engine, fleet, &mut parts);
        }
        Kind::ScopedRoute => {
            hosts(engine, fleet, &mut parts);
            let own =
                engine.rows::<ScopeResources>().filter(|((port, host), _)| port.fleet() == fleet && *host != Host::Any);
            parts.extend(own.filter_map(|(_, resource)| part(fleet, kind, resource)));
            of_table::<RedirectScopes>(engine, fleet, &mut parts);
            of_table::<AnchorScopes>(engine, fleet, &mut parts);
        }
        Kind::Listener => of_table::<ListenerResources>(engine, fleet, &mut parts),
        Kind::Runtime => of_table::<RuntimeResources>(engine, fleet, &mut parts),
        Kind::VirtualHost | Kind::TokenBucket => {}
    }
    parts
}

fn of_table<T: Resources>(engine: &Engine, fleet: &FleetId, parts: &mut Vec<Part>) {
    let here = engine.rows::<T>().filter(|(key, _)| T::fleets(key, engine).contains(fleet));
    parts.extend(here.filter_map(|(_, resource)| part(fleet, T::KIND, resource)));
}

fn part(fleet: &FleetId, kind: Kind, resource: &Resource) -> Option<Part> {
    let is_sent = resource.role == Role::Own && !resource.is_withheld_in(fleet);
    let target = FleetTarget::resource(fleet.clone(), kind, resource.name.clone());
    is_sent.then_some(Part { target, hash: resource.hash, bytes: resource.body.len() })
}

/// The hosts that share a resource.
fn hosts(engine: &Engine, fleet: &FleetId, parts: &mut Vec<Part>) {
    let hosts = engine
        .rows::<EncodedHosts>()
        .filter(|(key, host)| key.0.fleet() == fleet && host.refused.is_none() && !host.waits);
    let part = |(key, host): (&_, &Arc<HostBytes>)| Part {
        target: withheld::of_host(key),
        hash: host.hash,
        bytes: host.bytes.len(),
    };
    parts.extend(hosts.map(part));
}
