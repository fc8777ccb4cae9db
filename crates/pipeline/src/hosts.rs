//! Hosts: what all translations ask for together, and where each virtual host is looked up.

use crate::{
    large,
    settings::{Certificates, Settings},
    translations::{HostKey, TlsByHost, TranslationRow, Translations, TranslationsByHost},
    wildcard_certificate::WildcardCertificate,
};
use assemble::{tls, virtual_host};
use engine::{Derived, Index, Reads, Table};
use kinds::ObjectKey;
use model::{
    Host, ListenerId, ObjectRef, Route, RouteTableId, SecretId,
    tls::{Chain, TcpProxy, Termination, TlsMode},
};
use std::sync::Arc;

/// Translations with a wildcard host on the plaintext port.
pub struct TranslationsWithWildcards;

impl Index for TranslationsWithWildcards {
    type Of = Translations;
    type Key = ();
    const NAME: &'static str = "with plaintext wildcard hosts";

    fn keys(_: &ObjectKey, translation: &TranslationRow) -> impl IntoIterator<Item = ()> {
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

/// The catch-all of the plaintext port: the routes for every host that nobody names. It is assembled once for all wildcard
/// hosts that repeat its routes.
pub struct CatchAll;

impl Table for CatchAll {
    type Key = ();
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "catch-all";
}

impl Derived for CatchAll {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let key = (ListenerId::http(), Host::Any);
        let translations: Vec<_> = reads.probe::<TranslationsByHost>(&key).collect();
        let mut assembled = virtual_host::assemble(&key.1, routes(&key, translations, reads), &[]);
        if reads.get::<PlaintextWildcards>(&()).is_some() {
            assembled.lost.extend(virtual_host::too_many_deeper(&assembled.host.routes));
        }
        Some(assembled)
    }

    fn is_large(&self, (): &(), reads: &mut Reads<'_>) -> bool {
        has_many_routes(&(ListenerId::http(), Host::Any), reads)
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
        Some(virtual_host::catch_all(&reads.get::<CatchAll>(&())?.host.routes))
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
        let wildcard = WildcardCertificate::for_host(key, reads);
        let (translations, refused): (Vec<_>, Vec<_>) =
            reads.probe::<TranslationsByHost>(key).partition(|translation| {
                wildcard.as_ref().is_none_or(|wildcard| wildcard.is_usable_from(&translation.namespace, reads))
            });
        let catch_all = match host {
            Host::Any if *listener == ListenerId::http() => {
                return reads.get::<CatchAll>(&()).map(|catch_all| virtual_host::Assembled::clone(catch_all));
            }
            Host::Wildcard(_) if *listener == ListenerId::http() => reads.get::<CatchAllRoutes>(&()),
            _ => None,
        };
        let catch_all = catch_all.map_or(&[][..], |catch_all| catch_all.as_slice());
        let mut assembled = virtual_host::assemble(host, routes(key, translations, reads), catch_all);
        for name in refused {
            if let (Some(wildcard), Some(translation)) = (&wildcard, reads.get::<Translations>(name)) {
                let routes = routes(key, vec![name], reads);
                assembled.lost.push(wildcard.refused(host, &translation.subject, &routes));
            }
        }
        assembled.lost.sort();
        Some(assembled)
    }

    fn is_large(&self, key: &HostKey, reads: &mut Reads<'_>) -> bool {
        has_many_routes(key, reads)
    }
}

/// Whether a host has so many routes that it takes long to assemble them.
fn has_many_routes(key: &HostKey, reads: &mut Reads<'_>) -> bool {
    let mut count = 0;
    reads.probe::<TranslationsByHost>(key).any(|name| {
        count += reads.get::<Translations>(name).map_or(0, |found| found.routes_of(&key.0, &key.1).len());
        count > large::ROUTES
    })
}

/// The routes of these translations for a host.
fn routes<'r>(key: &HostKey, translations: Vec<&'r ObjectKey>, reads: &mut Reads<'r>) -> Vec<Arc<Route>> {
    let translations = translations.into_iter().filter_map(|name| reads.get::<Translations>(name));
    let pieces = translations.flat_map(|translation| translation.routes_of(&key.0, &key.1));
    pieces.map(|piece| piece.route.clone()).collect()
}

/// The TLS hosts of all listeners. Where proxies ask for certificates by name, these do not keep chains apart.
pub struct TlsHosts(Certificates);

impl Table for TlsHosts {
    type Key = HostKey;
    type Value = tls::Assembled;
    const NAME: &'static str = "TLS hosts";
}

impl Derived for TlsHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<tls::Assembled> {
        let translations: Vec<_> = reads.probe::<TlsByHost>(key).collect();
        let translations = translations.into_iter().filter_map(|name| reads.get::<Translations>(name));
        let pieces = translations.flat_map(|translation| translation.tls_of(&key.0, &key.1));
        let mut host = tls::assemble(&key.1, pieces.collect())?;
        // The fallback certificate is for clients that name no host.
        if self.0 == Certificates::OnDemand
            && key.0 != ListenerId::fallback()
            && let TlsMode::Http(termination) = &mut host.mode
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
    type Key = SecretId;
    const NAME: &'static str = "by certificate";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = SecretId> {
        host.certificate.clone()
    }
}

/// TLS hosts by the certificate of their chain. On demand, a chain has none.
pub struct HostsByChainCertificate;

impl Index for HostsByChainCertificate {
    type Of = TlsHosts;
    type Key = SecretId;
    const NAME: &'static str = "by certificate of the chain";

    fn keys(_: &HostKey, host: &tls::Assembled) -> impl IntoIterator<Item = SecretId> {
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

/// The chains of TLS listeners. The only chain of a listener lists no hosts if it shows certificates on demand, so that a
/// host that comes or goes is none of the listener's business.
pub struct Chains;

impl Table for Chains {
    type Key = RouteTableId;
    type Value = Chain;
    const NAME: &'static str = "chains";
}

impl Derived for Chains {
    fn compute(&self, key: &RouteTableId, reads: &mut Reads<'_>) -> Option<Chain> {
        let termination = key.termination.as_deref()?;
        if termination.is_on_demand()
            && reads.probe::<GroupsByListener>(&key.listener).len() == 1
            && reads.probe::<GroupsByListener>(&ListenerId::fallback()).len() == 0
            && reads.probe::<TcpHostsByListener>(&key.listener).len() == 0
        {
            return Some(tls::chain(termination, Vec::new()));
        }
        let hosts = reads.probe::<HostsByChain>(key).map(|(_, host)| host.clone());
        Some(tls::chain(termination, hosts.collect()))
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

/// Where each virtual host is looked up. Under TLS, a host without a certificate of its own is reached through that of
/// the wildcard above it, if that may be used for it: see [`WildcardCertificate`]. A host without either is not looked up at all, nor is one
/// whose connections are passed on.
pub struct RouteTableOf;

impl Table for RouteTableOf {
    type Key = HostKey;
    type Value = RouteTableId;
    const NAME: &'static str = "places of hosts";
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
        let wildcard = WildcardCertificate::for_host(key, reads)?;
        let mut translations = reads.probe::<TranslationsByHost>(key);
        let joins = translations.any(|translation| wildcard.is_usable_from(&translation.namespace, reads));
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
    pipeline.derived(Chains).per::<HostsByChain>();
    pipeline.derived(RouteTableOf).each::<VirtualHosts>();
    pipeline.index::<RouteLosers>().index::<TlsLosers>();
}
