//! What the oracles of dialects share: a script of edits, and the comparison of where it ends with a build from nothing.

use kinds::{Object, ObjectRef};
use model::status::StatusFacts;
use pipeline::{Pipeline, Settings};
use proptest::{prop_assert_eq, test_runner::TestCaseError};
use std::{collections::BTreeMap, sync::Arc};

/// What comes of a build: every resource by kind and name, and every status.
type Built = (BTreeMap<(String, String), Vec<u8>>, BTreeMap<ObjectRef, Option<Arc<StatusFacts>>>);

/// Makes the edits batch by batch. After each batch all tables equal a build from nothing, and in the end the order in which objects
/// come makes no difference to what is built of them.
pub fn run<E>(
    batches: &[Vec<E>],
    settings: &Settings,
    change: impl Fn(&E) -> (ObjectRef, Option<Object>),
) -> Result<(), TestCaseError> {
    let mut pipeline = Pipeline::new(settings);
    let mut objects = BTreeMap::new();
    for batch in batches {
        for (key, object) in batch.iter().map(&change) {
            pipeline.put(&key, object.clone());
            match object {
                Some(object) => drop(objects.insert(key, object)),
                None => drop(objects.remove(&key)),
            }
        }
        pipeline.settle();
        prop_assert_eq!(pipeline.self_check(), Ok(()));
    }
    let forwards = built(objects.clone().into_iter(), settings);
    let backwards = built(objects.into_iter().rev(), settings);
    prop_assert_eq!(forwards, backwards);
    Ok(())
}

fn built(objects: impl Iterator<Item = (ObjectRef, Object)>, settings: &Settings) -> Built {
    let mut pipeline = Pipeline::new(settings);
    objects.for_each(|(key, object)| pipeline.put(&key, Some(object)));
    let output = pipeline.settle();
    let upserts = output.xds.upserts.into_iter();
    let resources = upserts.map(|one| ((format!("{:?}", one.kind), one.name.to_string()), one.body.to_vec()));
    (resources.collect(), output.facts.into_iter().collect())
}
