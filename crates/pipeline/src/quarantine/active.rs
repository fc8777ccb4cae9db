//! Which of the withheld targets are in effect: what is made of the objects now is the version that is withheld.
//!
//! In: the withheld rows of every table of resources. Out: a row for each target in effect, with what its objects are told. An
//! edit that ends one removes its row, which is how [`Quarantine`](super::Quarantine) learns of it without asking about every
//! target after every batch. An object asks one index for all that is withheld of it, whatever the table.

use super::shared;
use crate::{
    client_trust::ClientTrustResources,
    equal_hosts::{AnchorScopes, SharedRouteResources},
    fleet_resources::{MetricsSecretResources, RuntimeResources},
    holders::HolderResources,
    hosts::{NamedChainCertificates, SharedChainCertificates},
    listeners::ListenerResources,
    membership::{
        CertificatesByFleet, ClustersByFleet, Membership, OfCas, OfClusters, OfSecrets, SharedClustersByCertificate,
    },
    packing::{EncodedHosts, RouteResources, ScopeResources},
    redirects::RedirectScopes,
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, SecretResources, StreamResources,
        TcpResources, UdpClusterResources, UdpEndpointResources, authors,
    },
    slots::{SlotResources, jwt::JwtSlotResources},
    translations::{SharedClustersInUse, Translations},
    withheld::{FleetTarget, Withheld, WithheldRows, WithheldVersions, Withholdable},
};
use engine::{Derived, Index, Reads, Table};
use model::{ClusterId, FleetId, ObjectRef};
use std::collections::BTreeSet;
use xds::Kind;

/// The targets that are withheld in the version that is made now, and what is said about each.
pub struct ActiveTargets;

impl Table for ActiveTargets {
    type Key = FleetTarget;
    type Value = Withheld;
    const NAME: &'static str = "active withheld targets";
}

impl Derived for ActiveTargets {
    fn compute(&self, target: &FleetTarget, reads: &mut Reads<'_>) -> Option<Withheld> {
        match target.target.kind {
            _ if target.target.host.is_some() => of::<EncodedHosts>(target, reads),
            Kind::Cluster => of_cluster(target, reads)
                .or_else(|| of::<HolderResources>(target, reads))
                .or_else(|| of::<UdpClusterResources>(target, reads)),
            Kind::Endpoints => of_member::<EndpointResources, OfClusters>(target, reads)
                .map(|(_, withheld)| withheld.clone())
                .or_else(|| of::<UdpEndpointResources>(target, reads)),
            Kind::Secret => of_secret(target, reads)
                .or_else(|| of::<HostSecretResources>(target, reads))
                .or_else(|| of::<ClientTrustResources>(target, reads))
                .or_else(|| of_member::<CaResources, OfCas>(target, reads).map(|(_, withheld)| withheld.clone()))
                .or_else(|| of::<MetricsSecretResources>(target, reads)),
            Kind::Route => of::<RouteResources>(target, reads).or_else(|| of::<SharedRouteResources>(target, reads)),
            Kind::ScopedRoute => of::<ScopeResources>(target, reads)
                .or_else(|| of::<RedirectScopes>(target, reads))
                .or_else(|| of::<AnchorScopes>(target, reads)),
            Kind::Listener => of::<ListenerResources>(target, reads),
            Kind::Extension => of::<TcpResources>(target, reads)
                .or_else(|| of::<StreamResources>(target, reads))
                .or_else(|| of::<SlotResources>(target, reads))
                .or_else(|| of::<JwtSlotResources>(target, reads)),
            Kind::Runtime => of::<RuntimeResources>(target, reads),
            Kind::VirtualHost | Kind::TokenBucket => None,
        }
    }
}

/// The row of a table that is withheld by a target.
fn row<'r, T: Table>(target: &FleetTarget, reads: &mut Reads<'r>) -> Option<(&'r T::Key, &'r Withheld)>
where
    T::Value: Withholdable,
{
    let key = reads.probe::<WithheldRows<T>>(target).next()?;
    Some((key, reads.get::<T>(key)?.refused().iter().find(|refused| refused.target == *target)?))
}

fn of<T: Table>(target: &FleetTarget, reads: &mut Reads<'_>) -> Option<Withheld>
where
    T::Value: Withholdable,
{
    row::<T>(target, reads).map(|(_, withheld)| withheld.clone())
}

/// The row of a table of what many fleets have. What a fleet no longer uses is not withheld there any more.
fn of_member<'r, T, M>(target: &FleetTarget, reads: &mut Reads<'r>) -> Option<(&'r T::Key, &'r Withheld)>
where
    T: Table<Key = M::Key, Value: Withholdable>,
    M: Membership,
{
    row::<T>(target, reads).filter(|(key, _)| M::is_in(&target.fleet, key, reads))
}

fn of_cluster(target: &FleetTarget, reads: &mut Reads<'_>) -> Option<Withheld> {
    let (id, withheld) = of_member::<ClusterResources, OfClusters>(target, reads)?;
    let users = users_of_cluster(&target.fleet, id, reads);
    Some(with_users(withheld, users, reads))
}

/// The translations that use a cluster in a fleet.
fn users_of_cluster<'r>(fleet: &FleetId, id: &ClusterId, reads: &mut Reads<'r>) -> Vec<&'r ObjectRef> {
    match fleet {
        FleetId::Shared => reads.probe::<SharedClustersInUse>(id).collect(),
        FleetId::Named(_) => reads.probe::<ClustersByFleet>(&(fleet.clone(), id.clone())).collect(),
    }
}

fn of_secret(target: &FleetTarget, reads: &mut Reads<'_>) -> Option<Withheld> {
    let (certificate, withheld) = of_member::<SecretResources, OfSecrets>(target, reads)?;
    let (hosts, clusters): (Vec<_>, Vec<ClusterId>) = match &target.fleet {
        FleetId::Shared => (
            reads.probe::<SharedChainCertificates>(certificate).collect(),
            reads.probe::<SharedClustersByCertificate>(certificate).cloned().collect(),
        ),
        fleet @ FleetId::Named(_) => {
            let key = (fleet.clone(), certificate.clone());
            let clusters = reads.probe::<CertificatesByFleet>(&key).map(|(_, cluster)| cluster.clone()).collect();
            (reads.probe::<NamedChainCertificates>(&key).collect(), clusters)
        }
    };
    let mut users: BTreeSet<ObjectRef> = hosts.into_iter().flat_map(|host| authors(host, reads)).collect();
    for cluster in &clusters {
        users.extend(users_of_cluster(&target.fleet, cluster, reads).into_iter().cloned());
    }
    Some(with_users(withheld, &users, reads))
}

/// The users of what is made from another object than theirs are told, too, because their requests fail.
fn with_users<'u>(
    withheld: &Withheld,
    users: impl IntoIterator<Item = &'u ObjectRef>,
    reads: &mut Reads<'_>,
) -> Withheld {
    let users = users
        .into_iter()
        .filter_map(|key| reads.get::<Translations>(key))
        .map(|translation| translation.subject.clone());
    Withheld { objects: withheld.objects.iter().cloned().chain(users).collect(), ..withheld.clone() }
}

/// Targets by the objects that are told.
pub struct WithheldByObject;

impl Index for WithheldByObject {
    type Of = ActiveTargets;
    type Key = ObjectRef;
    const NAME: &'static str = "by object";

    fn keys(_: &FleetTarget, withheld: &Withheld) -> impl IntoIterator<Item = ObjectRef> {
        withheld.objects.clone()
    }
}

/// Declares the tables and indexes that a [`Quarantine`](super::Quarantine) works with.
pub fn declare(pipeline: &mut engine::Pipeline) {
    shared::declare(pipeline);
    pipeline.derived(ActiveTargets).each::<WithheldVersions>().output();
    pipeline.index::<WithheldByObject>();
}
