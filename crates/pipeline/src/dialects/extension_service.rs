//! ExtensionService of both groups, wired: its status, and the Secrets that it asks for. What is known about it is in a table of its
//! own ([`crate::extensions`]), for those who use it.

use super::Dialect;
use crate::{
    extensions::{self, KnownExtensions},
    view::TableView,
};
use kinds::{ExtensionService, Kind, Typed};
use model::{ObjectRef, Translation};

/// ExtensionServices.
pub struct ExtensionServiceDialect;

impl Dialect for ExtensionServiceDialect {
    fn translates(&self) -> &'static [Kind] {
        ExtensionService::KINDS
    }

    fn declare(&self, _: &mut engine::Pipeline, _: bool) {}

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let known = view.reads().get::<KnownExtensions>(object)?.clone();
        known.secrets.iter().for_each(|secret| view.want(secret));
        let pending = extensions::is_pending(&known).then(|| object.clone()).into_iter().collect();
        Some(Translation { verdicts: known.verdicts.clone(), pending, ..Translation::empty(object.clone()) })
    }

    fn exceeds(&self, _: &ObjectRef, _: usize, _: &mut TableView<'_, '_>) -> bool {
        false
    }
}
