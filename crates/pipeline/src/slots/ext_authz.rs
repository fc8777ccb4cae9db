//! What fills the slots for external authorization: one filter for whoever uses it.

use crate::{
    emissary::authorization,
    ports::PortRow,
    resources::Resource,
    translations::{TranslationRow, Translations},
};
use engine::{Index, Reads};
use envoy::{
    listener::{ext_authz, slots::Slot},
    name,
};
use model::{FleetId, ListenerId, ObjectRef, PortId, Route};
use std::collections::BTreeSet;
use xds::{Kind, Ref};

/// Translations by the slots that ask about requests of their routes on a listener.
pub struct AuthorizedBySlot;

impl Index for AuthorizedBySlot {
    type Of = Translations;
    type Key = (ListenerId, Slot);
    const NAME: &'static str = "by slot of external authorization";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = (ListenerId, Slot)> {
        let asked = translation.routes.iter().filter_map(|piece| Some((piece.listener.clone(), slot(&piece.route)?)));
        asked.collect::<BTreeSet<_>>()
    }
}

/// The slot that asks about requests of a route, if one does.
fn slot(route: &Route) -> Option<Slot> {
    Slot::asking(&route.policy.authorization)
}

/// Translations by the slots that ask about requests of their shared routes, which may be on every listener of the fleet.
pub struct SharedAuthorizedBySlot;

impl Index for SharedAuthorizedBySlot {
    type Of = Translations;
    type Key = (FleetId, Slot);
    const NAME: &'static str = "by slot of external authorization of shared routes";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = (FleetId, Slot)> {
        let shared = translation.shared.iter();
        let shared = shared.flat_map(|shared| shared.routes.iter().map(|route| (&shared.pool.fleet, route)));
        shared.filter_map(|(fleet, route)| Some((fleet.clone(), slot(route)?))).collect::<BTreeSet<_>>()
    }
}

/// The slot of a port, if a route there needs it.
pub fn filled(id: &PortId, slot: Slot, port: &PortRow, reads: &mut Reads<'_>) -> Option<Resource> {
    let is_used = reads.probe::<SharedAuthorizedBySlot>(&(id.fleet().clone(), slot)).len() > 0
        || port
            .listeners
            .iter()
            .any(|(listener, _)| reads.probe::<AuthorizedBySlot>(&(listener.clone(), slot)).len() > 0);
    let message = ext_authz::filled(id, slot == Slot::ExtAuthzFailOpen);
    is_used.then(|| Resource::new(name::slot(id, slot), &message))
}

/// The slot of a port for the authorization server of its fleet, if that has one.
pub fn filled_by_fleet(id: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
    let service = authorization::of_fleet(id.fleet(), reads)?;
    let message = ext_authz::filled_by_fleet(id, &service);
    let cluster = service.server.extension.map(|extension| name::cluster(&extension.cluster));
    let refs = cluster.into_iter().map(|cluster| Ref::To(Kind::Cluster, cluster.into())).collect();
    Some(Resource { refs, ..Resource::new(message.name.clone(), &message) })
}
