#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counting;
mod proxies;

use super::*;
use kinds::kind;
use model::status::{ProxyCounts, ProxyRefusal, ProxyState};
use serde_json::{Value, json};
use std::sync::Arc;

const ADDRESS: &str = "192.0.2.1";

/// The statuses, and a clock that stands still unless it is told to go on.
struct World {
    statuses: Statuses,
    now: Instant,
}

impl World {
    fn new(addresses: Addresses) -> Self {
        Self::with(addresses, kinds)
    }

    fn with(addresses: Addresses, kinds: fn(Kind) -> Option<&'static StatusKind>) -> Self {
        Self { statuses: Statuses::new(&Settings::new("sesame-0", addresses, kinds)), now: Instant::now() }
    }

    /// Everything is known, and there is one address.
    fn synced() -> Self {
        let mut world = Self::new(ADDRESS.parse().unwrap());
        world.statuses.synced(world.now);
        world
    }

    fn observe(&mut self, object: &Object) {
        self.statuses.observe(&object.key(), Some(object.clone()), self.now);
    }

    fn claim(&mut self, ours: bool) {
        self.statuses.claim(&key(), ours.then(Default::default), self.now);
    }

    fn next(&mut self) -> Option<Write> {
        self.statuses.next(self.now)
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// Answers as an API server that does what it is told, and gives the object as it then is.
    fn write(&mut self, write: Write, version: u64) -> Object {
        let says = match &write.change {
            Change::Apply(status) => status["loadBalancer"]["ingress"].clone(),
            _ => json!([]),
        };
        let written = ingress(&write.object.uid.to_string(), version, &says);
        self.statuses.done(write, Outcome::Written(written.clone()), self.now);
        written
    }
}

/// The statuses of two dialects.
fn kinds(kind: Kind) -> Option<&'static StatusKind> {
    match kind.name() {
        "Ingress" => Some(&dialect_ingress::status::STATUS),
        "HTTPProxy" => Some(&dialect_httpproxy::status::STATUS),
        _ => None,
    }
}

fn key() -> ObjectRef {
    ObjectRef::new(kind::INGRESS, "shop", "web")
}

fn ingress(uid: &str, version: u64, says: &Value) -> Object {
    let metadata = json!({ "namespace": "shop", "name": "web", "uid": uid, "resourceVersion": version.to_string() });
    let object = json!({ "metadata": metadata, "status": { "loadBalancer": { "ingress": says } } });
    kinds::decode_json(kind::INGRESS, object.to_string().as_bytes()).unwrap().object
}

fn silent(uid: &str, version: u64) -> Object {
    ingress(uid, version, &json!([]))
}

fn envoy(says: &Value) -> Object {
    let metadata = json!({ "namespace": "sesame", "name": "envoy" });
    let object = json!({ "metadata": metadata, "status": { "loadBalancer": { "ingress": says } } });
    kinds::decode_json(kind::SERVICE, object.to_string().as_bytes()).unwrap().object
}

#[test]
fn one_write_and_then_nothing() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    assert!(world.next().is_none(), "it is not ours yet");
    world.claim(true);
    let write = world.next().unwrap();
    assert!(world.next().is_none(), "one request at a time");
    let written = world.write(write, 2);
    // The watch is slower than the answer, and then says the same.
    world.observe(&silent("a", 1));
    world.observe(&written);
    world.claim(true);
    assert!(world.next().is_none());
    assert_eq!((world.statuses.behind(), world.statuses.next_at()), (0, None));
}

#[test]
fn what_an_object_asks_for_is_not_kept() {
    let mut world = World::synced();
    let object = silent("a", 1);
    let asked = |object: &Object| Arc::downgrade(object.get::<kinds::Ingress>().unwrap());
    let first = asked(&object);
    world.observe(&object);
    drop(object);
    world.claim(true);
    let write = world.next().unwrap();
    let written = world.write(write, 2);
    let second = asked(&written);
    world.observe(&written);
    drop(written);
    assert!(world.next().is_none());
    assert_eq!((first.strong_count(), second.strong_count()), (0, 0), "the tables hold it");
}

#[test]
fn nothing_is_written_before_everything_is_known() {
    let mut world = World::new(Addresses::of_service("sesame", "envoy"));
    world.observe(&ingress("a", 1, &json!([{ "ip": ADDRESS }])));
    world.claim(true);
    assert!(world.next().is_none());
    world.observe(&envoy(&json!([{ "ip": ADDRESS }])));
    assert!(world.next().is_none());
    world.statuses.synced(world.now);
    assert!(world.next().is_none(), "a restart finds that all is said");
    world.observe(&envoy(&json!([{ "hostname": "lb.example" }])));
    let write = world.next().unwrap();
    assert_eq!(write.change, Change::Apply(json!({ "loadBalancer": { "ingress": [{ "hostname": "lb.example" }] } })));
}

/// Ingresses that are written once a second, and HTTPProxies that are written at any time.
fn counted(kind: Kind) -> Option<&'static StatusKind> {
    const COUNTED: StatusKind = StatusKind { interval: Duration::from_secs(1), ..dialect_ingress::status::STATUS };
    if kind == kind::INGRESS { Some(&COUNTED) } else { kinds(kind) }
}

#[test]
fn a_status_that_counts_others_does_not_wait_for_theirs_nor_they_for_it() {
    let mut world = World::with(ADDRESS.parse().unwrap(), counted);
    world.statuses.synced(world.now);
    let others: Vec<ObjectRef> =
        (0..100).map(|at| ObjectRef::new(kind::CONTOUR_HTTP_PROXY, "shop", format!("p{at}"))).collect();
    for (at, key) in others.iter().enumerate() {
        let metadata =
            json!({ "namespace": "shop", "name": key.name, "uid": format!("u{at}"), "resourceVersion": "1" });
        let object = json!({ "metadata": metadata, "status": {} });
        let object = kinds::decode_json(kind::CONTOUR_HTTP_PROXY, object.to_string().as_bytes()).unwrap().object;
        world.statuses.observe(key, Some(object), world.now);
        world.statuses.claim(key, Some(Default::default()), world.now);
    }
    world.wait(Duration::from_secs(1));
    world.observe(&silent("a", 1));
    world.claim(true);
    let next: Vec<ObjectRef> = (0..4).filter_map(|_| world.next()).map(|write| write.key).collect();
    assert!(next[..2].contains(&key()), "{next:?}");
    assert_eq!(next.iter().filter(|next| **next != key()).count(), 3);
    assert_eq!(world.statuses.behind(), 97);
}

#[test]
fn a_status_that_counts_others_is_written_once_in_its_interval_and_then_says_the_latest() {
    let mut world = World::with(Addresses::of_service("sesame", "envoy"), counted);
    world.observe(&envoy(&json!([{ "ip": "192.0.2.0" }])));
    world.statuses.synced(world.now);
    world.observe(&silent("a", 1));
    world.claim(true);
    let first = world.next().unwrap();
    world.write(first, 2);
    for last in 1..10 {
        world.wait(Duration::from_millis(100));
        world.observe(&envoy(&json!([{ "ip": format!("192.0.2.{last}") }])));
        assert!(world.next().is_none(), "{last}00 ms after the write before");
    }
    world.wait(Duration::from_millis(100));
    assert_eq!(world.statuses.next_at(), Some(world.now));
    let write = world.next().unwrap();
    let written = world.write(write, 3);
    assert_eq!(written, ingress("a", 3, &json!([{ "ip": "192.0.2.9" }])));
    assert!(world.next().is_none());
    // After a while without a change the next one is written at once.
    world.wait(Duration::from_secs(1));
    world.observe(&envoy(&json!([])));
    assert!(world.next().is_some());
}

#[test]
fn what_is_no_longer_ours_is_taken_back_once() {
    let mut world = World::synced();
    world.observe(&ingress("a", 1, &json!([{ "ip": ADDRESS }])));
    world.claim(true);
    world.claim(false);
    let write = world.next().unwrap();
    assert!(matches!(write.change, Change::Withdraw(_)), "{write:?}");
    // It was somebody else who said it: the API server leaves it, and we leave it too.
    let still = ingress("a", 1, &json!([{ "ip": ADDRESS }]));
    world.statuses.done(write, Outcome::Written(still.clone()), world.now);
    world.observe(&still);
    assert!(world.next().is_none());
}

/// Without an address a valid HTTPProxy says nothing by which it could be told who said it.
#[test]
fn what_this_process_has_said_is_withdrawn_once_and_what_another_controller_says_then_stands() {
    let mut world = World::new(Addresses::of_service("sesame", "envoy"));
    world.statuses.synced(world.now);
    let object = proxy("u", 1, 1);
    let key = object.key();
    world.observe(&object);
    world.statuses.claim(&key, Some(Default::default()), world.now);
    let write = world.next().unwrap();
    let Change::Apply(said) = write.change.clone() else { panic!("{write:?}") };
    // It is no longer ours while that is written.
    world.statuses.claim(&key, None, world.now);
    assert!(world.next().is_none(), "one request at a time");
    let observed = write.object.clone();
    world.statuses.done(write, Outcome::Written(with_status(&observed, &said, 2)), world.now);
    world.wait(Duration::from_secs(60));
    let write = world.next().unwrap();
    assert!(matches!(write.change, Change::Withdraw(_)), "{write:?}");
    // Another controller says the same, and goes on to say more.
    world.statuses.done(write, Outcome::Written(with_status(&observed, &said, 3)), world.now);
    let mut more = said.clone();
    more["description"] = "of another".into();
    for (version, status) in [(4, &more), (5, &said)] {
        world.observe(&with_status(&observed, status, version));
        world.wait(Duration::from_secs(60));
        assert!(world.next().is_none(), "nothing of ours is left");
    }
    let mut restarted = World::new(Addresses::of_service("sesame", "envoy"));
    restarted.statuses.synced(restarted.now);
    restarted.observe(&with_status(&observed, &said, 5));
    restarted.statuses.claim(&key, None, restarted.now);
    assert!(restarted.next().is_none(), "a process that has said nothing goes by the marks");
}

#[test]
fn an_object_that_was_ours_and_says_nothing_is_not_written() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    world.claim(false);
    assert!(world.next().is_none());
}

#[test]
fn a_conflict_is_decided_anew() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    let write = world.next().unwrap();
    world.statuses.done(write, Outcome::Conflict(Some(silent("a", 5))), world.now);
    assert!(world.next().is_none(), "not at once");
    world.wait(RETRY.0);
    let write = world.next().unwrap();
    assert_eq!(write.object.version, 5);
    // Somebody said for us what we would have said.
    let said = ingress("a", 6, &json!([{ "ip": ADDRESS }]));
    world.statuses.done(write, Outcome::Conflict(Some(said)), world.now);
    world.wait(RETRY.1);
    assert!(world.next().is_none());
}

/// Versions begin again where they were when the backup was made.
#[test]
fn an_object_that_was_restored_from_a_backup_is_written_again() {
    let mut world = World::synced();
    world.observe(&silent("a", 1000));
    world.observe(&silent("a", 400));
    world.claim(true);
    let write = world.next().unwrap();
    assert_eq!(write.object.version, 1000);
    world.statuses.done(write, Outcome::Conflict(Some(silent("a", 400))), world.now);
    world.wait(RETRY.0);
    let write = world.next().unwrap();
    assert_eq!(write.object.version, 400);
    world.write(write, 401);
    world.wait(RETRY.1);
    assert!(world.next().is_none());
}

#[test]
fn what_the_watch_has_not_brought_is_not_decided_on() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    let write = world.next().unwrap();
    // Another object by now, of which nobody has said that it is ours.
    world.statuses.done(write, Outcome::Conflict(Some(silent("b", 7))), world.now);
    world.wait(RETRY.1);
    assert!(world.next().is_none());
    world.observe(&silent("b", 7));
    assert_eq!(world.next().unwrap().object.uid.to_string(), "b");
}

#[test]
fn an_object_of_the_same_name_is_another_object() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    let write = world.next().unwrap();
    world.statuses.observe(&key(), None, world.now);
    world.observe(&silent("b", 3));
    // The answer about the old one says nothing about the new one.
    world.write(write, 2);
    let write = world.next().unwrap();
    assert_eq!(write.object.uid.to_string(), "b");
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    let write = world.next().unwrap();
    world.statuses.observe(&key(), None, world.now);
    world.claim(false);
    world.statuses.done(write, Outcome::Conflict(None), world.now);
    assert!(world.statuses.entries.is_empty() && world.next().is_none());
    world.observe(&silent("b", 4));
    world.statuses.observe(&key(), None, world.now);
    assert!(world.statuses.entries.is_empty());
}

#[test]
fn failures_are_tried_again_ever_more_slowly() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    for failures in 1..12 {
        let write = world.next().unwrap();
        world.statuses.done(write, Outcome::Failed, world.now);
        assert!(world.next().is_none());
        world.wait(pause(failures, RETRY.0, RETRY.1));
    }
    let write = world.next().unwrap();
    let since = world.statuses.done(write, Outcome::Written(ingress("a", 2, &json!([{ "ip": ADDRESS }]))), world.now);
    assert!(since.unwrap() > Duration::from_secs(60), "the lag counts from the first try");
}

#[test]
fn a_quarrel_with_another_controller_is_given_up_and_told_once() {
    let mut world = World::synced();
    world.observe(&silent("a", 1));
    world.claim(true);
    let quarrel = |world: &mut World, from: u64| {
        let (mut writes, mut told) = (0, 0);
        for second in from..from + 3_600 {
            if let Some(write) = world.next() {
                writes += 1;
                world.write(write, second * 2 + 2);
                world.observe(&ingress("a", second * 2 + 3, &json!([{ "ip": "192.0.2.66" }])));
                told += usize::from(world.statuses.take_contested() == Some(key()));
            }
            world.wait(Duration::from_secs(1));
        }
        (writes, told)
    };
    assert_eq!(quarrel(&mut world, 0), (4, 1), "writes in the first hour");
    assert_eq!(quarrel(&mut world, 3_600), (1, 0), "writes in the second hour");
    // What is new is written at once.
    world
        .statuses
        .set_identity(Identity { addresses: "192.0.2.2".parse().unwrap(), controller: String::new() }, world.now);
    assert!(world.next().is_some(), "other addresses wait for the quarrel to be over");
}

#[test]
fn a_status_that_awaits_proxies_is_written_when_they_have_it_or_two_seconds_later() {
    static AWAITED: StatusKind =
        StatusKind { acknowledgement: Acknowledgement::Awaited, ..dialect_ingress::status::STATUS };
    let mut world = World::with(ADDRESS.parse().unwrap(), |_| Some(&AWAITED));
    world.statuses.synced(world.now);
    let program = |world: &mut World, batch: u64, proxies: ProxyState| {
        world.statuses.program(&key(), Programmed { batch, proxies: Some(proxies) }, world.now);
    };
    world.observe(&silent("a", 1));
    world.claim(true);
    program(&mut world, 1, ProxyState::Pending);
    assert!(world.next().is_none(), "proxies do not have it");
    program(&mut world, 1, acknowledged(1));
    let write = world.next().unwrap();
    world.write(write, 2);

    // Somebody else's status, and the next batch, which no proxy answers.
    world.wait(Duration::from_secs(60));
    program(&mut world, 2, ProxyState::Pending);
    world.observe(&silent("a", 3));
    world.wait(Duration::from_millis(1999));
    program(&mut world, 3, ProxyState::Pending);
    assert!(world.next().is_none());
    world.wait(Duration::from_millis(1));
    assert!(world.next().is_some(), "it is two seconds late, however many batches there were since");
}

fn proxy(uid: &str, generation: i64, version: u64) -> Object {
    let kind = kind::CONTOUR_HTTP_PROXY;
    let metadata = json!({ "namespace": "shop", "name": "web", "uid": uid, "generation": generation,
        "resourceVersion": version.to_string() });
    let object = json!({ "metadata": metadata, "spec": { "virtualhost": { "fqdn": "a.example" } } });
    kinds::decode_json(kind, object.to_string().as_bytes()).unwrap().object
}

/// The same with that status.
fn with_status(object: &Observed, status: &Value, version: u64) -> Object {
    let metadata = json!({ "namespace": "shop", "name": "web", "uid": object.uid.to_string(),
        "generation": object.generation, "resourceVersion": version.to_string() });
    let spec = json!({ "virtualhost": { "fqdn": "a.example" } });
    let object = json!({ "metadata": metadata, "spec": spec, "status": status });
    kinds::decode_json(kind::CONTOUR_HTTP_PROXY, object.to_string().as_bytes()).unwrap().object
}

/// That all of so many proxies have it.
fn acknowledged(connected: u64) -> ProxyState {
    ProxyState::acknowledged(ProxyCounts { acknowledged: connected, connected })
}

/// What is written next says of proxies; nothing if it says nothing of them.
fn programmed(world: &mut World, version: u64) -> Option<String> {
    world.wait(Duration::from_secs(2));
    let write = world.next().unwrap();
    let Change::Apply(status) = &write.change else { panic!("{write:?}") };
    let conditions = status["conditions"].as_array().unwrap();
    let said = conditions.iter().find(|condition| condition["type"] == "Programmed");
    let said = said.map(|condition| format!("{} of {}", condition["status"], condition["observedGeneration"]));
    let written = proxy(&write.object.uid.to_string(), write.object.generation, version);
    world.statuses.done(write, Outcome::Written(written), world.now);
    said
}

#[test]
fn word_of_an_earlier_batch_never_stands_over_that_of_a_later_one() {
    let mut world = World::synced();
    let key = proxy("u", 1, 1).key();
    let program = |world: &mut World, batch: u64, is_programmed: bool| {
        let proxies = if is_programmed { acknowledged(2) } else { ProxyState::Pending };
        world.statuses.program(&key, Programmed { batch, proxies: Some(proxies) }, world.now);
    };
    world.observe(&proxy("u", 1, 1));
    world.statuses.claim(&key, Some(Default::default()), world.now);
    // What the control loop and the task say of one batch may arrive in any order.
    program(&mut world, 1, true);
    program(&mut world, 1, false);
    assert_eq!(programmed(&mut world, 2).as_deref(), Some("\"True\" of 1"));

    // The next form comes together with the word that it is not programmed; then comes what was said of the one before.
    world.observe(&proxy("u", 2, 3));
    program(&mut world, 2, false);
    program(&mut world, 1, true);
    assert_eq!(programmed(&mut world, 4).as_deref(), Some("\"Unknown\" of 2"), "nobody has the next form");
    program(&mut world, 2, true);
    assert_eq!(programmed(&mut world, 5).as_deref(), Some("\"True\" of 2"));

    // Another object of the same name and contents: nothing is new to the pipeline, and proxies have all of it.
    world.observe(&proxy("v", 1, 6));
    assert_eq!(programmed(&mut world, 7).as_deref(), Some("\"True\" of 1"));
}

#[test]
fn reports_that_wait_keep_the_later_word() {
    let reporter = crate::Reporter::default();
    let object = model::ObjectRef::new(kind::CONTOUR_HTTP_PROXY, "shop", "web");
    for (batch, proxies) in [(2, ProxyState::Pending), (1, acknowledged(0))] {
        let programmed = vec![(object.clone(), Programmed { batch, proxies: Some(proxies) })];
        reporter.report(crate::Report { programmed, ..crate::Report::default() });
    }
    let waiting = futures::FutureExt::now_or_never(reporter.next()).unwrap();
    assert_eq!(waiting.programmed[&object], Programmed { batch: 2, proxies: Some(ProxyState::Pending) });
}

/// One of three proxies refuses what the others accept, and starts again and again.
#[test]
fn a_proxy_that_refuses_is_named_while_it_does_and_causes_one_write_in_ten_seconds() {
    let mut world = World::synced();
    let key = proxy("u", 1, 1).key();
    let counts = ProxyCounts { acknowledged: 2, connected: 3 };
    let refusal = Arc::new(ProxyRefusal { node: "envoy-7xk".into(), text: "no".into() });
    let partial = ProxyState::Acknowledged { counts, refusal: Some(refusal) };
    let program = |world: &mut World, proxies: &ProxyState| {
        let programmed = Programmed { batch: 1, proxies: Some(proxies.clone()) };
        world.statuses.program(&key, programmed, world.now);
    };
    world.observe(&proxy("u", 1, 1));
    world.statuses.claim(&key, Some(Default::default()), world.now);
    program(&mut world, &partial);
    let mut writes: Vec<String> = Vec::new();
    let mut write = |world: &mut World, version: u64| {
        let Some(write) = world.next() else { return };
        let Change::Apply(status) = &write.change else { panic!("{write:?}") };
        let said = status["conditions"].as_array().unwrap().iter().find(|said| said["type"] == "Programmed");
        writes.push(said.unwrap()["message"].as_str().unwrap().to_owned());
        let written = with_status(&write.object, status, version);
        world.statuses.done(write, Outcome::Written(written), world.now);
    };
    for second in 0..60 {
        let state = if second % 2 == 0 { partial.clone() } else { acknowledged(2) };
        program(&mut world, &state);
        write(&mut world, 2 + second);
        world.wait(Duration::from_secs(1));
    }
    // In the end it is gone.
    world.wait(Duration::from_secs(10));
    write(&mut world, 100);
    assert_eq!(writes[0], "Accepted by 2 of 3 connected proxies; envoy-7xk rejected it: no");
    assert_eq!(writes.last().unwrap(), "Accepted by all 2 connected proxies.");
    assert!((2..=7).contains(&writes.len()), "{writes:?}");
}

/// The addresses that a write says.
fn addresses(write: &Write) -> Value {
    match &write.change {
        Change::Apply(status) => status["loadBalancer"]["ingress"].clone(),
        _ => json!(null),
    }
}

#[test]
fn other_addresses_of_ours_are_written_once_and_those_of_a_service_when_they_are_known() {
    let mut world = World::synced();
    let controller = world.statuses.controller.clone();
    let identity = |addresses: Addresses| Identity { addresses, controller: controller.clone() };
    world.observe(&silent("u", 1));
    world.claim(true);
    let first = world.next().unwrap();
    assert_eq!(addresses(&first), json!([{ "ip": ADDRESS }]));
    let written = world.write(first, 2);
    world.observe(&written);

    // The same addresses are no change.
    world.statuses.set_identity(identity(ADDRESS.parse().unwrap()), world.now);
    assert!(world.next().is_none());
    world.statuses.set_identity(identity("192.0.2.7,edge.example.com".parse().unwrap()), world.now);
    world.wait(Duration::from_secs(60));
    let second = world.next().unwrap();
    assert_eq!(addresses(&second), json!([{ "ip": "192.0.2.7" }, { "hostname": "edge.example.com" }]));
    let written = world.write(second, 3);
    world.observe(&written);
    assert!(world.next().is_none());

    // A Service whose addresses are known already.
    world.observe(&envoy(&json!([{ "ip": "192.0.2.9" }])));
    assert!(world.next().is_none(), "nobody asked for the addresses of a Service yet");
    world.statuses.set_identity(identity(Addresses::of_service("sesame", "envoy")), world.now);
    world.wait(Duration::from_secs(60));
    let third = world.next().unwrap();
    assert_eq!(addresses(&third), json!([{ "ip": "192.0.2.9" }]));
}
