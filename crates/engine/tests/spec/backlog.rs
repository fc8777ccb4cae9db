//! A change that reaches many rows is worked off in parts, and everybody else moves on.

use std::time::Duration;

use engine::{Engine, Progress};

use crate::toy::{self, Crowds, Directory, Hosts, Object, Objects, Pages, Services, Translations, plain};

/// How many hosts the wide object has, and how many of them an edit reaches at once.
const HOSTS: u32 = 1000;
const LIMIT: usize = 4;

fn wide(service: u32) -> Object {
    Object { root: true, hosts: (0..HOSTS).collect(), service: Some(service), ..Object::default() }
}

/// Somebody else's, with a host of its own.
const OTHER: u32 = HOSTS + 1;

/// An engine with the wide object and another.
fn limited() -> Engine {
    let mut engine = toy::engine();
    engine.set::<Objects>(&1, wide(1));
    engine.set::<Objects>(&OTHER, plain(OTHER));
    engine.settle();
    engine.changes::<Pages>();
    engine.limit_fan_out(Some(LIMIT));
    engine
}

fn run(engine: &mut Engine) -> Vec<u32> {
    assert_eq!(engine.run(Duration::MAX), Progress::Settled);
    engine.changes::<Pages>().set.into_iter().map(|(page, _)| page).collect()
}

fn computed(engine: &Engine) -> u64 {
    engine.counters().iter().map(|table| table.computed).sum()
}

#[test]
fn others_are_computed_before_the_rest_of_a_wide_change() {
    let mut engine = limited();
    engine.set::<Objects>(&1, wide(2));
    // In the same batch, and behind it.
    engine.set::<Objects>(&OTHER, Object { service: Some(7), ..plain(OTHER) });
    assert_eq!(run(&mut engine), [0, 1, 2, 3, OTHER]);
    assert_eq!(engine.backlog(), HOSTS as usize - LIMIT);

    // In a later one.
    engine.admit(LIMIT);
    assert_eq!(run(&mut engine), [4, 5, 6, 7]);
    let before = computed(&engine);
    engine.set::<Objects>(&OTHER, Object { service: Some(8), ..plain(OTHER) });
    assert_eq!(run(&mut engine), [OTHER]);
    assert!(computed(&engine) - before < 12, "{} rows", computed(&engine) - before);

    // The rest, in the order in which it came.
    let mut rest = Vec::new();
    while engine.backlog() > 0 {
        engine.admit(LIMIT);
        rest.extend(run(&mut engine));
    }
    assert_eq!(rest, (8..HOSTS).collect::<Vec<_>>());
    assert_eq!(engine.admitted(), u64::from(HOSTS) - LIMIT as u64);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn all_rows_of_a_partition_are_computed_together() {
    let mut engine = limited();
    // The crowd of a host is reached by one index, the host itself by the other; both are by the same partition.
    engine.set::<Objects>(&2, Object { age: 1, ..wide(2) });
    loop {
        let _ = run(&mut engine);
        for host in 0..HOSTS {
            let losers = engine.get::<Hosts>(&host).unwrap().losers.len();
            assert_eq!(**engine.get::<Crowds>(&host).unwrap(), losers + 1, "host {host}");
            assert_eq!(engine.is_deferred::<Hosts>(&host), losers == 0, "host {host}");
        }
        if engine.backlog() == 0 {
            break;
        }
        engine.admit(100);
    }
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_partition_that_a_small_change_reaches_is_next() {
    let mut engine = limited();
    engine.set::<Objects>(&1, wide(2));
    let _ = run(&mut engine);
    engine.set::<Objects>(&2, Object { hosts: vec![777], ..plain(2) });
    assert_eq!(run(&mut engine), [], "the host waits");
    engine.admit(1);
    assert_eq!(run(&mut engine), [777], "with both changes");
    assert_eq!(engine.get::<Hosts>(&777).unwrap().losers, [2]);
    engine.admit(1);
    assert_eq!(run(&mut engine), [4]);
}

#[test]
fn who_edits_without_end_sees_all_of_it() {
    let mut engine = limited();
    let mut seen = vec![0; HOSTS as usize];
    for round in 0..HOSTS {
        engine.set::<Objects>(&1, wide(2 + round % 2));
        let _ = engine.run(Duration::MAX);
        engine.admit(LIMIT);
        run(&mut engine).into_iter().for_each(|page| seen[page as usize] += 1);
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

#[test]
fn what_sums_up_is_computed_once_for_all_parts() {
    let mut engine = limited();
    let before = engine.counters_of::<Directory>().computed;
    engine.set::<Objects>(&1, Object { hosts: (HOSTS..2 * HOSTS).collect(), ..wide(2) });
    while engine.backlog() > 0 || !engine.is_settled() {
        let _ = engine.run(Duration::MAX);
        engine.admit(10);
    }
    let times = engine.counters_of::<Directory>().computed - before;
    assert!(times <= 3, "{times}");
    assert_eq!(engine.get::<Directory>(&()).unwrap().len(), HOSTS as usize);

    // Somebody else's host has it at once.
    engine.set::<Objects>(&1, wide(2));
    let _ = engine.run(Duration::MAX);
    engine.admit(10);
    let _ = engine.run(Duration::MAX);
    engine.set::<Objects>(&3, Object { hosts: vec![9 * HOSTS], ..plain(3) });
    let _ = engine.run(Duration::MAX);
    engine.admit(1);
    let _ = engine.run(Duration::MAX);
    assert!(engine.backlog() > 0 && engine.get::<Directory>(&()).unwrap().contains(&(9 * HOSTS)));
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn hosts_that_go_wait_for_their_turn_and_may_be_back_before_it() {
    let mut engine = limited();
    engine.remove::<Objects>(&1);
    let _ = run(&mut engine);
    assert_eq!(engine.counters_of::<Hosts>().rows, HOSTS as usize - LIMIT + 1);
    engine.set::<Objects>(&2, Object { hosts: vec![999], ..plain(2) });
    while engine.backlog() > 0 {
        let _ = engine.run(Duration::MAX);
        engine.admit(10);
    }
    let _ = engine.run(Duration::MAX);
    let left: Vec<u32> = engine.rows::<Hosts>().map(|(host, _)| *host).collect();
    assert_eq!(left, [999, OTHER]);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn what_many_rows_are_made_from_is_worked_off_in_parts_too() {
    let mut engine = toy::engine();
    for id in 0..100 {
        engine.set::<Objects>(&id, Object { service: Some(5), ..plain(id) });
    }
    engine.settle();
    engine.limit_fan_out(Some(LIMIT));
    let before = engine.counters_of::<Translations>().computed;
    engine.set::<Services>(&5, 80u16);
    let _ = run(&mut engine);
    assert_eq!(engine.counters_of::<Translations>().computed - before, LIMIT as u64);
    engine.limit_fan_out(None);
    let _ = run(&mut engine);
    assert_eq!(engine.counters_of::<Translations>().computed - before, 100);
    assert_eq!(engine.self_check(), Ok(()));
}
