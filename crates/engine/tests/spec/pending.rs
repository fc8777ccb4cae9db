//! A row that depends on what is not known yet keeps what it had; everybody else moves on.

use crate::toy::{self, Hosts, Object, Objects, PENDING, Services, Translations, plain};

#[test]
fn a_pending_row_keeps_its_last_good_value_and_tells_what_it_asks_for() {
    let mut engine = toy::engine();
    engine.set::<Objects>(&1, plain(1));
    engine.set::<Objects>(&2, plain(2));
    engine.set::<Services>(&1, 80u16);
    engine.settle();

    engine.set::<Services>(&7, PENDING);
    engine.set::<Objects>(&1, Object { service: Some(7), age: 2, ..plain(1) });
    engine.set::<Services>(&2, 81u16);
    engine.settle();
    let translation = engine.get::<Translations>(&1).unwrap();
    assert_eq!((translation.age, &*translation.backends), (plain(1).age, &[(1, Some(80)), (7, None)][..]));
    assert_eq!(engine.get::<Translations>(&2).unwrap().backends, [(2, Some(81))], "everybody else moves on");
    assert!(engine.is_pending::<Translations>(&1) && !engine.is_pending::<Translations>(&2));
    assert_eq!((engine.counters_of::<Translations>().pending, engine.counters_of::<Translations>().failed), (1, 0));
    assert_eq!(engine.failed_rows(), [], "nothing panicked");
    assert_eq!(engine.self_check(), Ok(()));

    // Another edit while it is pending starts from the same good value.
    engine.set::<Objects>(&1, Object { service: Some(7), age: 1, ..plain(1) });
    engine.settle();
    assert_eq!(engine.get::<Translations>(&1).unwrap().backends, [(1, Some(80)), (7, None)]);

    engine.set::<Services>(&7, 82u16);
    engine.settle();
    let translation = engine.get::<Translations>(&1).unwrap();
    assert_eq!((translation.age, &*translation.backends), (1, &[(7, Some(82))][..]));
    assert!(!engine.is_pending::<Translations>(&1));
    assert_eq!((engine.counters_of::<Translations>().pending, engine.counters_of::<Translations>().resolved), (0, 1));
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn without_a_last_good_value_a_pending_row_is_what_the_computation_gives() {
    let mut engine = toy::engine();
    engine.set::<Services>(&1, PENDING);
    engine.set::<Objects>(&1, plain(1));
    engine.settle();
    assert_eq!(engine.get::<Translations>(&1).unwrap().complaints, ["1 is not known yet"]);
    assert_eq!(engine.self_check(), Ok(()));
    // What a pending computation gave is not a good value.
    engine.set::<Objects>(&1, Object { age: 5, ..plain(1) });
    engine.settle();
    assert_eq!(engine.get::<Translations>(&1).unwrap().age, 5);
    // It is forgotten with the object.
    engine.remove::<Objects>(&1);
    engine.settle();
    assert!(!engine.is_pending::<Translations>(&1) && engine.get::<Hosts>(&1).is_none());
    assert_eq!(engine.counters_of::<Translations>().pending, 0);
    assert_eq!(engine.self_check(), Ok(()));
}

#[test]
fn a_panic_while_pending_keeps_the_good_value_and_the_other_way_round() {
    let mut engine = toy::engine();
    engine.set::<Objects>(&1, plain(1));
    engine.set::<Services>(&1, 80u16);
    engine.settle();
    for port in [PENDING, 13, PENDING] {
        engine.set::<Services>(&1, port);
        engine.settle();
        assert_eq!(engine.get::<Translations>(&1).unwrap().backends[0], (1, Some(80)));
        assert_eq!(engine.is_pending::<Translations>(&1), port == PENDING);
        assert_eq!(engine.failed_rows().is_empty(), port == PENDING);
        assert_eq!(engine.self_check(), Ok(()));
    }
}
