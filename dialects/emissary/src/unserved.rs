//! Kinds that are read and not served yet: what is not served is told on the object.

use model::{Code, ObjectRef, Translation, Verdict};

/// What is told about an object of a kind that is not served.
pub fn translate(subject: &ObjectRef) -> Translation {
    let why = "objects of this kind are not served yet; it has no effect";
    let verdict = Verdict::new(Code::EmissaryNotServed, subject.at("spec"), why);
    Translation { verdicts: vec![verdict], ..Translation::empty(subject.clone()) }
}
