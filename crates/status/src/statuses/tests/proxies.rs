//! What proxies say of one version of an object: that they have acknowledged it is written at once, what they take back waits, and
//! nothing else waits for it.

use super::*;
use model::{Code, Verdict};

/// An HTTPProxy of ours, and an API server that does what it is told.
struct OurProxy {
    world: World,
    key: ObjectRef,
    version: u64,
}

impl OurProxy {
    fn new() -> Self {
        let mut world = World::synced();
        let object = proxy("u", 1, 1);
        world.observe(&object);
        world.statuses.claim(&object.key(), Some(Default::default()), world.now);
        Self { world, key: object.key(), version: 1 }
    }

    fn program(&mut self, proxies: ProxyState) {
        self.program_in(1, proxies);
    }

    fn program_in(&mut self, batch: u64, proxies: ProxyState) {
        let programmed = Programmed { batch, proxies: Some(proxies) };
        self.world.statuses.program(&self.key, programmed, self.world.now);
    }

    fn claim(&mut self, verdicts: Vec<Verdict>) {
        self.world.statuses.claim(&self.key, Some(Arc::new(verdicts)), self.world.now);
    }

    /// Writes what is due; gives what it says of proxies.
    fn write(&mut self) -> Option<String> {
        let write = self.world.next()?;
        Some(self.answer(write))
    }

    fn answer(&mut self, write: Write) -> String {
        self.version += 1;
        let Change::Apply(status) = &write.change else { panic!("{write:?}") };
        let conditions = status["conditions"].as_array().unwrap();
        let said = conditions.iter().find(|condition| condition["type"] == "Programmed").unwrap();
        let said = format!("{} {}", said["status"].as_str().unwrap(), said["reason"].as_str().unwrap());
        let object = with_status(&write.object, status, self.version);
        self.world.statuses.done(write, Outcome::Written(object), self.world.now);
        said
    }

    fn wait(&mut self, seconds: u64) {
        self.world.wait(Duration::from_secs(seconds));
    }
}

const ABSENT: ProxyState = ProxyState::NoProxies { is_lasting: false };

/// That one of three proxies refuses what the others have acknowledged.
fn partial() -> ProxyState {
    let refusal = Arc::new(ProxyRefusal { node: "envoy-7xk".into(), text: "no".into() });
    ProxyState::Acknowledged { counts: ProxyCounts { acknowledged: 2, connected: 3 }, refusal: Some(refusal) }
}

/// Proxies of its own come some seconds after a Gateway.
#[test]
fn that_proxies_have_come_and_acknowledged_it_is_written_at_once() {
    for states in [&[ABSENT][..], &[ABSENT, ProxyState::Waiting], &[ABSENT, ProxyState::Waiting, ABSENT]] {
        let mut object = OurProxy::new();
        object.program(ProxyState::Pending);
        assert_eq!(object.write().as_deref(), Some("Unknown Pending"));
        object.wait(1);
        object.program(states[0].clone());
        assert_eq!(object.write().as_deref(), Some("False NoProxies"));
        object.wait(1);
        states[1..].iter().for_each(|state| object.program(state.clone()));
        assert_eq!(object.world.next().map(|write| write.change), None, "they may be gone again");
        object.program(acknowledged(1));
        assert_eq!(object.world.statuses.next_at(), Some(object.world.now), "{states:?}");
        assert_eq!(object.write().as_deref(), Some("True Programmed"));
    }
}

/// The proxy that refused it, or one in its place, accepts it; meanwhile it may be asked again, or gone.
#[test]
fn that_the_last_proxy_has_accepted_it_is_written_at_once() {
    let nothing: &[ProxyState] = &[];
    for between in [nothing, &[ProxyState::Waiting], &[acknowledged(2)], &[acknowledged(2), ProxyState::Waiting]] {
        let mut object = OurProxy::new();
        object.program(partial());
        assert_eq!(object.write().as_deref(), Some("True PartiallyProgrammed"));
        object.wait(1);
        for state in between {
            object.program(state.clone());
            assert_eq!(object.world.next().map(|write| write.change), None, "{state:?}: it may refuse it again");
        }
        object.program(acknowledged(3));
        assert_eq!(object.write().as_deref(), Some("True Programmed"), "{between:?}");

        // That it refuses it again waits as before.
        object.wait(1);
        object.program(partial());
        assert_eq!(object.write(), None);
        object.wait(9);
        assert_eq!(object.write().as_deref(), Some("True PartiallyProgrammed"));
    }
}

/// A proxy that accepts it every other time: what completes the count is written at once, what takes it back is not.
#[test]
fn a_proxy_that_refuses_by_turns_causes_two_writes_in_ten_seconds_at_most() {
    let mut object = OurProxy::new();
    let mut writes = Vec::new();
    for second in 0..60 {
        object.program(if second % 2 == 0 { partial() } else { acknowledged(3) });
        writes.extend(object.write().map(|said| (second, said)));
        object.wait(1);
    }
    assert!((3..=12).contains(&writes.len()), "{writes:?}");
}

#[test]
fn proxies_that_come_and_go_without_an_acknowledgement_cause_one_write_in_ten_seconds() {
    let mut object = OurProxy::new();
    let mut writes = Vec::new();
    for second in 0..60 {
        object.program(if second % 2 == 0 { ABSENT } else { ProxyState::Waiting });
        writes.extend(object.write().map(|said| (second, said)));
        object.wait(1);
    }
    assert!((2..=7).contains(&writes.len()), "{writes:?}");
}

/// Proxies that start again and again, of which one rejects it every other time.
#[test]
fn proxies_that_acknowledge_and_go_by_turns_cause_one_write_in_ten_seconds() {
    let mut object = OurProxy::new();
    let mut writes = Vec::new();
    for second in 0..60 {
        object.program(match second % 4 {
            0 => acknowledged(2),
            2 => partial(),
            _ => ProxyState::Waiting,
        });
        writes.extend(object.write().map(|said| (second, said)));
        object.wait(1);
    }
    assert!((2..=7).contains(&writes.len()), "{writes:?}");
}

/// Of a batch that changes nothing of the status, nothing is written; it says what the status says all the same.
#[test]
fn what_proxies_take_back_of_a_batch_that_needed_no_write_waits_too() {
    let mut object = OurProxy::new();
    object.program_in(1, acknowledged(2));
    assert_eq!(object.write().as_deref(), Some("True Programmed"));
    object.wait(1);
    object.program_in(2, ProxyState::Pending);
    object.program_in(2, acknowledged(2));
    assert_eq!(object.write(), None, "the status says so already");
    object.program_in(2, partial());
    assert_eq!(object.write(), None);
    object.wait(9);
    assert_eq!(object.write().as_deref(), Some("True PartiallyProgrammed"));
}

#[test]
fn what_else_changes_does_not_wait_for_what_proxies_take_back() {
    let mut object = OurProxy::new();
    object.program(acknowledged(2));
    assert_eq!(object.write().as_deref(), Some("True Programmed"));
    object.wait(1);
    object.program(partial());
    assert_eq!(object.world.next().map(|write| write.change), None, "a proxy that starts again and again");
    assert_eq!(object.world.statuses.next_at(), Some(object.world.now + Duration::from_secs(9)));

    // Another verdict, and then other addresses: each is written at once, with what proxies say by then.
    let field = object.key.at("spec.routes[0].services[0].name");
    object.claim(vec![Verdict::new(Code::ServiceNotFound, field, "Service shop/x does not exist")]);
    assert_eq!(object.write().as_deref(), Some("True PartiallyProgrammed"));
    object.wait(1);
    object.program(acknowledged(2));
    assert_eq!(object.world.next().map(|write| write.change), None, "ten seconds from the last write on");
    let controller = object.world.statuses.controller.clone();
    let identity = Identity { addresses: "192.0.2.7".parse().unwrap(), controller };
    object.world.statuses.set_identity(identity, object.world.now);
    assert_eq!(object.write().as_deref(), Some("True Programmed"));
}

#[test]
fn what_proxies_take_back_during_a_write_waits_too() {
    let mut object = OurProxy::new();
    object.program(acknowledged(2));
    let write = object.world.next().unwrap();
    object.wait(1);
    object.program(partial());
    assert_eq!(object.answer(write), "True Programmed");
    assert_eq!(object.write(), None);
    object.wait(9);
    assert_eq!(object.write().as_deref(), Some("True PartiallyProgrammed"), "ten seconds after the other was sent");
}
