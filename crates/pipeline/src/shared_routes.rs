//! Routes that many hosts share: what each selection of hosts gets (see [`assemble::shared_routes`]).
//!
//! In: the shared routes and the selectors of translations. Out: a row for each selection that hosts have in common, which the
//! virtual hosts read. A shared route that comes or goes is found by the selections that it is for, so it costs their rows and the
//! hosts that have them.

#[cfg(test)]
mod tests;

use crate::{
    losers::Losers,
    translations::{TranslationRow, Translations},
};
use assemble::shared_routes::{self, Selected, Selection, SharedKey};
use engine::{Derived, Index, PartIndex, Reads, Table};
use model::{ObjectRef, shared_routes::SharedRoutes};

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
        translation.selectors.iter().flat_map(Selection::of).collect::<Vec<_>>()
    }
}

/// How many hosts of a translation have a selection.
impl PartIndex for SelectorsBySelection {
    type Part<'v> = usize;

    fn part(selection: &Selection, translation: &TranslationRow) -> usize {
        let has_it =
            |selector: &&model::shared_routes::RouteSelector| Selection::of(selector).any(|it| it == *selection);
        translation.selectors.iter().filter(has_it).count()
    }
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
        let hosts = reads.parts::<SelectorsBySelection>(selection).into_iter().map(|(_, hosts)| hosts).sum();
        let shared = reads.parts::<SharedRoutesByKey>(&selection.key());
        shared_routes::select(selection, hosts, shared.into_iter().flat_map(|(_, shared)| shared))
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.parts::<SharedRoutesByKey>().parts::<SelectorsBySelection>();
    pipeline.derived(SelectedRoutes).per::<SelectorsBySelection>();
    pipeline.parts::<Losers<SelectedRoutes>>();
}
