//! Routes that many hosts share: what each selection of hosts gets (see [`assemble::shared_routes`]).
//!
//! In: the shared routes and the selectors of translations. Out: a row for each selection that hosts have in common, which the
//! virtual hosts read. A shared route that comes or goes is found by the selections that it is for, so it costs their rows and the
//! hosts that have them.

#[cfg(test)]
mod tests;

use crate::{
    hosts::equal::EqualHostsBySelection,
    losers::Losers,
    translations::{TranslationRow, Translations},
};
use assemble::{
    conditional_host,
    shared_routes::{self, Hosts, Selected, Selection, SharedKey},
};
use engine::{Derived, Index, PartIndex, Reads, Table};
use model::{
    ObjectRef,
    route::HostCondition,
    shared_routes::{Labels, SharedRoutes},
};
use std::collections::BTreeSet;

/// Translations by what their shared routes are found by.
pub struct SharedRoutesByKey;

impl Index for SharedRoutesByKey {
    type Of = Translations;
    type Key = SharedKey;
    const NAME: &'static str = "by shared routes";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = SharedKey> {
        translation.shared.iter().flat_map(shared_routes::keys).collect::<Vec<_>>()
    }
}

impl PartIndex for SharedRoutesByKey {
    type Part<'v> = Vec<&'v SharedRoutes>;

    fn part<'v>(key: &SharedKey, translation: &'v TranslationRow) -> Vec<&'v SharedRoutes> {
        translation.shared.iter().filter(|shared| shared_routes::keys(shared).contains(key)).collect()
    }
}

/// Translations by what their hosts select.
pub struct SelectorsBySelection;

impl Index for SelectorsBySelection {
    type Of = Translations;
    type Key = Selection;
    const NAME: &'static str = "by selection";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = Selection> {
        translation.all_selectors().flat_map(|(selector, _)| Selection::of(selector)).collect::<Vec<_>>()
    }
}

/// How many hosts of a translation have a selection.
impl PartIndex for SelectorsBySelection {
    type Part<'v> = usize;

    fn part(selection: &Selection, translation: &TranslationRow) -> usize {
        let selectors = translation.all_selectors();
        selectors.filter(|(selector, _)| Selection::of(selector).any(|it| it == *selection)).count()
    }
}

/// Translations by what their hosts look for shared routes with.
pub struct SelectorsByKey;

impl Index for SelectorsByKey {
    type Of = Translations;
    type Key = SharedKey;
    const NAME: &'static str = "by key of selections";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = SharedKey> {
        let selections = translation.all_selectors().flat_map(|(selector, _)| Selection::of(selector));
        selections.map(|selection| selection.key()).collect::<BTreeSet<_>>()
    }
}

/// What hosts ask of shared routes: the labels that they must have, and the condition of a host that is a part of another.
pub type SelectionCriteria = (Option<Labels>, Option<HostCondition>);

/// What the hosts of a translation ask for.
impl PartIndex for SelectorsByKey {
    type Part<'v> = BTreeSet<SelectionCriteria>;

    fn part(key: &SharedKey, translation: &TranslationRow) -> BTreeSet<SelectionCriteria> {
        let asked = translation.all_selectors().flat_map(|(selector, condition)| {
            Selection::of(selector).map(move |selection| (selection, condition.cloned()))
        });
        let asked = asked.filter(|(selection, _)| selection.key() == *key);
        asked.map(|(selection, condition)| (selection.labels, condition)).collect()
    }
}

/// What hosts ask for where they look for shared routes. Another host that asks for the same changes nothing, so it wakes
/// none of the objects that are to be told whether anybody takes their routes.
pub struct LabelsAskedFor;

impl Table for LabelsAskedFor {
    type Key = SharedKey;
    type Value = BTreeSet<SelectionCriteria>;
    const NAME: &'static str = "labels of shared routes asked for";
}

impl Derived for LabelsAskedFor {
    fn compute(&self, key: &SharedKey, reads: &mut Reads<'_>) -> Option<BTreeSet<SelectionCriteria>> {
        Some(reads.parts::<SelectorsByKey>(key).into_iter().flat_map(|(_, asked)| asked).collect())
    }
}

/// Whether some host takes shared routes.
pub fn is_selected(shared: &SharedRoutes, reads: &mut Reads<'_>) -> bool {
    shared_routes::keys(shared).iter().any(|key| {
        reads.get::<LabelsAskedFor>(key).is_some_and(|asked| {
            asked.iter().any(|(labels, condition)| {
                let overlaps = |condition| shared.routes.iter().any(|it| conditional_host::overlaps(it, condition));
                labels.as_ref().is_none_or(|labels| shared.labels.contains(labels))
                    && condition.as_ref().is_none_or(overlaps)
            })
        })
    })
}

/// The shared routes of each selection.
pub struct SelectedRoutes;

impl Table for SelectedRoutes {
    type Key = Selection;
    type Value = Selected;
    const NAME: &'static str = "selected routes";
}

impl Derived for SelectedRoutes {
    fn compute(&self, selection: &Selection, reads: &mut Reads<'_>) -> Option<Selected> {
        let count = reads.parts::<SelectorsBySelection>(selection).into_iter().map(|(_, hosts)| hosts).sum();
        let hosts = Hosts { count, sharing: reads.probe::<EqualHostsBySelection>(selection).len() };
        let shared = reads.parts::<SharedRoutesByKey>(&selection.key());
        shared_routes::select(selection, hosts, shared.into_iter().flat_map(|(_, shared)| shared))
    }
}

/// Declares what is asked for.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<SharedRoutesByKey>().parts::<SelectorsBySelection>().parts::<SelectorsByKey>();
    pipeline.derived(LabelsAskedFor).per::<SelectorsByKey>();
}

/// Declares what is selected, which depends on how many hosts share it.
pub fn declare_selected(pipeline: &mut engine::Pipeline) {
    pipeline.derived(SelectedRoutes).per::<SelectorsBySelection>();
    pipeline.parts::<Losers<SelectedRoutes>>();
}
