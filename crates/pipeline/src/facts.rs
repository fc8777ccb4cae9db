//! Facts for the status of objects: what translations have decided, completed by what only the tables know.
//!
//! A translation says what is true of its own object. How many others are attached to it, and whether a port is its own, is asked
//! here ([`Dialect::facts`](crate::Dialect::facts)), so that a route that comes or goes computes the facts of its parents and nothing
//! that is sent to proxies. Of other kinds they are those of the translation itself, and no copy.

use crate::{
    dialects::Dialects,
    translations::{TranslationRow, Translations},
};
use engine::{Derived, Index, PartIndex, Reads, Table};
use model::{ObjectRef, status::StatusFacts, translation::Section};
use std::sync::Arc;

/// Translations by what they are attached to.
pub struct AttachedTo;

impl Index for AttachedTo {
    type Of = Translations;
    type Key = Section;
    const NAME: &'static str = "by parent";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = Section> {
        let mut sections = translation.attached.clone();
        sections.sort_unstable();
        sections.dedup();
        sections
    }
}

/// Translations that have decided facts, each by its object: most kinds have none.
pub struct WithFacts;

impl Index for WithFacts {
    type Of = Translations;
    type Key = ObjectRef;
    const NAME: &'static str = "with facts";

    fn keys(object: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ObjectRef> {
        translation.facts.is_some().then(|| object.clone())
    }
}

/// Translations by the objects behind their routes. Of a translation only what it is attached to is read.
pub struct TranslationsByBackend;

impl Index for TranslationsByBackend {
    type Of = Translations;
    type Key = ObjectRef;
    const NAME: &'static str = "by backend object";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ObjectRef> {
        translation.backend_objects.clone()
    }
}

impl PartIndex for TranslationsByBackend {
    type Part<'v> = &'v [Section];

    fn part<'v>(_: &ObjectRef, translation: &'v TranslationRow) -> &'v [Section] {
        &translation.attached
    }
}

/// The facts about each object whose translation has decided any.
pub struct Facts(Dialects);

impl Table for Facts {
    type Key = ObjectRef;
    type Value = Arc<StatusFacts>;
    const NAME: &'static str = "status facts";
}

impl Derived for Facts {
    fn compute(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> Option<Arc<StatusFacts>> {
        let translation = reads.get::<Translations>(object)?;
        if translation.is_pending(object) {
            // What was said before still holds.
            reads.set_pending();
            return None;
        }
        let facts = translation.facts.as_ref()?;
        let dialect = self.0.of(object.kind);
        if dialect.is_some_and(|dialect| dialect.awaits_facts(object, reads)) {
            reads.set_pending();
            return None;
        }
        let completed = dialect.and_then(|dialect| dialect.facts(object, facts, reads));
        Some(completed.map_or_else(|| Arc::clone(facts), Arc::new))
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<AttachedTo>();
    pipeline.parts::<TranslationsByBackend>();
    pipeline.derived(Facts(Dialects::all())).per::<WithFacts>().sums_up().output();
}
