//! What fills the slots for JWT verification: the providers that routes of a port require.
//!
//! Many namespaces share a slot, and all of it is sent at each change, so it has a [limit](MOST_BYTES). Past that, the namespaces
//! that take most are without keys: no token of their providers is good, and the others notice nothing.

use super::{SlotKey, SlotsOfPorts};
use crate::{
    losers::{Contested, Losers},
    ports::{PortRow, Ports},
    resources::Resource,
    translations::{TranslationRow, Translations},
};
use engine::{Derived, Index, PartIndex, Reads, Table};
use envoy::{
    listener::{jwt, slots::Slot},
    name,
};
use model::{Code, ListenerId, ObjectRef, PortId, Verdict, jwt::JwtProvider};
use prost::Message;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
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

/// How much the providers of a slot may take together, in bytes.
pub const MOST_BYTES: usize = 4 << 20;

/// The namespaces that have no keys in a slot, because it has too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    namespaces: BTreeSet<Arc<str>>,
    lost: Vec<Verdict>,
}

impl Contested for Overflow {
    fn lost(&self) -> &[Verdict] {
        &self.lost
    }
}

/// The slots that have too many keys.
pub struct JwtOverflows;

impl Table for JwtOverflows {
    type Key = SlotKey;
    type Value = Overflow;
    const NAME: &'static str = "slots with too many JSON Web Keys";
}

impl Derived for JwtOverflows {
    fn compute(&self, (id, slot): &SlotKey, reads: &mut Reads<'_>) -> Option<Overflow> {
        let Slot::JwtAuthn(_) = slot else { return None };
        let port = reads.get::<Ports>(id)?;
        let providers = providers(*slot, port, reads);
        let mut total: usize = providers.iter().map(|provider| provider.bytes()).sum();
        if total <= MOST_BYTES {
            return None;
        }
        let mut shares: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for provider in &providers {
            *shares.entry(&provider.id.object.namespace).or_default() += provider.bytes();
        }
        let mut shares: Vec<_> = shares.into_iter().map(|(namespace, bytes)| (bytes, namespace)).collect();
        shares.sort();
        let mut namespaces = BTreeSet::new();
        while total > MOST_BYTES
            && let Some((bytes, namespace)) = shares.pop()
        {
            total -= bytes;
            namespaces.insert(namespace.clone());
        }
        let lost = providers.iter().filter(|provider| namespaces.contains(&provider.id.object.namespace));
        let why = "the JWT providers of this namespace have more keys than there is room for beside those of others";
        let lost = lost.map(|provider| Verdict::new(Code::ProxyJwtLimit, provider.origin.clone(), why));
        let mut lost: Vec<Verdict> = lost.collect();
        lost.sort();
        Some(Overflow { namespaces, lost })
    }
}

/// The providers of a slot that routes of a port require.
fn providers<'r>(slot: Slot, port: &PortRow, reads: &mut Reads<'r>) -> Vec<&'r JwtProvider> {
    let mut all = Vec::new();
    for (listener, _) in &port.listeners {
        all.extend(reads.parts::<JwtBySlot>(&(listener.clone(), slot)).into_iter().flat_map(|(_, some)| some));
    }
    all
}

/// The slot of a port with its providers; nothing if it has none. While proxies refuse it, they keep what they have, and those that
/// have nothing get a filter that knows no provider: a listener would wait for ever for one that does not come.
pub fn filled(id: &PortId, slot: Slot, port: &PortRow, reads: &mut Reads<'_>) -> Option<Resource> {
    let providers = providers(slot, port, reads);
    if providers.is_empty() {
        return None;
    }
    let objects: BTreeSet<&ObjectRef> = providers.iter().map(|provider| &provider.id.object).collect();
    let objects = objects.into_iter().cloned().collect();
    let message = match reads.get::<JwtOverflows>(&(id.clone(), slot)) {
        None => jwt::filled(id, slot, providers),
        Some(overflow) => {
            let is_closed = |provider: &JwtProvider| overflow.namespaces.contains(&provider.id.object.namespace);
            let admitted = |one: &JwtProvider| if is_closed(one) { one.closed() } else { one.clone() };
            let admitted: Vec<JwtProvider> = providers.into_iter().map(admitted).collect();
            jwt::filled(id, slot, &admitted)
        }
    };
    let resource = Resource::new(name::slot(id, slot), &message).in_fleet(id.fleet());
    let closed = || jwt::filled(id, slot, []).encode_to_vec().into();
    Some(resource.or_stand_in(Kind::Extension, objects, Some(&closed), reads))
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<JwtBySlot>();
    pipeline.derived(JwtOverflows).per::<SlotsOfPorts>();
    pipeline.parts::<Losers<JwtOverflows>>();
}
