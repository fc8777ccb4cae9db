//! Large rows are computed on other threads, and everybody else moves on.

use std::time::Duration;

use engine::{Engine, Finished, Offloading, Progress};

use crate::toy::{self, Directory, EndpointSets, Hosts, Object, Objects, Pages, Services, Slices, Translations, plain};

/// An engine whose translations 3, 6, 9 … and hosts 2, 4, 6 … are large.
fn offloading() -> Engine {
    let mut engine = toy::engine();
    for id in [1, 3] {
        engine.set::<Objects>(&id, plain(id));
    }
    engine.settle();
    engine.changes::<Pages>();
    engine.set_offloading(Offloading::Large);
    engine
}

fn run_job(engine: &mut Engine) -> Finished {
    let job = engine.next_job().expect("a large row waits");
    engine.share_tables();
    let finished = job.run();
    engine.reclaim_tables();
    finished
}

fn ages(engine: &Engine) -> Vec<(u32, u8)> {
    engine.rows::<Translations>().map(|(key, translation)| (*key, translation.age)).collect()
}

#[test]
fn nobody_waits_for_a_large_row() {
    let mut engine = offloading();
    engine.set::<Objects>(&3, Object { age: 7, ..plain(3) });
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    assert!(engine.is_offloaded::<Translations>(&3) && !engine.is_offloaded::<Translations>(&1));
    let finished = run_job(&mut engine);

    // Somebody else's edit, from the input to the output.
    engine.set::<Objects>(&1, Object { age: 8, service: None, ..plain(1) });
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    assert_eq!(engine.changes::<Pages>().set.len(), 1);
    assert_eq!(ages(&engine), [(1, 8), (3, 0)], "the large row has what it had");

    drop(engine.finish(finished));
    assert_eq!(ages(&engine), [(1, 8), (3, 7)]);
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    assert_eq!(engine.counters_of::<Translations>().jobs, 1);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_large_row_of_the_lane_holds_up_neither_the_lane_nor_the_batch() {
    let mut engine = offloading();
    engine.set::<Slices>(&(3, 0), vec![3; 4]);
    engine.settle();
    engine.changes::<EndpointSets>();

    // Everybody's batch has begun when two sets of endpoints change, of which one is large.
    for id in [1, 3] {
        engine.set::<Objects>(&id, Object { age: 1, ..plain(id) });
    }
    assert_eq!(engine.run(Duration::ZERO), Progress::More);
    engine.set::<Slices>(&(1, 0), vec![1]);
    engine.set::<Slices>(&(3, 0), vec![4; 4]);
    assert_eq!(engine.drain_lane(Duration::MAX), Progress::Settled);
    let given = |engine: &mut Engine| {
        let set = engine.changes::<EndpointSets>().set;
        set.into_iter().map(|(key, value)| (key, value.to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(given(&mut engine), [(1, vec![1])]);
    assert!(engine.is_offloaded::<EndpointSets>(&3) && !engine.is_settled());
    assert_eq!(**engine.get::<EndpointSets>(&3).unwrap(), [3; 4], "it has what it had");
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);

    let finished = run_job(&mut engine);
    // It changes again while it is computed: the result is given all the same, and the next one after it.
    engine.set::<Slices>(&(3, 0), vec![5; 4]);
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    drop(engine.finish(finished));
    assert_eq!(given(&mut engine), [(3, vec![4; 4])]);
    let _ = engine.run(Duration::MAX);
    while let Some(job) = engine.next_job() {
        engine.share_tables();
        let finished = job.run();
        engine.reclaim_tables();
        drop(engine.finish(finished));
        let _ = engine.run(Duration::MAX);
    }
    assert_eq!(given(&mut engine), [(3, vec![5; 4])]);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_large_row_of_the_lane_waits_for_one_other_at_most() {
    let mut engine = offloading();
    for id in [3, 6, 9] {
        engine.set::<Objects>(&id, Object { age: 1, ..plain(id) });
        engine.set::<Slices>(&(id, 0), vec![1; 4]);
    }
    engine.settle();
    for id in [3, 6, 9] {
        engine.set::<Objects>(&id, Object { age: 2, ..plain(id) });
    }
    let _ = engine.run(Duration::MAX);
    for id in [3, 6, 9] {
        engine.set::<Slices>(&(id, 0), vec![2; 4]);
    }
    let _ = engine.run(Duration::MAX);
    let order: Vec<_> = std::iter::from_fn(|| Some(engine.next_job()?.table())).collect();
    assert_eq!(
        order,
        ["endpoint sets", "translations", "endpoint sets", "translations", "endpoint sets", "translations"]
    );
}

#[test]
fn who_edits_without_end_sees_every_computation_that_was_begun() {
    let mut engine = offloading();
    engine.set::<Objects>(&3, Object { age: 1, ..plain(3) });
    for age in 2..10 {
        assert_eq!(engine.run(Duration::MAX), Progress::Settled);
        let finished = run_job(&mut engine);
        engine.set::<Objects>(&3, Object { age, ..plain(3) });
        assert_eq!(engine.run(Duration::MAX), Progress::Settled);
        assert!(engine.next_job().is_none(), "a row has one job at a time");
        drop(engine.finish(finished));
        assert_eq!(ages(&engine)[1], (3, age - 1));
    }
    assert_eq!(engine.self_check(), Ok(()));
    assert_eq!(ages(&engine)[1], (3, 9));
}

#[test]
fn a_first_computation_notices_what_changed_meanwhile() {
    let mut engine = offloading();
    // Nothing is recorded of it yet, so nothing can tell it.
    engine.set::<Objects>(&6, Object { hosts: vec![5], service: Some(9), ..plain(6) });
    let _ = engine.run(Duration::MAX);
    let finished = run_job(&mut engine);
    engine.set::<Services>(&9, 80u16);
    let _ = engine.run(Duration::MAX);
    drop(engine.finish(finished));
    assert_eq!(engine.get::<Translations>(&6).unwrap().backends, [(9, None)]);
    let _ = engine.run(Duration::MAX);
    let finished = run_job(&mut engine);
    drop(engine.finish(finished));
    assert_eq!(engine.get::<Translations>(&6).unwrap().backends, [(9, Some(80))]);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn what_goes_while_it_is_computed_stays_away_and_what_comes_back_begins_anew() {
    let mut engine = offloading();
    for comes_back in [false, true] {
        engine.set::<Objects>(&3, Object { age: 1, ..plain(3) });
        let _ = engine.run(Duration::MAX);
        let finished = run_job(&mut engine);
        engine.remove::<Objects>(&3);
        let _ = engine.run(Duration::MAX);
        assert!(engine.get::<Translations>(&3).is_none());
        if comes_back {
            engine.set::<Objects>(&3, Object { age: 2, ..plain(3) });
            let _ = engine.run(Duration::MAX);
            assert!(engine.next_job().is_none(), "it waits for the end of the first one");
        }
        drop(engine.finish(finished));
        assert!(engine.get::<Translations>(&3).is_none(), "what was made of the one that went is nothing to the next");
        let _ = engine.run(Duration::MAX);
        assert_eq!(engine.is_offloaded::<Translations>(&3), comes_back);
    }
    let finished = run_job(&mut engine);
    drop(engine.finish(finished));
    assert_eq!(engine.get::<Translations>(&3).unwrap().age, 2);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_chain_of_large_rows_is_computed_one_after_the_other() {
    let mut engine = offloading();
    engine.set::<Objects>(&5, plain(5));
    engine.set::<Objects>(&6, plain(6));
    engine.set::<Services>(&6, 80u16);
    for table in ["translations", "hosts", "directory"] {
        let _ = engine.run(Duration::MAX);
        let job = engine.next_job().expect("a large row waits");
        assert_eq!(job.table(), table);
        engine.share_tables();
        let finished = job.run();
        engine.reclaim_tables();
        drop(engine.finish(finished));
    }
    let _ = engine.run(Duration::MAX);
    assert_eq!(engine.get::<Hosts>(&6).unwrap().backends, [(6, Some(80))]);
    assert_eq!(**engine.get::<Directory>(&()).unwrap(), [1, 3, 5, 6]);
    assert_eq!(engine.counters_of::<Hosts>().jobs, 1);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn who_edits_without_end_does_not_hold_up_other_large_rows() {
    let mut engine = offloading();
    engine.set::<Objects>(&3, Object { age: 1, ..plain(3) });
    let _ = engine.run(Duration::MAX);
    let mut finished = run_job(&mut engine);
    engine.set::<Objects>(&6, plain(6));
    // 3 is edited while each job runs, so it is never up to date; 6 and its host get their turn.
    for age in 2..8 {
        engine.set::<Objects>(&3, Object { age, ..plain(3) });
        let _ = engine.run(Duration::MAX);
        drop(engine.finish(finished));
        let _ = engine.run(Duration::MAX);
        finished = run_job(&mut engine);
    }
    drop(engine.finish(finished));
    assert!(engine.get::<Hosts>(&6).is_some());
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_panic_in_a_job_costs_its_row_only() {
    let mut engine = offloading();
    engine.set::<Services>(&3, 13u16);
    let _ = engine.run(Duration::MAX);
    let finished = run_job(&mut engine);
    drop(engine.finish(finished));
    assert_eq!(engine.failed_rows().len(), 1);
    assert_eq!(engine.get::<Translations>(&3).unwrap().backends, [(3, None)], "the last good value");
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_job_reads_while_the_owner_rests_and_ends_with_the_engine() {
    let mut engine = offloading();
    let includes = (100..400).collect::<Vec<u32>>();
    for &id in &includes {
        engine.set::<Objects>(&id, Object { root: false, ..plain(id) });
    }
    engine.set::<Objects>(&3, Object { includes: includes.clone(), ..plain(3) });
    let _ = engine.run(Duration::MAX);
    let job = engine.next_job().unwrap();
    let thread = std::thread::spawn(move || job.run());
    // The owner shares its tables and reclaims them all the time, and edits meanwhile.
    let mut edits = 0;
    while !thread.is_finished() {
        engine.share_tables();
        std::thread::yield_now();
        engine.reclaim_tables();
        engine.set::<Services>(&(100 + edits % 300), 80u16);
        edits += 1;
        let _ = engine.run(Duration::MAX);
    }
    drop(engine.finish(thread.join().unwrap()));
    assert_eq!(engine.get::<Translations>(&3).unwrap().backends.len(), 301);
    assert_eq!(engine.self_check(), Ok(()));

    engine.set::<Objects>(&3, plain(3));
    let _ = engine.run(Duration::MAX);
    let job = engine.next_job().unwrap();
    let thread = std::thread::spawn(move || drop(job.run()));
    drop(engine);
    thread.join().unwrap();
}

#[test]
fn what_is_different_for_indexes_is_found_out_by_the_job() {
    use engine::{Derived, Index, PartIndex, Pipeline, Reads, Table};
    use std::cell::Cell;

    thread_local! {
        /// How many keys and parts this thread was asked for.
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }
    fn asked() {
        ASKED.with(|asked| asked.set(asked.get() + 1));
    }

    struct Wide;
    impl Table for Wide {
        type Key = u32;
        type Value = Vec<(u32, u8)>;
        const NAME: &'static str = "wide";
    }
    impl Derived for Wide {
        fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<Vec<(u32, u8)>> {
            let object = reads.get::<Objects>(key)?;
            Some(object.hosts.iter().map(|host| (*host, if *host == 7 { object.age } else { 0 })).collect())
        }
        fn is_large(&self, _: &u32, _: &mut Reads<'_>) -> bool {
            true
        }
    }
    struct ByName;
    impl Index for ByName {
        type Of = Wide;
        type Key = u32;
        const NAME: &'static str = "by name";
        fn keys(_: &u32, wide: &Vec<(u32, u8)>) -> impl IntoIterator<Item = u32> {
            asked();
            wide.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        }
    }
    impl PartIndex for ByName {
        type Part<'v> = Option<u8>;
        fn part(name: &u32, wide: &Vec<(u32, u8)>) -> Option<u8> {
            asked();
            wide.iter().find(|(other, _)| other == name).map(|(_, part)| *part)
        }
    }
    struct Names;
    impl Table for Names {
        type Key = u32;
        type Value = Vec<Option<u8>>;
        const NAME: &'static str = "names";
    }
    impl Derived for Names {
        fn compute(&self, name: &u32, reads: &mut Reads<'_>) -> Option<Vec<Option<u8>>> {
            Some(reads.parts::<ByName>(name).into_iter().map(|(_, part)| part).collect())
        }
    }

    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>();
    pipeline.derived(Wide).each::<Objects>();
    pipeline.parts::<ByName>();
    pipeline.derived(Names).per::<ByName>();
    let mut engine = pipeline.build();
    let wide = |age, hosts: std::ops::Range<u32>| Object { age, hosts: hosts.collect(), ..plain(1) };
    engine.set::<Objects>(&1, wide(0, 0..500));
    engine.settle();
    engine.set_offloading(Offloading::Large);

    // One name has another part, one comes and one goes.
    engine.set::<Objects>(&1, wide(1, 1..501));
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    let job = engine.next_job().expect("a large row waits");
    engine.share_tables();
    let finished = std::thread::spawn(move || job.run()).join().unwrap();
    engine.reclaim_tables();
    let (before, computed) = (ASKED.get(), engine.counters_of::<Names>().computed);
    drop(engine.finish(finished));
    assert_eq!(ASKED.get(), before, "the owner of the engine looks at nothing");
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    assert_eq!(engine.counters_of::<Names>().computed - computed, 2, "the one that is other and the one that is new");
    assert_eq!(engine.get::<Names>(&7).unwrap().as_slice(), [Some(1)]);
    assert!(engine.get::<Names>(&0).is_none() && engine.get::<Names>(&500).is_some());
    assert_eq!(engine.self_check(), Ok(()));
}
