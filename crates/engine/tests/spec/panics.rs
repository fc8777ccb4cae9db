//! A computation that panics costs its own row only, and the row keeps what it had.

use std::time::Duration;

use engine::{Derived, Index, Input, Offloading, PartIndex, Pipeline, Reads, Table};

use crate::toy::{self, Hosts, Object, Objects, Pages, Services, Translations, plain};

#[test]
fn the_last_good_value_is_kept() {
    let mut engine = toy::engine();
    engine.set::<Objects>(&1, plain(1));
    engine.set::<Objects>(&2, plain(2));
    engine.set::<Services>(&1, 80u16);
    engine.settle();
    let good = engine.get::<Translations>(&1).cloned();

    engine.set::<Services>(&1, 13u16);
    engine.set::<Services>(&2, 81u16);
    engine.settle();
    assert_eq!(engine.get::<Translations>(&1).cloned(), good);
    assert_eq!(engine.get::<Translations>(&2).unwrap().backends, [(2, Some(81))], "everybody else moves on");
    let failed = engine.failed_rows();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].table, failed[0].key.as_str(), failed[0].last_good), ("translations", "1", true));
    assert!(failed[0].message.contains("service 1 brings bad luck"), "{}", failed[0].message);
    assert_eq!(engine.self_check(), Ok(()));

    // A later table can tell of it, though the value is the same.
    assert_eq!(engine.get::<Hosts>(&1).unwrap().complaints.len(), 1);

    // Still the good one after another panic, and the reads up to it still wake the row.
    engine.set::<Objects>(&1, Object { age: 3, ..plain(1) });
    engine.settle();
    assert_eq!(engine.get::<Translations>(&1).cloned(), good);

    engine.set::<Services>(&1, 82u16);
    engine.settle();
    assert_eq!(engine.get::<Translations>(&1).unwrap().backends, [(1, Some(82))]);
    assert_eq!(engine.failed_rows(), []);
    assert_eq!(engine.get::<Hosts>(&1).unwrap().complaints.len(), 0);
    assert_eq!(engine.counters_of::<Translations>().panics, 2);
}

#[test]
fn without_a_last_good_value_the_table_says_what_is_served() {
    let mut engine = toy::engine();
    engine.set::<Services>(&1, 13u16);
    engine.set::<Services>(&2, 13u16);
    engine.set::<Objects>(&1, plain(1));
    engine.set::<Objects>(&2, plain(2));
    engine.settle();
    // Odd translations say nothing, even ones put up a sign.
    assert_eq!(engine.get::<Translations>(&1), None);
    assert_eq!(engine.get::<Translations>(&2).unwrap().complaints.len(), 1);
    assert!(engine.get::<Pages>(&2).unwrap().contains("bad luck"));
    assert_eq!(engine.failed_rows().iter().map(|row| row.last_good).collect::<Vec<_>>(), [false, false]);
    assert_eq!(engine.self_check(), Ok(()));

    // The sign is not a good value: another panic makes a new one.
    engine.set::<Objects>(&2, Object { service: Some(1), ..plain(2) });
    engine.settle();
    assert!(engine.get::<Translations>(&2).unwrap().complaints[0].contains("service 1"));

    engine.set::<Services>(&1, 80u16);
    engine.settle();
    assert_eq!(engine.failed_rows(), []);
    assert_eq!(engine.get::<Translations>(&1).unwrap().backends, [(1, Some(80))]);
    assert_eq!(engine.get::<Translations>(&2).unwrap().backends, [(1, Some(80))]);
}

#[test]
fn a_hold_ends_with_its_row() {
    let mut engine = toy::engine();
    engine.set::<Objects>(&1, plain(1));
    engine.settle();
    engine.set::<Services>(&1, 13u16);
    engine.settle();
    assert!(engine.failed_rows()[0].last_good);
    engine.remove::<Objects>(&1);
    engine.settle();
    assert_eq!(engine.failed_rows(), []);
    // It comes back without a past.
    engine.set::<Objects>(&1, plain(1));
    engine.settle();
    assert!(!engine.failed_rows()[0].last_good);
    assert_eq!(engine.get::<Translations>(&1), None);
}

#[test]
fn a_fresh_engine_takes_the_holds_over_and_lets_go_of_them() {
    let mut engine = toy::engine();
    engine.set::<Objects>(&1, plain(1));
    engine.settle();
    engine.set::<Services>(&1, 13u16);
    engine.settle();
    let mut fresh = engine.fresh();
    fresh.settle();
    assert_eq!(fresh.failed_rows(), engine.failed_rows());
    assert_eq!(fresh.get::<Translations>(&1).unwrap().backends, [(1, None)], "the last good value");
    // Once the row was good, or gone, the value that was handed over is history.
    fresh.set::<Objects>(&1, Object { service: None, root: false, ..plain(1) });
    fresh.settle();
    fresh.set::<Objects>(&1, plain(1));
    fresh.settle();
    assert_eq!(fresh.get::<Translations>(&1), None);
}

#[test]
fn an_index_that_panics_passes_over_the_row() {
    table!(Numbers, "numbers", u32 => u32);
    impl Input for Numbers {}
    index!(Moody, "moody", Numbers => u32, |_key, value| {
        assert!(value.is_multiple_of(2), "toy: {value} is odd");
        [value / 2]
    });
    toy::quiet();
    let mut pipeline = Pipeline::new();
    pipeline.input::<Numbers>();
    pipeline.index::<Moody>();
    let mut engine = pipeline.build();
    engine.set::<Numbers>(&1, 4u32);
    engine.set::<Numbers>(&2, 4u32);
    assert_eq!(engine.probe::<Moody>(&2), [&1, &2]);
    engine.set::<Numbers>(&1, 5u32);
    assert_eq!(engine.probe::<Moody>(&2), [&2]);
    engine.remove::<Numbers>(&1);
    engine.remove::<Numbers>(&2);
    assert_eq!(engine.counters_of::<Numbers>().index_keys, 0);
}

#[test]
fn a_part_that_panics_costs_its_readers_only() {
    table!(Letters, "letters", u32 => u32);
    impl Input for Letters {}
    index!(ByPage, "by page", Letters => u32, |_key, _value| [0]);
    impl PartIndex for ByPage {
        type Part<'v> = u32;
        fn part(_: &u32, value: &u32) -> u32 {
            assert!(value.is_multiple_of(2), "toy: an odd letter");
            *value
        }
    }
    table!(Sums, "sums", u32 => u32);
    impl Derived for Sums {
        fn compute(&self, page: &u32, reads: &mut Reads<'_>) -> Option<u32> {
            Some(reads.parts::<ByPage>(page).into_iter().map(|(_, part)| part).sum())
        }
    }
    toy::quiet();
    let mut pipeline = Pipeline::new();
    pipeline.input::<Letters>();
    pipeline.parts::<ByPage>();
    pipeline.derived(Sums).per::<ByPage>();
    let mut engine = pipeline.build();
    engine.set_offloading(Offloading::All);
    // A letter changes from one value to the other while a job reads it, from good to bad and back; the last one is good.
    for (read, is) in [(2, 4), (8, 5), (7, 9), (11, 6)] {
        engine.set::<Letters>(&1, read);
        let _ = engine.run(Duration::MAX);
        let Some(job) = engine.next_job() else { panic!("{read} is summed up by a job") };
        engine.share_tables();
        let finished = job.run();
        engine.reclaim_tables();
        engine.set::<Letters>(&1, is);
        drop(engine.finish(finished));
        engine.settle();
        assert_eq!(engine.failed_rows().len(), usize::from(is % 2 == 1), "{is}");
        assert_eq!(engine.self_check(), Ok(()));
    }
    assert_eq!(engine.get::<Sums>(&0).map(|sum| **sum), Some(6));
}
