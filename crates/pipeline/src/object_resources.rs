//! ObjectResources: for each object, the resources that proxies must have before they serve it as it is written.
//!
//! Only names and, where a resource is one host's alone, its hash: an edit computes the rows of its own objects, however
//! many share a table. Of what is shared, whoever asks takes the version that is published. Clusters are left out: a route
//! is sent when its clusters are there, and proxies withhold their answer about clusters while any of them warms.

use crate::{
    hosts::{RouteTableOf, TlsHosts},
    packing::{self, Arrangements, ScopeResources},
    resources::{HostSecretResources, Resource, Resources, SecretResources, TcpResources},
    translations::{HostKey, Translations, TranslationsBySubject},
};
use engine::{Derived, Reads, Table};
use envoy::{name, packing::Arrangement};
use model::{Host, ObjectRef, RouteTableId};
use std::{collections::BTreeSet, sync::Arc};
use xds::Kind;

/// A resource that carries an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectResource {
    /// Its type.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// The hash of its content as the objects want it, which is also its version; nothing where others share it.
    pub hash: Option<u64>,
}

/// What carries each object, in order. Empty for an object of which nothing is served.
pub struct ObjectResources;

impl Table for ObjectResources {
    type Key = ObjectRef;
    type Value = Vec<ObjectResource>;
    const NAME: &'static str = "object resources";
}

impl Derived for ObjectResources {
    fn compute(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<ObjectResource>> {
        let mut object_resources = BTreeSet::new();
        let translations: Vec<_> = reads.probe::<TranslationsBySubject>(object).collect();
        for key in translations {
            let Some(translation) = reads.get::<Translations>(key) else { continue };
            for key in &translation.hosts {
                object_resources.extend(of_routes(key, reads));
            }
            for piece in &translation.tls {
                of_tls(&(piece.listener.clone(), piece.host.clone()), reads, &mut object_resources);
            }
        }
        Some(object_resources.into_iter().collect())
    }
}

fn of_routes(key: &HostKey, reads: &mut Reads<'_>) -> Option<ObjectResource> {
    let table = reads.get::<RouteTableOf>(key)?;
    let scope = |host: &Host| (RouteTableId::clone(table), host.clone());
    Some(match (**reads.get::<Arrangements>(table)?, &key.1) {
        (Arrangement::Table, _) => shared(Kind::Route, name::route_table(table)),
        (Arrangement::Scopes, Host::Exact(_)) => own::<ScopeResources>(reads.get::<ScopeResources>(&scope(&key.1))?),
        (Arrangement::Scopes, _) => shared(Kind::ScopedRoute, packing::scope_name(&scope(&Host::Any))),
    })
}

fn of_tls(key: &HostKey, reads: &mut Reads<'_>, object_resources: &mut BTreeSet<ObjectResource>) {
    let Some(host) = reads.get::<TlsHosts>(key) else { return };
    object_resources.insert(shared(Kind::Listener, key.0.to_string()));
    if let Some(termination) = host.mode.http() {
        object_resources.extend(
            reads.get::<SecretResources>(&termination.certificate).map(|secret| own::<SecretResources>(secret)),
        );
    }
    object_resources.extend(reads.get::<HostSecretResources>(key).map(|secret| own::<HostSecretResources>(secret)));
    object_resources.extend(reads.get::<TcpResources>(key).map(|proxy| own::<TcpResources>(proxy)));
}

fn own<T: Resources>(resource: &Resource) -> ObjectResource {
    ObjectResource { kind: T::KIND, name: resource.name.clone(), hash: Some(resource.hash) }
}

fn shared(kind: Kind, name: String) -> ObjectResource {
    ObjectResource { kind, name: name.into(), hash: None }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(ObjectResources).per::<TranslationsBySubject>().output();
}
