//! Resources: bytes for the xDS server, each with the names that it refers to and where it came from.
//!
//! Those that carry virtual hosts are made in [`crate::packing`], and listeners in [`crate::listeners`].

use crate::{
    certificates::{CaBundles, Certificates, SelfSigned},
    holders::{HolderResources, holder_name},
    hosts::{HostsByChainCertificate, TcpHosts, TlsHosts},
    listeners::{self, ListenerResources, SlotResources},
    packing::{self, RouteResources, ScopeResources},
    redirects::RedirectScopes,
    services::{self, Clusters, ClustersByCa, EndpointSets},
    settings::Settings,
    translations::{HostKey, TlsByHost},
    withheld::{self, Target, Withheld, WithheldByObject, WithheldRows, WithholdReason, Withholdable},
};
use bytes::Bytes;
use engine::{Derived, Engine, Reads, Table};
use envoy::{cluster::ClusterSettings, listener, name};
use model::{CertificateRef, ClusterId, ObjectRef, cluster::Discovery, tls::TcpProxy};
use prost::Message;
use std::{collections::BTreeSet, sync::Arc};
use xds::{Kind, Ref, Role};

/// One resource as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name.
    pub name: Arc<str>,
    /// Its bytes.
    pub body: Bytes,
    /// What it refers to.
    pub refs: Vec<Ref>,
    /// Whether a proxy warms it by asking DNS.
    pub warms: bool,
    /// Whose it is, where it is one object's.
    pub origin: Option<ObjectRef>,
    /// Whether it is what every proxy is to have.
    pub role: Role,
    /// The hash of what was made of the objects, sent or not.
    pub hash: u64,
    /// What is said while that is withheld.
    pub refused: Option<Arc<Withheld>>,
}

impl Resource {
    pub(crate) fn new(name: String, message: &impl Message) -> Self {
        Self::of(name, message.encode_to_vec().into())
    }

    /// A resource that refers to nothing.
    pub(crate) fn of(name: String, body: Bytes) -> Self {
        let (hash, role) = (xds::content_version(&body), Role::Own);
        Self { name: name.into(), body, refs: Vec::new(), warms: false, origin: None, role, hash, refused: None }
    }

    /// The same, or nothing in its place if it is withheld.
    pub(crate) fn unless_held(self, kind: Kind, reads: &mut Reads<'_>) -> Self {
        let objects = self.origin.iter().cloned().collect();
        self.or_stand_in(kind, objects, None, reads)
    }

    /// The same, or what stands in for it if it is withheld.
    pub(crate) fn or_stand_in(
        self,
        kind: Kind,
        objects: Vec<ObjectRef>,
        stand_in: Option<&dyn Fn() -> Bytes>,
        reads: &mut Reads<'_>,
    ) -> Self {
        let target = Target::resource(kind, self.name.clone());
        let Some(why) = withheld::why(&target, self.hash, reads).and_then(WithholdReason::told) else { return self };
        let what = format!("{} {}", kind.label(), self.name);
        let refused = Some(Arc::new(Withheld::new(target, what, why, objects)));
        let (role, body) = match stand_in {
            Some(make) => (Role::StandIn, make()),
            None => (Role::Withheld, Bytes::new()),
        };
        Self { body, role, refused, refs: Vec::new(), warms: false, ..self }
    }

    fn into_xds(self, kind: Kind) -> xds::Resource {
        let mut resource = xds::Resource::new(kind, self.name, self.body);
        (resource.refs, resource.role) = (self.refs, self.role);
        if self.warms {
            resource = resource.warming();
        }
        match self.origin {
            Some(origin) => resource.from_origin(Arc::new(origin)),
            None => resource,
        }
    }
}

impl Withholdable for Resource {
    fn refused(&self) -> Option<&Withheld> {
        self.refused.as_deref()
    }
}

/// A table of resources of one type.
pub trait Resources: Table<Value = Resource> {
    /// The type.
    const KIND: Kind;
}

macro_rules! kinds_of {
    ($($table:ty => $kind:ident,)*) => {
        $(
            impl Resources for $table {
                const KIND: Kind = Kind::$kind;
            }
        )*
    };
}

kinds_of! {
    ClusterResources => Cluster,
    HolderResources => Cluster,
    EndpointResources => Endpoints,
    CaResources => Secret,
    SecretResources => Secret,
    HostSecretResources => Secret,
    SlotResources => Extension,
    TcpResources => Extension,
    RouteResources => Route,
    ScopeResources => ScopedRoute,
    RedirectScopes => ScopedRoute,
    ListenerResources => Listener,
}

/// Clusters.
pub struct ClusterResources(ClusterSettings);

impl Table for ClusterResources {
    type Key = ClusterId;
    type Value = Resource;
    const NAME: &'static str = "cluster resources";
}

impl Derived for ClusterResources {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Resource> {
        let cluster = reads.get::<Clusters>(id)?;
        let mut resource = Resource::new(name::cluster(id), &envoy::cluster::cluster(cluster, &self.0));
        match cluster.discovery {
            Discovery::Endpoints => resource.refs = vec![Ref::To(Kind::Endpoints, resource.name.clone())],
            Discovery::Dns(_) => resource.warms = true,
        }
        resource.origin = Some(services::service(id));
        Some(resource.unless_held(Kind::Cluster, reads))
    }
}

/// CA bundles that clusters trust.
pub struct CaResources;

impl Table for CaResources {
    type Key = ObjectRef;
    type Value = Resource;
    const NAME: &'static str = "CA resources";
}

impl Derived for CaResources {
    fn compute(&self, id: &ObjectRef, reads: &mut Reads<'_>) -> Option<Resource> {
        let bundle = reads.get::<CaBundles>(id)?.as_ref().as_ref().ok()?;
        let mut resource = Resource::new(name::ca(id), &envoy::secret::authority(id, bundle));
        resource.origin = Some(id.clone());
        Some(resource.unless_held(Kind::Secret, reads))
    }
}

/// Endpoint sets.
pub struct EndpointResources;

impl Table for EndpointResources {
    type Key = ClusterId;
    type Value = Resource;
    const NAME: &'static str = "endpoint resources";
}

impl Derived for EndpointResources {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Resource> {
        if reads.get::<Clusters>(id)?.discovery != Discovery::Endpoints {
            return None;
        }
        let endpoints = reads.get::<EndpointSets>(id)?;
        let mut resource = Resource::new(name::cluster(id), &envoy::endpoints::load_assignment(id, endpoints));
        resource.origin = Some(services::service(id));
        Some(resource.unless_held(Kind::Endpoints, reads))
    }
}

/// Where the connections of TCP hosts go.
pub struct TcpResources(Settings);

impl Table for TcpResources {
    type Key = HostKey;
    type Value = Resource;
    const NAME: &'static str = "TCP proxy resources";
}

impl Derived for TcpResources {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let proxy = reads.get::<TcpHosts>(key)?;
        let message = listener::tcp::proxy(&key.1, proxy, &self.0.https_settings);
        let clusters: BTreeSet<String> = proxy.clusters.iter().map(|(cluster, _)| name::cluster(cluster)).collect();
        let refs = clusters.into_iter().map(|cluster| Ref::To(Kind::Cluster, cluster.into())).collect();
        let authors = authors(key, reads);
        let resource = Resource { refs, ..Resource::new(tcp_name(key), &message) };
        // A listener waits for every chain, so there must be one, which leads nowhere.
        let nowhere = || {
            let proxy = TcpProxy { clusters: Vec::new(), ..TcpProxy::clone(proxy) };
            listener::tcp::proxy(&key.1, &proxy, &self.0.https_settings).encode_to_vec().into()
        };
        Some(resource.or_stand_in(Kind::Extension, authors, Some(&nowhere), reads))
    }
}

/// The name of where the connections of a host go.
pub fn tcp_name((_, host): &HostKey) -> String {
    name::tcp_chain(host)
}

/// Certificates that chains show, under the names of their Secrets.
pub struct SecretResources;

impl Table for SecretResources {
    type Key = CertificateRef;
    type Value = Resource;
    const NAME: &'static str = "secret resources";
}

impl Derived for SecretResources {
    fn compute(&self, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Resource> {
        Some(shown(name::secret(certificate), certificate, reads)?.unless_held(Kind::Secret, reads))
    }
}

/// Certificates that hosts show on demand, under the names of the hosts.
pub struct HostSecretResources;

impl Table for HostSecretResources {
    type Key = HostKey;
    type Value = Resource;
    const NAME: &'static str = "host secret resources";
}

impl Derived for HostSecretResources {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let host = reads.get::<TlsHosts>(key)?;
        let on_demand = host.mode.http()?.is_on_demand();
        let mut resource = shown(host_secret(key), host.certificate.as_ref().filter(|_| on_demand)?, reads)?;
        resource.refs = packing::scope_of(key, reads).into_iter().collect();
        let authors = resource.origin.iter().cloned().chain(authors(key, reads)).collect();
        Some(resource.or_stand_in(Kind::Secret, authors, None, reads))
    }
}

/// A proxy that asks for a certificate by name does not say at which listener: there is one under TLS.
fn host_secret((_, host): &HostKey) -> String {
    name::host_secret(host)
}

fn shown(name: String, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Resource> {
    let (pair, origin) = match certificate {
        CertificateRef::OnDemand => return None,
        CertificateRef::SelfSigned(host) => (&**reads.get::<SelfSigned>(host)?, None),
        CertificateRef::Secret(id) => (&reads.get::<Certificates>(id)?.as_ref().as_ref().ok()?.pair, Some(id.clone())),
    };
    let message = envoy::secret::certificate(&name, pair);
    Some(Resource { origin, ..Resource::new(name, &message) })
}

/// Who says what is done under TLS for a host.
pub(crate) fn authors(key: &HostKey, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    reads.probe::<TlsByHost>(key).cloned().collect()
}

/// Declares the resources of clusters and endpoints, which are in the lane.
pub fn declare_lane(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(ClusterResources(settings.cluster.clone())).each::<Clusters>().lane().output();
    pipeline.derived(EndpointResources).each::<EndpointSets>().lane().output();
    pipeline.derived(CaResources).per::<ClustersByCa>().lane().output();
    pipeline.index::<WithheldRows<ClusterResources>>().index::<WithheldByObject<ClusterResources>>();
    pipeline.index::<WithheldRows<EndpointResources>>().index::<WithheldByObject<EndpointResources>>();
    pipeline.index::<WithheldRows<CaResources>>().index::<WithheldByObject<CaResources>>();
}

/// Declares the others.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(SecretResources).per::<HostsByChainCertificate>().output();
    pipeline.derived(HostSecretResources).each::<TlsHosts>().output();
    pipeline.derived(TcpResources(settings.clone())).each::<TcpHosts>().output();
    pipeline.index::<WithheldRows<SecretResources>>().index::<WithheldByObject<SecretResources>>();
    pipeline.index::<WithheldRows<HostSecretResources>>().index::<WithheldByObject<HostSecretResources>>();
    pipeline.index::<WithheldRows<TcpResources>>().index::<WithheldByObject<TcpResources>>();
}

/// What changed in the tables of the lane.
pub fn lane_changes(engine: &mut Engine, into: &mut xds::Changes) {
    take::<ClusterResources>(engine, name::cluster, into);
    take::<EndpointResources>(engine, name::cluster, into);
    take::<CaResources>(engine, name::ca, into);
}

/// What changed in all tables.
pub fn all_changes(engine: &mut Engine, into: &mut xds::Changes) {
    lane_changes(engine, into);
    take::<SecretResources>(engine, name::secret, into);
    take::<HostSecretResources>(engine, host_secret, into);
    take::<HolderResources>(engine, holder_name, into);
    take::<SlotResources>(engine, listeners::slot_name, into);
    take::<TcpResources>(engine, tcp_name, into);
    take::<RouteResources>(engine, name::route_table, into);
    take::<ScopeResources>(engine, packing::scope_name, into);
    take::<RedirectScopes>(engine, name::redirects_scope, into);
    take::<ListenerResources>(engine, ToString::to_string, into);
}

fn take<T: Resources>(engine: &mut Engine, name: impl Fn(&T::Key) -> String, into: &mut xds::Changes) {
    let changes = engine.changes::<T>();
    into.upserts.extend(changes.set.into_iter().map(|(_, resource)| Resource::clone(&resource).into_xds(T::KIND)));
    into.removes.extend(changes.gone.iter().map(|key| (T::KIND, name(key).into())));
}
