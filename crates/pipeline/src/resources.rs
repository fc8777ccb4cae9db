//! Resources: bytes for the xDS server, each with the names that it refers to and where it came from.
//!
//! Those that carry virtual hosts are made in [`crate::packing`], and listeners in [`crate::listeners`].

mod changes;

pub use changes::{Early, FleetChanges, all_changes, lane_changes};

use crate::{
    certificates::{CaBundles, Certificates, Crls, SelfSigned},
    client_trust::{ClientTrustResources, client_trust_name},
    equal_hosts::{AnchorScopes, SharedRouteResources, SharedRoutesKey, anchor_name},
    extensions::{NamedExtensionsInUse, SharedExtensionsInUse},
    fleet_resources::{
        MetricsSecretResources, RuntimeResources, TokenBucketResources, runtime_name, secret_name, token_bucket_name,
    },
    holders::{HolderResources, holder_name},
    hosts::{SharedChainCertificates, TcpHosts, TlsHosts},
    large,
    listeners::ListenerResources,
    membership::{FleetsOfSecret, Membership, OfCas, OfClusters, OfSecrets, SharedClustersByCertificate},
    on_demand,
    packing::{self, RouteResources, ScopeResources},
    partition,
    ports::{ActiveListeners, PortSettings, Streams, UdpTarget, UdpTargets},
    redirects::RedirectScopes,
    services,
    settings::{ForClusters, Packing, Settings},
    slots::{
        SlotResources,
        jwt::{JwtSlotKey, JwtSlotResources},
        slot_name,
    },
    translations::{HostKey, NamedClustersInUse, SharedClustersInUse, TlsByHost},
    withheld::{self, FleetTarget, Target, Withheld, WithheldInFleets, WithheldRows, WithholdReason, Withholdable},
};
use bytes::Bytes;
use engine::{Derived, Engine, Index, Reads, Table};
use envoy::{listener, name};
use model::{
    CertificateRef, ClusterId, FleetId, ListenerId, ObjectRef, PortId, PortProtocol, Timeout,
    cluster::{CaBundle, Discovery},
    listener::StreamTarget,
};
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
    /// Whether it does nothing: what refers to its name needs what it was before.
    pub idle: bool,
    /// Whether it is a set of endpoints that has none.
    pub lacks_endpoints: bool,
    /// The CA bundle that it trusts, where it is a cluster that does.
    pub ca: Option<Arc<CaBundle>>,
    /// Whose it is, where it is one object's.
    pub origin: Option<Arc<ObjectRef>>,
    /// Whether it is what every proxy is to have; of what many fleets have, what the others are to have.
    pub role: Role,
    /// The hash of what was made of the objects, sent or not.
    pub hash: u64,
    /// What is said while that is withheld, for each fleet in which it is.
    pub refused: Option<Arc<Vec<Withheld>>>,
    /// The fleet that it belongs to, where it is one's alone.
    pub fleet: Option<FleetId>,
}

impl Resource {
    pub(crate) fn new(name: String, message: &impl Message) -> Self {
        Self::of(name, message.encode_to_vec().into())
    }

    /// A resource that refers to nothing.
    pub(crate) fn of(name: String, body: Bytes) -> Self {
        let (hash, role) = (xds::content_version(&body), Role::Own);
        let (refs, ca, origin, refused, fleet) = Default::default();
        let (warms, idle, lacks_endpoints) = (false, false, false);
        Self { name: name.into(), body, refs, warms, idle, lacks_endpoints, ca, origin, role, hash, refused, fleet }
    }

    /// The same, of one fleet alone.
    pub(crate) fn in_fleet(self, fleet: &FleetId) -> Self {
        Self { fleet: Some(fleet.clone()), ..self }
    }

    /// The same, or nothing in its place if it is withheld.
    pub(crate) fn unless_held(self, kind: Kind, reads: &mut Reads<'_>) -> Self {
        let objects = self.origin.iter().map(|origin| ObjectRef::clone(origin)).collect();
        self.or_stand_in(kind, objects, None, reads)
    }

    /// The same, or what stands in for it if it is withheld. Of what many fleets have, only where it is withheld is noted:
    /// see [`Self::sent_to`].
    pub(crate) fn or_stand_in(
        self,
        kind: Kind,
        objects: Vec<ObjectRef>,
        stand_in: Option<&dyn Fn() -> Bytes>,
        reads: &mut Reads<'_>,
    ) -> Self {
        let what = format!("{} {}", kind.label(), self.name);
        let Some(fleet) = self.fleet.clone() else {
            let fleets = reads.probe::<WithheldInFleets>(&Target::resource(kind, self.name.clone()));
            let refused = fleets.filter_map(|target| {
                let why = withheld::why(target, self.hash, reads)?.reported()?;
                let what = format!("{what} in fleet {}", target.fleet);
                Some(Withheld::new(target.clone(), what, why, objects.clone()))
            });
            let refused: Vec<Withheld> = refused.collect();
            return Self { refused: (!refused.is_empty()).then(|| Arc::new(refused)), ..self };
        };
        let target = FleetTarget::resource(fleet, kind, self.name.clone());
        let Some(why) = withheld::why(&target, self.hash, reads).and_then(WithholdReason::reported) else {
            return self;
        };
        let refused = Some(Arc::new(vec![Withheld::new(target, what, why, objects)]));
        let (role, body) = match stand_in {
            Some(make) => (Role::StandIn, make()),
            None => (Role::Withheld, Bytes::new()),
        };
        Self { body, role, refused, refs: Vec::new(), warms: false, idle: false, ..self }
    }

    /// The same, with the objects that are told if it is withheld: only then it depends on them.
    pub(crate) fn reported_on(mut self, objects: impl FnOnce() -> Vec<ObjectRef>) -> Self {
        if let Some(refused) = &self.refused {
            let objects = objects();
            let told = |refused: &Withheld| Withheld { objects: objects.clone(), ..refused.clone() };
            self.refused = Some(Arc::new(refused.iter().map(told).collect()));
        }
        self
    }

    /// Whether it is withheld in a fleet and sent in others.
    pub(crate) fn is_withheld_in(&self, fleet: &FleetId) -> bool {
        self.fleet.is_none() && self.refused().iter().any(|refused| refused.target.fleet == *fleet)
    }

    /// As it goes to the proxies of a fleet.
    fn sent_to(&self, fleet: &FleetId, kind: Kind) -> xds::Resource {
        let mut resource = if self.is_withheld_in(fleet) {
            xds::Resource::withheld(kind, self.name.clone())
        } else {
            let resource = xds::Resource::new(kind, self.name.clone(), self.body.clone());
            xds::Resource { refs: self.refs.clone(), role: self.role, warms: self.warms, idle: self.idle, ..resource }
        };
        if let Some(origin) = self.origin.clone() {
            resource = resource.from_origin(origin);
        }
        resource
    }
}

impl Withholdable for Resource {
    fn refused(&self) -> &[Withheld] {
        self.refused.as_deref().map(Vec::as_slice).unwrap_or_default()
    }
}

/// A table of resources of one type.
pub trait Resources: Table<Value = Resource> {
    /// The type.
    const KIND: Kind;

    /// The name of a resource.
    fn name(key: &Self::Key) -> String;

    /// The fleets that a resource belongs to.
    fn fleets(key: &Self::Key, engine: &Engine) -> Vec<FleetId>;

    /// The resource that has the name of one that is gone, where keys say more than names.
    fn successor<'e>(_: &Self::Key, _: &'e Engine) -> Option<&'e Arc<Resource>> {
        None
    }

    /// The fleets that may have one that is gone.
    fn fleets_of_gone(key: &Self::Key, engine: &Engine) -> Vec<FleetId> {
        Self::fleets(key, engine)
    }
}

macro_rules! of_one_fleet {
    ($($table:ty => $kind:ident, $name:expr, |$key:ident| $fleet:expr;)*) => {
        $(
            impl Resources for $table {
                const KIND: Kind = Kind::$kind;

                fn name(key: &Self::Key) -> String {
                    $name(key)
                }

                fn fleets($key: &Self::Key, _: &Engine) -> Vec<FleetId> {
                    vec![FleetId::clone($fleet)]
                }
            }
        )*
    };
}

macro_rules! of_their_users {
    ($($table:ty => $kind:ident, $name:expr, $membership:ty;)*) => {
        $(
            impl Resources for $table {
                const KIND: Kind = Kind::$kind;

                fn name(key: &Self::Key) -> String {
                    $name(key)
                }

                fn fleets(key: &Self::Key, engine: &Engine) -> Vec<FleetId> {
                    <$membership>::fleets(key, engine)
                }

                fn fleets_of_gone(key: &Self::Key, engine: &Engine) -> Vec<FleetId> {
                    // Nobody may be left that uses it: whoever did has been told, but for the shared fleet.
                    let mut fleets = <$membership>::fleets(key, engine);
                    if !fleets.contains(&FleetId::Shared) {
                        fleets.push(FleetId::Shared);
                    }
                    fleets
                }
            }
        )*
    };
}

of_their_users! {
    ClusterResources => Cluster, name::cluster, OfClusters;
    EndpointResources => Endpoints, name::cluster, OfClusters;
    CaResources => Secret, name::ca, OfCas;
    SecretResources => Secret, name::secret, OfSecrets;
}

of_one_fleet! {
    HostSecretResources => Secret, host_secret, |key| key.0.fleet();
    ClientTrustResources => Secret, client_trust_name, |key| &key.0;
    HolderResources => Cluster, holder_name, |key| key.0.fleet();
    SlotResources => Extension, slot_name, |key| key.0.fleet();
    JwtSlotResources => Extension, JwtSlotKey::name, |key| key.fleet();
    TcpResources => Extension, tcp_name, |key| key.0.fleet();
    StreamResources => Extension, name::tcp_listener, |key| key.fleet();
    UdpClusterResources => Cluster, name::udp_cluster, |key| key.fleet();
    RouteResources => Route, name::port, |key| key.fleet();
    SharedRouteResources => Route, SharedRoutesKey::name, |key| key.port.fleet();
    AnchorScopes => ScopedRoute, anchor_name, |key| key.port.fleet();
    ScopeResources => ScopedRoute, packing::scope_name, |key| key.0.fleet();
    RedirectScopes => ScopedRoute, name::redirects_scope, |key| key.fleet();
    ListenerResources => Listener, name::port, |key| key.fleet();
    RuntimeResources => Runtime, runtime_name, |key| key;
    TokenBucketResources => TokenBucket, token_bucket_name, |key| &key.0;
    MetricsSecretResources => Secret, secret_name, |key| &key.0;
}

/// Clusters.
pub struct ClusterResources;

impl Table for ClusterResources {
    type Key = ClusterId;
    type Value = Resource;
    const NAME: &'static str = "cluster resources";
}

impl Derived for ClusterResources {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Resource> {
        let cluster = services::cluster(id, reads)?;
        let settings = reads.get::<ForClusters>(&())?;
        let mut resource = Resource::new(name::cluster(id), &envoy::cluster::cluster(&cluster, settings));
        match cluster.discovery.is_by_eds() {
            true => resource.refs = vec![Ref::To(Kind::Endpoints, resource.name.clone())],
            false => resource.warms = true,
        }
        let presented = cluster.client_certificate.filter(|_| cluster.protocol.is_tls()).map(CertificateRef::Secret);
        resource.refs.extend(presented.map(|id| Ref::To(Kind::Secret, name::secret(&id).into())));
        resource.ca = cluster.validation.as_ref().and_then(|validation| validation.ca.bundle()).cloned().map(Arc::new);
        resource.origin = services::origin(id).map(Arc::new);
        Some(resource.unless_held(Kind::Cluster, reads))
    }
}

/// Clusters by the CA that they trust.
pub struct ClustersByCa;

impl Index for ClustersByCa {
    type Of = ClusterResources;
    type Key = CaBundle;
    const NAME: &'static str = "by CA";

    fn keys(_: &ClusterId, resource: &Resource) -> impl IntoIterator<Item = CaBundle> {
        resource.ca.as_deref().cloned()
    }
}

/// CA bundles that clusters trust.
pub struct CaResources;

impl Table for CaResources {
    type Key = CaBundle;
    type Value = Resource;
    const NAME: &'static str = "CA resources";
}

impl Derived for CaResources {
    fn compute(&self, bundle: &CaBundle, reads: &mut Reads<'_>) -> Option<Resource> {
        let mut pem = String::new();
        for object in bundle.objects() {
            // One that is gone meanwhile is not trusted any more; the others are.
            let Some(Ok(certificates)) = reads.get::<CaBundles>(object).map(|it| it.as_ref().as_ref()) else {
                continue;
            };
            if !pem.is_empty() && !pem.ends_with('\n') {
                pem.push('\n');
            }
            pem.push_str(certificates);
        }
        if pem.is_empty() {
            return None;
        }
        // Without its CRLs no certificate is trusted: whoever needs the bundle is told where it is referred to.
        let crls = match bundle.crl() {
            Some(crl) => Some(reads.get::<Crls>(crl)?.as_ref().as_ref().ok()?.pem.clone()),
            None => None,
        };
        let mut resource = Resource::new(name::ca(bundle), &envoy::secret::authority(bundle, &pem, crls.as_deref()));
        resource.origin = Some(Arc::new(bundle.first().clone()));
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
        let discovery = services::cluster(id, reads)?.discovery;
        let endpoints = services::endpoints(id, reads)?;
        let assignment = match (discovery, &endpoints[..]) {
            (Discovery::Endpoints, [(_, endpoints, _)]) => envoy::endpoints::load_assignment(id, endpoints),
            (Discovery::WeightedEndpoints, all) => {
                let all = all.iter().map(|(id, endpoints, weight)| (id.to_string(), endpoints, *weight));
                envoy::endpoints::weighted(name::cluster(id), all)
            }
            (Discovery::Endpoints | Discovery::Dns(_), _) => return None,
        };
        let mut resource = Resource::new(name::cluster(id), &assignment);
        resource.origin = services::origin(id).map(Arc::new);
        resource.lacks_endpoints = endpoints.iter().all(|(_, endpoints, _)| endpoints.list.is_empty());
        Some(resource.unless_held(Kind::Endpoints, reads))
    }

    fn is_large(&self, id: &ClusterId, reads: &mut Reads<'_>) -> bool {
        large::has_many_endpoints([id], reads)
    }
}

/// Clusters for which there is no endpoint. Whether there is one is all that its readers depend on: endpoints that come and go
/// wake nobody as long as one is left.
pub struct WithoutEndpoints;

impl Index for WithoutEndpoints {
    type Of = EndpointResources;
    type Key = ClusterId;
    const NAME: &'static str = "without endpoints";

    fn keys(id: &ClusterId, resource: &Resource) -> impl IntoIterator<Item = ClusterId> {
        resource.lacks_endpoints.then(|| id.clone())
    }
}

/// Where the connections of TCP hosts go.
pub struct TcpResources;

impl Table for TcpResources {
    type Key = HostKey;
    type Value = Resource;
    const NAME: &'static str = "TCP proxy resources";
}

impl Derived for TcpResources {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let proxy = reads.get::<TcpHosts>(key)?;
        let active = reads.get::<ActiveListeners>(&key.0).filter(|active| active.protocol == PortProtocol::Tls)?;
        let port = &active.port;
        let authors = authors(key, reads);
        tcp_proxy(tcp_name(key), (&proxy.clusters, proxy.unavailable, proxy.idle), port, authors, reads)
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

fn tcp_proxy(
    name: String,
    (clusters, unavailable, idle): (&[(ClusterId, u32)], u32, Timeout),
    port: &PortId,
    authors: Vec<ObjectRef>,
    reads: &mut Reads<'_>,
) -> Option<Resource> {
    let settings = &reads.get::<PortSettings>(port)?.http;
    let message = listener::tcp::proxy(name.clone(), clusters, unavailable, idle, settings);
    let names: BTreeSet<String> = clusters.iter().map(|(cluster, _)| name::cluster(cluster)).collect();
    let refs = names.into_iter().map(|cluster| Ref::To(Kind::Cluster, cluster.into())).collect();
    let origin = authors.first().cloned().map(Arc::new);
    let resource = Resource { refs, origin, ..Resource::new(name.clone(), &message) }.in_fleet(port.fleet());
    // A listener waits for every chain, so there must be one, which leads nowhere.
    let nowhere = || listener::tcp::proxy(name.clone(), &[], 0, idle, settings).encode_to_vec().into();
    Some(resource.or_stand_in(Kind::Extension, authors, Some(&nowhere), reads))
}

/// The name of where the connections of a host go.
pub fn tcp_name((listener, host): &HostKey) -> String {
    name::tcp_chain(listener, host)
}

/// Where the connections of plain TCP listeners go.
pub struct StreamResources;

impl Table for StreamResources {
    type Key = ListenerId;
    type Value = Resource;
    const NAME: &'static str = "TCP stream resources";
}

impl Derived for StreamResources {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Resource> {
        let stream = reads.get::<Streams>(id).filter(|stream| stream.protocol == PortProtocol::Tcp)?;
        let StreamTarget { clusters, unavailable, idle, .. } = &*stream.target;
        tcp_proxy(name::tcp_listener(id), (clusters, *unavailable, *idle), &stream.port, stream.objects.clone(), reads)
    }
}

/// The clusters of UDP listeners.
pub struct UdpClusterResources;

impl Table for UdpClusterResources {
    type Key = ListenerId;
    type Value = Resource;
    const NAME: &'static str = "UDP cluster resources";
}

impl Derived for UdpClusterResources {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Resource> {
        let stream = reads.get::<Streams>(id).filter(|stream| stream.protocol == PortProtocol::Udp)?;
        let mut resource = Resource::new(name::udp_cluster(id), &listener::udp::cluster(id)).in_fleet(id.fleet());
        resource.refs = vec![Ref::To(Kind::Endpoints, resource.name.clone())];
        resource.origin = stream.objects.first().cloned().map(Arc::new);
        Some(resource.or_stand_in(Kind::Cluster, stream.objects.clone(), None, reads))
    }
}

/// The endpoints of UDP listeners. They are in the lane, so all that their listeners say about them is in the key.
pub struct UdpEndpointResources;

impl Table for UdpEndpointResources {
    type Key = UdpTarget;
    type Value = Resource;
    const NAME: &'static str = "UDP endpoint resources";
}

impl Derived for UdpEndpointResources {
    fn compute(&self, key: &UdpTarget, reads: &mut Reads<'_>) -> Option<Resource> {
        let UdpTarget { listener, clusters, unavailable, objects } = key;
        let mut backends = Vec::new();
        for (cluster, weight) in clusters.iter() {
            let endpoints = services::endpoints(cluster, reads).into_iter().flatten();
            backends.extend(endpoints.map(|(_, endpoints, _)| (name::cluster(cluster), endpoints, *weight)));
        }
        let backends = backends.iter().map(|(name, endpoints, weight)| (name.clone(), endpoints, *weight));
        let message = listener::udp::load_assignment(listener, backends, *unavailable);
        let resource = Resource::new(name::udp_cluster(listener), &message).in_fleet(listener.fleet());
        Some(resource.or_stand_in(Kind::Endpoints, objects.to_vec(), None, reads))
    }

    fn is_large(&self, key: &UdpTarget, reads: &mut Reads<'_>) -> bool {
        large::has_many_endpoints(key.clusters.iter().map(|(cluster, _)| cluster), reads)
    }
}

impl Resources for UdpEndpointResources {
    const KIND: Kind = Kind::Endpoints;

    fn name(key: &UdpTarget) -> String {
        name::udp_cluster(&key.listener)
    }

    fn fleets(key: &UdpTarget, _: &Engine) -> Vec<FleetId> {
        vec![key.listener.fleet().clone()]
    }

    fn successor<'e>(key: &UdpTarget, engine: &'e Engine) -> Option<&'e Arc<Resource>> {
        let stream = engine.get::<Streams>(&key.listener)?;
        engine.get::<Self>(&UdpTarget::of(&key.listener, stream)?)
    }
}

/// Certificates that chains show and clusters present, under the names of their Secrets.
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
pub struct HostSecretResources(Packing);

impl Table for HostSecretResources {
    type Key = HostKey;
    type Value = Resource;
    const NAME: &'static str = "host secret resources";
}

impl Derived for HostSecretResources {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let host = reads.get::<TlsHosts>(key)?;
        let termination = host.mode.http().filter(|termination| termination.is_on_demand())?;
        let mut resource = shown(host_secret(key), host.certificate.as_ref()?, reads)?.in_fleet(key.0.fleet());
        let listed_by = on_demand::listed_by(key, termination, reads);
        resource.refs = packing::scope_of(key, self.0, reads).into_iter().chain(listed_by).collect();
        let origin = resource.origin.iter().map(|origin| ObjectRef::clone(origin));
        let authors = origin.chain(authors(key, reads)).collect();
        Some(resource.or_stand_in(Kind::Secret, authors, None, reads))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// A proxy that asks for a certificate by name does not say at which listener: only one of a fleet has such hosts.
fn host_secret((_, host): &HostKey) -> String {
    name::host_secret(host)
}

fn shown(name: String, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Resource> {
    let (pair, origin) = match certificate {
        CertificateRef::OnDemand => return None,
        CertificateRef::SelfSigned(host) => (&**reads.get::<SelfSigned>(host)?, None),
        CertificateRef::Secret(id) => {
            (&reads.get::<Certificates>(id)?.as_ref().as_ref().ok()?.pair, Some(Arc::new(id.clone())))
        }
    };
    let message = envoy::secret::certificate(&name, pair);
    Some(Resource { origin, ..Resource::new(name, &message) })
}

/// Who says what is done under TLS for a host.
pub(crate) fn authors(key: &HostKey, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    reads.probe::<TlsByHost>(key).cloned().collect()
}

/// Declares the resources of clusters and endpoints, those of UDP listeners included, which are in the lane.
pub fn declare_lane(pipeline: &mut engine::Pipeline) {
    let clusters = pipeline.derived(ClusterResources).per::<SharedClustersInUse>().per::<NamedClustersInUse>();
    clusters.per::<SharedExtensionsInUse>().per::<NamedExtensionsInUse>().lane().output();
    let endpoints = pipeline.derived(EndpointResources).per::<SharedClustersInUse>().per::<NamedClustersInUse>();
    endpoints.per::<SharedExtensionsInUse>().per::<NamedExtensionsInUse>().lane().output();
    pipeline.index::<WithoutEndpoints>();
    pipeline.derived(CaResources).per::<ClustersByCa>().lane().output();
    pipeline.derived(UdpEndpointResources).per::<UdpTargets>().lane().output();
    pipeline.index::<WithheldRows<ClusterResources>>();
    pipeline.index::<WithheldRows<EndpointResources>>();
    pipeline.index::<WithheldRows<CaResources>>();
    pipeline.index::<WithheldRows<UdpEndpointResources>>();
}

/// Declares the others.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline
        .derived(SecretResources)
        .per::<SharedChainCertificates>()
        .per::<SharedClustersByCertificate>()
        .per::<FleetsOfSecret>()
        .output();
    pipeline.derived(HostSecretResources(settings.packing)).each::<TlsHosts>().output();
    pipeline.derived(TcpResources).each::<TcpHosts>().output();
    pipeline.derived(StreamResources).each::<Streams>().output();
    pipeline.derived(UdpClusterResources).each::<Streams>().output();
    pipeline.index::<WithheldRows<StreamResources>>();
    pipeline.index::<WithheldRows<UdpClusterResources>>();
    pipeline.index::<WithheldRows<SecretResources>>();
    pipeline.index::<WithheldRows<HostSecretResources>>();
    pipeline.index::<WithheldRows<TcpResources>>();
}
