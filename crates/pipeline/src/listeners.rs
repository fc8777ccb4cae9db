//! Listeners: put together from chains that are encoded one by one.
//!
//! In: ports, the chains of their TLS hosts, the hosts whose connections are passed on, and where plain TCP and UDP listeners lead.
//! Out: an Envoy listener for each port that is not the plaintext part of another. A TLS listener has every chain in it, so one that comes or goes costs Envoy all of
//! them; here it costs a copy of the others' bytes. So has an HTTP/3 listener; connections for hosts that it cannot serve are closed. Hosts with on-demand certificates share one chain, and come and go without the
//! listener.

use crate::{
    emissary::logs,
    hosts::{Chains, ChainsByListener, TcpHosts, TcpHostsByListener, TlsHosts},
    packing, partition,
    ports::{ActiveListeners, Listeners, PortSettings, Ports, Streams},
    resources::{Resource, tcp_name},
    settings::{Bind, FleetSettings, Fleets, OwnPage, Packing, Settings},
    tracers::Tracers,
    translations::HostKey,
    withheld::WithheldRows,
};
use bytes::Bytes;
use engine::{Derived, Index, Reads, Table};
use envoy::{
    listener::{self, sni::OnMatch},
    name,
};
use model::{
    CertificateRef, ChainId, FleetId, Host, ObjectRef, Port, PortId, PortProtocol,
    tls::{TcpChain, Termination},
};
use prost::Message;
use std::{collections::BTreeSet, sync::Arc};
use xds::{Kind, Ref};

/// A chain of a TLS listener, encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainBytes {
    chain: Bytes,
    /// The server names that lead to it, encoded.
    names: Option<Bytes>,
    /// What leads to it where no name of the listener does, if it takes every name, or every one that is not listed.
    others: Option<OnMatch>,
    /// The routes, or where connections go.
    awaited: Ref,
    /// The certificates, and those that clients may have.
    certificates: Vec<Ref>,
}

/// The chains whose requests are looked at.
pub struct EncodedChains(Packing);

impl Table for EncodedChains {
    type Key = ChainId;
    type Value = ChainBytes;
    const NAME: &'static str = "encoded chains";
}

impl Derived for EncodedChains {
    fn compute(&self, id: &ChainId, reads: &mut Reads<'_>) -> Option<ChainBytes> {
        let chain = reads.get::<Chains>(id)?;
        let port = reads.get::<ActiveListeners>(&id.listener)?.port.clone();
        let port = reads.get::<PortSettings>(&port)?;
        let name = name::chain(id);
        let (every, named): (Vec<Host>, Vec<Host>) = chain.hosts.iter().cloned().partition(|host| *host == Host::Any);
        let others = match chain.takes_unlisted {
            true => Some(listener::sni::every(&name)),
            false => (!every.is_empty()).then(|| listener::sni::take(&name)),
        };
        let shown = id.termination.certificates().filter(|_| !id.termination.is_on_demand());
        Some(ChainBytes {
            chain: listener::chain(port, id, self.0),
            names: (!named.is_empty()).then(|| listener::sni::names(&name, &named)),
            others,
            awaited: packing::awaited(&port.id, self.0),
            certificates: shown.map(certificate).chain(client_trust(&id.termination)).collect(),
        })
    }
}

/// The chains whose connections are passed on.
pub struct EncodedTcpChains;

impl Table for EncodedTcpChains {
    type Key = HostKey;
    type Value = ChainBytes;
    const NAME: &'static str = "encoded TCP chains";
}

impl Derived for EncodedTcpChains {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<ChainBytes> {
        let proxy = reads.get::<TcpHosts>(key)?;
        let active = reads.get::<ActiveListeners>(&key.0).filter(|active| active.protocol == PortProtocol::Tls)?;
        let port = reads.get::<PortSettings>(&active.port)?;
        let (host, termination) = (key.1.clone(), proxy.termination.clone());
        let chain = TcpChain { host, termination, ip_filter: proxy.ip_filter.clone() };
        let taken = listener::tcp::taken(&key.0, &chain);
        let (names, others) = match key.1 {
            Host::Any => (None, Some(taken)),
            Host::Exact(_) | Host::Wildcard(_) => {
                (Some(listener::sni::leading(std::slice::from_ref(&key.1), taken)), None)
            }
        };
        Some(ChainBytes {
            chain: listener::tcp::chain(&key.0, &chain, &port.connections).encode_to_vec().into(),
            names,
            others,
            awaited: Ref::To(Kind::Extension, tcp_name(key).into()),
            certificates: chain
                .termination
                .iter()
                .flat_map(|termination| termination.certificates().map(certificate).chain(client_trust(termination)))
                .collect(),
        })
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

fn certificate(certificate: &CertificateRef) -> Ref {
    Ref::To(Kind::Secret, name::secret(certificate).into())
}

/// Which client certificates are accepted.
fn client_trust(termination: &Termination) -> Option<Ref> {
    let clients = termination.clients.as_ref()?;
    Some(Ref::To(Kind::Secret, name::client_trust(&clients.trust).into()))
}

/// Fleets by the listeners of Envoy's own pages.
pub struct OwnPages;

impl Index for OwnPages {
    type Of = Fleets;
    type Key = PortId;
    const NAME: &'static str = "by own page";

    fn keys(fleet: &FleetId, settings: &FleetSettings) -> impl IntoIterator<Item = PortId> {
        settings.own_pages(fleet).map(|(id, _)| id).collect::<Vec<_>>()
    }
}

/// Listeners.
pub struct ListenerResources(Packing);

impl Table for ListenerResources {
    type Key = PortId;
    type Value = Resource;
    const NAME: &'static str = "listener resources";
}

impl Derived for ListenerResources {
    fn compute(&self, id: &PortId, reads: &mut Reads<'_>) -> Option<Resource> {
        let settings = reads.get::<Fleets>(id.fleet());
        let page = settings.and_then(|settings| settings.own_pages(id.fleet()).find(|(page, _)| page == id));
        let resource = if let Some((_, page)) = page {
            Some(own_page(id, &page))
        } else {
            let port = reads.get::<PortSettings>(id).filter(|_| !is_within_tls(id, reads))?;
            match port.protocol {
                PortProtocol::Http => Some(plaintext(port, self.0)),
                PortProtocol::Tls | PortProtocol::Quic => encrypted(port, self.0, reads),
                PortProtocol::Tcp | PortProtocol::Udp => stream(port, reads),
            }
        };
        let resource = resource?.in_fleet(id.fleet()).unless_withheld(Kind::Listener, reads);
        Some(resource.reported_on(|| claimants(id, reads)))
    }
}

fn own_page(id: &PortId, page: &OwnPage) -> Resource {
    let Bind { address, port } = page.bind();
    let mut refs = Vec::new();
    let message = match page {
        OwnPage::Stats(_) => listener::admin::stats(address, port),
        OwnPage::Metrics(_, tls) => {
            let secrets = tls.iter().flat_map(|tls| tls.secrets());
            refs.extend(secrets.map(|secret| Ref::To(Kind::Secret, secret.name.into())));
            listener::admin::metrics(address, port, tls.as_deref())
        }
        OwnPage::Health(_) => listener::admin::health(address, port),
        OwnPage::OverloadHealth(_) => listener::admin::overload_health(address, port),
        OwnPage::Admin(port) => listener::admin::read_only(*port),
    };
    Resource { refs, ..Resource::new(name::port(id), &message) }
}

/// Whether a port has the plaintext connections of another, whose listener has its filter chain.
fn is_within_tls(port: &PortId, reads: &mut Reads<'_>) -> bool {
    reads.get::<Ports>(port).is_some_and(|port| port.plaintext_of.is_some())
}

/// The objects that ask for the listeners of a port, and for what stands in them.
fn claimants(port: &PortId, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    let row = reads.get::<Ports>(port);
    let plaintext = row.and_then(|row| reads.get::<Ports>(row.plaintext.as_ref()?));
    let listeners = row.into_iter().chain(plaintext).flat_map(|port| &port.listeners);
    let rows = listeners.filter_map(|(listener, _)| reads.get::<Listeners>(listener));
    let objects = rows.filter_map(|row| row.claim.as_ref()).map(|(_, origin)| origin.object.clone());
    let mut objects: BTreeSet<ObjectRef> = objects.collect();
    objects.extend(reads.get::<Tracers>(port.fleet()).and_then(|row| row.object.clone()));
    objects.extend(logs::objects(port.fleet(), reads));
    objects.into_iter().collect()
}

/// The cluster of who gets spans, where proxies refuse a listener that comes before it.
fn collector(port: &Port) -> Option<Ref> {
    let tracer = port.tracer.as_ref().filter(|tracer| tracer.exporter.needs_cluster())?;
    Some(Ref::To(Kind::Cluster, name::cluster(&tracer.collector.cluster).into()))
}

fn plaintext(port: &Port, packing: Packing) -> Resource {
    let refs = [packing::awaited(&port.id, packing)].into_iter().chain(collector(port)).collect();
    Resource { refs, ..Resource::new(name::port(&port.id), &listener::plain(port, packing)) }
}

fn encrypted(port: &Port, packing: Packing, reads: &mut Reads<'_>) -> Option<Resource> {
    let row = reads.get::<Ports>(&port.id)?;
    let plaintext = row.plaintext.as_ref().and_then(|id| reads.get::<PortSettings>(id));
    let (mut named, mut fallback): (Vec<Arc<ChainBytes>>, Option<Arc<ChainBytes>>) = Default::default();
    let mut refused = Vec::new();
    for (id, host) in &row.listeners {
        if *host != Host::Any && reads.get::<TlsHosts>(&(id.clone(), host.clone())).is_none() {
            refused.push(host.clone());
        }
        for chain in reads.probe::<ChainsByListener>(id) {
            let Some(encoded) = reads.get::<EncodedChains>(chain) else { continue };
            if chain.is_fallback {
                fallback = Some(encoded.clone());
            } else {
                named.push(encoded.clone());
            }
        }
        let tcp = reads.probe::<TcpHostsByListener>(id);
        if port.protocol == PortProtocol::Quic {
            refused.extend(tcp.map(|(_, host)| host.clone()).filter(|host| *host != Host::Any));
        } else {
            named.extend(tcp.filter_map(|key| reads.get::<EncodedTcpChains>(key)).cloned());
        }
    }
    let others = named.iter().find_map(|chain| chain.others.clone());
    if named.is_empty() && fallback.is_none() && plaintext.is_none() {
        return None;
    }
    // What a listener has no certificate for is no wider one's, and what HTTP/3 cannot pass on or keep is no wider host's.
    let refused = (!refused.is_empty()).then(|| listener::sni::names(name::REFUSED_CHAIN, &refused));
    let names = listener::sni::matcher(named.iter().filter_map(|chain| chain.names.as_ref()).chain(&refused), others);
    let names = if plaintext.is_some() { listener::sni::beside_plaintext(names) } else { names };
    let in_plaintext = plaintext.map(|port| listener::plaintext_chain(port, packing));
    let chains = named.iter().map(|chain| &chain.chain).chain(&in_plaintext);
    let default = fallback.as_ref().map(|chain| &chain.chain);
    let body = match port.protocol {
        PortProtocol::Quic => listener::quic::listener(port, chains, names),
        PortProtocol::Http | PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Udp => {
            listener::encrypted(port, chains, default, names)
        }
    };
    let all = || named.iter().chain(&fallback);
    let certificates: BTreeSet<&Ref> = all().flat_map(|chain| &chain.certificates).collect();
    let of_plaintext = plaintext.map(|port| packing::awaited(&port.id, packing));
    let awaited: BTreeSet<&Ref> = all().map(|chain| &chain.awaited).chain(&of_plaintext).collect();
    let limit = listener::access_log::handshakes::limit(&port.http.access_log);
    let limit = limit.filter(|_| port.protocol == PortProtocol::Tls);
    let bucket = limit.map(|limit| Ref::To(Kind::TokenBucket, name::handshake_log(limit).into()));
    let refs = awaited.into_iter().chain(certificates).cloned().chain(bucket).chain(collector(port)).collect();
    Some(Resource { refs, ..Resource::of(name::port(&port.id), body) })
}

/// A plain TCP or UDP listener has the port for itself.
fn stream(port: &Port, reads: &mut Reads<'_>) -> Option<Resource> {
    let (id, _) = reads.get::<Ports>(&port.id)?.listeners.first()?;
    let stream = reads.get::<Streams>(id)?;
    let (message, awaited) = match port.protocol {
        PortProtocol::Udp => (listener::udp::listener(port, id), Ref::To(Kind::Cluster, name::udp_cluster(id).into())),
        PortProtocol::Http | PortProtocol::Tls | PortProtocol::Tcp | PortProtocol::Quic => (
            listener::tcp::listener(port, id, stream.target.ip_filter.as_ref()),
            Ref::To(Kind::Extension, name::tcp_listener(id).into()),
        ),
    };
    Some(Resource { refs: vec![awaited], ..Resource::new(name::port(&port.id), &message) })
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(EncodedChains(settings.packing)).each::<Chains>();
    pipeline.derived(EncodedTcpChains).each::<TcpHosts>();
    pipeline.index::<ChainsByListener>();
    pipeline.derived(ListenerResources(settings.packing)).each::<Ports>().per::<OwnPages>().sums_up().output();
    pipeline.index::<WithheldRows<ListenerResources>>();
}
