//! Resources: bytes for the xDS server, each with the names that it refers to and where it came from.
//!
//! In: what the tables before have of clusters, secrets and streams. Out: a [`Resource`] for each, and by [`Resources`] the fleets that it
//! belongs to. Those that carry virtual hosts are made in [`crate::packing`], and listeners in [`crate::listeners`].

mod changes;
mod clusters;
mod secrets;
mod streams;

pub use changes::{FleetChanges, LaneChanges, all_changes, lane_changes};
pub use clusters::{CaResources, ClusterResources, ClustersByCa, EndpointResources, WithoutEndpoints};
pub use secrets::{HostSecretResources, SecretResources};
pub use streams::{StreamResources, TcpResources, UdpClusterResources, UdpEndpointResources, tcp_name};

use crate::{
    client_trust::{ClientTrustResources, client_trust_name},
    equal_hosts::{AnchorScopes, SharedRouteResources, SharedRoutesKey, anchor_name},
    extensions::{NamedExtensionsInUse, SharedExtensionsInUse},
    fleet_resources::{
        MetricsSecretResources, RuntimeResources, TokenBucketResources, runtime_name, secret_name, token_bucket_name,
    },
    holders::{HolderResources, holder_name},
    hosts::{SharedChainCertificates, TcpHosts, TlsHosts},
    listeners::ListenerResources,
    membership::{FleetsOfSecret, Membership, OfCas, OfClusters, OfSecrets, SharedClustersByCertificate},
    packing::{self, RouteResources, ScopeResources},
    ports::{Streams, UdpTargets},
    redirects::RedirectScopes,
    settings::Settings,
    slots::{
        SlotResources,
        jwt::{JwtSlotKey, JwtSlotResources},
        slot_name,
    },
    translations::{HostKey, NamedClustersInUse, SharedClustersInUse, TlsByHost},
    withheld::{
        self, FleetTarget, QuarantineTarget, Withheld, WithheldInFleets, WithheldRows, WithholdReason, Withholdable,
    },
};
use bytes::Bytes;
use engine::{Engine, Reads, Table};
use envoy::name;
use model::{FleetId, ObjectRef, cluster::CaBundle};
use prost::Message;
use secrets::host_secret;
use std::sync::Arc;
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
    pub(crate) fn unless_withheld(self, kind: Kind, reads: &mut Reads<'_>) -> Self {
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
            let fleets = reads.probe::<WithheldInFleets>(&QuarantineTarget::resource(kind, self.name.clone()));
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
            let with_objects = |refused: &Withheld| Withheld { objects: objects.clone(), ..refused.clone() };
            self.refused = Some(Arc::new(refused.iter().map(with_objects).collect()));
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
