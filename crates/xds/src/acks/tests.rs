//! What is pushed is what a look at every client would find, and costs what changed.

use std::collections::VecDeque;

use tokio::sync::broadcast;

use super::*;
use crate::fleet_acks::Event;
use crate::identity::{Credential, Identity};
use crate::limits::Limits;
use crate::publish::Changes;
use crate::resource::{Resource, content_version};
use crate::session::{InitialVersions, Options, Request, Response, Session, Step, Style, Subscription};

/// A fleet whose clients are driven by hand.
pub(crate) struct Bed {
    pub runtime: Arc<FleetRuntime>,
    pub clients: Vec<Driven>,
    pub events: broadcast::Sender<Event>,
    next: u64,
}

pub(crate) struct Driven {
    client: Arc<Client>,
    pub unanswered: VecDeque<Response>,
}

impl Bed {
    pub fn new() -> Self {
        let runtime = Arc::new(FleetRuntime::new(Fleet::Shared, "test".to_owned(), None));
        let bed = Self { runtime, clients: Vec::new(), events: broadcast::Sender::new(16), next: 0 };
        bed.publish(vec![]);
        bed
    }

    pub fn publish(&self, upserts: Vec<Resource>) {
        let published = self.runtime.publish(Changes { upserts, removes: vec![] }, usize::MAX);
        published.expect("everything fits");
    }

    pub fn remove(&self, kind: Kind, name: &str) {
        let published =
            self.runtime.publish(Changes { upserts: vec![], removes: vec![(kind, name.into())] }, usize::MAX);
        published.expect("everything fits");
    }

    /// A client of a version of Envoy; what it asks for is up to the caller.
    pub fn join(&mut self) -> usize {
        self.next += 1;
        let identity = Identity::establish(&[], &Credential::Insecure, None).expect("anybody may come");
        let node = self.next.to_string().into();
        let identity = Identity { node, version: ["1.40", "1.41"][self.next as usize % 2].into(), ..identity };
        let options = Options {
            style: Style::Delta,
            only: None,
            limits: Arc::new(Limits::default()),
            resolver: None,
            rejected: Default::default(),
            markers: Default::default(),
        };
        let view = self.runtime.current().expect("something is published");
        let session = Mutex::new(Session::new(options, view, Instant::now()));
        let (stream, since) = ("test".to_owned(), Instant::now());
        let client = Arc::new(Client { id: self.next, identity: Arc::new(identity), stream, since, session });
        self.runtime.join(&client);
        self.clients.push(Driven { client, unanswered: VecDeque::new() });
        self.clients.len() - 1
    }

    pub fn leave(&mut self, at: usize) {
        let gone = self.clients.remove(at);
        self.runtime.leave(gone.client.id);
    }

    pub fn ask(&self, at: usize, kind: Kind, subscribe: &[&str], unsubscribe: &[&str]) {
        let names = |names: &[&str]| names.iter().map(|name| Name::from(*name)).collect();
        let subscription = Subscription::Delta {
            subscribe: names(subscribe),
            unsubscribe: names(unsubscribe),
            initial_versions: InitialVersions::default(),
        };
        let request = Request { kind, nonce: None, error: None, subscription };
        let asked =
            self.clients[at].client.update(&self.runtime, |session| session.on_request(request, Instant::now()));
        asked.expect("within limits");
    }

    /// The client is told what is published, and sent what there is to send.
    pub fn send(&mut self, at: usize) {
        let view = self.runtime.current().expect("something is published");
        let driven = &mut self.clients[at];
        driven.client.update(&self.runtime, |session| session.on_publish(view, Instant::now()));
        while let Step::Send(response) = driven.client.update(&self.runtime, |session| session.poll(Instant::now())) {
            driven.unanswered.push_back(response);
        }
    }

    /// The client answers the oldest response.
    pub fn answer(&mut self, at: usize, error: Option<String>) {
        let Some(response) = self.clients[at].unanswered.pop_front() else { return };
        let subscription = Subscription::Delta {
            subscribe: vec![],
            unsubscribe: vec![],
            initial_versions: InitialVersions::default(),
        };
        let request = Request { kind: response.kind, nonce: Some(response.nonce), error, subscription };
        let answered = self.clients[at].client.on_request(&self.runtime, request, Instant::now());
        let (_, rejections) = answered.expect("within limits");
        for rejection in rejections {
            // Nobody listens where only counts are looked at.
            let _ = self.events.send(Event::Rejected(rejection));
        }
    }

    /// What a look at every client finds.
    fn count(&self, version: &Version) -> FleetAckCounts {
        let (mut counts, now) = (FleetAckCounts::new(), Instant::now());
        for Driven { client, .. } in &self.clients {
            let Some(state) = look(client, version, now, now) else { continue };
            let counts = counts.entry(client.identity.version.clone()).or_default();
            match state {
                State::Has => counts.have += 1,
                State::Behind(_) => counts.behind += 1,
                State::Stuck => counts.stuck += 1,
                State::Rejected => counts.refused += 1,
            }
        }
        counts
    }
}

pub(crate) fn scope(name: &str, body: &str) -> Resource {
    Resource::new(Kind::ScopedRoute, name, body.as_bytes().to_vec())
}

fn version(kind: Kind, name: &str, body: &str) -> Version {
    Version { kind, name: name.into(), version: content_version(body.as_bytes()) }
}

/// The same numbers each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

#[test]
fn what_is_pushed_is_what_a_look_at_every_client_finds() {
    const KINDS: [Kind; 2] = [Kind::ScopedRoute, Kind::Secret];
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    const BODIES: [&str; 3] = ["1", "2", "3"];
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let mut bed = Bed::new();
        let mut acks = AckWatch::of(bed.runtime.clone());
        let mut script = Vec::new();
        for _ in 0..120 {
            let (kind, name, body) = (KINDS[dice.roll(2)], NAMES[dice.roll(4)], BODIES[dice.roll(3)]);
            let at = (!bed.clients.is_empty()).then(|| dice.roll(bed.clients.len()));
            let step = dice.roll(14);
            script.push(format!("{step} {kind} {name} {body} {at:?}"));
            match (step, at) {
                (0, _) => acks.watch(version(kind, name, body), Instant::now()),
                (1, _) => acks.forget(&version(kind, name, body)),
                (2..=4, _) => bed.publish(vec![Resource::new(kind, name, body.as_bytes().to_vec())]),
                (5, _) => bed.remove(kind, name),
                (6, _) if bed.clients.len() < 4 => {
                    let at = bed.join();
                    bed.ask(at, Kind::ScopedRoute, &[], &[]);
                }
                (7, Some(at)) if dice.roll(4) == 0 => bed.leave(at),
                (8, Some(at)) => bed.ask(at, kind, &[name], &[]),
                (9, Some(at)) => bed.ask(at, kind, &[], &[name]),
                (10, Some(at)) => bed.answer(at, Some(format!("'{name}' is bad"))),
                (11, Some(at)) => bed.answer(at, None),
                (_, Some(at)) => bed.send(at),
                _ => {}
            }
            let before: BTreeMap<Version, FleetAckCounts> = watched(&acks);
            acks.absorb(Instant::now());
            let changed = std::mem::take(&mut acks.changed);
            for (version, counts) in watched(&acks) {
                assert_eq!(counts, bed.count(&version), "{version:?} after {script:#?} of {seed}");
                let same = before.get(&version) == Some(&counts);
                assert!(same || changed.contains(&version), "{version:?} is no changes after {script:#?} of {seed}");
            }
        }
    }
}

fn watched(acks: &AckWatch) -> BTreeMap<Version, FleetAckCounts> {
    let mut all = BTreeMap::new();
    for kind in Kind::ALL {
        for (name, versions) in &acks.watched[kind.index()] {
            for version in versions.keys() {
                let version = Version { kind, name: name.clone(), version: *version };
                all.insert(version.clone(), acks.counts(&version).expect("it is watched"));
            }
        }
    }
    all
}

/// 10,000 versions that 50 silent clients do not have: an edit beside them looks at its own resource only.
#[test]
fn an_edit_and_its_answers_cost_what_changed() {
    const AWAITED: usize = 10_000;
    const CLIENTS: usize = 50;
    let mut bed = Bed::new();
    // Nobody becomes stuck on a busy machine.
    let now = Instant::now();
    let all = |body: &str| (0..AWAITED).map(|at| scope(&at.to_string(), body)).collect::<Vec<_>>();
    bed.publish(all("1"));
    for _ in 0..CLIENTS {
        let at = bed.join();
        bed.ask(at, Kind::ScopedRoute, &[], &[]);
        bed.send(at);
        bed.answer(at, None);
    }
    let mut acks = AckWatch::of(bed.runtime.clone());
    acks.absorb(now);
    bed.publish(all("2"));
    for at in 0..AWAITED {
        acks.watch(version(Kind::ScopedRoute, &at.to_string(), "2"), now);
    }
    for at in 0..CLIENTS {
        bed.send(at);
    }
    acks.absorb(now);
    acks.changed.clear();

    // An edit: the clients are told, and do not answer.
    let (before, begun) = (acks.looks(), Instant::now());
    bed.publish(vec![scope("7", "3")]);
    acks.forget(&version(Kind::ScopedRoute, "7", "2"));
    acks.watch(version(Kind::ScopedRoute, "7", "3"), now);
    (0..CLIENTS).for_each(|at| bed.send(at));
    acks.absorb(now);
    assert!(acks.looks() - before <= 2 * CLIENTS as u64, "{} looks", acks.looks() - before);
    println!("an edit beside {AWAITED} awaited by {CLIENTS}: {} looks, {:?}", acks.looks() - before, begun.elapsed());
    assert_eq!(acks.changed.len(), 1, "{:?}", acks.changed.len());

    // A client that answers costs the names in what it answers.
    let before = acks.looks();
    bed.answer(0, None);
    acks.absorb(now);
    assert_eq!(acks.looks() - before, AWAITED as u64);
    bed.send(0);
    let before = acks.looks();
    bed.answer(0, None);
    acks.absorb(now);
    assert_eq!(acks.looks() - before, 1, "only the edit was left");

    // What was waited for takes no memory.
    let names = (0..AWAITED).map(|at| at.to_string());
    names.for_each(|name| ["2", "3"].iter().for_each(|body| acks.forget(&version(Kind::ScopedRoute, &name, body))));
    let capacity = acks.watched[Kind::ScopedRoute.index()].capacity();
    assert!(capacity < 100, "{capacity}");
}

#[test]
fn who_was_never_told_is_not_stuck_before_its_time() {
    let mut bed = Bed::new();
    bed.publish(vec![scope("a", "1")]);
    let at = bed.join();
    bed.ask(at, Kind::ScopedRoute, &[], &[]);
    bed.send(at);
    bed.answer(at, None);
    let mut acks = AckWatch::of(bed.runtime.clone());
    let asked = version(Kind::ScopedRoute, "a", "2");
    bed.publish(vec![scope("a", "2")]);
    // A stream that is old, and has not heard of the new version yet.
    let later = Instant::now() + 100 * STUCK;
    acks.watch(asked.clone(), later);
    acks.absorb(later);
    let counts = |acks: &AckWatch| acks.counts(&asked).expect("it is watched").into_values().next().expect("a client");
    assert_eq!((counts(&acks).behind, counts(&acks).stuck), (1, 0));
    acks.absorb(later + STUCK);
    assert_eq!((counts(&acks).behind, counts(&acks).stuck), (0, 1));
    assert!(acks.deadlines.is_empty());
}
