//! The cost of an edit is what depends on it, not what there is.

use engine::Engine;

use crate::toy::{self, Object, Objects, Pages, Services, Slices, plain};

const MANY: u32 = 10_000;

fn many() -> Engine {
    let mut engine = toy::engine();
    for id in 0..MANY {
        engine.set::<Objects>(&id, plain(id));
        engine.set::<Services>(&id, 80u16);
        engine.set::<Slices>(&(id, 0), vec![1, 2]);
    }
    engine.settle();
    engine
}

fn by_table(engine: &Engine) -> Vec<(&'static str, u64)> {
    engine.counters().iter().map(|table| (table.name, table.computed)).collect()
}

/// The tables that computed rows (or were set) since `before`, and how many.
fn since(engine: &Engine, before: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
    let pairs = by_table(engine).into_iter().zip(before);
    pairs.map(|((name, now), (_, then))| (name, now - then)).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn one_edit_among_ten_thousand_computes_a_handful() {
    let mut engine = many();
    assert_eq!(engine.last_batch().computed, u64::from(MANY) * 12 + 1, "the first build computes each row once");

    let before = by_table(&engine);
    engine.set::<Objects>(&4711, Object { service: Some(4712), ..plain(4711) });
    engine.settle();
    // Cluster 4711 lost its only translation, hence the balancer; two services have another number of callers.
    let few =
        [("objects", 1), ("translations", 1), ("hosts", 1), ("balancers", 1), ("callers", 1), ("caller counts", 2)];
    // The note of the object asks whether its translation failed: what the translation holds is none of its business.
    assert_eq!(since(&engine, &before), [&few[..], &[("pages", 1)]].concat());
    assert_eq!(engine.last_batch().computed, 7);
    assert_eq!(engine.changes::<Pages>().set.len(), MANY as usize);
    engine.self_check().unwrap();
}

#[test]
fn a_change_of_endpoints_computes_endpoint_tables_only() {
    let mut engine = many();
    let before = by_table(&engine);
    engine.set::<Slices>(&(4711, 0), vec![3]);
    engine.settle();
    assert_eq!(since(&engine, &before), [("slices", 1), ("endpoint sets", 1), ("balancers", 1), ("assignments", 1)]);
}
