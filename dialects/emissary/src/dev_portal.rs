//! DevPortal: it has no effect in Emissary either, and whoever has one is told.

use kinds::{emissary::DevPortal, kind};
use model::{Code, ObjectRef, Translation, Verdict};

/// What a DevPortal asks for: nothing that is served.
pub fn translate(portal: &DevPortal) -> Translation {
    let subject = ObjectRef::new(kind::DEV_PORTAL, portal.meta.namespace.clone(), portal.meta.name.clone());
    let verdict = Verdict::new(Code::EmissaryNoEffect, subject.at("spec"), "Sesame has no developer portal");
    Translation { verdicts: vec![verdict], ..Translation::empty(subject) }
}
