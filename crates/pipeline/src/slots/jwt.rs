//! What fills the slots for JWT verification: the providers that routes of a port require.

use crate::{
    ports::PortRow,
    resources::Resource,
    translations::{TranslationRow, Translations},
};
use engine::{Index, PartIndex, Reads};
use envoy::{
    listener::{jwt, slots::Slot},
    name,
};
use model::{ListenerId, ObjectRef, PortId, jwt::JwtProvider};
use prost::Message;
use std::collections::BTreeSet;
use xds::Kind;

/// Translations by the slots that have providers which their routes on a listener require.
pub struct JwtBySlot;

impl Index for JwtBySlot {
    type Of = Translations;
    type Key = (ListenerId, Slot);
    const NAME: &'static str = "by slot of JWT providers";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = (ListenerId, Slot)> {
        if translation.jwt_providers.is_empty() {
            return BTreeSet::new();
        }
        let required = translation.routes.iter().filter_map(|piece| {
            let provider = piece.route.policy.jwt.as_deref()?;
            Some((piece.listener.clone(), Slot::of_jwt_provider(provider)))
        });
        required.collect()
    }
}

/// The providers of a slot that routes on the listener require. An edit of a route does not reach it.
impl PartIndex for JwtBySlot {
    type Part<'v> = Vec<&'v JwtProvider>;

    fn part<'v>((listener, slot): &(ListenerId, Slot), translation: &'v TranslationRow) -> Vec<&'v JwtProvider> {
        let of_slot = translation.jwt_providers.iter().filter(|one| Slot::of_jwt_provider(&one.id) == *slot);
        let mut of_slot: Vec<&JwtProvider> = of_slot.collect();
        let on_listener = translation.routes.iter().filter(|piece| piece.listener == *listener);
        let required: BTreeSet<_> = on_listener.filter_map(|piece| piece.route.policy.jwt.as_deref()).collect();
        of_slot.retain(|provider| required.contains(&*provider.id));
        of_slot
    }
}

/// The slot of a port with its providers; nothing if it has none. While proxies refuse it, they keep what they have, and those that
/// have nothing get a filter that knows no provider: a listener would wait for ever for one that does not come.
pub fn filled(id: &PortId, slot: Slot, port: &PortRow, reads: &mut Reads<'_>) -> Option<Resource> {
    let mut providers = Vec::new();
    for (listener, _) in &port.listeners {
        providers.extend(reads.parts::<JwtBySlot>(&(listener.clone(), slot)).into_iter().flat_map(|(_, some)| some));
    }
    if providers.is_empty() {
        return None;
    }
    let objects: BTreeSet<&ObjectRef> = providers.iter().map(|provider| &provider.id.object).collect();
    let objects = objects.into_iter().cloned().collect();
    let message = jwt::filled(id, slot, providers);
    let resource = Resource::new(name::slot(id, slot), &message).in_fleet(id.fleet());
    let closed = || jwt::filled(id, slot, []).encode_to_vec().into();
    Some(resource.or_stand_in(Kind::Extension, objects, Some(&closed), reads))
}
