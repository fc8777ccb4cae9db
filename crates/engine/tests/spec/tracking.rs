//! What wakes a row, and what does not.

use engine::Engine;

use crate::toy::{
    self, Callers, Clusters, Crowds, Directory, EndpointSets, Host, Hosts, Object, Objects, OfService, Pages, Services,
    Slices, Translations, plain,
};

/// How often each of these tables computed a row while `edit` and a settling were done.
fn computed<const N: usize>(engine: &mut Engine, names: [&str; N], edit: impl FnOnce(&mut Engine)) -> [u64; N] {
    let count = |engine: &Engine| {
        let counters = engine.counters();
        names.map(|name| counters.iter().find(|table| table.name == name).unwrap().computed)
    };
    let before = count(engine);
    edit(engine);
    engine.settle();
    let after = count(engine);
    std::array::from_fn(|i| after[i] - before[i])
}

fn with(objects: impl IntoIterator<Item = (u32, Object)>) -> Engine {
    let mut engine = toy::engine();
    for (id, object) in objects {
        engine.set::<Objects>(&id, object);
    }
    engine.settle();
    engine
}

#[test]
fn a_changed_row_wakes_its_readers_and_nobody_else() {
    let mut engine = with([(1, plain(1)), (2, plain(2))]);
    engine.set::<Services>(&2, 80u16);
    let counts = computed(&mut engine, ["translations", "hosts", "clusters", "pages"], |engine| {
        engine.set::<Objects>(&1, Object { age: 7, ..plain(1) });
    });
    // The host shows no age, so the page is not asked.
    assert_eq!(counts, [2, 2, 1, 1], "translation 1 by its object, all of 2 by its service");
}

#[test]
fn a_miss_is_a_read() {
    let mut engine = with([(1, plain(1))]);
    assert_eq!(engine.get::<Translations>(&1).unwrap().backends, [(1, None)]);
    assert_eq!(computed(&mut engine, ["translations"], |engine| _ = engine.set::<Services>(&2, 80u16)), [0]);
    assert_eq!(computed(&mut engine, ["translations"], |engine| _ = engine.set::<Services>(&1, 80u16)), [1]);
    assert_eq!(engine.get::<Translations>(&1).unwrap().backends, [(1, Some(80))]);
    assert_eq!(computed(&mut engine, ["translations"], |engine| _ = engine.remove::<Services>(&1)), [1]);
    assert_eq!(engine.get::<Translations>(&1).unwrap().backends, [(1, None)]);
}

#[test]
fn a_probe_depends_on_membership() {
    let mut engine = with([(1, plain(1))]);
    assert_eq!(**engine.get::<EndpointSets>(&1).unwrap(), []);
    let sets = ["endpoint sets"];
    // A probe that found nothing is woken by the first member.
    assert_eq!(computed(&mut engine, sets, |engine| _ = engine.set::<Slices>(&(1, 9), vec![9])), [1]);
    assert_eq!(computed(&mut engine, sets, |engine| _ = engine.set::<Slices>(&(1, 3), vec![3])), [1]);
    assert_eq!(computed(&mut engine, sets, |engine| _ = engine.set::<Slices>(&(2, 1), vec![1])), [0]);
    assert_eq!(engine.probe::<OfService>(&1), [&(1, 3), &(1, 9)]);
    assert_eq!(**engine.get::<EndpointSets>(&1).unwrap(), [3, 9]);
    assert_eq!(computed(&mut engine, sets, |engine| _ = engine.remove::<Slices>(&(1, 9))), [1]);
    assert_eq!(**engine.get::<EndpointSets>(&1).unwrap(), [3]);
}

#[test]
fn a_probe_does_not_depend_on_contents() {
    let mut engine = with([(1, plain(1))]);
    let (crowds, other) = (["crowds"], Object { hosts: vec![1], ..plain(2) });
    assert_eq!(computed(&mut engine, crowds, |engine| _ = engine.set::<Services>(&1, 80u16)), [0]);
    assert_eq!(computed(&mut engine, crowds, |engine| _ = engine.set::<Objects>(&2, other)), [1]);
    assert_eq!(engine.get::<Crowds>(&1).map(|size| **size), Some(2));
    assert_eq!(computed(&mut engine, crowds, |engine| _ = engine.remove::<Objects>(&2)), [1]);
    assert_eq!(engine.get::<Crowds>(&1).map(|size| **size), Some(1));
}

#[test]
fn a_part_depends_on_itself_and_not_on_its_row() {
    let calls = |service: u32, others: Vec<u32>| Object { includes: others, service: Some(service), ..plain(1) };
    let callee = |service: u32| Object { service: Some(service), ..Object::default() };
    let mut engine = with([(1, calls(1, vec![2])), (2, callee(2)), (3, callee(3)), (4, plain(4))]);
    engine.set::<Services>(&3, 80u16);
    engine.settle();
    let tables = ["translations", "callers", "caller counts"];
    // The translation changes in its part for the second service, which the first does not hear of, nor who only counts.
    assert_eq!(computed(&mut engine, tables, |engine| _ = engine.set::<Services>(&2, 80u16)), [1, 1, 1]);
    assert_eq!(**engine.get::<Callers>(&2).unwrap(), [(1, vec![Some(80)])]);
    assert_eq!(computed(&mut engine, tables, |engine| _ = engine.set::<Services>(&2, 81u16)), [1, 1, 0]);
    assert_eq!(**engine.get::<Callers>(&2).unwrap(), [(1, vec![Some(81)])]);
    // It changes, but in none of its parts.
    assert_eq!(
        computed(&mut engine, tables, |engine| _ = engine.set::<Objects>(&1, Object { age: 3, ..calls(1, vec![2]) })),
        [1, 0, 0]
    );
    // A part comes, and goes again.
    let edit = |engine: &mut Engine| _ = engine.set::<Objects>(&1, calls(1, vec![2, 3]));
    assert_eq!(computed(&mut engine, tables, edit), [1, 1, 1]);
    assert_eq!(**engine.get::<Callers>(&3).unwrap(), [(1, vec![Some(80)])]);
    let edit = |engine: &mut Engine| _ = engine.set::<Objects>(&1, calls(1, vec![2]));
    assert_eq!(computed(&mut engine, tables, edit), [1, 0, 1], "a row that nobody names is not computed");
    assert!(engine.get::<Callers>(&3).is_none());
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_scan_depends_on_membership() {
    let mut engine = with([(1, plain(1))]);
    let edit = |engine: &mut Engine| _ = engine.set::<Objects>(&1, Object { service: None, ..plain(1) });
    assert_eq!(computed(&mut engine, ["directory"], edit), [0]);
    assert_eq!(computed(&mut engine, ["directory"], |engine| _ = engine.set::<Objects>(&2, plain(2))), [1]);
    assert_eq!(**engine.get::<Directory>(&()).unwrap(), [1, 2]);
}

#[test]
fn an_equal_value_goes_no_further() {
    let mut engine = with([(1, plain(1)), (2, Object { hosts: vec![1], ..plain(2) })]);
    engine.changes::<Pages>();
    // The same input again.
    assert!(!engine.set::<Objects>(&1, plain(1)));
    assert!(engine.is_settled());
    // Who loses is in the host, but not on its page.
    let third = Object { root: true, age: 9, hosts: vec![7], ..Object::default() };
    engine.set::<Objects>(&3, third.clone());
    engine.settle();
    engine.changes::<Pages>();
    let counts = computed(&mut engine, ["translations", "hosts", "pages"], |engine| {
        engine.set::<Objects>(&3, Object { age: 8, ..third });
        engine.set::<Objects>(&2, Object { age: 5, hosts: vec![1], ..plain(2) });
    });
    assert_eq!(counts, [2, 2, 0], "both hosts came out as before, so no page was asked");
    assert!(engine.changes::<Pages>().is_empty());
}

#[test]
fn a_row_lasts_while_somebody_names_it() {
    let shared = |id| Object { hosts: vec![7], ..plain(id) };
    let mut engine = with([(1, shared(1)), (2, shared(2))]);
    assert_eq!(engine.get::<Hosts>(&7).unwrap().losers, [2]);
    engine.changes::<Pages>();

    engine.remove::<Objects>(&1);
    engine.settle();
    assert_eq!(engine.get::<Hosts>(&7).unwrap().winner, 2);
    assert_eq!(engine.changes::<Pages>().set.len(), 1);

    // It moves to another object in one batch: changed, never gone.
    engine.remove::<Objects>(&2);
    engine.set::<Objects>(&3, shared(3));
    engine.settle();
    let changes = engine.changes::<Pages>();
    assert_eq!((changes.set.len(), changes.gone.len()), (1, 0));

    engine.remove::<Objects>(&3);
    engine.settle();
    assert_eq!(engine.get::<Hosts>(&7), None);
    assert_eq!(engine.changes::<Pages>().gone, [7]);
}

#[test]
fn nothing_is_left_of_what_is_gone() {
    let mut engine = toy::engine();
    engine.settle();
    let empty: Vec<_> = engine.counters().iter().map(|it| (it.keys, it.index_keys, it.reads, it.failed)).collect();
    for id in 0..200 {
        let includes = vec![id + 1000, (id + 1) % 200];
        engine.set::<Objects>(&id, Object { includes, hosts: vec![id % 7, 500 + id], ..plain(id) });
        engine.set::<Services>(&id, if id % 50 == 0 { 13u16 } else { 80 });
        engine.set::<Slices>(&(id, 1), vec![1]);
    }
    engine.settle();
    assert!(!engine.failed_rows().is_empty());
    for id in 0..200 {
        engine.remove::<Objects>(&id);
        engine.remove::<Services>(&id);
        engine.remove::<Slices>(&(id, 1));
        if id % 20 == 0 {
            engine.settle();
        }
    }
    engine.settle();
    let left: Vec<_> = engine.counters().iter().map(|it| (it.keys, it.index_keys, it.reads, it.failed)).collect();
    assert_eq!(left, empty, "(keys, index keys, reads, failed) of each table");
}

#[test]
fn a_row_can_say_what_it_read() {
    let mut engine = with([(1, Object { includes: vec![4], ..plain(1) })]);
    engine.set::<Slices>(&(1, 2), vec![2]);
    engine.settle();
    let reads = |reads: Vec<engine::Read>| -> Vec<String> {
        let text = |read: engine::Read| {
            format!("{} {} {}", read.table, read.index.unwrap_or("-"), read.key.unwrap_or_default())
        };
        reads.into_iter().map(text).collect()
    };
    assert_eq!(reads(engine.reads_of::<Translations>(&1)), ["objects - 1", "objects - 4", "services - 1"]);
    assert_eq!(reads(engine.reads_of::<EndpointSets>(&1)), ["slices - (1, 2)", "slices of service 1"]);
    assert_eq!(reads(engine.reads_of::<Directory>(&())), ["hosts - "]);
    assert_eq!(engine.reads_of::<Clusters>(&9), []);
}

#[test]
fn what_comes_out_does_not_depend_on_the_order_of_edits() {
    let run = |ids: &[u32]| {
        let mut engine = toy::engine();
        for &id in ids {
            engine.set::<Objects>(&id, Object { hosts: vec![id % 7, id], ..plain(id) });
            engine.set::<Services>(&id, if id > 10 { 13u16 } else { 80 });
            engine.set::<Slices>(&(1, id as u8), vec![id as u8]);
        }
        engine.settle();
        let rows = engine.rows::<Hosts>().map(|(key, host)| (*key, Host::clone(host))).collect::<Vec<_>>();
        let pages = engine.changes::<Pages>().set;
        (rows, pages, engine.get::<EndpointSets>(&1).unwrap().to_vec(), engine.failed_rows())
    };
    let first = run(&[5, 3, 13, 8, 1, 2, 12]);
    assert!(first.0.is_sorted_by_key(|(key, _)| *key));
    assert!(first.1.is_sorted_by_key(|(key, _)| *key));
    assert_eq!(first.2, [1, 2, 3, 5, 8, 12, 13]);
    assert_eq!(first.3.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["12", "13"]);
    assert_eq!(run(&[2, 12, 13, 1, 8, 5, 3]), first);
}
