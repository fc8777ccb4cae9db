//! Which fleets a resource belongs to.
//!
//! What belongs to a port, its listeners or its hosts is its fleet's. A cluster, its endpoints, a CA or a certificate is
//! computed and encoded once, and belongs to the fleets whose routes and listeners refer to it, and to no other: one fleet's
//! proxies never see the keys of another.
//!
//! Most belong to the shared fleet alone, and those cost nothing here: whether the shared fleet uses something is in the index of
//! its users. Each other fleet has a row for each resource that it uses ([`FleetClusters`], [`FleetCas`], [`FleetSecrets`]), so
//! one that comes or goes costs its own rows. What others use has a row that says whether the shared fleet does, too.

use crate::{
    extensions::{ExtensionsByFleet, NamedExtensionsInUse, SharedExtensionsInUse},
    hosts::{NamedChainCertificates, SharedChainCertificates},
    services,
    translations::{NamedClustersInUse, SharedClustersInUse, TranslationRow, Translations, clusters_by_fleet},
};
use engine::{Changes, Derived, Engine, Index, Reads, Table};
use model::{CertificateRef, ClusterId, FleetId, ObjectRef, cluster::CaBundle};

/// Translations by the clusters that they use in fleets other than the shared one.
pub struct ClustersByFleet;

impl Index for ClustersByFleet {
    type Of = Translations;
    type Key = (FleetId, ClusterId);
    const NAME: &'static str = "by fleet and cluster";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = (FleetId, ClusterId)> {
        let all = clusters_by_fleet(translation).filter(|(fleet, _)| **fleet != FleetId::Shared);
        all.map(|(fleet, cluster)| (fleet.clone(), cluster.clone())).collect::<Vec<_>>()
    }
}

/// The secrets of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSecrets {
    /// The CA that it trusts.
    pub ca: Option<CaBundle>,
    /// The certificate that it presents.
    pub certificate: Option<CertificateRef>,
}

impl ClusterSecrets {
    /// Those of a cluster, if it is there and has any.
    fn of(id: &ClusterId, reads: &mut Reads<'_>) -> Option<Self> {
        let cluster = services::may_have_secrets(id).then(|| services::cluster(id, reads)).flatten()?;
        let ca = cluster.overrides.validation.and_then(|validation| validation.ca.bundle().cloned());
        let found = Self { ca, certificate: cluster.overrides.client_certificate.map(CertificateRef::Secret) };
        (found != Self::default()).then_some(found)
    }
}

/// The clusters that fleets other than the shared one use, each with its secrets.
pub struct FleetClusters;

impl Table for FleetClusters {
    type Key = (FleetId, ClusterId);
    type Value = ClusterSecrets;
    const NAME: &'static str = "clusters of fleets";
}

impl Derived for FleetClusters {
    fn compute(&self, (_, cluster): &(FleetId, ClusterId), reads: &mut Reads<'_>) -> Option<ClusterSecrets> {
        Some(ClusterSecrets::of(cluster, reads).unwrap_or_default())
    }
}

/// These by the CA.
pub struct CasByFleet;

impl Index for CasByFleet {
    type Of = FleetClusters;
    type Key = (FleetId, CaBundle);
    const NAME: &'static str = "by fleet and CA";

    fn keys((fleet, _): &(FleetId, ClusterId), of: &ClusterSecrets) -> impl IntoIterator<Item = (FleetId, CaBundle)> {
        of.ca.as_ref().map(|ca| (fleet.clone(), ca.clone()))
    }
}

/// These by the certificate.
pub struct CertificatesByFleet;

impl Index for CertificatesByFleet {
    type Of = FleetClusters;
    type Key = (FleetId, CertificateRef);
    const NAME: &'static str = "by fleet and certificate";

    fn keys(
        (fleet, _): &(FleetId, ClusterId),
        of: &ClusterSecrets,
    ) -> impl IntoIterator<Item = (FleetId, CertificateRef)> {
        of.certificate.as_ref().map(|certificate| (fleet.clone(), certificate.clone()))
    }
}

rows_without_value! {
    FleetCas of (FleetId, CaBundle), "CAs of fleets", "The CAs that clusters of fleets other than the shared one trust.";
    FleetSecrets of (FleetId, CertificateRef), "certificates of fleets", "The certificates that chains of fleets other than the shared one show, and clusters present.";
}

/// Translations by the clusters that have secrets and are used in the shared fleet.
pub struct SharedClustersWithSecrets;

impl Index for SharedClustersWithSecrets {
    type Of = Translations;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster with secrets";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ClusterId> {
        let shared = clusters_by_fleet(translation).filter(|(fleet, _)| **fleet == FleetId::Shared);
        let with_secrets = shared.filter(|(_, cluster)| services::may_have_secrets(cluster));
        with_secrets.map(|(_, cluster)| cluster.clone()).collect::<Vec<_>>()
    }
}

/// The clusters of the shared fleet that have secrets, each with them, if their Service is there. Most have none.
pub struct SecretsOfSharedClusters;

impl Table for SecretsOfSharedClusters {
    type Key = ClusterId;
    type Value = ClusterSecrets;
    const NAME: &'static str = "secrets of clusters of the shared fleet";
}

impl Derived for SecretsOfSharedClusters {
    fn compute(&self, cluster: &ClusterId, reads: &mut Reads<'_>) -> Option<ClusterSecrets> {
        ClusterSecrets::of(cluster, reads)
    }
}

/// These by the CA.
pub struct SharedClustersByCa;

impl Index for SharedClustersByCa {
    type Of = SecretsOfSharedClusters;
    type Key = CaBundle;
    const NAME: &'static str = "by CA";

    fn keys(_: &ClusterId, of: &ClusterSecrets) -> impl IntoIterator<Item = CaBundle> {
        of.ca.clone()
    }
}

/// These by the certificate.
pub struct SharedClustersByCertificate;

impl Index for SharedClustersByCertificate {
    type Of = SecretsOfSharedClusters;
    type Key = CertificateRef;
    const NAME: &'static str = "by certificate";

    fn keys(_: &ClusterId, of: &ClusterSecrets) -> impl IntoIterator<Item = CertificateRef> {
        of.certificate.clone()
    }
}

macro_rules! by_key {
    ($($index:ident of $table:ident by $key:ty, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub struct $index;

            impl Index for $index {
                type Of = $table;
                type Key = $key;
                const NAME: &'static str = "by resource";

                fn keys((_, key): &(FleetId, $key), _: &<$table as Table>::Value) -> impl IntoIterator<Item = $key> {
                    [key.clone()]
                }
            }
        )*
    };
}

by_key! {
    FleetsOfCluster of FleetClusters by ClusterId, "The fleets other than the shared one that use a cluster.";
    FleetsOfCa of FleetCas by CaBundle, "The fleets other than the shared one that use a CA.";
    FleetsOfSecret of FleetSecrets by CertificateRef, "The fleets other than the shared one that show or present a certificate.";
}

/// Of the clusters that other fleets use: whether the shared one does, too.
pub struct SharedClusters;

impl Table for SharedClusters {
    type Key = ClusterId;
    type Value = bool;
    const NAME: &'static str = "clusters of the shared fleet";
}

impl Derived for SharedClusters {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<bool> {
        Some(OfClusters::is_shared(id, reads))
    }
}

/// Of the CAs that other fleets use: whether the shared one does, too.
pub struct SharedCas;

impl Table for SharedCas {
    type Key = CaBundle;
    type Value = bool;
    const NAME: &'static str = "CAs of the shared fleet";
}

impl Derived for SharedCas {
    fn compute(&self, id: &CaBundle, reads: &mut Reads<'_>) -> Option<bool> {
        Some(OfCas::is_shared(id, reads))
    }
}

/// Of the certificates that other fleets show: whether the shared one does, too.
pub struct SharedSecrets;

impl Table for SharedSecrets {
    type Key = CertificateRef;
    type Value = bool;
    const NAME: &'static str = "certificates of the shared fleet";
}

impl Derived for SharedSecrets {
    fn compute(&self, id: &CertificateRef, reads: &mut Reads<'_>) -> Option<bool> {
        Some(OfSecrets::is_shared(id, reads))
    }
}

/// How the fleets of a kind of resource are known.
pub trait Membership {
    /// The resource.
    type Key: engine::Key;
    /// The rows of fleets other than the shared one.
    type Rows: Table<Key = (FleetId, Self::Key)>;
    /// These by the resource.
    type ByKey: Index<Of = Self::Rows, Key = Self::Key>;
    /// Whether the shared fleet uses it, where others do.
    type Shared: Table<Key = Self::Key, Value = bool>;

    /// Whether the shared fleet uses it.
    fn is_shared(key: &Self::Key, reads: &mut Reads<'_>) -> bool;

    /// Whether a resource belongs to a fleet.
    fn is_in(fleet: &FleetId, key: &Self::Key, reads: &mut Reads<'_>) -> bool {
        match fleet {
            FleetId::Shared => Self::is_shared(key, reads),
            FleetId::Named(_) => reads.get::<Self::Rows>(&(fleet.clone(), key.clone())).is_some(),
        }
    }

    /// The fleets that a resource belongs to, as [`Self::moved`] tells it: where other fleets use it, too, the row says whether the
    /// shared one does, which may be older than the index of its users while it is computed elsewhere.
    fn fleets(key: &Self::Key, engine: &Engine) -> Vec<FleetId> {
        let others = engine.probe::<Self::ByKey>(key).into_iter().map(|(fleet, _)| fleet.clone());
        let row = engine.get::<Self::Shared>(key).map(|row| **row);
        let shared = row.unwrap_or_else(|| engine.read(|reads| Self::is_shared(key, reads)));
        shared.then_some(FleetId::Shared).into_iter().chain(others).collect()
    }

    /// What joined and left fleets since the last time.
    fn moved(engine: &mut Engine) -> Moved<Self::Key> {
        let Changes { set, gone, .. } = engine.changes::<Self::Rows>();
        let mut moved = Moved { joined: set.into_iter().map(|(key, _)| key).collect(), left: gone };
        let Changes { set, gone, .. } = engine.changes::<Self::Shared>();
        for (key, shared) in set {
            let list = if *shared { &mut moved.joined } else { &mut moved.left };
            list.push((FleetId::Shared, key));
        }
        // Nobody else uses it any more: it is the shared fleet's, if it is there at all.
        moved.joined.extend(gone.into_iter().map(|key| (FleetId::Shared, key)));
        moved
    }
}

/// What joined and left fleets.
pub struct Moved<K> {
    /// Resources that fleets have come to use, or use in another way.
    pub joined: Vec<(FleetId, K)>,
    /// Resources that fleets no longer use.
    pub left: Vec<(FleetId, K)>,
}

macro_rules! memberships {
    ($($name:ident: $key:ty, $rows:ident, $by_key:ident, $shared:ident, $is_shared:expr, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub struct $name;

            impl Membership for $name {
                type Key = $key;
                type Rows = $rows;
                type ByKey = $by_key;
                type Shared = $shared;

                fn is_shared(key: &$key, reads: &mut Reads<'_>) -> bool {
                    $is_shared(key, reads)
                }
            }
        )*
    };
}

memberships! {
    OfClusters: ClusterId, FleetClusters, FleetsOfCluster, SharedClusters, uses_cluster, "The fleets of clusters and their endpoints.";
    OfCas: CaBundle, FleetCas, FleetsOfCa, SharedCas, uses_ca, "The fleets of CAs.";
    OfSecrets: CertificateRef, FleetSecrets, FleetsOfSecret, SharedSecrets, uses_secret, "The fleets of certificates.";
}

fn uses_cluster(id: &ClusterId, reads: &mut Reads<'_>) -> bool {
    reads.probe::<SharedClustersInUse>(id).len() > 0 || reads.probe::<SharedExtensionsInUse>(id).len() > 0
}

fn uses_ca(id: &CaBundle, reads: &mut Reads<'_>) -> bool {
    reads.probe::<SharedClustersByCa>(id).len() > 0
}

fn uses_secret(id: &CertificateRef, reads: &mut Reads<'_>) -> bool {
    reads.probe::<SharedChainCertificates>(id).len() > 0 || reads.probe::<SharedClustersByCertificate>(id).len() > 0
}

/// Declares the tables about clusters.
pub fn declare_clusters(pipeline: &mut engine::Pipeline) {
    pipeline.derived(FleetClusters).per::<ClustersByFleet>().per::<ExtensionsByFleet>().output();
    pipeline.index::<FleetsOfCluster>();
    pipeline.derived(FleetCas).per::<CasByFleet>().output();
    pipeline.index::<FleetsOfCa>();
    pipeline.derived(SecretsOfSharedClusters).per::<SharedClustersWithSecrets>().per::<SharedExtensionsInUse>();
    pipeline.index::<SharedClustersByCa>();
    pipeline.derived(SharedClusters).per::<NamedClustersInUse>().per::<NamedExtensionsInUse>().output();
    pipeline.derived(SharedCas).per::<FleetsOfCa>().output();
}

/// Declares those about certificates.
pub fn declare_secrets(pipeline: &mut engine::Pipeline) {
    pipeline.derived(FleetSecrets).per::<NamedChainCertificates>().per::<CertificatesByFleet>().output();
    pipeline.derived(SharedSecrets).per::<FleetsOfSecret>().output();
}
