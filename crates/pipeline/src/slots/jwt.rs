//! What fills the slots for JWT verification: the providers that routes of a filter chain's hosts require.
//!
//! In: virtual hosts, where they are looked up, and the providers that objects define. Out: a resource for each slot of each filter chain
//! ([`envoy::listener::jwt`]), also for those that are empty. A host is in the slots of the chains whose connections may carry its
//! requests: on all others it answers 421. What an edit of a route or of a provider reaches is the slots that the provider is in.
//!
//! Many namespaces share a slot, and all of it is sent at each change, so it has a [limit](MOST_BYTES). Past that, the namespaces
//! that take most are without keys: no token of their providers is good, and the others notice nothing.

use crate::{
    hosts::{Chains, Placement, Placements, VirtualHosts},
    losers::{Contested, Losers},
    partition,
    ports::PortSettings,
    resources::Resource,
    translations::{HostKey, TranslationRow, Translations},
    withheld::WithheldRows,
};
use assemble::virtual_host::Assembled;
use engine::{Derived, Index, PartIndex, Reads, Table};
use envoy::listener::jwt::{self, HttpChainId, JwtSlots};
use model::{
    ChainId, Code, FleetId, ObjectRef, Port, PortId, PortProtocol, Verdict, VirtualHost,
    jwt::{JwtProvider, JwtProviderId},
    tls::Chain,
};
use prost::Message;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use xds::Kind;

/// A slot of a filter chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JwtSlotKey {
    fleet: FleetId,
    name: Arc<str>,
}

impl JwtSlotKey {
    fn all(chain: &HttpChainId) -> Vec<Self> {
        let names = chain.slot_names().into_iter();
        names.map(|name| Self { fleet: chain.fleet().clone(), name: name.into() }).collect()
    }

    /// The fleet that has it.
    pub fn fleet(&self) -> &FleetId {
        &self.fleet
    }

    /// Its name in Envoy.
    pub fn name(&self) -> String {
        self.name.as_ref().to_owned()
    }
}

/// Plaintext ports by their slots.
pub struct JwtSlotsOfPorts;

impl Index for JwtSlotsOfPorts {
    type Of = PortSettings;
    type Key = JwtSlotKey;
    const NAME: &'static str = "by slot of JWT verification";

    fn keys(id: &PortId, port: &Port) -> impl IntoIterator<Item = JwtSlotKey> {
        match port.protocol {
            PortProtocol::Http => JwtSlotKey::all(&HttpChainId::Plaintext(id.clone())),
            PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Udp | PortProtocol::Quic => Vec::new(),
        }
    }
}

/// Chains of TLS ports by their slots.
pub struct JwtSlotsOfChains;

impl Index for JwtSlotsOfChains {
    type Of = Chains;
    type Key = JwtSlotKey;
    const NAME: &'static str = "by slot of JWT verification";

    fn keys(id: &ChainId, _: &Chain) -> impl IntoIterator<Item = JwtSlotKey> {
        JwtSlotKey::all(&HttpChainId::Tls(id.clone()))
    }
}

/// The slots that have the providers which routes of a host require, where it is looked up.
pub(crate) fn required(place: &Placement, host: &VirtualHost) -> BTreeMap<Arc<str>, BTreeSet<Arc<JwtProviderId>>> {
    let mut required: BTreeMap<Arc<str>, BTreeSet<Arc<JwtProviderId>>> = BTreeMap::new();
    let providers: BTreeSet<&Arc<JwtProviderId>> = providers_of(host).collect();
    if providers.is_empty() {
        return required;
    }
    let chains = match &place.admission {
        None => vec![JwtSlots::of_port(&place.port)],
        Some(admission) => {
            let chains = admission.chains.iter().enumerate();
            chains.map(|(at, chain)| JwtSlots::of_chain(chain, admission.by_server_name && at == 0)).collect()
        }
    };
    for (chain, provider) in chains.iter().flat_map(|chain| providers.iter().map(move |provider| (chain, *provider))) {
        required.entry(chain.of_mark(jwt::mark_of(provider)).into()).or_default().insert(provider.clone());
    }
    required
}

fn providers_of(host: &VirtualHost) -> impl Iterator<Item = &Arc<JwtProviderId>> {
    host.routes.iter().chain(&host.catch_all).filter_map(|route| route.policy.jwt.as_ref())
}

/// Virtual hosts with a route that requires a token.
pub struct HostsWithJwt;

impl Index for HostsWithJwt {
    type Of = VirtualHosts;
    type Key = HostKey;
    const NAME: &'static str = "with JWT verification";

    fn keys(key: &HostKey, assembled: &Assembled) -> impl IntoIterator<Item = HostKey> {
        let VirtualHost { routes, catch_all, .. } = &assembled.host;
        (routes.requires_tokens() || catch_all.requires_tokens()).then(|| key.clone())
    }
}

/// The providers that the routes of a host require, by slot.
pub struct RequiredProviders;

impl Table for RequiredProviders {
    type Key = HostKey;
    type Value = BTreeMap<Arc<str>, BTreeSet<Arc<JwtProviderId>>>;
    const NAME: &'static str = "required JWT providers";
}

impl Derived for RequiredProviders {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Self::Value> {
        let place = reads.get::<Placements>(key)?;
        Some(required(place, &reads.get::<VirtualHosts>(key)?.host))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// Hosts by the slots that have providers which their routes require.
pub struct HostsByJwtSlot;

impl Index for HostsByJwtSlot {
    type Of = RequiredProviders;
    type Key = JwtSlotKey;
    const NAME: &'static str = "by slot";

    fn keys(
        (listener, _): &HostKey,
        required: &<RequiredProviders as Table>::Value,
    ) -> impl IntoIterator<Item = JwtSlotKey> {
        let slot = |name: &Arc<str>| JwtSlotKey { fleet: listener.fleet().clone(), name: name.clone() };
        required.keys().map(slot).collect::<Vec<_>>()
    }
}

/// The providers of a slot that a host requires.
impl PartIndex for HostsByJwtSlot {
    type Part<'v> = Option<&'v BTreeSet<Arc<JwtProviderId>>>;

    fn part<'v>(slot: &JwtSlotKey, required: &'v <RequiredProviders as Table>::Value) -> Self::Part<'v> {
        required.get(&slot.name)
    }
}

/// Translations by the providers that they define.
pub struct JwtProvidersById;

impl Index for JwtProvidersById {
    type Of = Translations;
    type Key = Arc<JwtProviderId>;
    const NAME: &'static str = "by JWT provider";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = Arc<JwtProviderId>> {
        translation.jwt_providers.iter().map(|provider| provider.id.clone()).collect::<Vec<_>>()
    }
}

/// The provider. An edit of a route does not reach it.
impl PartIndex for JwtProvidersById {
    type Part<'v> = Option<&'v JwtProvider>;

    fn part<'v>(id: &Arc<JwtProviderId>, translation: &'v TranslationRow) -> Option<&'v JwtProvider> {
        translation.jwt_providers.iter().find(|provider| provider.id == *id)
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
    type Key = JwtSlotKey;
    type Value = Overflow;
    const NAME: &'static str = "slots with too many JSON Web Keys";
}

impl Derived for JwtOverflows {
    fn compute(&self, slot: &JwtSlotKey, reads: &mut Reads<'_>) -> Option<Overflow> {
        let providers = providers(slot, reads);
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

/// The providers of a slot, each once.
fn providers<'r>(slot: &JwtSlotKey, reads: &mut Reads<'r>) -> Vec<&'r JwtProvider> {
    let hosts = reads.parts::<HostsByJwtSlot>(slot);
    let ids: BTreeSet<&Arc<JwtProviderId>> = hosts.into_iter().filter_map(|(_, ids)| ids).flatten().collect();
    let one = |id: &Arc<JwtProviderId>| reads.parts::<JwtProvidersById>(id).into_iter().find_map(|(_, one)| one);
    ids.into_iter().filter_map(one).collect()
}

/// What fills the slots.
pub struct JwtSlotResources;

impl Table for JwtSlotResources {
    type Key = JwtSlotKey;
    type Value = Resource;
    const NAME: &'static str = "slot resources of JWT verification";
}

/// While proxies refuse one, they keep what they have, and those that have nothing get a filter that knows no provider: a listener would
/// wait for ever for one that does not come.
impl Derived for JwtSlotResources {
    fn compute(&self, slot: &JwtSlotKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let providers = providers(slot, reads);
        if providers.is_empty() {
            let empty = Resource::new(slot.name(), &jwt::filled(&slot.name, []));
            return Some(Resource { idle: true, ..empty });
        }
        let objects: BTreeSet<&ObjectRef> = providers.iter().map(|provider| &provider.id.object).collect();
        let objects = objects.into_iter().cloned().collect();
        let message = match reads.get::<JwtOverflows>(slot) {
            None => jwt::filled(&slot.name, providers),
            Some(overflow) => {
                let is_closed = |provider: &JwtProvider| overflow.namespaces.contains(&provider.id.object.namespace);
                let admitted = |one: &JwtProvider| if is_closed(one) { one.closed() } else { one.clone() };
                let admitted: Vec<JwtProvider> = providers.into_iter().map(admitted).collect();
                jwt::filled(&slot.name, &admitted)
            }
        };
        let resource = Resource::new(slot.name(), &message).in_fleet(&slot.fleet);
        let closed = || jwt::filled(&slot.name, []).encode_to_vec().into();
        Some(resource.or_stand_in(Kind::Extension, objects, Some(&closed), reads))
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<JwtProvidersById>();
    pipeline.derived(RequiredProviders).per::<HostsWithJwt>();
    pipeline.parts::<HostsByJwtSlot>();
    pipeline.derived(JwtOverflows).per::<HostsByJwtSlot>();
    pipeline.parts::<Losers<JwtOverflows>>();
    pipeline.derived(JwtSlotResources).per::<JwtSlotsOfPorts>().per::<JwtSlotsOfChains>().output();
    pipeline.index::<WithheldRows<JwtSlotResources>>();
}
