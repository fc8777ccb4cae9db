//! Any script of edits, in any slices, ends in the tables of a build from nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::{Derived, Engine, Finished, Offloading, Pipeline, Reads, Table};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::toy::{
    self, Assignments, Balancers, Callers, Clusters, Crowds, Directory, EndpointSets, Hosts, Notes, Object, Objects,
    Pages, Ports, Services, Settings, Slices, Translations,
};

#[derive(Clone, Debug)]
enum Op {
    Object(u32, Option<Object>),
    Service(u32, Option<u16>),
    Slice((u32, u8), Option<Vec<u8>>),
    Settings(u8),
    /// This many rows.
    Run(u8),
    DrainLane,
    TakeChanges,
    Settle,
    /// Large rows are computed by jobs from now on, or no longer.
    Offload(Offloading),
    /// A job is run.
    Job,
    /// What came of the first or the last job is put in place.
    Finish(bool),
    /// So many partitions are reached at once from now on.
    Limit(Option<usize>),
    /// So many of those that wait are admitted.
    Admit(usize),
    Check,
}

fn object() -> impl Strategy<Value = Object> {
    let parts = (any::<bool>(), 0..3u8, vec(0..6u32, 0..3), vec(0..8u32, 0..3), option::of(0..5u32));
    parts.prop_map(|(root, age, hosts, includes, service)| Object { root, age, hosts, includes, service })
}

fn op() -> impl Strategy<Value = Op> {
    let port = prop_oneof![3 => 80..83u16, 2 => Just(13u16), 2 => Just(toy::PENDING)];
    prop_oneof![
        8 => (0..8u32, option::weighted(0.8, object())).prop_map(|(key, value)| Op::Object(key, value)),
        4 => (0..5u32, option::weighted(0.7, port)).prop_map(|(key, value)| Op::Service(key, value)),
        4 => ((0..5u32, 0..3u8), option::weighted(0.7, vec(0..4u8, 0..3))).prop_map(|(key, value)| Op::Slice(key, value)),
        1 => (0..3u8).prop_map(Op::Settings),
        8 => (1..6u8).prop_map(Op::Run),
        4 => Just(Op::DrainLane),
        4 => Just(Op::TakeChanges),
        3 => Just(Op::Settle),
        3 => prop_oneof![Just(Offloading::Off), Just(Offloading::Large), Just(Offloading::All)].prop_map(Op::Offload),
        6 => Just(Op::Job),
        6 => any::<bool>().prop_map(Op::Finish),
        3 => option::weighted(0.8, 0..3usize).prop_map(Op::Limit),
        6 => (1..3usize).prop_map(Op::Admit),
        1 => Just(Op::Check),
    ]
}

/// Claims come and go between slices, the lane is drained in the middle of batches, and hardly a batch gets to its end.
/// Few keys, so that what meets in the lane is about the same ones.
fn lane_op() -> impl Strategy<Value = Op> {
    let object = option::weighted(0.6, (0..3u32).prop_map(toy::plain));
    prop_oneof![
        6 => (0..3u32, object).prop_map(|(key, value)| Op::Object(key, value)),
        6 => (0..3u32, option::weighted(0.5, 80..82u16)).prop_map(|(key, value)| Op::Service(key, value)),
        2 => ((0..3u32, 0..2u8), option::weighted(0.5, vec(0..4u8, 0..3))).prop_map(|(key, value)| Op::Slice(key, value)),
        8 => (1..5u8).prop_map(Op::Run),
        8 => Just(Op::DrainLane),
        2 => Just(Op::TakeChanges),
        1 => Just(Op::Settle),
        1 => prop_oneof![Just(Offloading::Off), Just(Offloading::Large), Just(Offloading::All)].prop_map(Op::Offload),
        4 => Just(Op::Job),
        4 => any::<bool>().prop_map(Op::Finish),
        2 => option::weighted(0.8, 0..3usize).prop_map(Op::Limit),
        4 => (1..3usize).prop_map(Op::Admit),
    ]
}

/// The engine under test, the inputs as plain maps, and what an outside that hears only of changes knows.
struct World {
    engine: Engine,
    objects: BTreeMap<u32, Object>,
    services: BTreeMap<u32, u16>,
    slices: BTreeMap<(u32, u8), Vec<u8>>,
    settings: Option<u8>,
    sets: BTreeMap<u32, Vec<u8>>,
    assignments: BTreeMap<u32, (u16, usize)>,
    pages: BTreeMap<u32, String>,
    finished: VecDeque<Finished>,
}

/// Puts changes on top of what is known; each must be news.
fn apply_changes<T: Table>(engine: &mut Engine, known: &mut BTreeMap<T::Key, T::Value>)
where
    T::Value: Clone,
{
    let settled = engine.is_settled();
    let changes = engine.changes::<T>();
    assert!(settled || changes.gone.is_empty(), "{}: a removal in the middle of a batch", T::NAME);
    for (key, value) in changes.set {
        let before = known.insert(key.clone(), T::Value::clone(&value));
        assert!(before.is_none_or(|before| before != *value), "{} {key:?}: no news", T::NAME);
    }
    for key in changes.gone {
        assert!(known.remove(&key).is_some(), "{} {key:?}: gone, but was never there", T::NAME);
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => _ = map.insert(key, value),
        None => _ = map.remove(&key),
    }
}

impl World {
    fn new() -> Self {
        Self {
            engine: toy::engine(),
            objects: BTreeMap::new(),
            services: BTreeMap::new(),
            slices: BTreeMap::new(),
            settings: None,
            sets: BTreeMap::new(),
            assignments: BTreeMap::new(),
            pages: BTreeMap::new(),
            finished: VecDeque::new(),
        }
    }

    /// The world after a script.
    fn after(script: Vec<Op>) -> Self {
        let mut world = Self::new();
        script.into_iter().for_each(|op| world.apply(op));
        world
    }

    fn apply(&mut self, op: Op) {
        let engine = &mut self.engine;
        match op {
            Op::Object(key, value) => {
                match value.clone() {
                    Some(value) => engine.set::<Objects>(&key, value),
                    None => engine.remove::<Objects>(&key),
                };
                put(&mut self.objects, key, value);
            }
            Op::Service(key, value) => {
                match value {
                    Some(value) => engine.set::<Services>(&key, value),
                    None => engine.remove::<Services>(&key),
                };
                put(&mut self.services, key, value);
            }
            Op::Slice(key, value) => {
                match value.clone() {
                    Some(value) => engine.set::<Slices>(&key, value),
                    None => engine.remove::<Slices>(&key),
                };
                put(&mut self.slices, key, value);
            }
            Op::Settings(value) => {
                engine.set::<Settings>(&(), value);
                self.settings = Some(value);
            }
            Op::Run(rows) => {
                for _ in 0..rows {
                    let _ = engine.run(Duration::ZERO);
                }
            }
            Op::DrainLane => {
                let _ = engine.drain_lane(Duration::MAX);
                self.check_lane();
            }
            Op::TakeChanges => self.take_changes(),
            Op::Settle => engine.settle(),
            Op::Offload(which) => engine.set_offloading(which),
            Op::Job => {
                if let Some(job) = engine.next_job() {
                    engine.share_tables();
                    self.finished.push_back(job.run());
                    engine.reclaim_tables();
                }
            }
            Op::Finish(first) => {
                let finished = if first { self.finished.pop_front() } else { self.finished.pop_back() };
                finished.into_iter().for_each(|finished| drop(engine.finish(finished)));
            }
            Op::Limit(limit) => engine.limit_fan_out(limit),
            Op::Admit(partitions) => engine.admit(partitions),
            Op::Check => {
                // A job has a place in the books until it is done.
                self.finished.drain(..).for_each(|finished| drop(engine.finish(finished)));
                assert_eq!(engine.self_check(), Ok(()));
            }
        }
    }

    fn take_changes(&mut self) {
        apply_changes::<EndpointSets>(&mut self.engine, &mut self.sets);
        apply_changes::<Assignments>(&mut self.engine, &mut self.assignments);
        apply_changes::<Pages>(&mut self.engine, &mut self.pages);
    }

    /// A drained lane is up to date with its inputs, wherever the batch is, except for rows that are left to jobs.
    fn check_lane(&self) {
        for (key, set) in self.engine.rows::<EndpointSets>() {
            if self.engine.is_offloaded::<EndpointSets>(key) {
                continue;
            }
            let slices = self.slices.range((*key, 0)..=(*key, u8::MAX)).flat_map(|(_, slice)| slice.clone());
            assert_eq!(**set, slices.collect::<Vec<_>>(), "endpoint set {key}");
        }
        for (key, port) in self.engine.rows::<Ports>() {
            if self.engine.is_offloaded::<Ports>(key) {
                continue;
            }
            assert_eq!(Some(&**port), self.services.get(key), "port {key}");
        }
        for key in (0..8).filter(|key| !self.engine.is_offloaded::<Assignments>(key)) {
            let (port, set) = (self.engine.get::<Ports>(&key), self.engine.get::<EndpointSets>(&key));
            let expected = port.zip(set).map(|(port, set)| (**port, set.len()));
            assert_eq!(self.engine.get::<Assignments>(&key).map(|it| **it), expected, "assignment {key}");
        }
    }

    fn check_end(&mut self) {
        self.engine.settle();
        for finished in std::mem::take(&mut self.finished) {
            drop(self.engine.finish(finished));
        }
        self.engine.settle();
        assert_eq!((self.engine.offloaded(), self.engine.backlog()), (0, 0));
        self.take_changes();
        assert!(self.engine.rows::<EndpointSets>().map(|(key, set)| (*key, set.to_vec())).eq(self.sets.clone()));
        assert!(self.engine.rows::<Assignments>().map(|(key, it)| (*key, **it)).eq(self.assignments.clone()));
        assert!(self.engine.rows::<Pages>().map(|(key, page)| (*key, page.to_string())).eq(self.pages.clone()));
        assert_eq!(self.engine.self_check(), Ok(()));
        let is_pending = self.engine.counters_of::<Translations>().pending > 0;
        if !is_pending && !self.engine.failed_rows().iter().any(|row| row.last_good) {
            self.compare_with_another();
        }
    }

    /// As the oracle does it, but by public means only: an engine that saw the last state and nothing else.
    fn compare_with_another(&self) {
        let mut other = toy::engine();
        self.objects.iter().rev().for_each(|(key, value)| _ = other.set::<Objects>(key, value.clone()));
        self.services.iter().rev().for_each(|(key, value)| _ = other.set::<Services>(key, *value));
        self.slices.iter().rev().for_each(|(key, value)| _ = other.set::<Slices>(key, value.clone()));
        self.settings.iter().for_each(|value| _ = other.set::<Settings>(&(), *value));
        other.settle();
        assert!(self.engine.rows::<Translations>().eq(other.rows::<Translations>()));
        assert!(self.engine.rows::<Hosts>().eq(other.rows::<Hosts>()));
        assert!(self.engine.rows::<Clusters>().eq(other.rows::<Clusters>()));
        assert!(self.engine.rows::<EndpointSets>().eq(other.rows::<EndpointSets>()));
        assert!(self.engine.rows::<Balancers>().eq(other.rows::<Balancers>()));
        assert!(self.engine.rows::<Ports>().eq(other.rows::<Ports>()));
        assert!(self.engine.rows::<Assignments>().eq(other.rows::<Assignments>()));
        assert!(self.engine.rows::<Crowds>().eq(other.rows::<Crowds>()));
        assert!(self.engine.rows::<Callers>().eq(other.rows::<Callers>()));
        assert!(self.engine.rows::<Notes>().eq(other.rows::<Notes>()));
        assert!(self.engine.rows::<Pages>().eq(other.rows::<Pages>()));
        assert!(self.engine.rows::<Directory>().eq(other.rows::<Directory>()));
        assert_eq!(self.engine.failed_rows(), other.failed_rows());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_ends_as_a_build_from_nothing(script in vec(op(), 1..80)) {
        World::after(script).check_end();
    }

    #[test]
    fn the_lane_is_up_to_date_wherever_a_batch_is(script in vec(lane_op(), 1..160)) {
        World::after(script).check_end();
    }

    /// Without a settling that recalls them: jobs and admissions alone bring rows to where a build from nothing has them.
    #[test]
    fn jobs_and_parts_end_as_a_build_from_nothing(script in vec(op(), 1..80), all in any::<bool>(), limit in 0..3usize) {
        let mut world = World::after(script);
        world.engine.set_offloading(if all { Offloading::All } else { Offloading::Large });
        world.engine.limit_fan_out(Some(limit));
        for finished in std::mem::take(&mut world.finished) {
            drop(world.engine.finish(finished));
        }
        loop {
            let _ = world.engine.run(Duration::MAX);
            if world.engine.backlog() > 0 {
                world.engine.admit(1);
                continue;
            }
            let Some(job) = world.engine.next_job() else { break };
            world.engine.share_tables();
            let finished = job.run();
            world.engine.reclaim_tables();
            drop(world.engine.finish(finished));
        }
        prop_assert_eq!((world.engine.is_settled(), world.engine.offloaded()), (true, 0));
        world.check_end();
    }
}

#[test]
fn a_computation_that_is_not_pure_is_named() {
    /// Answers something else each time.
    #[derive(Default)]
    struct Fickle(AtomicU32);
    impl Table for Fickle {
        type Key = u32;
        type Value = u32;
        const NAME: &'static str = "fickle";
    }
    impl Derived for Fickle {
        fn compute(&self, _: &u32, _: &mut Reads<'_>) -> Option<u32> {
            Some(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(Fickle::default()).each::<Objects>();
    let mut engine = pipeline.build();
    engine.set::<Objects>(&5, Object::default());
    let divergence = engine.self_check().unwrap_err();
    assert_eq!(divergence.to_string(), "table fickle, row 5: the value is not the one a fresh build gives");
}
