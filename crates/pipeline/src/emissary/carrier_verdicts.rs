//! What is told about the objects in annotations: on their carriers, each with its line in the annotation.

use super::{
    Owner, Owners,
    annotation::{self, CarriedObject, CarriedObjects},
};
use crate::verdicts::Verdicts;
use engine::{Derived, Engine, Reads, Table};
use kinds::Meta;
use model::{Code, ObjectRef, Verdict, VerdictList};
use std::{collections::BTreeSet, sync::Arc};

/// All that is told on a carrier: about itself, its annotation, and the objects in it.
pub struct CarrierVerdicts;

impl Table for CarrierVerdicts {
    type Key = ObjectRef;
    type Value = Vec<Verdict>;
    const NAME: &'static str = "verdicts of objects with annotations";
}

impl Derived for CarrierVerdicts {
    fn compute(&self, carrier: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<Verdict>> {
        let carried = reads.get::<CarriedObjects>(carrier)?;
        let meta = annotation::meta(carrier, reads)?;
        let mut all = VerdictList::default();
        all.extend(reads.get::<Verdicts>(carrier).into_iter().flat_map(|own| own.iter().cloned()));
        all.extend(carried.verdicts.iter().cloned());
        for (key, object) in carried.iter() {
            match reads.get::<Owners>(key).map(|owner| &**owner) {
                Some(Owner::Carrier(owner)) if owner == carrier => {
                    let told = reads.get::<Verdicts>(key).into_iter().flat_map(|told| told.iter());
                    all.extend(told.map(|verdict| relocated(verdict, carrier, meta, key, object)));
                }
                Some(Owner::Carrier(owner)) => all.push(duplicate(carrier, meta, key, object, owner)),
                Some(Owner::ApiServer) => all.push(duplicate(carrier, meta, key, object, key)),
                Some(Owner::OtherInstance) | None => {}
            }
        }
        Some(all.into_sorted())
    }
}

/// What is told about an object, on its carrier.
fn relocated(verdict: &Verdict, carrier: &ObjectRef, meta: &Meta, key: &ObjectRef, object: &CarriedObject) -> Verdict {
    let field = &verdict.origin.field;
    let line = annotation::line_of(meta, object.document, field.as_str()).unwrap_or_default();
    let at = if field.as_str().is_empty() { String::new() } else { format!(" {field}") };
    let why = format!("line {line}: {} {}{at}: {}", key.kind, key.name, verdict.message);
    Verdict { related: verdict.related.clone(), ..Verdict::new(verdict.code, annotation::origin(carrier), why) }
}

fn duplicate(carrier: &ObjectRef, meta: &Meta, key: &ObjectRef, object: &CarriedObject, holder: &ObjectRef) -> Verdict {
    let line = annotation::line_of(meta, object.document, "metadata.name").unwrap_or_default();
    let why = match holder == key {
        true => format!("line {line}: {key} is already defined as an object of its own"),
        false => format!("line {line}: {key} is already defined in the annotation of {holder}"),
    };
    let verdict = Verdict::new(Code::EmissaryDuplicate, annotation::origin(carrier), why);
    verdict.related_to(if holder == key { key.at("") } else { annotation::origin(holder) })
}

/// What there is to say now about every object about which something has changed; nothing for those that are not ours any more.
pub fn changes(engine: &mut Engine) -> Vec<(ObjectRef, Option<Arc<Vec<Verdict>>>)> {
    let verdicts = engine.changes::<Verdicts>();
    let carriers = engine.changes::<CarrierVerdicts>();
    let owners = engine.changes::<Owners>();
    let mut told: Vec<ObjectRef> = verdicts.set.into_iter().map(|(object, _)| object).collect();
    let gone = verdicts.gone;
    if carriers.set.is_empty() && carriers.gone.is_empty() && owners.set.is_empty() && owners.gone.is_empty() {
        told.extend(gone);
    } else {
        let mut known: BTreeSet<ObjectRef> = told.iter().cloned().collect();
        let set = carriers.set.into_iter().map(|(object, _)| object);
        let owned = owners.set.into_iter().map(|(object, _)| object).chain(owners.gone);
        told.extend(
            gone.into_iter().chain(set).chain(carriers.gone).chain(owned).filter(|one| known.insert(one.clone())),
        );
    }
    told.into_iter()
        .map(|object| {
            let told = verdicts_on(engine, &object);
            (object, told)
        })
        .collect()
}

/// What there is to say on an object: on one in an annotation nothing, for it is said on its carrier.
fn verdicts_on(engine: &Engine, object: &ObjectRef) -> Option<Arc<Vec<Verdict>>> {
    match engine.get::<Owners>(object).map(|owner| &**owner) {
        Some(Owner::Carrier(_)) => None,
        _ => engine.get::<CarrierVerdicts>(object).or_else(|| engine.get::<Verdicts>(object)).cloned(),
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(CarrierVerdicts).each::<CarriedObjects>().sums_up().output();
}
