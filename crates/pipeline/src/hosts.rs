//! Hosts: gathers what all translations contribute to virtual hosts and TLS hosts, and finds the route table of each host.
//!
//! In: translations. Out: rows of [`assemble`]'s virtual hosts, TLS hosts and filter chains. Who wins is decided there.

use crate::{
    on_demand::{self, BelowWildcardsByChain},
    settings::{Certificates, Settings},
    shared_routes::SelectedRoutes,
    translations::{Contribution, HostKey, TlsByHost, TranslationRow, Translations, TranslationsByHost},
    wildcard_certificate,
};
use assemble::{
    catch_all,
    shared_routes::Selection,
    tls,
    virtual_host::{self, Contributions},
};
use engine::{Derived, Index, Reads, Table};
use model::{
    CertificateRef, Host, ListenerId, ObjectRef, Route, RouteTableId,
    tls::{Chain, TcpProxy, Termination, TlsMode},
};
use std::sync::Arc;

/// Translations with a wildcard host on the plaintext port.
pub struct TranslationsWithWildcards;

impl Index for TranslationsWithWildcards {
    type Of = Translations;
    type Key = ();
    const NAME: &'static str = "with plaintext wildcard hosts";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ()> {
        let is_wildcard =
            |(listener, host): &HostKey| *listener == ListenerId::http() && matches!(host, Host::Wildcard(_));
        translation.hosts.iter().any(is_wildcard).then_some(())
    }
}

/// One row while there is a wildcard host on the plaintext port.
pub struct PlaintextWildcards;

impl Table for PlaintextWildcards {
    type Key = ();
    type Value = ();
    const NAME: &'static str = "plaintext wildcard hosts";
}

impl Derived for PlaintextWildcards {
    fn compute(&self, (): &(), _: &mut Reads<'_>) -> Option<()> {
        Some(())
    }
}

/// The catch-all of the plaintext port: the routes for hosts that no object names. It is assembled once for all wildcard hosts that
/// repeat its routes.
pub struct CatchAll;

impl Table for CatchAll {
    type Key = ();
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "catch-all";
}

impl Derived for CatchAll {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let mut contributions = Contributions::new(&Host::Any);
        for (_, contribution) in reads.parts::<TranslationsByHost>(&(ListenerId::http(), Host::Any)) {
            contribute(contribution, &mut contributions, reads);
        }
        let mut assembled = contributions.assemble();
        if reads.get::<PlaintextWildcards>(&()).is_some() {
            assembled.lost.extend(catch_all::too_long(&assembled.host.routes));
            assembled.lost.sort();
        }
        Some(assembled)
    }
}

/// What wildcard hosts of the plaintext port repeat of the catch-all. A table of its own, so that no edit of a catch-all that
/// is too long to be repeated reaches them.
pub struct CatchAllRoutes;

impl Table for CatchAllRoutes {
    type Key = ();
    type Value = Vec<Arc<Route>>;
    const NAME: &'static str = "catch-all routes of wildcard hosts";
}

impl Derived for CatchAllRoutes {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<Vec<Arc<Route>>> {
        Some(catch_all::repeated(&reads.get::<CatchAll>(&())?.host.routes))
    }
}

/// The virtual hosts of all listeners: a TLS host is there also without routes, so that its paths are not found (404)
/// rather than found elsewhere (421).
pub struct VirtualHosts;

impl Table for VirtualHosts {
    type Key = HostKey;
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "virtual hosts";
}

impl Derived for VirtualHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let (listener, host) = key;
        let catch_all = match host {
            Host::Any if *listener == ListenerId::http() => {
                return reads.get::<CatchAll>(&()).map(|catch_all| virtual_host::Assembled::clone(catch_all));
            }
            Host::Wildcard(_) if *listener == ListenerId::http() => reads.get::<CatchAllRoutes>(&()),
            _ => None,
        };
        let mut contributions = Contributions::new(host);
        contributions.catch_all(catch_all.map_or(&[][..], |catch_all| catch_all.as_slice()));
        let wildcard = wildcard_certificate::for_host(key, reads);
        for (object, contribution) in reads.parts::<TranslationsByHost>(key) {
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
        Some(contributions.assemble())
    }
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

/// The TLS hosts of all listeners. Hosts with on-demand certificates share a chain, whatever their certificates.
pub struct TlsHosts(Certificates);

impl Table for TlsHosts {
    type Key = HostKey;
    type Value = tls::Assembled;
    const NAME: &'static str = "TLS hosts";
}

impl Derived for TlsHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<tls::Assembled> {
        let pieces = reads.parts::<TlsByHost>(key).into_iter().flat_map(|(_, pieces)| pieces);
        let mut host = tls::assemble(&key.1, pieces.collect())?;
        if let TlsMode::Http(termination) = &mut host.mode
            && on_demand::is_on_demand(self.0, key, &termination.certificate, reads)
        {
            *termination = termination.on_demand();
        }
        Some(host)
    }
}

/// TLS hosts by the chain that they share.
pub struct HostsByChain;

impl Index for HostsByChain {
    type Of = TlsHosts;
    type Key = RouteTableId;
    const NAME: &'static str = "by chain";

    fn keys((listener, _): &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = RouteTableId> {
        host.mode.http().map(|termination| table(listener, Some(termination)))
    }
}

/// TLS hosts by the certificate that they show.
pub struct HostsByCertificate;

impl Index for HostsByCertificate {
    type Of = TlsHosts;
    type Key = CertificateRef;
    const NAME: &'static str = "by certificate";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = CertificateRef> {
        host.certificate.clone()
    }
}

/// TLS hosts by the certificate of their chain. On demand, a chain has none.
pub struct HostsByChainCertificate;

impl Index for HostsByChainCertificate {
    type Of = TlsHosts;
    type Key = CertificateRef;
    const NAME: &'static str = "by certificate of the chain";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = CertificateRef> {
        let on_demand = host.mode.http().is_some_and(Termination::is_on_demand);
        host.certificate.clone().filter(|_| !on_demand)
    }
}

/// What hosts share chains by: chains without their hosts.
pub struct Groups;

impl Table for Groups {
    type Key = RouteTableId;
    type Value = ();
    const NAME: &'static str = "groups of TLS hosts";
}

impl Derived for Groups {
    fn compute(&self, _: &RouteTableId, _: &mut Reads<'_>) -> Option<()> {
        Some(())
    }
}

/// Groups by the listener, or the part of one, that they are in.
pub struct GroupsByListener;

impl Index for GroupsByListener {
    type Of = Groups;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys(table: &RouteTableId, (): &()) -> impl IntoIterator<Item = ListenerId> {
        [table.listener.clone()]
    }
}

/// The chains of TLS listeners. One with on-demand certificates may take every name that is not listed, so that a host that
/// comes or goes leaves the listener alone: see [`on_demand`].
pub struct Chains;

impl Table for Chains {
    type Key = RouteTableId;
    type Value = Chain;
    const NAME: &'static str = "chains";
}

impl Derived for Chains {
    fn compute(&self, key: &RouteTableId, reads: &mut Reads<'_>) -> Option<Chain> {
        let termination = key.termination.as_deref()?;
        let takes_unlisted = termination.is_on_demand() && on_demand::takes_unlisted(key, reads);
        let hosts: Vec<Host> = if takes_unlisted {
            reads.probe::<BelowWildcardsByChain>(key).map(|(_, host)| host.clone()).collect()
        } else {
            reads.probe::<HostsByChain>(key).map(|(_, host)| host.clone()).collect()
        };
        Some(tls::chain(termination, hosts, takes_unlisted))
    }
}

/// Chains by the listener, or the part of one, that they are in.
pub struct ChainsByListener;

impl Index for ChainsByListener {
    type Of = Chains;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys(table: &RouteTableId, _: &Chain) -> impl IntoIterator<Item = ListenerId> {
        [table.listener.clone()]
    }
}

/// The TLS hosts whose connections are proxied as TCP.
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
}

/// Hosts whose connections are proxied as TCP, by their listener.
pub struct TcpHostsByListener;

impl Index for TcpHostsByListener {
    type Of = TcpHosts;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys((listener, _): &HostKey, _: &TcpProxy) -> impl IntoIterator<Item = ListenerId> {
        [listener.clone()]
    }
}

/// Where each virtual host is looked up. Under TLS, a host without a certificate of its own is reached through that of
/// the wildcard above it, if that may be used for it: see [`assemble::wildcard_certificate`]. A host without either is not looked up
/// at all, nor is one whose connections are proxied as TCP.
pub struct RouteTableOf;

impl Table for RouteTableOf {
    type Key = HostKey;
    type Value = RouteTableId;
    const NAME: &'static str = "route tables of hosts";
}

impl Derived for RouteTableOf {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<RouteTableId> {
        let listener = &key.0;
        if *listener == ListenerId::http() {
            return Some(table(listener, None));
        }
        if let Some(own) = reads.get::<TlsHosts>(key) {
            return Some(table(listener, Some(own.mode.http()?)));
        }
        let wildcard = wildcard_certificate::for_host(key, reads)?;
        let mut objects = reads.probe::<TranslationsByHost>(key);
        let joins =
            objects.any(|object| wildcard_certificate::is_usable_from(&wildcard, listener, &object.namespace, reads));
        joins.then(|| table(listener, Some(wildcard.termination)))
    }
}

fn table(listener: &ListenerId, termination: Option<&Termination>) -> RouteTableId {
    RouteTableId { listener: listener.clone(), termination: termination.cloned().map(Arc::new) }
}

/// Virtual hosts by the objects that lost a route there, or are not served there at all.
pub struct RouteLosers;

impl Index for RouteLosers {
    type Of = VirtualHosts;
    type Key = ObjectRef;
    const NAME: &'static str = "by loser";

    fn keys(_: &HostKey, host: &virtual_host::Assembled) -> impl IntoIterator<Item = ObjectRef> {
        host.lost.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

/// TLS hosts by the objects that asked for something else there.
pub struct TlsLosers;

impl Index for TlsLosers {
    type Of = TlsHosts;
    type Key = ObjectRef;
    const NAME: &'static str = "by loser";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = ObjectRef> {
        host.lost.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(TlsHosts(settings.certificates)).per::<TlsByHost>();
    pipeline.derived(PlaintextWildcards).per::<TranslationsWithWildcards>();
    pipeline.derived(CatchAll).always(());
    pipeline.derived(CatchAllRoutes).always(());
    pipeline.derived(VirtualHosts).per::<TranslationsByHost>().per::<TlsByHost>();
    pipeline.derived(TcpHosts).each::<TlsHosts>();
    pipeline.derived(Groups).per::<HostsByChain>();
    pipeline.index::<TcpHostsByListener>().index::<GroupsByListener>();
    on_demand::declare(pipeline);
    pipeline.derived(Chains).per::<HostsByChain>();
    pipeline.derived(RouteTableOf).each::<VirtualHosts>();
    pipeline.index::<RouteLosers>().index::<TlsLosers>();
}
