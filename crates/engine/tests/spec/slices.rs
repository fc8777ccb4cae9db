//! Long batches in slices, and the lane between them.

use std::time::Duration;

use engine::{Engine, Progress};

use crate::toy::{
    self, Assignments, Balancers, Clusters, EndpointSets, Object, Objects, Pages, Ports, Services, Slices,
    Translations, plain,
};

fn hundred() -> Engine {
    let mut engine = toy::engine();
    for id in 0..100 {
        engine.set::<Objects>(&id, plain(id));
        engine.set::<Slices>(&(id, 0), vec![1]);
    }
    engine
}

#[test]
fn a_slice_ends_with_its_budget() {
    let mut engine = hundred();
    let mut slices = 0;
    while engine.run(Duration::ZERO) == Progress::More {
        slices += 1;
    }
    assert_eq!(engine.last_batch().computed, 1001, "each row of ten tables once, and the directory");
    assert_eq!(engine.last_batch().slices, 1001, "one row a slice");
    assert_eq!(slices, 1000, "the last one said that all is done");
    assert_eq!(engine.last_batch().changes, 200);

    let mut at_once = hundred();
    assert_eq!(at_once.run(Duration::MAX), Progress::Settled);
    assert!(engine.rows::<Pages>().eq(at_once.rows::<Pages>()));
    assert_eq!(at_once.last_batch().slices, 1);
}

#[test]
fn the_lane_does_not_wait_for_the_batch() {
    let mut engine = hundred();
    engine.settle();
    engine.changes::<EndpointSets>();

    // Everything has to be computed again, and it has just begun when an endpoint changes.
    for id in 0..100 {
        engine.set::<Objects>(&id, Object { age: 1, ..plain(id) });
    }
    assert_eq!(engine.run(Duration::ZERO), Progress::More);
    engine.set::<Slices>(&(42, 0), vec![7]);
    let translations = engine.counters_of::<Translations>().computed;
    assert_eq!(engine.drain_lane(Duration::MAX), Progress::Settled);
    assert_eq!(engine.counters_of::<Translations>().computed, translations, "the batch did not move");
    assert!(!engine.is_settled());
    let changes = engine.changes::<EndpointSets>();
    assert_eq!(changes.set.iter().map(|(key, value)| (*key, value.to_vec())).collect::<Vec<_>>(), [(42, vec![7])]);
}

#[test]
fn removals_wait_for_the_end_of_the_batch() {
    let mut engine = hundred();
    engine.set::<Services>(&8, 80u16);
    engine.settle();
    engine.changes::<EndpointSets>();
    engine.changes::<Clusters>();
    engine.changes::<Balancers>();

    // 7 goes for good; 8 goes, and comes back before the batch is done.
    engine.remove::<Objects>(&7);
    engine.remove::<Objects>(&8);
    while engine.get::<Clusters>(&8).is_some() {
        assert_eq!(engine.run(Duration::ZERO), Progress::More);
    }
    assert_eq!(engine.drain_lane(Duration::MAX), Progress::Settled);
    assert!(engine.changes::<Clusters>().is_empty());
    assert!(engine.changes::<EndpointSets>().is_empty());
    assert!(engine.changes::<Balancers>().is_empty(), "the lane itself did not see 8 go");
    engine.set::<Objects>(&8, plain(8));
    engine.settle();
    assert_eq!(engine.changes::<Clusters>().gone, [7]);
    let changes = engine.changes::<EndpointSets>();
    assert_eq!((changes.set.len(), changes.gone), (0, vec![7]));
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn what_is_about_to_go_is_kept_up_to_date() {
    let mut engine = hundred();
    engine.settle();
    engine.changes::<EndpointSets>();
    engine.remove::<Objects>(&7);
    while engine.get::<Clusters>(&7).is_some() {
        assert_eq!(engine.run(Duration::ZERO), Progress::More);
    }
    engine.set::<Slices>(&(7, 0), vec![9]);
    assert_eq!(engine.drain_lane(Duration::MAX), Progress::Settled);
    assert_eq!(engine.changes::<EndpointSets>().set.len(), 1, "proxies use the old cluster until the batch is done");
    engine.settle();
    assert_eq!(engine.changes::<EndpointSets>().gone, [7]);
}

/// An engine in the middle of a batch: nobody names port 7 any more, its service went, and the lane has heard of both.
fn with_a_port_about_to_go() -> Engine {
    let mut engine = hundred();
    engine.set::<Services>(&7, 80u16);
    engine.settle();
    engine.changes::<Assignments>();
    engine.remove::<Objects>(&7);
    while engine.get::<Translations>(&7).is_some() {
        assert_eq!(engine.run(Duration::ZERO), Progress::More);
    }
    assert!(engine.get::<Ports>(&7).is_some(), "it goes with the batch");
    engine.remove::<Services>(&7);
    assert_eq!(engine.drain_lane(Duration::MAX), Progress::Settled);
    assert!(engine.get::<Ports>(&7).is_none() && engine.get::<Assignments>(&7).is_none());
    assert!(engine.changes::<Assignments>().is_empty(), "a removal in the middle of a batch");
    assert!(!engine.is_settled());
    engine
}

/// Without a value and without readers its place in the books is still needed: it is to be removed, with what it read.
#[test]
fn what_loses_its_value_and_its_readers_before_it_goes_keeps_its_place() {
    let mut engine = with_a_port_about_to_go();
    // Whoever comes now must not get that place.
    engine.set::<Objects>(&500, plain(500));
    engine.settle();
    assert_eq!(engine.changes::<Assignments>().gone, [7]);
    engine.set::<Services>(&7, 81u16);
    engine.settle();
    assert!(engine.get::<Ports>(&7).is_none(), "nobody names it");
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn what_is_named_again_before_it_goes_stays() {
    let mut engine = with_a_port_about_to_go();
    engine.set::<Services>(&7, 81u16);
    assert_eq!(engine.drain_lane(Duration::MAX), Progress::Settled);
    engine.set::<Objects>(&7, plain(7));
    engine.settle();
    assert_eq!(engine.get::<Ports>(&7).map(|port| **port), Some(81));
    let changes = engine.changes::<Assignments>();
    assert_eq!(changes.set.iter().map(|(key, value)| (*key, **value)).collect::<Vec<_>>(), [(7, (81, 1))]);
    assert!(changes.gone.is_empty());
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn what_came_and_went_is_no_change() {
    let mut engine = hundred();
    engine.settle();
    engine.changes::<Pages>();
    engine.set::<Objects>(&500, plain(500));
    engine.set::<Objects>(&3, Object { service: None, ..plain(3) });
    engine.settle();
    engine.remove::<Objects>(&500);
    engine.set::<Objects>(&3, plain(3));
    engine.settle();
    assert!(engine.changes::<Pages>().is_empty());
}
