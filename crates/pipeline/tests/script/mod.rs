//! What the oracles of dialects share: a script of edits, and the comparison of where it ends with a build from nothing.

use kinds::{Object, ObjectRef};
use model::{FleetId, status::StatusFacts};
use pipeline::{Pipeline, Settings};
use proptest::{prop_assert_eq, test_runner::TestCaseError};
use std::{collections::BTreeMap, sync::Arc};

/// What comes of a build: every resource by fleet, kind and name, and every status.
type Built = (BTreeMap<(FleetId, String, String), Vec<u8>>, BTreeMap<ObjectRef, Option<Arc<StatusFacts>>>);

/// Makes the edits batch by batch: an edit is a change of an object, or of another input, which `set` makes. After each batch all
/// tables equal a build from nothing, and in the end the order in which objects come makes no difference to what is built of them.
pub fn run<E>(
    batches: &[Vec<E>],
    settings: &Settings,
    set: impl Fn(&E, &mut Pipeline),
    change: impl Fn(&E) -> Option<(ObjectRef, Option<Object>)>,
) -> Result<(), TestCaseError> {
    let mut pipeline = Pipeline::new(settings);
    let mut objects = BTreeMap::new();
    for batch in batches {
        batch.iter().for_each(|edit| set(edit, &mut pipeline));
        for (key, object) in batch.iter().filter_map(&change) {
            pipeline.put(&key, object.clone());
            match object {
                Some(object) => drop(objects.insert(key, object)),
                None => drop(objects.remove(&key)),
            }
        }
        pipeline.settle();
        prop_assert_eq!(pipeline.self_check(), Ok(()));
    }
    let inputs = |pipeline: &mut Pipeline| batches.iter().flatten().for_each(|edit| set(edit, pipeline));
    let forwards = built(objects.clone().into_iter(), settings, inputs);
    let backwards = built(objects.into_iter().rev(), settings, inputs);
    prop_assert_eq!(forwards, backwards);
    Ok(())
}

fn built(
    objects: impl Iterator<Item = (ObjectRef, Object)>,
    settings: &Settings,
    inputs: impl Fn(&mut Pipeline),
) -> Built {
    let mut pipeline = Pipeline::new(settings);
    inputs(&mut pipeline);
    objects.for_each(|(key, object)| pipeline.put(&key, Some(object)));
    let output = pipeline.settle();
    let fleets = output.fleets.into_iter().map(|(fleet, output)| (fleet, output.xds.upserts));
    let upserts = std::iter::once((FleetId::Shared, output.xds.upserts)).chain(fleets);
    let upserts = upserts.flat_map(|(fleet, upserts)| upserts.into_iter().map(move |one| (fleet.clone(), one)));
    let resources =
        upserts.map(|(fleet, one)| ((fleet, format!("{:?}", one.kind), one.name.to_string()), one.body.to_vec()));
    (resources.collect(), output.facts.into_iter().collect())
}
