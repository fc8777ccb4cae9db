//! Listeners: put together from chains that are encoded one by one.
//!
//! In: the chains of TLS hosts, the hosts whose connections are passed on, and what the operator sets. Out: the listeners that
//! all of them share. A listener has every chain in it, so one that comes or goes costs Envoy all of them; here it costs a
//! copy of the others' bytes. Hosts with on-demand certificates share one chain, and come and go without the listener.

use crate::{
    hosts::{Chains, ChainsByListener, TcpHosts, TcpHostsByListener},
    packing::{self, Arrangements},
    resources::{Resource, tcp_name},
    settings::Settings,
    translations::HostKey,
    withheld::WithheldRows,
};
use bytes::Bytes;
use engine::{Derived, Reads, Table};
use envoy::{
    listener::{self, slots::Slot},
    name,
};
use model::{CertificateRef, ListenerId, RouteTableId, tls::TcpChain};
use prost::Message;
use std::{collections::BTreeSet, sync::Arc};
use xds::{Kind, Ref};

/// A chain of a TLS listener, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBytes {
    chain: Bytes,
    /// The server names that lead to it, encoded.
    names: Option<Bytes>,
    /// Its name, if it takes every server name that no chain lists.
    unlisted: Option<String>,
    /// The routes, or where connections go.
    awaited: Ref,
    certificate: Option<Ref>,
}

/// The chains whose requests are looked at.
pub struct EncodedChains(Settings);

impl Table for EncodedChains {
    type Key = RouteTableId;
    type Value = ChainBytes;
    const NAME: &'static str = "encoded chains";
}

impl Derived for EncodedChains {
    fn compute(&self, table: &RouteTableId, reads: &mut Reads<'_>) -> Option<ChainBytes> {
        let chain = reads.get::<Chains>(table)?;
        let arrangement = **reads.get::<Arrangements>(table)?;
        let (name, termination) = (listener::chain_name(table)?, &chain.termination);
        Some(ChainBytes {
            chain: listener::chain(&self.0.https_listener(), table, arrangement)?,
            names: (!chain.hosts.is_empty()).then(|| listener::sni::names(&name, &chain.hosts)),
            unlisted: chain.takes_unlisted.then_some(name),
            awaited: packing::awaited(table, arrangement),
            certificate: (!termination.is_on_demand()).then(|| certificate(&termination.certificate)),
        })
    }
}

/// The chains whose connections are passed on.
pub struct EncodedTcpChains(Settings);

impl Table for EncodedTcpChains {
    type Key = HostKey;
    type Value = ChainBytes;
    const NAME: &'static str = "encoded TCP chains";
}

impl Derived for EncodedTcpChains {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<ChainBytes> {
        let proxy = reads.get::<TcpHosts>(key)?;
        let (host, termination) = (key.1.clone(), proxy.termination.clone());
        let chain = TcpChain { host, termination, clients: proxy.clients.clone() };
        Some(ChainBytes {
            chain: listener::tcp::chain(&chain, &self.0.https_listener().connections).encode_to_vec().into(),
            names: Some(listener::tcp::names(&chain)),
            unlisted: None,
            awaited: Ref::To(Kind::Extension, tcp_name(key).into()),
            certificate: chain.termination.map(|termination| certificate(&termination.certificate)),
        })
    }
}

fn certificate(certificate: &CertificateRef) -> Ref {
    Ref::To(Kind::Secret, name::secret(certificate).into())
}

/// Listeners.
pub struct ListenerResources(Settings);

impl Table for ListenerResources {
    type Key = ListenerId;
    type Value = Resource;
    const NAME: &'static str = "listener resources";
}

/// The listeners that show Envoy's own pages.
fn own_pages() -> [ListenerId; 2] {
    [ListenerId("stats-health".into()), ListenerId("envoy-admin".into())]
}

impl Derived for ListenerResources {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Resource> {
        let Self(settings) = self;
        let [stats, admin] = own_pages();
        let resource = if *id == stats {
            let message = listener::admin::stats(settings.stats.address, settings.stats.port);
            Some(Resource::new(id.to_string(), &message))
        } else if *id == admin {
            let port = Some(settings.admin_port).filter(|&port| port != 0)?;
            Some(Resource::new(id.to_string(), &listener::admin::read_only(port)))
        } else if *id == ListenerId::http() {
            in_the_clear(id, settings, reads)
        } else {
            encrypted(id, settings, reads)
        };
        Some(resource?.unless_held(Kind::Listener, reads))
    }
}

fn in_the_clear(id: &ListenerId, settings: &Settings, reads: &mut Reads<'_>) -> Option<Resource> {
    let table = packing::in_the_clear();
    let arrangement = **reads.get::<Arrangements>(&table)?;
    let message = listener::plain(&settings.http_listener(), arrangement);
    let refs = vec![packing::awaited(&table, arrangement)];
    Some(Resource { refs, ..Resource::new(id.to_string(), &message) })
}

fn encrypted(id: &ListenerId, settings: &Settings, reads: &mut Reads<'_>) -> Option<Resource> {
    let chains_of = |part: &ListenerId, reads: &mut Reads<'_>| -> Vec<Arc<ChainBytes>> {
        let tables = reads.probe::<ChainsByListener>(part);
        tables.filter_map(|table| reads.get::<EncodedChains>(table)).cloned().collect()
    };
    let mut named = chains_of(id, reads);
    let fallback = chains_of(&ListenerId::fallback(), reads).pop();
    let tcp = reads.probe::<TcpHostsByListener>(id);
    named.extend(tcp.filter_map(|key| reads.get::<EncodedTcpChains>(key)).cloned());
    if named.is_empty() && fallback.is_none() {
        return None;
    }
    let unlisted = named.iter().find_map(|chain| chain.unlisted.as_deref());
    let names = listener::sni::matcher(named.iter().filter_map(|chain| chain.names.as_ref()), unlisted);
    let chains = named.iter().map(|chain| &chain.chain);
    let default = fallback.as_ref().map(|chain| &chain.chain);
    let body = listener::encrypted(&settings.https_listener(), chains, default, names);
    let all = || named.iter().chain(&fallback);
    let certificates: BTreeSet<&Ref> = all().filter_map(|chain| chain.certificate.as_ref()).collect();
    let refs = all().map(|chain| &chain.awaited).chain(certificates).cloned().collect();
    Some(Resource { refs, ..Resource::of(id.to_string(), body) })
}

/// What fills the slots of listeners: see [`envoy::listener::slots`].
pub struct SlotResources;

/// A slot of a listener.
pub type SlotKey = (ListenerId, Slot);

impl Table for SlotResources {
    type Key = SlotKey;
    type Value = Resource;
    const NAME: &'static str = "slot resources";
}

impl Derived for SlotResources {
    fn compute(&self, (listener, slot): &SlotKey, reads: &mut Reads<'_>) -> Option<Resource> {
        // Envoy asks for the slots of chains that it has.
        let has_chain = *listener == ListenerId::http()
            || reads.probe::<ChainsByListener>(listener).len() > 0
            || reads.probe::<ChainsByListener>(&ListenerId::fallback()).len() > 0;
        if !has_chain {
            return None;
        }
        Some(Resource::new(name::slot(listener, *slot), &slot.empty(listener)))
    }
}

/// The name of what fills a slot.
pub fn slot_name((listener, slot): &SlotKey) -> String {
    name::slot(listener, *slot)
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(EncodedChains(settings.clone())).each::<Chains>();
    pipeline.derived(EncodedTcpChains(settings.clone())).each::<TcpHosts>();
    pipeline.index::<ChainsByListener>();
    let [stats, admin] = own_pages();
    pipeline
        .derived(ListenerResources(settings.clone()))
        .always(ListenerId::http())
        .always(ListenerId::https())
        .always(stats)
        .always(admin)
        .output();
    pipeline.index::<WithheldRows<ListenerResources>>();
    let slots =
        [ListenerId::http(), ListenerId::https()].map(|listener| Slot::ALL.map(|slot| (listener.clone(), slot)));
    slots.into_iter().flatten().fold(pipeline.derived(SlotResources), |slots, slot| slots.always(slot)).output();
}
