//! Hosts that are parts of others (see [`assemble::conditional_host`]): what each has, and which virtual hosts have them.
//!
//! In: translations. Out: a row of routes for each such host, which the virtual hosts around it put before their own. An edit costs its row
//! and these virtual hosts, of which there is one for each label at most.

use crate::{
    losers::Losers,
    shared_routes::SelectedRoutes,
    translations::{HostKey, TranslationRow, Translations},
};
use assemble::{conditional_host, shared_routes::Selection, virtual_host};
use engine::{Derived, Index, PartIndex, Reads, Table};
use model::{ListenerId, ObjectRef, route::HostCondition, shared_routes::ConditionalHost};
use std::collections::BTreeSet;

/// A host that is a part of others: its listener and its condition.
pub type ConditionalKey = (ListenerId, HostCondition);

/// Translations by their hosts that are parts of others.
pub struct ConditionalHostsByKey;

impl Index for ConditionalHostsByKey {
    type Of = Translations;
    type Key = ConditionalKey;
    const NAME: &'static str = "by conditional host";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ConditionalKey> {
        translation.conditional.iter().map(key).collect::<BTreeSet<_>>()
    }
}

fn key(host: &ConditionalHost) -> ConditionalKey {
    (host.listener.clone(), host.condition.clone())
}

impl PartIndex for ConditionalHostsByKey {
    type Part<'v> = Vec<&'v ConditionalHost>;

    fn part<'v>(of: &ConditionalKey, translation: &'v TranslationRow) -> Vec<&'v ConditionalHost> {
        translation.conditional.iter().filter(|host| (&host.listener, &host.condition) == (&of.0, &of.1)).collect()
    }
}

/// Translations by the virtual hosts that may have their hosts that are parts of others, whatever those have.
pub struct ConditionalHostsWithin;

impl Index for ConditionalHostsWithin {
    type Of = Translations;
    type Key = HostKey;
    const NAME: &'static str = "by virtual host around a conditional host";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        let around = |host: &ConditionalHost| {
            host.virtual_hosts().map(|around| (host.listener.clone(), around)).collect::<Vec<_>>()
        };
        translation.conditional.iter().flat_map(around).collect::<BTreeSet<_>>()
    }
}

/// A host that is a part of others, and what its requests get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalRow {
    /// The host.
    pub host: ConditionalHost,
    /// Its routes, and who lost on the way.
    pub assembled: virtual_host::Assembled,
}

/// Hosts that are parts of others. Of two objects that ask for the same one, the one that takes precedence has it.
pub struct ConditionalHosts;

impl Table for ConditionalHosts {
    type Key = ConditionalKey;
    type Value = ConditionalRow;
    const NAME: &'static str = "conditional hosts";
}

impl Derived for ConditionalHosts {
    fn compute(&self, key: &ConditionalKey, reads: &mut Reads<'_>) -> Option<ConditionalRow> {
        let hosts = reads.parts::<ConditionalHostsByKey>(key).into_iter().flat_map(|(_, hosts)| hosts);
        let host = hosts.min_by(|a, b| (&a.precedence, &a.origin).cmp(&(&b.precedence, &b.origin)))?;
        let selected = host.selector.as_ref().map(|selector| {
            let selections: Vec<_> = Selection::of(selector).collect();
            let selected = selections.iter().filter_map(|selection| reads.get::<SelectedRoutes>(selection));
            selected.map(|selected| selected.routes.as_slice()).collect::<Vec<_>>()
        });
        Some(ConditionalRow { host: host.clone(), assembled: conditional_host::assemble(host, selected) })
    }
}

/// Hosts that are parts of others, by the virtual hosts that may have them.
pub struct ConditionalHostsByHost;

impl Index for ConditionalHostsByHost {
    type Of = ConditionalHosts;
    type Key = HostKey;
    const NAME: &'static str = "by virtual host";

    fn keys((listener, _): &ConditionalKey, row: &ConditionalRow) -> impl IntoIterator<Item = HostKey> {
        row.host.virtual_hosts().map(|host| (listener.clone(), host)).collect::<Vec<_>>()
    }
}

/// Puts the hosts that are parts of a virtual host before its own routes.
pub(super) fn insert(key: &HostKey, around: &mut virtual_host::Assembled, reads: &mut Reads<'_>) {
    let keys: Vec<_> = reads.probe::<ConditionalHostsByHost>(key).collect();
    let rows = keys.into_iter().filter_map(|key| reads.get::<ConditionalHosts>(key));
    conditional_host::insert(rows.map(|row| (&row.host, &row.assembled)).collect(), around);
}

/// Declares the tables.
pub(super) fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<ConditionalHostsByKey>();
    pipeline.derived(ConditionalHosts).per::<ConditionalHostsByKey>();
    pipeline.index::<ConditionalHostsByHost>();
    pipeline.parts::<Losers<ConditionalHosts>>();
}
