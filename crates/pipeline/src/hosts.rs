//! Hosts: gathers what all translations contribute to virtual hosts and TLS hosts, and finds where each host is looked up.
//!
//! In: translations. Out: rows of [`assemble`]'s virtual hosts, TLS hosts and filter chains. Who wins is decided there. What hosts
//! repeat of wider ones stands in [`wide`], hosts that are parts of others in [`conditional`], and hosts that have the same routes in
//! [`equal`]. Which TLS hosts are served by HTTP/3 as well is found in [`http3`].

pub mod conditional;
pub mod equal;
mod http3;
mod wide;

use crate::{
    isolation::{self, HostOwner, OwnHosts},
    large,
    losers::Losers,
    on_demand::{self, BelowWildcardsByChain},
    partition,
    ports::ActiveListeners,
    settings::{Certificates, Fleets, Settings},
    shared_routes::{self, SelectedRoutes},
    translations::{Contribution, HostKey, TlsByHost, TranslationsByHost},
    wildcard_certificate,
};
use assemble::{
    quic,
    shared_routes::Selection,
    tls,
    virtual_host::{self, Contributions},
};
use engine::{Derived, Index, Reads, Table};
use envoy::name;
use model::{
    CertificateRef, ChainId, Code, FleetId, Host, ListenerId, PortId, PortProtocol, Verdict,
    route::Depth,
    tls::{Admission, Chain, TcpProxy, Termination, TlsMode, client_validation::ClientTrust},
    translation::TlsPiece,
};
use std::{collections::BTreeSet, sync::Arc};
use wide::{
    CatchAll, CatchAllRoutes, WideHostsByListener, WiderHosts, WiderRoutes, WiderRoutesByListener, WildcardsByListener,
};

/// The virtual hosts of all listeners that are in effect: a TLS host is there also without routes, and so is the host that a listener
/// is for, so that its paths are its own and not those of a wildcard above it or of a wider listener. On a TLS listener a host for
/// which there is no certificate is not there: most hosts of Ingresses are plaintext alone.
pub struct VirtualHosts;

impl Table for VirtualHosts {
    type Key = HostKey;
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "virtual hosts";
}

impl Derived for VirtualHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let (listener, host) = key;
        let active = reads.get::<ActiveListeners>(listener)?;
        let owner = isolation::owner(key, reads)?;
        if owner != HostOwner::Own {
            let mut contributions = Contributions::new(host);
            isolation::lost(key, &owner, reads).into_iter().for_each(|verdict| _ = contributions.refuse(verdict));
            return Some(contributions.assemble());
        }
        if *host == Host::Any
            && let Some(catch_all) = reads.get::<CatchAll>(listener)
        {
            return Some(virtual_host::Assembled::clone(catch_all));
        }
        let wildcard = wildcard_certificate::for_host(key, active, reads);
        if active.protocol.is_tls() && wildcard.is_none() && !active.is_own_host(host) {
            reads.get::<TlsHosts>(key)?;
        }
        if let Some(equal) = equal::assembled(key, reads) {
            return Some(equal);
        }
        let parts = reads.parts::<TranslationsByHost>(key);
        // A host whose owners select its routes has all names below it, at any depth.
        let is_deep = !parts.is_empty() && parts.iter().all(|(_, contribution)| !contribution.selectors.is_empty());
        let catch_all = match host {
            Host::Wildcard(_) if !is_deep => reads.get::<CatchAllRoutes>(listener),
            Host::Wildcard(_) | Host::Exact(_) | Host::Any => None,
        };
        let mut contributions = Contributions::new(host);
        contributions.catch_all(catch_all.map_or(&[][..], |catch_all| catch_all.as_slice()));
        for (object, contribution) in parts {
            match &wildcard {
                Some(wildcard)
                    if !wildcard_certificate::is_usable_from(wildcard, listener, &object.namespace, reads) =>
                {
                    let origins = contribution.routes.iter().map(|piece| &piece.route.origin);
                    contributions.refuse(wildcard.refused(host, object, origins));
                }
                _ => contribute(contribution, &mut contributions, reads),
            }
        }
        if contributions.falls_through() && reads.get::<ListenersWithWiderRoutes>(listener).is_some() {
            for wider in host.wildcards_above().into_iter().chain([Host::Any]) {
                let Some(repeated) = reads.get::<WiderRoutes>(&(listener.clone(), wider.clone())) else { continue };
                contributions.wider(&wider, repeated, |route| {
                    let namespace = &route.origin.object.namespace;
                    wildcard
                        .as_ref()
                        .is_none_or(|it| wildcard_certificate::is_usable_from(it, listener, namespace, reads))
                });
                if !contributions.falls_through() {
                    break;
                }
            }
        }
        let mut assembled = contributions.assemble();
        conditional::insert(key, &mut assembled, reads);
        Some(assembled)
    }

    fn is_large(&self, key: &HostKey, reads: &mut Reads<'_>) -> bool {
        has_many_routes(key, reads)
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// Whether a host has so many routes that it takes long to assemble them.
fn has_many_routes(key: &HostKey, reads: &mut Reads<'_>) -> bool {
    let mut count = 0;
    reads.parts::<TranslationsByHost>(key).into_iter().any(|(_, contribution)| {
        count += contribution.routes.len();
        count > large::ROUTES
    })
}

/// Adds what an object contributes to a host: its own routes, and those that it selects.
fn contribute(contribution: Contribution<'_>, contributions: &mut Contributions<'_>, reads: &mut Reads<'_>) {
    contributions.routes(contribution.routes.iter().map(|piece| piece.route.clone()));
    for selection in contribution.selectors.iter().flat_map(Selection::of) {
        if let Some(selected) = reads.get::<SelectedRoutes>(&selection) {
            contributions.shared(&selected.routes);
        }
    }
}

/// The TLS hosts of all listeners that are in effect. Hosts with on-demand certificates share a chain, whatever their
/// certificates. Whoever takes every name leaves nobody to the fallback certificate.
pub struct TlsHosts(Certificates);

impl Table for TlsHosts {
    type Key = HostKey;
    type Value = tls::Assembled;
    const NAME: &'static str = "TLS hosts";
}

impl Derived for TlsHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<tls::Assembled> {
        let (listener, host) = key;
        let active = reads.get::<ActiveListeners>(listener)?;
        if !active.protocol.is_tls() || !isolation::is_own(key, reads) {
            return None;
        }
        let pieces: Vec<&TlsPiece> = reads.parts::<TlsByHost>(key).into_iter().flat_map(|(_, pieces)| pieces).collect();
        let mut assembled = tls::assemble(host, pieces.clone())?;
        if active.protocol == PortProtocol::Quic {
            let settings = reads.get::<Fleets>(listener.fleet());
            let has_curves = settings.is_some_and(|settings| !settings.connections.curves.is_empty());
            quic::restrict(host, &mut assembled, &pieces, has_curves);
        }
        if assembled.fallback.is_some()
            && let Some(every) = isolation::tls_for_every_name(&active.port, reads)
        {
            assembled.fallback = None;
            let asked = pieces.iter().filter(|piece| piece.fallback.is_some());
            let why =
                format!("host {host}: clients that send no name, or an unknown one, are those of listener {every}");
            let verdict = |piece: &&TlsPiece| Verdict::new(Code::FallbackNotUsed, piece.origin.clone(), why.clone());
            assembled.lost.extend(asked.map(verdict));
            assembled.lost.sort();
        }
        if let TlsMode::Http(termination) = &mut assembled.mode
            && active.from_settings
            && active.protocol == PortProtocol::Tls
            && on_demand::is_on_demand(self.0, host, termination, reads)
        {
            *termination = termination.on_demand();
        }
        Some(assembled)
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// The chains whose connections may carry requests for a TLS host: its own, then that of the fallback certificate.
fn chains_of(listener: &ListenerId, host: &tls::Assembled) -> Vec<ChainId> {
    let chain = |termination: &Termination, is_fallback| ChainId {
        listener: listener.clone(),
        termination: Arc::new(termination.clone()),
        is_fallback,
    };
    let own = host.mode.http().map(|termination| chain(termination, false));
    let fallback = host.fallback.as_ref().map(|termination| chain(termination, true));
    own.into_iter().chain(fallback).collect()
}

/// TLS hosts by the chains that they share.
pub struct HostsByChain;

impl Index for HostsByChain {
    type Of = TlsHosts;
    type Key = ChainId;
    const NAME: &'static str = "by chain";

    fn keys((listener, _): &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = ChainId> {
        chains_of(listener, host)
    }
}

/// Wildcard TLS hosts at any depth, and those for every name, by their listener.
pub struct DeepTlsHosts;

impl Index for DeepTlsHosts {
    type Of = TlsHosts;
    type Key = ListenerId;
    const NAME: &'static str = "deep, by listener";

    fn keys((listener, host): &HostKey, tls: &tls::Assembled) -> impl IntoIterator<Item = ListenerId> {
        let is_deep = match host {
            Host::Exact(_) => false,
            Host::Wildcard(_) => tls.covers.depth == Depth::AnyLabels,
            Host::Any => true,
        };
        is_deep.then(|| listener.clone())
    }
}

/// TLS hosts by the certificate that they show.
pub struct HostsByCertificate;

impl Index for HostsByCertificate {
    type Of = TlsHosts;
    type Key = CertificateRef;
    const NAME: &'static str = "by certificate";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = CertificateRef> {
        shown(host).cloned().chain(host.certificate.clone()).collect::<BTreeSet<_>>()
    }
}

/// All certificates of the chains of a host; on demand, those are the fallback's.
fn shown(host: &tls::Assembled) -> impl Iterator<Item = &CertificateRef> {
    let own = host.mode.termination().filter(|termination| !termination.is_on_demand());
    own.into_iter().chain(&host.fallback).flat_map(Termination::certificates)
}

/// TLS hosts of the shared fleet by the certificates of their chains. On demand, a chain has none.
pub struct SharedChainCertificates;

impl Index for SharedChainCertificates {
    type Of = TlsHosts;
    type Key = CertificateRef;
    const NAME: &'static str = "by certificate of the chain";

    fn keys((listener, _): &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = CertificateRef> {
        let is_shared = *listener.fleet() == FleetId::Shared;
        shown(host).filter(|_| is_shared).cloned().collect::<BTreeSet<_>>()
    }
}

/// TLS hosts of other fleets by their fleet and the certificates of their chains.
pub struct NamedChainCertificates;

impl Index for NamedChainCertificates {
    type Of = TlsHosts;
    type Key = (FleetId, CertificateRef);
    const NAME: &'static str = "by fleet and certificate of the chain";

    fn keys((listener, _): &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = (FleetId, CertificateRef)> {
        let is_named = *listener.fleet() != FleetId::Shared;
        let named = shown(host).filter(|_| is_named).map(|id| (listener.fleet().clone(), id.clone()));
        named.collect::<BTreeSet<_>>()
    }
}

/// TLS hosts by their fleet and which client certificates they accept, where they ask for one.
pub struct HostsByClientTrust;

impl Index for HostsByClientTrust {
    type Of = TlsHosts;
    type Key = (FleetId, ClientTrust);
    const NAME: &'static str = "by client certificates";

    fn keys((listener, _): &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = (FleetId, ClientTrust)> {
        let clients = host.mode.termination().and_then(|termination| termination.clients.as_ref());
        clients.map(|clients| (listener.fleet().clone(), clients.trust.clone()))
    }
}

/// Groups by their listener.
pub struct GroupsByListener;

impl Index for GroupsByListener {
    type Of = Groups;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys(chain: &ChainId, (): &()) -> impl IntoIterator<Item = ListenerId> {
        [chain.listener.clone()]
    }
}

/// The ports of listeners that have chains.
pub struct ChainPorts;

impl Table for ChainPorts {
    type Key = ListenerId;
    type Value = PortId;
    const NAME: &'static str = "ports of chains";
}

impl Derived for ChainPorts {
    fn compute(&self, listener: &ListenerId, reads: &mut Reads<'_>) -> Option<PortId> {
        Some(reads.get::<ActiveListeners>(listener)?.port.clone())
    }
}

/// The TLS ports that have requests to look up: while they have a chain, also one without routes. A listener waits for the routes
/// that it names.
pub struct PortsOfChains;

impl Index for PortsOfChains {
    type Of = ChainPorts;
    type Key = PortId;
    const NAME: &'static str = "by port";

    fn keys(_: &ListenerId, port: &PortId) -> impl IntoIterator<Item = PortId> {
        [port.clone()]
    }
}

/// The chains of TLS listeners. One with on-demand certificates may take every name that is not listed, so that a host that
/// comes or goes leaves the listener alone: see [`on_demand`].
pub struct Chains;

impl Table for Chains {
    type Key = ChainId;
    type Value = Chain;
    const NAME: &'static str = "chains";
}

impl Derived for Chains {
    fn compute(&self, key: &ChainId, reads: &mut Reads<'_>) -> Option<Chain> {
        let ChainId { listener, termination, is_fallback } = key;
        reads.get::<ActiveListeners>(listener)?;
        let takes_unlisted = termination.is_on_demand() && on_demand::takes_unlisted(key, reads);
        let hosts: Vec<Host> = if *is_fallback {
            Vec::new()
        } else if takes_unlisted {
            reads.probe::<BelowWildcardsByChain>(key).map(|(_, host)| host.clone()).collect()
        } else {
            reads.probe::<HostsByChain>(key).map(|(_, host)| host.clone()).collect()
        };
        Some(tls::chain(termination, hosts, takes_unlisted))
    }
}

/// Chains by their listener.
pub struct ChainsByListener;

impl Index for ChainsByListener {
    type Of = Chains;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys(chain: &ChainId, _: &Chain) -> impl IntoIterator<Item = ListenerId> {
        [chain.listener.clone()]
    }
}

/// The TLS hosts whose connections are passed on.
pub struct TcpHosts;

impl Table for TcpHosts {
    type Key = HostKey;
    type Value = TcpProxy;
    const NAME: &'static str = "TCP hosts";
}

impl Derived for TcpHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<TcpProxy> {
        reads.get::<TlsHosts>(key)?.mode.tcp().map(|proxy| TcpProxy::clone(proxy))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// Hosts whose connections are passed on, by their listener.
pub struct TcpHostsByListener;

impl Index for TcpHostsByListener {
    type Of = TcpHosts;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys((listener, _): &HostKey, _: &TcpProxy) -> impl IntoIterator<Item = ListenerId> {
        [listener.clone()]
    }
}

/// Where a virtual host is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The port.
    pub port: PortId,
    /// Under TLS, the connections that may carry its requests.
    pub admission: Option<Admission>,
}

/// Where each virtual host is looked up. Under TLS, a host without a certificate of its own is reached through that of
/// the wildcard above it, if that may be used for it: see [`assemble::wildcard_certificate`]. A host without either is not looked up at all.
/// One whose connections are passed on is looked up to be answered with 421, where its requests could be taken for a wildcard's, and
/// so is the host that a listener is for, if it has no certificate.
pub struct Placements;

impl Table for Placements {
    type Key = HostKey;
    type Value = Placement;
    const NAME: &'static str = "placements of hosts";
}

impl Derived for Placements {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Placement> {
        let (listener, host) = key;
        let active = reads.get::<ActiveListeners>(listener)?;
        if !isolation::is_own(key, reads) {
            return None;
        }
        let placed = |admission| Some(Placement { port: active.port.clone(), admission });
        match active.protocol {
            PortProtocol::Http => return placed(None),
            PortProtocol::Tls | PortProtocol::Quic => {}
            PortProtocol::Tcp | PortProtocol::Udp => return None,
        }
        let http3_port = http3::port_of(key, active, reads);
        let admission = |chains: &[ChainId]| Admission { http3_port, ..admission(chains) };
        if let Some(own) = reads.get::<TlsHosts>(key) {
            let chains = chains_of(listener, own);
            if chains.is_empty() {
                reads.get::<PortsWithChains>(&active.port)?;
            }
            return placed(Some(admission(&chains)));
        }
        let Some(wildcard) = wildcard_certificate::for_host(key, active, reads) else {
            reads.get::<PortsWithChains>(&active.port).filter(|_| active.is_own_host(host))?;
            return placed(Some(admission(&[])));
        };
        let mut objects = reads.probe::<TranslationsByHost>(key);
        let joins =
            objects.any(|object| wildcard_certificate::is_usable_from(&wildcard, listener, &object.namespace, reads));
        let termination = Arc::new(wildcard.termination.clone());
        let chain = ChainId { listener: listener.clone(), termination, is_fallback: false };
        joins.then(|| placed(Some(admission(&[chain])))).flatten()
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

fn admission(chains: &[ChainId]) -> Admission {
    Admission {
        chains: chains.iter().map(|chain| name::chain(chain).into()).collect(),
        by_server_name: chains.first().is_some_and(|chain| chain.termination.is_on_demand()),
        http3_port: None,
    }
}

rows_without_value! {
    ListenersWithWildcards of ListenerId, "listeners with wildcard hosts", "Listeners that have a wildcard host.";
    ListenersWithWiderRoutes of ListenerId, "listeners with wider routes", "Listeners that have wide hosts whose routes narrower hosts repeat.";
    ListenersWithDeepTls of ListenerId, "listeners with deep TLS hosts", "Listeners that have wildcard TLS hosts at any depth, or one for every name.";
    Groups of ChainId, "groups of TLS hosts", "What hosts share chains by: chains without their hosts.";
    ListenersWithChains of ListenerId, "listeners with chains", "Listeners that have chains whose requests are looked at.";
    PortsWithChains of PortId, "ports with chains", "TLS ports that have such chains.";
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(TlsHosts(settings.certificates)).per::<TlsByHost>();
    pipeline.derived(ListenersWithDeepTls).per::<DeepTlsHosts>();
    pipeline.derived(ListenersWithWildcards).per::<WildcardsByListener>();
    equal::declare(pipeline, settings);
    shared_routes::declare_selected(pipeline);
    conditional::declare(pipeline);
    equal::declare_routes(pipeline);
    pipeline.derived(CatchAll).per::<WideHostsByListener>();
    pipeline.derived(CatchAllRoutes).per::<WideHostsByListener>();
    pipeline.derived(WiderRoutes).per::<WiderHosts>().fans_out();
    pipeline.derived(ListenersWithWiderRoutes).per::<WiderRoutesByListener>();
    pipeline.derived(VirtualHosts).per::<TranslationsByHost>().per::<TlsByHost>().per::<OwnHosts>();
    pipeline.derived(TcpHosts).each::<TlsHosts>();
    pipeline.derived(Groups).per::<HostsByChain>();
    pipeline.index::<TcpHostsByListener>();
    pipeline.derived(ListenersWithChains).per::<GroupsByListener>();
    pipeline.derived(ChainPorts).each::<ListenersWithChains>();
    pipeline.derived(PortsWithChains).per::<PortsOfChains>();
    on_demand::declare(pipeline);
    pipeline.derived(Chains).per::<HostsByChain>().sums_up();
    pipeline.index::<http3::Http3Listeners>();
    pipeline.derived(Placements).each::<VirtualHosts>();
    pipeline.parts::<Losers<VirtualHosts>>().parts::<Losers<TlsHosts>>();
}
