//! What can be withheld of a type whose resources are too large together, with its size.
//!
//! In: the tables as they are. Out: every resource that is sent as it was made and, of those that many hosts share, every
//! host instead. The largest goes first, so whoever is large makes room for those who are small, and which one goes does not
//! depend on who came first: replicas agree.

use crate::{
    holders::HolderResources,
    hosts::RouteTableOf,
    listeners::ListenerResources,
    packing::{Arrangements, EncodedHosts, ScopeResources},
    redirects::RedirectScopes,
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, Resources, SecretResources, TcpResources,
    },
    withheld::{self, Target},
};
use engine::Engine;
use envoy::packing::Arrangement;
use model::Host;
use std::cmp::Reverse;
use xds::{Kind, Role};

/// Something that can be withheld by itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub target: Target,
    /// The hash of its content.
    pub hash: u64,
    /// Its size.
    pub bytes: usize,
}

/// The largest parts of a type that make room for so many bytes together; all of them if that is not enough.
pub fn largest(engine: &Engine, kind: Kind, excess: usize) -> Vec<Part> {
    let mut parts = parts(engine, kind);
    parts.sort_by(|a, b| (Reverse(a.bytes), &a.target).cmp(&(Reverse(b.bytes), &b.target)));
    let mut room = 0;
    let enough = parts.iter().position(|part| {
        room += part.bytes;
        room >= excess
    });
    parts.truncate(enough.map_or(parts.len(), |last| last + 1));
    parts
}

fn parts(engine: &Engine, kind: Kind) -> Vec<Part> {
    match kind {
        Kind::Cluster => {
            let mut parts = of_table::<ClusterResources>(engine);
            parts.extend(of_table::<HolderResources>(engine));
            parts
        }
        Kind::Endpoints => of_table::<EndpointResources>(engine),
        Kind::Secret => {
            let mut parts = of_table::<SecretResources>(engine);
            parts.extend(of_table::<HostSecretResources>(engine));
            parts.extend(of_table::<CaResources>(engine));
            parts
        }
        Kind::Extension => of_table::<TcpResources>(engine),
        Kind::Route => hosts(engine, Arrangement::Table),
        Kind::ScopedRoute => {
            let mut parts = hosts(engine, Arrangement::Scopes);
            let own = engine.rows::<ScopeResources>().filter(|((_, host), _)| *host != Host::Any);
            parts.extend(own.filter_map(|(_, resource)| part(kind, resource)));
            parts.extend(of_table::<RedirectScopes>(engine));
            parts
        }
        Kind::Listener => of_table::<ListenerResources>(engine),
        Kind::Runtime | Kind::VirtualHost => Vec::new(),
    }
}

fn of_table<T: Resources>(engine: &Engine) -> Vec<Part> {
    engine.rows::<T>().filter_map(|(_, resource)| part(T::KIND, resource)).collect()
}

fn part(kind: Kind, resource: &crate::resources::Resource) -> Option<Part> {
    let target = Target::resource(kind, resource.name.clone());
    (resource.role == Role::Own).then_some(Part { target, hash: resource.hash, bytes: resource.body.len() })
}

/// The hosts that share a resource of that arrangement. There are scopes of every table, with its wildcards in them.
fn hosts(engine: &Engine, arrangement: Arrangement) -> Vec<Part> {
    let hosts = engine.rows::<EncodedHosts>().filter(|(_, host)| host.refused.is_none() && !host.waits);
    let here = hosts.filter(|(key, _)| match arrangement {
        Arrangement::Scopes => !matches!(key.1, Host::Exact(_)),
        Arrangement::Table => {
            let place = engine.get::<RouteTableOf>(key);
            let found = place.and_then(|place| engine.get::<Arrangements>(place));
            found.is_some_and(|found| **found == arrangement)
        }
    });
    here.map(|(key, host)| Part { target: withheld::of_host(key), hash: host.hash, bytes: host.bytes.len() }).collect()
}
