//! Which rows are large: they are computed on another thread while everybody else moves on ([`engine::Job`]).
//!
//! What an object unfolds into is bounded, but at the bounds translating, assembling and encoding it takes far longer than
//! anybody else should wait. Below this size each of these takes about as long as a handful of ordinary edits.

use crate::{
    equal_hosts::{SharedRouteResources, SharingHosts},
    facts::Facts,
    hosts::{Placements, VirtualHosts},
    object_resources::ObjectResources,
    packing::{EncodedHosts, ScopeResources},
    services,
    translations::{Translations, TranslationsBySubject},
    verdicts::Verdicts,
};
use engine::{Engine, Reads};
use model::{ClusterId, ObjectRef, VirtualHost};

/// From how many routes on a row is large.
pub const ROUTES: usize = 500;

/// From how many endpoints on a set of them is large.
pub const ENDPOINTS: usize = 1_000;

/// From how many hosts of a port on the list of them is large.
pub const HOSTS: usize = 1_000;

/// Whether a virtual host is large.
pub fn is_large(host: &VirtualHost) -> bool {
    host.routes.len() + host.catch_all.len() > ROUTES
}

/// Whether the endpoints of some clusters are so many that a row that lists them is large.
pub fn has_many_endpoints<'c>(clusters: impl IntoIterator<Item = &'c ClusterId>, reads: &mut Reads<'_>) -> bool {
    clusters.into_iter().map(|cluster| services::endpoints_named(cluster, reads)).sum::<usize>() > ENDPOINTS
}

/// Whether any row that an object is made into is computed on another thread, or waits for its turn ([`crate::partition`]): then what the tables say of the object may be
/// about what it was before.
pub fn is_computing(engine: &Engine, key: &ObjectRef) -> bool {
    if engine.offloaded() == 0 && engine.backlog() == 0 {
        return false;
    }
    let translations = engine.probe::<TranslationsBySubject>(key);
    engine.is_offloaded::<Translations>(key)
        || engine.is_deferred::<Translations>(key)
        || engine.is_deferred::<Verdicts>(key)
        || engine.is_deferred::<Facts>(key)
        || engine.is_deferred::<ObjectResources>(key)
        || translations.into_iter().any(|name| is_translation_computing(engine, name))
}

fn is_translation_computing(engine: &Engine, name: &ObjectRef) -> bool {
    let hosts = engine.get::<Translations>(name).map(|translation| translation.hosts.as_slice()).unwrap_or_default();
    engine.is_offloaded::<Translations>(name)
        || engine.is_deferred::<Translations>(name)
        || hosts.iter().any(|host| engine.is_deferred::<VirtualHosts>(host))
        || engine.offloaded() > 0
            && (engine.offloaded_of::<SharedRouteResources>() > 0
                && hosts.iter().any(|host| engine.get::<SharingHosts>(host).is_some())
                || hosts.iter().any(|host| {
                    let scope = engine.get::<Placements>(host).map(|place| (place.port.clone(), host.1.clone()));
                    engine.is_offloaded::<VirtualHosts>(host)
                        || engine.is_offloaded::<EncodedHosts>(host)
                        || scope.is_some_and(|scope| engine.is_offloaded::<ScopeResources>(&scope))
                }))
}
