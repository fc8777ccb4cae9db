//! What wide hosts give to narrower ones of their listener: the catch-all to wildcard hosts, and routes that are tried behind those of
//! narrower hosts.
//!
//! In: translations. Out: rows of routes that other hosts repeat. How many may be repeated is decided in [`assemble`].

use super::{ListenersWithWildcards, conditional, contribute, has_many_routes};
use crate::{
    isolation,
    ports::ActiveListeners,
    translations::{HostKey, TranslationRow, Translations, TranslationsByHost},
};
use assemble::{
    catch_all,
    virtual_host::{self, Contributions},
    wider_hosts,
};
use engine::{Derived, Index, Reads, Table};
use model::{Host, ListenerId, ObjectRef, PortProtocol, Route};
use std::{collections::BTreeSet, sync::Arc};

/// Translations by the listeners on which they have a wildcard host that leaves deeper names to the catch-all: one whose routes are
/// selected has them itself.
pub struct WildcardsByListener;

impl Index for WildcardsByListener {
    type Of = Translations;
    type Key = ListenerId;
    const NAME: &'static str = "by listener of wildcard hosts";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ListenerId> {
        let hosts = translation.hosts.iter().filter(|(listener, host)| {
            matches!(host, Host::Wildcard(_)) && translation.selectors_of(listener, host).is_empty()
        });
        hosts.map(|(listener, _)| listener.clone()).collect::<BTreeSet<_>>()
    }
}

/// Translations by the listeners on which they have a wildcard host or take every host.
pub struct WideHostsByListener;

impl Index for WideHostsByListener {
    type Of = Translations;
    type Key = ListenerId;
    const NAME: &'static str = "by listener of wide hosts";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ListenerId> {
        listeners_of(translation, |host| !matches!(host, Host::Exact(_)))
    }
}

fn listeners_of(translation: &TranslationRow, fits: impl Fn(&Host) -> bool) -> BTreeSet<ListenerId> {
    translation.hosts.iter().filter(|(_, host)| fits(host)).map(|(listener, _)| listener.clone()).collect()
}

/// The catch-all of a listener: the routes for every host that nobody names. It is assembled once for all wildcard hosts that
/// repeat its routes.
pub struct CatchAll;

impl Table for CatchAll {
    type Key = ListenerId;
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "catch-all";
}

impl Derived for CatchAll {
    fn compute(&self, listener: &ListenerId, reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let key = (listener.clone(), Host::Any);
        let mut contributions = Contributions::new(&Host::Any);
        if isolation::is_own(&key, reads) {
            for (_, contribution) in reads.parts::<TranslationsByHost>(&key) {
                contribute(contribution, &mut contributions, reads);
            }
        }
        let mut assembled = contributions.assemble();
        conditional::insert(&key, &mut assembled, reads);
        if is_plaintext(listener, reads) && reads.get::<ListenersWithWildcards>(listener).is_some() {
            assembled.lost.extend(catch_all::too_long(&assembled.host.routes));
            assembled.lost.sort();
        }
        Some(assembled)
    }

    fn is_large(&self, listener: &ListenerId, reads: &mut Reads<'_>) -> bool {
        has_many_routes(&(listener.clone(), Host::Any), reads)
    }
}

/// What wildcard hosts of a plaintext listener repeat of the catch-all. A table of its own, so that no edit of a catch-all that
/// is too long to be repeated reaches them.
pub struct CatchAllRoutes;

impl Table for CatchAllRoutes {
    type Key = ListenerId;
    type Value = Vec<Arc<Route>>;
    const NAME: &'static str = "catch-all routes of wildcard hosts";
}

impl Derived for CatchAllRoutes {
    fn compute(&self, listener: &ListenerId, reads: &mut Reads<'_>) -> Option<Vec<Arc<Route>>> {
        if !is_plaintext(listener, reads) {
            return None;
        }
        Some(catch_all::repeated(&reads.get::<CatchAll>(listener)?.host.routes))
    }
}

fn is_plaintext(listener: &ListenerId, reads: &mut Reads<'_>) -> bool {
    reads.get::<ActiveListeners>(listener).is_some_and(|listener| listener.protocol == PortProtocol::Http)
}

/// Translations by their wide hosts whose routes are tried behind those of narrower hosts.
pub struct WiderHosts;

impl Index for WiderHosts {
    type Of = Translations;
    type Key = HostKey;
    const NAME: &'static str = "by wider host";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        let wide = translation.routes.iter().filter(|piece| !matches!(piece.host, Host::Exact(_)));
        let wide = wide.filter(|piece| wider_hosts::falls_through(&piece.route));
        wide.map(|piece| (piece.listener.clone(), piece.host.clone())).collect::<BTreeSet<_>>()
    }
}

/// What narrower hosts of a listener repeat of the routes of a wide one.
pub struct WiderRoutes;

impl Table for WiderRoutes {
    type Key = HostKey;
    type Value = wider_hosts::WiderRoutes;
    const NAME: &'static str = "routes of wider hosts";
}

impl Derived for WiderRoutes {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<wider_hosts::WiderRoutes> {
        if !isolation::is_own(key, reads) {
            return None;
        }
        let mut contributions = Contributions::new(&key.1);
        for (_, contribution) in reads.parts::<TranslationsByHost>(key) {
            let routes = contribution.routes.iter().map(|piece| &piece.route);
            contributions.routes(routes.filter(|route| wider_hosts::falls_through(route)).cloned());
        }
        Some(wider_hosts::WiderRoutes::of(&contributions.assemble().host.routes))
    }

    fn is_large(&self, key: &HostKey, reads: &mut Reads<'_>) -> bool {
        has_many_routes(key, reads)
    }
}

/// Wide hosts whose routes narrower hosts repeat, by their listener.
pub struct WiderRoutesByListener;

impl Index for WiderRoutesByListener {
    type Of = WiderRoutes;
    type Key = ListenerId;
    const NAME: &'static str = "by listener";

    fn keys((listener, _): &HostKey, _: &wider_hosts::WiderRoutes) -> impl IntoIterator<Item = ListenerId> {
        [listener.clone()]
    }
}
