//! What fills the slots for external authorization: one filter for whoever uses it.

use crate::{
    ports::PortRow,
    resources::Resource,
    translations::{TranslationRow, Translations},
};
use engine::{Index, Reads};
use envoy::{
    listener::{ext_authz, slots::Slot},
    name,
};
use model::{ListenerId, ObjectRef, PortId};
use std::collections::BTreeSet;

/// Translations by the slots that ask about requests of their routes on a listener.
pub struct AuthorizedBySlot;

impl Index for AuthorizedBySlot {
    type Of = Translations;
    type Key = (ListenerId, Slot);
    const NAME: &'static str = "by slot of external authorization";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = (ListenerId, Slot)> {
        let own = translation.routes.iter().map(|piece| (&piece.listener, &piece.route));
        let shared = translation.shared.iter();
        let shared = shared.flat_map(|shared| shared.routes.iter().map(|route| (&shared.listener, route)));
        let asked = own.chain(shared).filter_map(|(listener, route)| {
            let server = &route.policy.authorization.check()?.server;
            Some((listener.clone(), Slot::ext_authz(server.fail_open)))
        });
        asked.collect::<BTreeSet<_>>()
    }
}

/// The slot of a port, if a route there needs it.
pub fn filled(id: &PortId, slot: Slot, port: &PortRow, reads: &mut Reads<'_>) -> Option<Resource> {
    let is_used =
        port.listeners.iter().any(|(listener, _)| reads.probe::<AuthorizedBySlot>(&(listener.clone(), slot)).len() > 0);
    let message = ext_authz::filled(id, slot == Slot::ExtAuthzFailOpen);
    is_used.then(|| Resource::new(name::slot(id, slot), &message))
}
