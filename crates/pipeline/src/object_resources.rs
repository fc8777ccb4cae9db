//! ObjectResources: for each object, the resources that proxies must have before they serve it as it is written.
//!
//! Only names and, where a resource is one host's alone, its hash: an edit computes the rows of its own objects, however
//! many share a table. Of what is shared, whoever asks takes the version that is published. A hash of what the object itself brings
//! makes a row of every edit, also where all its resources are shared: whoever waits for proxies waits again. Clusters are left out: a
//! route is sent when its clusters are there, and proxies withhold their answer about clusters while any of them warms.
//!
//! An object that says how proxies connect to others, and has no routes itself, is served where routes lead to these. Of many such
//! routes only the first are looked at: what one edit changes is sent together.

use crate::{
    client_trust::ClientTrustResources,
    equal_hosts::SharingHosts,
    facts::TranslationsByBackend,
    hosts::{Placements, TlsHosts},
    listeners::ListenerResources,
    packing::{self, ScopeResources},
    ports::{ActiveListeners, Streams},
    resources::{HostSecretResources, Resource, Resources, SecretResources, StreamResources, TcpResources},
    settings::{Fleets, Packing, Settings},
    translations::{HostKey, ObjectPart, TranslationRow, Translations, TranslationsBySubject},
};
use engine::{Derived, Reads, Table};
use envoy::name;
use model::{
    FleetId, Host, ListenerId, ObjectRef, PortProtocol, Translation,
    listener::{ListenerClaim, StreamPiece},
    shared_routes::ConditionalHost,
    translation::TlsPiece,
};
use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
    sync::Arc,
};
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

/// An object as proxies serve it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedObject {
    /// What carries it, in order; nothing where nothing of it is served.
    pub resources: Vec<ObjectResource>,
    /// A hash of what it brings, so that the row of an edited object differs where its resources are the same.
    pub content: u64,
}

impl Deref for ServedObject {
    type Target = [ObjectResource];

    fn deref(&self) -> &[ObjectResource] {
        &self.resources
    }
}

/// Of the routes to an object that another configures, how many that one is looked for in.
const ROUTES_LOOKED_AT: usize = 16;

/// What carries each object.
pub struct ObjectResources(Packing);

impl Table for ObjectResources {
    type Key = ObjectRef;
    type Value = ServedObject;
    const NAME: &'static str = "object resources";
}

impl Derived for ObjectResources {
    fn compute(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> Option<ServedObject> {
        let (mut resources, mut hashes) = (BTreeSet::new(), DefaultHasher::new());
        for (name, part) in reads.parts::<TranslationsBySubject>(object) {
            // Not a part of the index: verdicts read that, too, and do not depend on what routes say.
            let content = reads.get::<Translations>(name).map(|translation| &translation.content);
            let content = content.and_then(|content| match part.is_subject {
                true => Some(content.of_subject()),
                false => content.of_included(object),
            });
            content.hash(&mut hashes);
            of_pieces(Pieces::from(part), self.0, reads, &mut resources);
            for target in part.configures {
                let routes: Vec<_> = reads.probe::<TranslationsByBackend>(target).take(ROUTES_LOOKED_AT).collect();
                for translation in routes {
                    let Some(translation) = reads.get::<Translations>(translation) else { continue };
                    translation.content.of_subject().hash(&mut hashes);
                    of_pieces(Pieces::from(&**translation), self.0, reads, &mut resources);
                }
            }
        }
        // There is nothing to wait for where nothing is served, and no need of a row for every edit.
        let content = if resources.is_empty() { 0 } else { hashes.finish() };
        Some(ServedObject { resources: resources.into_iter().collect(), content })
    }
}

/// The pieces of a translation that proxies are sent.
struct Pieces<'r> {
    hosts: &'r [HostKey],
    conditional: &'r [ConditionalHost],
    tls: &'r [TlsPiece],
    listeners: &'r [ListenerClaim],
    streams: &'r [StreamPiece],
}

impl<'r> From<ObjectPart<'r>> for Pieces<'r> {
    fn from(part: ObjectPart<'r>) -> Self {
        let ObjectPart { hosts, conditional, tls, listeners, streams, .. } = part;
        Self { hosts, conditional, tls, listeners, streams }
    }
}

impl<'r> From<&'r TranslationRow> for Pieces<'r> {
    fn from(row: &'r TranslationRow) -> Self {
        let Translation { hosts, conditional, tls, listeners, streams, .. } = &row.translation;
        Self { hosts, conditional, tls, listeners, streams }
    }
}

fn of_pieces(pieces: Pieces<'_>, packing: Packing, reads: &mut Reads<'_>, resources: &mut BTreeSet<ObjectResource>) {
    for key in pieces.hosts {
        resources.extend(of_routes(key, packing, reads));
    }
    for host in pieces.conditional {
        for around in host.virtual_hosts() {
            resources.extend(of_routes(&(host.listener.clone(), around), packing, reads));
        }
    }
    for piece in pieces.tls {
        of_tls(&(piece.listener.clone(), piece.host.clone()), reads, resources);
    }
    for claim in pieces.listeners {
        // The plaintext side of a TLS listener has no socket of its own.
        resources.extend(of_listener(claim.plaintext_of.as_ref().unwrap_or(&claim.listener), reads));
    }
    for piece in pieces.streams {
        of_stream(&piece.listener, reads, resources);
    }
}

fn of_routes(key: &HostKey, packing: Packing, reads: &mut Reads<'_>) -> Vec<ObjectResource> {
    let common = reads.get::<SharingHosts>(key);
    let common = common.map(|common| shared(common.port.fleet(), Kind::Route, common.name()));
    common.into_iter().chain(of_host(key, packing, reads)).collect()
}

/// What a host is looked up in.
fn of_host(key: &HostKey, packing: Packing, reads: &mut Reads<'_>) -> Option<ObjectResource> {
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
    // HTTP/3 connections of a host that it cannot serve are closed, whether there is a listener or not.
    if active.protocol == PortProtocol::Quic && host.mode.http().is_none() {
        return;
    }
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
