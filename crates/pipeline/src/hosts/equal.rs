//! Hosts that have the same routes: all of them selected, and none of their own.
//!
//! In: what objects contribute to exact hosts, and which hosts shared routes name. Out: for each host that has nothing of its own, the
//! selections that its routes follow from; and for each set of selections the routes, assembled once for all hosts that have it in
//! common. A route that comes or goes costs this one row. Which hosts are equal follows from what they select, not from the routes, so
//! that an edit of a route leaves them where they are; a host leaves the others when a route names it.

use crate::{
    isolation,
    ports::ActiveListeners,
    settings::{Packing, Settings},
    shared_routes::{SelectedRoutes, SharedRoutesByKey},
    translations::{HostKey, TranslationRow, Translations, TranslationsByHost},
    wildcard_certificate,
};
use assemble::{
    shared_routes::{Names, Selection},
    virtual_host::{self, Contributions},
};
use engine::{Derived, Index, Reads, Table};
use model::{Host, ObjectRef};
use std::{collections::BTreeSet, sync::Arc};

use super::{TlsHosts, conditional::ConditionalHostsWithin};

/// What the routes of hosts follow from, in order.
pub type Selections = Arc<[Selection]>;

/// Translations by the hosts that take shared routes.
pub struct SelectingHosts;

impl Index for SelectingHosts {
    type Of = Translations;
    type Key = HostKey;
    const NAME: &'static str = "by selecting host";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        let selectors = translation.selectors.iter();
        selectors.map(|selector| (selector.listener.clone(), selector.host.clone())).collect::<BTreeSet<_>>()
    }
}

/// A host that has nothing of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EqualHost {
    /// What its routes follow from.
    pub selections: Selections,
    /// Whether it names a list of routes that it shares with others, where hosts have scopes. One whose certificate is shown on demand
    /// looks at its own server name, so it has a list of its own.
    pub is_sharing: bool,
}

/// The exact hosts that have nothing of their own: no route that names them, no host that is a part of them, and no certificate of
/// another's that some of their routes may not use.
pub struct EqualHosts(Packing);

impl Table for EqualHosts {
    type Key = HostKey;
    type Value = EqualHost;
    const NAME: &'static str = "hosts with selected routes alone";
}

impl Derived for EqualHosts {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<EqualHost> {
        let (listener, host) = key;
        let Host::Exact(_) = host else { return None };
        let active = reads.get::<ActiveListeners>(listener)?;
        if !isolation::is_own(key, reads)
            || wildcard_certificate::for_host(key, active, reads).is_some()
            || reads.probe::<ConditionalHostsWithin>(key).len() > 0
        {
            return None;
        }
        let contributions = reads.parts::<TranslationsByHost>(key);
        if contributions.iter().any(|(_, contribution)| !contribution.routes.is_empty()) {
            return None;
        }
        let own = Names::At(host.clone());
        let mut selections = BTreeSet::new();
        let selectors = contributions.iter().flat_map(|(_, contribution)| contribution.selectors);
        for selection in selectors.flat_map(Selection::of) {
            if selection.names != own {
                selections.insert(selection);
            } else if reads.probe::<SharedRoutesByKey>(&selection.key()).len() > 0 {
                return None;
            }
        }
        let tls = if active.protocol.is_tls() { reads.get::<TlsHosts>(key) } else { None };
        let termination = tls.and_then(|tls| tls.mode.http());
        let is_sharing =
            self.0 == Packing::Scoped && !termination.is_some_and(|termination| termination.is_on_demand());
        let selections: Selections = selections.into_iter().collect();
        (!selections.is_empty()).then_some(EqualHost { selections, is_sharing })
    }
}

/// These hosts by what their routes follow from.
pub struct HostsBySelections;

impl Index for HostsBySelections {
    type Of = EqualHosts;
    type Key = Selections;
    const NAME: &'static str = "by selections";

    fn keys(_: &HostKey, host: &EqualHost) -> impl IntoIterator<Item = Selections> {
        [host.selections.clone()]
    }
}

/// Those of them that share a list of routes, by each selection that it follows from.
pub struct EqualHostsBySelection;

impl Index for EqualHostsBySelection {
    type Of = EqualHosts;
    type Key = Selection;
    const NAME: &'static str = "sharing, by selection";

    fn keys(_: &HostKey, host: &EqualHost) -> impl IntoIterator<Item = Selection> {
        host.selections.iter().filter(|_| host.is_sharing).cloned().collect::<Vec<_>>()
    }
}

/// The routes of equal hosts, as of a host for every name. Shared routes have no local rate limits, whose tokens these hosts would have in
/// common.
pub struct EqualRoutes;

impl Table for EqualRoutes {
    type Key = Selections;
    type Value = virtual_host::Assembled;
    const NAME: &'static str = "routes of equal hosts";
}

impl Derived for EqualRoutes {
    fn compute(&self, selections: &Selections, reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
        let mut contributions = Contributions::new(&Host::Any);
        for selection in selections.iter() {
            if let Some(selected) = reads.get::<SelectedRoutes>(selection) {
                contributions.shared(&selected.routes);
            }
        }
        Some(contributions.assemble())
    }
}

/// A host that has the same routes as others. Where some route lost, each host says so by its own name.
pub(super) fn assembled(key: &HostKey, reads: &mut Reads<'_>) -> Option<virtual_host::Assembled> {
    let selections = &reads.get::<EqualHosts>(key)?.selections;
    Some(reads.get::<EqualRoutes>(selections)?.for_host(&key.1))
}

/// The narrowest wildcard that all hosts with these selections lie below, or every name.
pub(crate) fn below(selections: &[Selection]) -> Host {
    let wildcards = selections.iter().filter_map(|selection| match &selection.names {
        Names::At(Host::Wildcard(name)) => Some(name),
        Names::At(_) | Names::Below(_) | Names::Unnamed => None,
    });
    let narrowest = wildcards.max_by_key(|name| name.as_str().len());
    narrowest.map_or(Host::Any, |name| Host::Wildcard(name.clone()))
}

/// Declares which hosts there are.
pub(super) fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.index::<ConditionalHostsWithin>();
    pipeline.derived(EqualHosts(settings.packing)).per::<SelectingHosts>();
    pipeline.index::<EqualHostsBySelection>();
}

/// Declares their routes.
pub(super) fn declare_routes(pipeline: &mut engine::Pipeline) {
    pipeline.derived(EqualRoutes).per::<HostsBySelections>();
}
