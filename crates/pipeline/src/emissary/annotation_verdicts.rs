//! Verdicts about the objects in annotations, reported on the annotated object, each with its line in the annotation.

use super::{
    Owner, Owners,
    annotation::{self, AnnotationLines, AnnotationObjects},
};
use crate::verdicts::Verdicts;
use engine::{Derived, Engine, Reads, Table};
use model::{Code, ObjectRef, Verdict, VerdictList};
use std::{collections::BTreeSet, sync::Arc};

/// Where the name of an object stands.
const NAME_FIELD: &str = "metadata.name";

/// All that is reported on an annotated object: about itself, its annotation, and the objects in it.
pub struct AnnotationVerdicts;

impl Table for AnnotationVerdicts {
    type Key = ObjectRef;
    type Value = Vec<Verdict>;
    const NAME: &'static str = "verdicts of objects with annotations";
}

impl Derived for AnnotationVerdicts {
    fn compute(&self, annotated: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<Verdict>> {
        let content = reads.get::<AnnotationObjects>(annotated)?;
        let meta = annotation::meta(annotated, reads)?;
        let mut all = VerdictList::default();
        all.extend(reads.get::<Verdicts>(annotated).into_iter().flat_map(|own| own.iter().cloned()));
        all.extend(content.verdicts.iter().cloned());
        let mut lines = AnnotationLines::of(meta);
        for (key, object) in content.iter() {
            match reads.get::<Owners>(key).map(|owner| &**owner) {
                Some(Owner::Annotation(owner)) if owner == annotated => {
                    let Some(own) = reads.get::<Verdicts>(key).filter(|own| !own.is_empty()) else { continue };
                    let document = lines.document(object.document);
                    for verdict in own.iter() {
                        // What the list has no room for is only counted, and needs no line.
                        if all.has_room(annotated, verdict.severity()) {
                            let line = document.line_of(verdict.origin.field.as_str());
                            all.push(relocated(verdict, annotated, key, line));
                        }
                    }
                }
                Some(Owner::Annotation(owner)) => {
                    let line = lines.document(object.document).line_of(NAME_FIELD);
                    all.push(duplicate(annotated, key, line, owner));
                }
                Some(Owner::ApiServer) => {
                    let line = lines.document(object.document).line_of(NAME_FIELD);
                    all.push(duplicate(annotated, key, line, key));
                }
                Some(Owner::OtherInstance) | None => {}
            }
        }
        Some(all.into_sorted())
    }
}

/// A verdict about an object in an annotation, as it is reported on the annotated object.
fn relocated(verdict: &Verdict, annotated: &ObjectRef, key: &ObjectRef, line: u32) -> Verdict {
    let field = &verdict.origin.field;
    let at = if field.as_str().is_empty() { String::new() } else { format!(" {field}") };
    let why = format!("line {line}: {} {}{at}: {}", key.kind, key.name, verdict.message);
    Verdict { related: verdict.related.clone(), ..Verdict::new(verdict.code, annotation::origin(annotated), why) }
}

fn duplicate(annotated: &ObjectRef, key: &ObjectRef, line: u32, holder: &ObjectRef) -> Verdict {
    let why = match holder == key {
        true => format!("line {line}: {key} is already defined as an object of its own"),
        false => format!("line {line}: {key} is already defined in the annotation of {holder}"),
    };
    let verdict = Verdict::new(Code::EmissaryDuplicate, annotation::origin(annotated), why);
    verdict.related_to(if holder == key { key.at("") } else { annotation::origin(holder) })
}

/// What there is to say now about every object about which something has changed; nothing for those that are not ours any more.
pub fn changes(engine: &mut Engine) -> Vec<(ObjectRef, Option<Arc<Vec<Verdict>>>)> {
    let verdicts = engine.changes::<Verdicts>();
    let annotated = engine.changes::<AnnotationVerdicts>();
    let owners = engine.changes::<Owners>();
    let mut objects: Vec<ObjectRef> = verdicts.set.into_iter().map(|(object, _)| object).collect();
    let gone = verdicts.gone;
    if annotated.set.is_empty() && annotated.gone.is_empty() && owners.set.is_empty() && owners.gone.is_empty() {
        objects.extend(gone);
    } else {
        let mut known: BTreeSet<ObjectRef> = objects.iter().cloned().collect();
        let set = annotated.set.into_iter().map(|(object, _)| object);
        let owned = owners.set.into_iter().map(|(object, _)| object).chain(owners.gone);
        objects.extend(
            gone.into_iter().chain(set).chain(annotated.gone).chain(owned).filter(|one| known.insert(one.clone())),
        );
    }
    objects
        .into_iter()
        .map(|object| {
            let verdicts = verdicts_on(engine, &object);
            (object, verdicts)
        })
        .collect()
}

/// The verdicts that are reported on an object: none on one in an annotation, for they are reported on the annotated object.
fn verdicts_on(engine: &Engine, object: &ObjectRef) -> Option<Arc<Vec<Verdict>>> {
    match engine.get::<Owners>(object).map(|owner| &**owner) {
        Some(Owner::Annotation(_)) => None,
        _ => engine.get::<AnnotationVerdicts>(object).or_else(|| engine.get::<Verdicts>(object)).cloned(),
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(AnnotationVerdicts).each::<AnnotationObjects>().sums_up().output();
}
