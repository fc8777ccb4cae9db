//! Mistakes in a pipeline are loud: they are the program's, and must not end as a failed row.

use engine::{Derived, Index, PartIndex, Pipeline, Reads, Table};

use crate::toy::{Clusters, EndpointSets, Hosts, Object, Objects, Roots, Services, Translations};

/// Reads the table `T`.
struct Reading<T>(std::marker::PhantomData<fn() -> T>);

impl<T: Table<Key = u32>> Table for Reading<T> {
    type Key = u32;
    type Value = bool;
    const NAME: &'static str = "reading";
}

impl<T: Table<Key = u32>> Derived for Reading<T> {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<bool> {
        Some(reads.get::<T>(key).is_some())
    }
}

fn reading<T>() -> Reading<T> {
    Reading(std::marker::PhantomData)
}

/// Objects by their age, with their hosts.
struct ByAge;

impl Index for ByAge {
    type Of = Objects;
    type Key = u8;
    const NAME: &'static str = "by age";

    fn keys(_: &u32, object: &Object) -> impl IntoIterator<Item = u8> {
        [object.age]
    }
}

impl PartIndex for ByAge {
    type Part<'v> = &'v [u32];

    fn part<'v>(_: &u8, object: &'v Object) -> &'v [u32] {
        &object.hosts
    }
}

struct ReadingParts;

impl Table for ReadingParts {
    type Key = u32;
    type Value = usize;
    const NAME: &'static str = "reading parts";
}

impl Derived for ReadingParts {
    fn compute(&self, _: &u32, reads: &mut Reads<'_>) -> Option<usize> {
        Some(reads.parts::<ByAge>(&0).len())
    }
}

fn run(pipeline: Pipeline) {
    let mut engine = pipeline.build();
    engine.set::<Objects>(&1, Object { root: true, ..Object::default() });
    engine.settle();
}

#[test]
#[should_panic(expected = "reading reads translations, which is not declared before it")]
fn reading_a_later_table() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(reading::<Translations>()).each::<Objects>();
    pipeline.derived(Translations).per::<Roots>();
    run(pipeline);
}

#[test]
#[should_panic(expected = "reading reads spec::toy::Hosts, which is not declared")]
fn reading_an_unknown_table() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(reading::<Hosts>()).each::<Objects>();
    run(pipeline);
}

#[test]
#[should_panic(expected = "reading is in the lane and reads translations, which is neither in it nor an input")]
fn reading_out_of_the_lane() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(Translations).per::<Roots>();
    pipeline.derived(reading::<Translations>()).each::<Objects>().lane();
    run(pipeline);
}

#[test]
#[should_panic(expected = "reading parts reads parts of objects, which are not declared")]
fn reading_parts_that_nobody_compares() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.index::<ByAge>();
    pipeline.derived(ReadingParts).each::<Objects>();
    run(pipeline);
}

#[test]
#[should_panic(expected = "table translations is declared twice")]
fn declaring_a_table_twice() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(Translations).per::<Roots>();
    pipeline.derived(Translations).per::<Roots>();
}

#[test]
#[should_panic(expected = "table clusters is not declared yet")]
fn keys_from_a_later_table() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Services>();
    pipeline.derived(EndpointSets).each::<Clusters>();
}

#[test]
#[should_panic(expected = "nothing says which keys these tables have: [\"translations\"]")]
fn a_table_without_keys() {
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(Translations);
    run(pipeline);
}
