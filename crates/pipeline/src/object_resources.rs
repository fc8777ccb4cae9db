//! ObjectResources: for each object, the resources that proxies must have before they serve it as it is written.
//!
//! Only names and, where a resource is one host's alone, its hash: an edit computes the rows of its own objects, however
//! many share a table. Of what is shared, whoever asks takes the version that is published. Clusters are left out: a route
//! is sent when its clusters are there, and proxies withhold their answer about clusters while any of them warms.

use crate::{
    client_trust::ClientTrustResources,
    hosts::{Placements, TlsHosts},
    listeners::ListenerResources,
    packing::{self, ScopeResources},
    ports::{ActiveListeners, Streams},
    resources::{HostSecretResources, Resource, Resources, SecretResources, StreamResources, TcpResources},
    settings::{Fleets, Packing, Settings},
    translations::{HostKey, TranslationsBySubject},
};
use engine::{Derived, Reads, Table};
use envoy::name;
use model::{FleetId, Host, ListenerId, ObjectRef, PortProtocol};
use std::{collections::BTreeSet, sync::Arc};
use xds::Kind;

/// A resource that carries an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectResource {
    /// The fleet whose proxies must have it.
    pub fleet: FleetId,
    /// Its type.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// The hash of its content as the objects want it, which is also its version; nothing where others share it.
    pub hash: Option<u64>,
}

/// What carries each object, in order. Empty for an object of which nothing is served.
pub struct ObjectResources(Packing);

impl Table for ObjectResources {
    type Key = ObjectRef;
    type Value = Vec<ObjectResource>;
    const NAME: &'static str = "object resources";
}

impl Derived for ObjectResources {
    fn compute(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<ObjectResource>> {
        let mut object_resources = BTreeSet::new();
        for (_, translation) in reads.parts::<TranslationsBySubject>(object) {
            for key in translation.hosts {
                object_resources.extend(of_routes(key, self.0, reads));
            }
            for host in translation.conditional {
                for around in host.virtual_hosts() {
                    object_resources.extend(of_routes(&(host.listener.clone(), around), self.0, reads));
                }
            }
            for piece in translation.tls {
                of_tls(&(piece.listener.clone(), piece.host.clone()), reads, &mut object_resources);
            }
            for claim in translation.listeners {
                object_resources.extend(of_listener(&claim.listener, reads));
            }
            for piece in translation.streams {
                of_stream(&piece.listener, reads, &mut object_resources);
            }
        }
        Some(object_resources.into_iter().collect())
    }
}

fn of_routes(key: &HostKey, packing: Packing, reads: &mut Reads<'_>) -> Option<ObjectResource> {
    let port = &reads.get::<Placements>(key)?.port;
    let fleet = port.fleet();
    let scope = |host: &Host| (port.clone(), host.clone());
    Some(match (packing, &key.1) {
        (Packing::Plain, _) => shared(fleet, Kind::Route, name::port(port)),
        (Packing::Scoped, Host::Exact(_)) => own::<ScopeResources>(fleet, reads.get::<ScopeResources>(&scope(&key.1))?),
        (Packing::Scoped, _) => shared(fleet, Kind::ScopedRoute, packing::scope_name(&scope(&Host::Any))),
    })
}

fn of_tls(key: &HostKey, reads: &mut Reads<'_>, object_resources: &mut BTreeSet<ObjectResource>) {
    let Some(host) = reads.get::<TlsHosts>(key) else { return };
    let Some(active) = reads.get::<ActiveListeners>(&key.0) else { return };
    let fleet = key.0.fleet();
    object_resources.insert(shared(fleet, Kind::Listener, name::port(&active.port)));
    let terminations = host.mode.http().into_iter().chain(&host.fallback);
    for certificate in terminations.flat_map(|termination| termination.certificates()) {
        let secret = reads.get::<SecretResources>(certificate);
        object_resources.extend(secret.map(|secret| own::<SecretResources>(fleet, secret)));
    }
    let secret = reads.get::<HostSecretResources>(key);
    object_resources.extend(secret.map(|secret| own::<HostSecretResources>(fleet, secret)));
    if let Some(clients) = host.mode.termination().and_then(|termination| termination.clients.as_ref()) {
        let trust = reads.get::<ClientTrustResources>(&(fleet.clone(), clients.trust.clone()));
        object_resources.extend(trust.map(|trust| own::<ClientTrustResources>(fleet, trust)));
    }
    object_resources.extend(reads.get::<TcpResources>(key).map(|proxy| own::<TcpResources>(fleet, proxy)));
}

/// Proxies get no listener for a port that leads nowhere yet, such as one for TLS without routes. Its fleet serves it as written once
/// proxies have what every one of them gets first: the listener by which they say that they are ready.
fn of_listener(listener: &ListenerId, reads: &mut Reads<'_>) -> Option<ObjectResource> {
    let port = &reads.get::<ActiveListeners>(listener)?.port;
    let fleet = port.fleet();
    if reads.get::<ListenerResources>(port).is_some() {
        return Some(shared(fleet, Kind::Listener, name::port(port)));
    }
    let (page, _) = reads.get::<Fleets>(fleet)?.own_pages(fleet).next()?;
    Some(shared(fleet, Kind::Listener, name::port(&page)))
}

fn of_stream(listener: &ListenerId, reads: &mut Reads<'_>, object_resources: &mut BTreeSet<ObjectResource>) {
    let Some(stream) = reads.get::<Streams>(listener) else { return };
    let fleet = listener.fleet();
    object_resources.insert(shared(fleet, Kind::Listener, name::port(&stream.port)));
    object_resources.extend(reads.get::<StreamResources>(listener).map(|proxy| own::<StreamResources>(fleet, proxy)));
    if stream.protocol == PortProtocol::Udp {
        object_resources.insert(shared(fleet, Kind::Endpoints, name::udp_cluster(listener)));
    }
}

fn own<T: Resources>(fleet: &FleetId, resource: &Resource) -> ObjectResource {
    let (name, hash) = (resource.name.clone(), Some(resource.hash));
    ObjectResource { fleet: fleet.clone(), kind: T::KIND, name, hash }
}

fn shared(fleet: &FleetId, kind: Kind, name: String) -> ObjectResource {
    ObjectResource { fleet: fleet.clone(), kind, name: name.into(), hash: None }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(ObjectResources(settings.packing)).per::<TranslationsBySubject>().sums_up().output();
}
