//! What is asked, who is done when, and what it costs.

use super::*;

/// Every proxy has acknowledged it.
const ALL: Option<ProxyState> =
    Some(ProxyState::Acknowledged { counts: ProxyCounts { acknowledged: 3, connected: 3 }, refusal: None });

/// Two have, one has not, and why that is.
fn two(refused: Option<&str>) -> Option<ProxyState> {
    let refusal = refused.map(|text| Arc::new(ProxyRefusal { node: "envoy-7xk".into(), text: text.into() }));
    Some(ProxyState::Acknowledged { counts: ProxyCounts { acknowledged: 2, connected: 3 }, refusal })
}

fn object(name: &str) -> ObjectRef {
    ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "shop", name)
}

fn own(name: &str, hash: u64) -> ObjectResource {
    ObjectResource { fleet: FleetId::Shared, kind: Kind::ScopedRoute, name: name.into(), hash: Some(hash) }
}

fn shared(name: &str) -> ObjectResource {
    ObjectResource { fleet: FleetId::Shared, kind: Kind::Listener, name: name.into(), hash: None }
}

fn scope(name: &str, version: u64) -> Version {
    Version { kind: Kind::ScopedRoute, name: name.into(), version }
}

fn listener(version: u64) -> Version {
    Version { kind: Kind::Listener, name: "https".into(), version }
}

/// The version of every shared resource that was published first.
fn published(_: &FleetId, _: Kind, _: &str) -> Option<u64> {
    Some(1)
}

fn asking() -> Awaited {
    let mut awaited = Awaited::default();
    awaited.begin(published);
    awaited
}

fn served(resources: Vec<ObjectResource>) -> Arc<ServedObject> {
    Arc::new(ServedObject { resources, content: 0 })
}

fn put(awaited: &mut Awaited, name: &str, batch: u64, object_resources: Vec<ObjectResource>) {
    awaited.put(object(name), batch, Some(served(object_resources)), published);
}

fn done(awaited: &mut Awaited) -> Vec<(String, u64)> {
    let programmed = awaited.programmed().into_iter();
    let done = programmed.filter(|(_, is)| matches!(is.proxies, Some(ProxyState::Acknowledged { .. })));
    let mut done: Vec<_> = done.map(|(of, is)| (of.name.to_string(), is.batch)).collect();
    done.sort();
    done
}

#[test]
fn an_object_counts_the_proxies_of_the_resource_that_fewest_have() {
    let mut awaited = asking();
    put(&mut awaited, "a", 1, vec![own("a", 7), shared("https")]);
    awaited.answer(&FleetId::Shared, &listener(1), two(None));
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    assert_eq!(awaited.programmed(), [(object("a"), Programmed { batch: 1, proxies: two(None) })]);
}

#[test]
fn a_proxy_that_refuses_is_told_while_it_does() {
    let mut awaited = asking();
    put(&mut awaited, "a", 1, vec![own("a", 7), shared("https")]);
    awaited.answer(&FleetId::Shared, &scope("a", 7), two(Some("no")));
    awaited.answer(&FleetId::Shared, &listener(1), ALL);
    assert_eq!(awaited.programmed(), [(object("a"), Programmed { batch: 1, proxies: two(Some("no")) })]);
    // A proxy that joins is behind for a while, and then has it.
    awaited.answer(&FleetId::Shared, &scope("a", 7), None);
    awaited.answer(&FleetId::Shared, &scope("a", 7), two(Some("no")));
    assert_eq!(awaited.programmed(), [], "nothing is new");
    awaited.answer(&FleetId::Shared, &scope("a", 7), two(Some("still no")));
    assert_eq!(awaited.programmed(), [(object("a"), Programmed { batch: 1, proxies: two(Some("still no")) })]);
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    assert_eq!(awaited.programmed(), [(object("a"), Programmed { batch: 1, proxies: ALL })]);
    assert!(awaited.resources.is_empty(), "nothing is asked any more");
}

/// What was told of each object, in the order of names.
fn reported(awaited: &mut Awaited) -> Vec<(String, ProxyState)> {
    let mut told: Vec<_> = awaited
        .programmed()
        .into_iter()
        .map(|(of, is)| (of.name.to_string(), is.proxies.expect("proxies are counted")))
        .collect();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}

#[test]
fn without_proxies_those_who_wait_are_told_and_after_a_while_everybody() {
    let nobody = |is_lasting| ProxyState::NoProxies { is_lasting };
    let of = |name: &str, state: ProxyState| (name.to_owned(), state);
    let mut awaited = asking();
    let gateway = FleetId::named("shop", "edge");
    put(&mut awaited, "a", 1, vec![own("a", 7)]);
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    put(&mut awaited, "b", 2, vec![own("b", 7)]);
    put(&mut awaited, "c", 2, vec![ObjectResource { fleet: gateway, ..own("c", 7) }]);
    done(&mut awaited);
    awaited.set_proxies(&FleetId::Shared, FleetProxies::Absent, published);
    assert_eq!(reported(&mut awaited), [of("b", nobody(false))], "a proxy that comes back soon takes nothing away");
    put(&mut awaited, "d", 3, vec![own("d", 7)]);
    assert_eq!(reported(&mut awaited), [of("d", nobody(false))], "one that is new is told at once");
    awaited.questions();
    awaited.set_proxies(&FleetId::Shared, FleetProxies::LongAbsent, published);
    assert_eq!(reported(&mut awaited), ["a", "b", "d"].map(|name| of(name, nobody(true))));
    assert_eq!(awaited.questions(), [Question::Ask(FleetId::Shared, scope("a", 7))], "it is asked about again");
    // One comes, and takes its time.
    awaited.set_proxies(&FleetId::Shared, FleetProxies::Present, published);
    assert_eq!(reported(&mut awaited), ["a", "b", "d"].map(|name| of(name, ProxyState::Waiting)));
    ["a", "b"].iter().for_each(|name| awaited.answer(&FleetId::Shared, &scope(name, 7), ALL));
    assert_eq!(done(&mut awaited), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
}

#[test]
fn an_object_is_done_when_the_proxies_of_every_fleet_have_it() {
    let mut awaited = asking();
    let gateway = FleetId::named("shop", "edge");
    let of = |fleet: &FleetId| ObjectResource { fleet: fleet.clone(), ..own("a", 7) };
    put(&mut awaited, "a", 1, vec![of(&FleetId::Shared), of(&gateway)]);
    assert_eq!(awaited.fleets(), [FleetId::Shared, gateway.clone()].into());
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    assert_eq!(done(&mut awaited), []);
    awaited.answer(&gateway, &scope("a", 7), ALL);
    assert_eq!(done(&mut awaited), [("a".to_owned(), 1)]);
}

#[test]
fn an_object_is_done_when_proxies_have_all_of_its_resources() {
    let mut awaited = asking();
    put(&mut awaited, "a", 1, vec![own("a", 7), shared("https")]);
    assert_eq!(
        awaited.questions(),
        [Question::Ask(FleetId::Shared, scope("a", 7)), Question::Ask(FleetId::Shared, listener(1))]
    );
    awaited.answer(&FleetId::Shared, &listener(1), ALL);
    assert!(done(&mut awaited).is_empty());
    awaited.answer(&FleetId::Shared, &scope("a", 6), ALL);
    assert!(done(&mut awaited).is_empty(), "that is another version");
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    assert_eq!(done(&mut awaited), [("a".to_owned(), 1)]);
    assert_eq!(
        awaited.questions(),
        [Question::Forget(FleetId::Shared, scope("a", 7)), Question::Forget(FleetId::Shared, listener(1))]
    );
    assert!(awaited.resources.is_empty());
}

#[test]
fn a_shared_resource_is_waited_for_as_it_is_published_by_now() {
    let mut awaited = asking();
    put(&mut awaited, "a", 1, vec![own("a", 7), shared("https")]);
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    awaited.questions();
    awaited.publish(&FleetId::Shared, Kind::Listener, &"https".into(), Some(2));
    assert_eq!(
        awaited.questions(),
        [Question::Forget(FleetId::Shared, listener(1)), Question::Ask(FleetId::Shared, listener(2))]
    );
    awaited.answer(&FleetId::Shared, &listener(1), ALL);
    assert!(done(&mut awaited).is_empty(), "proxies have what was, not what is");
    awaited.answer(&FleetId::Shared, &listener(2), ALL);
    assert_eq!(done(&mut awaited), [("a".to_owned(), 1)]);
}

#[test]
fn what_a_later_batch_made_is_what_is_waited_for() {
    let mut awaited = asking();
    put(&mut awaited, "a", 1, vec![own("a", 7), shared("https")]);
    put(&mut awaited, "a", 2, vec![own("a", 8), shared("https")]);
    let questions = awaited.questions();
    assert!(questions.contains(&Question::Forget(FleetId::Shared, scope("a", 7))), "{questions:?}");
    assert_eq!(
        questions.iter().filter(|question| **question == Question::Ask(FleetId::Shared, listener(1))).count(),
        1
    );
    awaited.answer(&FleetId::Shared, &listener(1), ALL);
    awaited.answer(&FleetId::Shared, &scope("a", 7), ALL);
    assert!(done(&mut awaited).is_empty());
    awaited.answer(&FleetId::Shared, &scope("a", 8), ALL);
    assert_eq!(done(&mut awaited), [("a".to_owned(), 2)]);
    awaited.put(object("a"), 3, None, published);
    assert!(awaited.resources.is_empty() && awaited.objects.is_empty());
}

#[test]
fn what_a_proxy_that_joins_does_not_have_is_waited_for_only_by_those_who_still_wait() {
    let mut awaited = asking();
    put(&mut awaited, "a", 1, vec![shared("https")]);
    put(&mut awaited, "b", 1, vec![own("b", 7), shared("https")]);
    awaited.answer(&FleetId::Shared, &listener(1), ALL);
    assert_eq!(done(&mut awaited), [("a".to_owned(), 1)]);
    awaited.answer(&FleetId::Shared, &listener(1), None);
    awaited.answer(&FleetId::Shared, &scope("b", 7), ALL);
    assert!(done(&mut awaited).is_empty());
    awaited.answer(&FleetId::Shared, &listener(1), ALL);
    assert_eq!(done(&mut awaited), [("b".to_owned(), 1)]);
}

#[test]
fn who_begins_to_write_asks_about_everything_that_is_open() {
    let mut awaited = Awaited::default();
    put(&mut awaited, "a", 1, vec![own("a", 7)]);
    assert!(awaited.questions().is_empty(), "somebody else writes");
    awaited.begin(published);
    assert_eq!(awaited.questions(), [Question::Ask(FleetId::Shared, scope("a", 7))]);
    awaited.end();
    put(&mut awaited, "a", 2, vec![own("a", 8)]);
    awaited.begin(published);
    assert_eq!(awaited.questions(), [Question::Ask(FleetId::Shared, scope("a", 8))]);
    awaited.answer(&FleetId::Shared, &scope("a", 8), ALL);
    assert_eq!(done(&mut awaited), [("a".to_owned(), 2)]);
}

#[test]
fn memory_is_given_back_once_proxies_have_everything() {
    let mut awaited = asking();
    let names: Vec<String> = (0..10_000).map(|at| at.to_string()).collect();
    for name in &names {
        put(&mut awaited, name, 1, vec![own(name, 1)]);
    }
    assert!(awaited.resources.capacity() >= 10_000);
    for name in &names {
        awaited.answer(&FleetId::Shared, &scope(name, 1), ALL);
    }
    assert_eq!(done(&mut awaited).len(), 10_000);
    assert!(awaited.resources.capacity() < 100, "{}", awaited.resources.capacity());
}

/// 10,000 objects wait for proxies that are silent, and share a listener that every edit changes.
#[test]
fn an_edit_beside_ten_thousand_that_wait_looks_at_its_own_resources() {
    let mut awaited = asking();
    for at in 0..10_000 {
        put(&mut awaited, &at.to_string(), 1, vec![own(&at.to_string(), 1), shared("https")]);
    }
    awaited.questions();
    let (mut most, begun) = (0, std::time::Instant::now());
    for edit in 2..1_002 {
        let before = awaited.looks;
        awaited.publish(&FleetId::Shared, Kind::Listener, &"https".into(), Some(edit));
        let object_resources = served(vec![own("7", edit), shared("https")]);
        awaited.put(object("7"), edit, Some(object_resources), |_, _, _| Some(edit));
        awaited.answer(&FleetId::Shared, &listener(edit), ALL);
        assert!(awaited.questions().len() <= 5);
        most = most.max(awaited.looks - before);
    }
    println!("1,000 edits beside 10,000 that wait: at most {most} looks each, {:?} in all", begun.elapsed());
    assert!(most <= 20, "{most} looks");
    assert!(done(&mut awaited).is_empty());
}
