//! What changed in the tables of resources, for each fleet.
//!
//! In: the changes of the tables, and who uses what. Out: what each fleet is to be told. In the middle of a batch only the lane comes
//! out, and who was told is noted ([`LaneChanges`]); at the end of the batch everything is decided by whoever uses it then.

use super::{
    CaResources, ClusterResources, EndpointResources, HostSecretResources, Resource, Resources, SecretResources,
    StreamResources, TcpResources, UdpClusterResources, UdpEndpointResources,
};
use crate::{
    client_trust::ClientTrustResources,
    equal_hosts::{AnchorScopes, SharedRouteResources},
    fleet_resources::{MetricsSecretResources, RuntimeResources, TokenBucketResources},
    holders::HolderResources,
    listeners::ListenerResources,
    membership::{Membership, Moved, OfCas, OfClusters, OfSecrets},
    packing::{RouteResources, ScopeResources},
    redirects::RedirectScopes,
    slots::{SlotResources, jwt::JwtSlotResources},
};
use engine::{Engine, Table};
use model::FleetId;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What changed for each fleet.
pub type FleetChanges = BTreeMap<FleetId, xds::Changes>;

/// What came out of the lane in the middle of a batch, and for which fleets. Who uses what may change until the end of the batch, also
/// where the resource itself does not: at the end it is decided again.
#[derive(Default)]
pub struct LaneChanges {
    clusters: SentToFleets<ClusterResources>,
    endpoints: SentToFleets<EndpointResources>,
    cas: SentToFleets<CaResources>,
    udp_endpoints: SentToFleets<UdpEndpointResources>,
}

type SentToFleets<T> = BTreeMap<<T as Table>::Key, BTreeSet<FleetId>>;

/// What changed in the tables of the lane, in the middle of a batch.
pub fn lane_changes(engine: &mut Engine, early: &mut LaneChanges, into: &mut FleetChanges) {
    take_early::<ClusterResources>(engine, &mut early.clusters, into);
    take_early::<EndpointResources>(engine, &mut early.endpoints, into);
    take_early::<CaResources>(engine, &mut early.cas, into);
    take_early::<UdpEndpointResources>(engine, &mut early.udp_endpoints, into);
}

/// What changed in all tables.
pub fn all_changes(engine: &mut Engine, early: LaneChanges, into: &mut FleetChanges) {
    settle_early::<ClusterResources>(early.clusters, engine, into);
    settle_early::<EndpointResources>(early.endpoints, engine, into);
    settle_early::<CaResources>(early.cas, engine, into);
    settle_early::<UdpEndpointResources>(early.udp_endpoints, engine, into);
    take::<ClusterResources>(engine, into);
    take::<EndpointResources>(engine, into);
    take::<CaResources>(engine, into);
    take::<UdpEndpointResources>(engine, into);
    let moved = OfClusters::moved(engine);
    moved_to::<ClusterResources>(&moved, engine, into);
    moved_to::<EndpointResources>(&moved, engine, into);
    let moved = OfCas::moved(engine);
    moved_to::<CaResources>(&moved, engine, into);
    take::<SecretResources>(engine, into);
    let moved = OfSecrets::moved(engine);
    moved_to::<SecretResources>(&moved, engine, into);
    take::<HostSecretResources>(engine, into);
    take::<ClientTrustResources>(engine, into);
    take::<HolderResources>(engine, into);
    take::<SlotResources>(engine, into);
    take::<JwtSlotResources>(engine, into);
    take::<TcpResources>(engine, into);
    take::<StreamResources>(engine, into);
    take::<UdpClusterResources>(engine, into);
    take::<RouteResources>(engine, into);
    take::<SharedRouteResources>(engine, into);
    take::<AnchorScopes>(engine, into);
    take::<ScopeResources>(engine, into);
    take::<RedirectScopes>(engine, into);
    take::<ListenerResources>(engine, into);
    take::<RuntimeResources>(engine, into);
    take::<TokenBucketResources>(engine, into);
    take::<MetricsSecretResources>(engine, into);
}

fn take<T: Resources>(engine: &mut Engine, into: &mut FleetChanges) {
    let changes = engine.changes::<T>();
    for (key, resource) in changes.set {
        for fleet in T::fleets(&key, engine) {
            upsert::<T>(&resource, fleet, into);
        }
    }
    for key in changes.gone {
        remove::<T>(&key, T::fleets_of_gone(&key, engine), engine, into);
    }
}

/// Gives one to a fleet.
fn upsert<T: Resources>(resource: &Resource, fleet: FleetId, into: &mut FleetChanges) {
    let resource = resource.sent_to(&fleet, T::KIND);
    into.entry(fleet).or_default().upserts.push(resource);
}

/// Takes one that is gone from fleets.
fn remove<T: Resources>(
    key: &T::Key,
    fleets: impl IntoIterator<Item = FleetId>,
    engine: &Engine,
    into: &mut FleetChanges,
) {
    let name: Arc<str> = T::name(key).into();
    let successor = T::successor(key, engine);
    for fleet in fleets {
        match successor {
            // Both were there for a while, and either may have been sent last.
            Some(resource) => upsert::<T>(resource, fleet, into),
            None => into.entry(fleet).or_default().removes.push((T::KIND, name.clone())),
        }
    }
}

/// What changed in a table of the lane, with a note of the fleets that it was sent to.
fn take_early<T: Resources>(engine: &mut Engine, sent: &mut SentToFleets<T>, into: &mut FleetChanges) {
    let changes = engine.changes::<T>();
    for (key, resource) in changes.set {
        let fleets = T::fleets(&key, engine);
        for fleet in &fleets {
            upsert::<T>(&resource, fleet.clone(), into);
        }
        sent.entry(key).or_default().extend(fleets);
    }
    for key in changes.gone {
        let fleets = T::fleets_of_gone(&key, engine);
        sent.entry(key).or_default().extend(fleets);
    }
}

/// The same at the end of the batch, for whoever uses it now.
fn settle_early<T: Resources>(sent: SentToFleets<T>, engine: &Engine, into: &mut FleetChanges) {
    for (key, mut sent) in sent {
        if let Some(resource) = engine.get::<T>(&key) {
            for fleet in T::fleets(&key, engine) {
                sent.remove(&fleet);
                upsert::<T>(resource, fleet, into);
            }
        }
        remove::<T>(&key, sent, engine, into);
    }
}

/// What fleets have come to use, and what they no longer do.
fn moved_to<T: Resources>(moved: &Moved<T::Key>, engine: &Engine, into: &mut FleetChanges) {
    for (fleet, key) in &moved.left {
        into.entry(fleet.clone()).or_default().removes.push((T::KIND, T::name(key).into()));
    }
    for (fleet, key) in &moved.joined {
        if let Some(resource) = engine.get::<T>(key) {
            upsert::<T>(resource, fleet.clone(), into);
        }
    }
}
