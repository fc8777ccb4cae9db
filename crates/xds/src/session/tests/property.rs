//! No interleaving of publishes, answers, rejections, stand-ins, cuts and slow clients ever lets a client have a route whose
//! cluster it was not given, take a stand-in in place of something of its own, or wait for something that never comes.
//!
//! A world of a few clusters, routes, scopes and listeners is edited at random; server and client take turns at random;
//! the client checks the order as it goes (see [`super::envoy`]). In the end everything bad is mended, everybody gets
//! time, and the client must have exactly what is published; or, where that only stands in or is withheld, that or anything older.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::envoy::Envoy;
use super::*;
use crate::resource::{Ref, Role};

#[derive(Clone, Debug)]
enum Edit {
    Cluster {
        id: u8,
        body: u8,
        warms: bool,
        fed: bool,
        bad: bool,
    },
    DropCluster(u8),
    Route {
        id: u8,
        body: u8,
        clusters: u8,
        bad: bool,
    },
    DropRoute(u8),
    Scope {
        id: u8,
        body: u8,
        clusters: u8,
        bad: bool,
    },
    DropScope(u8),
    Listener {
        id: u8,
        body: u8,
        routes: u8,
        clusters: u8,
        scoped: bool,
    },
    DropListener(u8),
    /// From now on a cluster is withheld, or no longer.
    Withhold {
        id: u8,
        on: bool,
    },
    /// From now on something stands in for a route or a scope, or no longer.
    StandIn {
        scope: bool,
        id: u8,
        body: Option<u8>,
    },
}

#[derive(Clone, Debug)]
enum Turn {
    Publish(Vec<Edit>),
    /// The server sends that many responses at most.
    Serve(u8),
    /// The client takes that many responses at most.
    Handle(u8),
    /// That many of the client's requests arrive.
    Deliver(u8),
    Heal,
    Wait(u16),
    LimitExceeded,
}

fn edit() -> impl Strategy<Value = Edit> {
    let id = 0..4u8;
    let bad = prop::bool::weighted(0.1);
    prop_oneof![
        3 => (id.clone(), 0..3u8, prop::bool::weighted(0.2), prop::bool::weighted(0.8), bad)
            .prop_map(|(id, body, warms, fed, bad)| Edit::Cluster { id, body, warms, fed, bad }),
        2 => id.clone().prop_map(Edit::DropCluster),
        3 => (id.clone(), 0..3u8, 0..16u8, bad)
            .prop_map(|(id, body, clusters, bad)| Edit::Route { id, body, clusters, bad }),
        1 => id.clone().prop_map(Edit::DropRoute),
        3 => (id.clone(), 0..3u8, 0..16u8, bad)
            .prop_map(|(id, body, clusters, bad)| Edit::Scope { id, body, clusters, bad }),
        1 => id.clone().prop_map(Edit::DropScope),
        2 => (0..2u8, 0..3u8, 0..16u8, 0..16u8, any::<bool>())
            .prop_map(|(id, body, routes, clusters, scoped)| Edit::Listener { id, body, routes, clusters, scoped }),
        1 => (0..2u8).prop_map(Edit::DropListener),
        1 => (id.clone(), any::<bool>()).prop_map(|(id, on)| Edit::Withhold { id, on }),
        2 => (any::<bool>(), id, prop::option::of(0..2u8))
            .prop_map(|(scope, id, body)| Edit::StandIn { scope, id, body }),
    ]
}

fn turn(cuts: bool) -> impl Strategy<Value = Turn> {
    prop_oneof![
        4 => vec(edit(), 1..5).prop_map(Turn::Publish),
        6 => (1..4u8).prop_map(Turn::Serve),
        6 => (1..4u8).prop_map(Turn::Handle),
        6 => (1..4u8).prop_map(Turn::Deliver),
        1 => Just(Turn::Heal),
        2 => (1..8000u16).prop_map(Turn::Wait),
        u32::from(cuts) => Just(Turn::LimitExceeded),
    ]
}

type Piece = (u8, u8, bool);

/// What should be published.
#[derive(Clone, Default)]
struct World {
    clusters: BTreeMap<u8, (u8, bool, bool, bool)>,
    routes: BTreeMap<u8, Piece>,
    scopes: BTreeMap<u8, Piece>,
    listeners: BTreeMap<u8, (u8, u8, u8, bool)>,
    withheld: BTreeSet<u8>,
    stand_ins: BTreeMap<(bool, u8), u8>,
}

impl World {
    fn edit(&mut self, edit: &Edit) {
        match edit.clone() {
            Edit::Cluster { id, body, warms, fed, bad } => {
                self.clusters.insert(id, (body, warms, fed, bad));
            }
            Edit::DropCluster(id) => {
                self.clusters.remove(&id);
            }
            Edit::Route { id, body, clusters, bad } => {
                self.routes.insert(id, (body, clusters, bad));
            }
            Edit::DropRoute(id) => {
                self.routes.remove(&id);
            }
            Edit::Scope { id, body, clusters, bad } => {
                self.scopes.insert(id, (body, clusters, bad));
            }
            Edit::DropScope(id) => {
                self.scopes.remove(&id);
            }
            Edit::Listener { id, body, routes, clusters, scoped } => {
                self.listeners.insert(id, (body, routes, clusters, scoped));
            }
            Edit::DropListener(id) => {
                self.listeners.remove(&id);
            }
            Edit::Withhold { id, on: true } => {
                self.withheld.insert(id);
            }
            Edit::Withhold { id, on: false } => {
                self.withheld.remove(&id);
            }
            Edit::StandIn { scope, id, body: Some(body) } => {
                self.stand_ins.insert((scope, id), body);
            }
            Edit::StandIn { scope, id, body: None } => {
                self.stand_ins.remove(&(scope, id));
            }
        }
    }

    fn mend(&mut self) {
        self.clusters.values_mut().for_each(|cluster| cluster.3 = false);
        self.routes.values_mut().chain(self.scopes.values_mut()).for_each(|piece| piece.2 = false);
    }

    /// The resources; a reference to a cluster that is not there is left out, as the caller promises.
    fn resources(&self) -> BTreeMap<(Kind, Name), Resource> {
        let mut all = Vec::new();
        let there = |mask: u8| self.clusters.keys().filter(move |id| mask & 1 << **id != 0).map(|id| format!("c{id}"));
        let body = |bad: bool, parts: &dyn std::fmt::Debug| format!("{}{parts:?}", if bad { "bad" } else { "" });
        for (id, (version, warms, fed, bad)) in &self.clusters {
            let mut resource = cluster(&format!("c{id}"), &body(*bad, &(version, warms)));
            resource.warms = *warms;
            if self.withheld.contains(id) {
                resource = Resource::withheld(Kind::Cluster, resource.name);
            }
            all.push(resource);
            if *fed {
                all.push(endpoints(&format!("c{id}"), "e"));
            }
        }
        for (kind, prefix, pieces) in [(Kind::Route, "r", &self.routes), (Kind::ScopedRoute, "g|s", &self.scopes)] {
            for (id, (version, mask, bad)) in pieces {
                if let Some(body) = self.stand_ins.get(&(kind == Kind::ScopedRoute, *id)) {
                    all.push(resource(kind, &format!("{prefix}{id}"), &format!("stand-in {body}")).standing_in());
                    continue;
                }
                let clusters: Vec<String> = there(*mask).collect();
                let piece = resource(kind, &format!("{prefix}{id}"), &body(*bad, &(version, &clusters)));
                all.push(clusters.iter().fold(piece, |piece, to| piece.refers_to(Kind::Cluster, to.as_str())));
            }
        }
        for (id, (version, routes, mask, scoped)) in &self.listeners {
            let clusters: Vec<String> = there(*mask).collect();
            let text = body(false, &(version, routes, &clusters, scoped));
            let mut listener = resource(Kind::Listener, &format!("l{id}"), &text);
            for route in (0..4).filter(|route| routes & 1 << route != 0) {
                listener = listener.refers_to(Kind::Route, format!("r{route}"));
            }
            if *scoped {
                listener = listener.refers_under(Kind::ScopedRoute, "g|");
            }
            all.push(clusters.iter().fold(listener, |all, to| all.refers_to(Kind::Cluster, to.as_str())));
        }
        all.into_iter().map(|resource| ((resource.kind, resource.name.clone()), resource)).collect()
    }
}

struct Game {
    bench: Bench,
    envoy: Envoy,
    world: World,
    published: BTreeSet<(Kind, Name)>,
    waited: Duration,
    cut: bool,
}

impl Game {
    fn new(style: Style, whim: u64) -> Self {
        Self {
            bench: Bench::new(style),
            envoy: Envoy::new(style, whim),
            world: World::default(),
            published: BTreeSet::new(),
            waited: Duration::ZERO,
            cut: false,
        }
    }

    fn play(&mut self, turn: &Turn) {
        match turn {
            Turn::Publish(edits) => {
                edits.iter().for_each(|edit| self.world.edit(edit));
                self.publish();
            }
            Turn::Serve(count) => {
                for _ in 0..*count {
                    if let Step::Send(response) = self.bench.session.poll(self.bench.now) {
                        self.envoy.inbox.push_back(response);
                        self.note_withheld();
                    }
                }
            }
            Turn::Handle(count) => (0..*count).for_each(|_| self.envoy.handle()),
            Turn::Deliver(count) => {
                for _ in 0..*count {
                    if let Some(request) = self.envoy.outbox.pop_front() {
                        self.bench.request(request);
                    }
                }
            }
            Turn::Heal => self.envoy.heal(),
            Turn::Wait(millis) => {
                let time = Duration::from_millis((*millis).into());
                self.bench.wait(time);
                self.waited += time;
                // Warming is bounded by the timeout of health checks, and what Envoy wrote arrives.
                if self.waited > Duration::from_secs(10) {
                    self.waited = Duration::ZERO;
                    self.envoy.heal();
                    self.play(&Turn::Deliver(u8::MAX));
                }
            }
            Turn::LimitExceeded => {
                self.cut = true;
                self.bench.reconnect();
                self.envoy.connect();
                // Envoy asks for all it wants at once, and waits with clusters only.
                self.play(&Turn::Deliver(u8::MAX));
            }
        }
    }

    fn publish(&mut self) {
        let resources = self.world.resources();
        let now: BTreeSet<(Kind, Name)> = resources.keys().cloned().collect();
        let gone: Vec<(Kind, &str)> = self.published.difference(&now).map(|(kind, name)| (*kind, &**name)).collect();
        self.bench.publish(resources.into_values().collect(), &gone);
        self.published = now;
        self.note_withheld();
    }

    /// What is sent while a cluster is withheld does not wait for it.
    fn note_withheld(&mut self) {
        let Session { nonce, ref view, .. } = self.bench.session;
        let withheld = view.table(Kind::Cluster).iter().filter(|entry| entry.role == Role::Withheld);
        self.envoy.spared.extend(withheld.map(|entry| (entry.name.clone(), nonce)));
    }

    /// Everything happens that can happen without time passing; `true` if something did.
    fn rest(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..10_000 {
            let (before, sent) = (self.envoy.outbox.len() + self.envoy.inbox.len(), self.bench.session.nonce);
            self.play(&Turn::Deliver(u8::MAX));
            self.play(&Turn::Serve(u8::MAX));
            self.play(&Turn::Handle(u8::MAX));
            if before + self.envoy.outbox.len() + self.envoy.inbox.len() == 0 && sent == self.bench.session.nonce {
                return moved;
            }
            moved = true;
        }
        panic!("the conversation never comes to rest");
    }

    fn finish(&mut self) {
        self.world.mend();
        self.publish();
        self.rest();
        self.bench.wait(Duration::from_secs(3));
        self.rest();
        assert!(self.envoy.unfed.is_empty(), "wait for endpoints in vain: {:?}", self.envoy.unfed);
        for _ in 0..20 {
            self.envoy.heal();
            self.rest();
            self.bench.wait(Duration::from_secs(4));
        }
        assert!(!self.rest(), "still busy");
        let resources = self.world.resources();
        let wanted = resources.iter().filter(|((kind, name), _)| self.envoy.wants(*kind, name));
        for ((kind, name), resource) in wanted {
            let published = self.bench.session.table(*kind).get(name).map(|entry| entry.version);
            let held = self.envoy.held.get(&(*kind, name.clone()));
            match resource.role {
                Role::Own => assert_eq!(held.map(|entry| entry.version), published, "{kind} {name}"),
                Role::StandIn => {
                    let own = held.is_some_and(|entry| entry.role == Role::Own);
                    assert!(own || held.map(|entry| entry.version) == published, "{kind} {name}: {held:?}");
                }
                Role::Withheld => assert!(held.is_none_or(|entry| entry.role == Role::Own), "{kind} {name}"),
            }
        }
        for (kind, name) in self.envoy.held.keys() {
            // What is used by something whose absence cannot be said stays, too, and by something that is kept: after a cut
            // it is not known what that uses.
            let kept = !self.world.stand_ins.is_empty() && matches!(kind, Kind::Cluster | Kind::Endpoints);
            let partial = self.bench.style == Style::Sotw && (!kind.is_full_state() || self.envoy.uses(name));
            // A cluster that is withheld stays as it was, and so do its endpoints.
            let fed = Ref::To(Kind::Endpoints, name.clone());
            let feeds = *kind == Kind::Endpoints && self.envoy.held.values().any(|entry| entry.refs.contains(&fed));
            let stays = partial || feeds || kept && (self.cut || self.envoy.uses(name));
            assert!(stays || resources.contains_key(&(*kind, name.clone())), "{kind} {name} was never removed");
        }
        let stays = self.envoy.held.keys().any(|(kind, name)| !resources.contains_key(&(*kind, name.clone())));
        for kind in Kind::ALL.into_iter().filter(|_| !stays) {
            assert_eq!(self.bench.session.pending(kind), 0, "{kind} is not in step");
        }
    }
}

fn run(style: Style, whim: u64, turns: &[Turn]) {
    let mut game = Game::new(style, whim);
    turns.iter().for_each(|turn| game.play(turn));
    game.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn delta_keeps_its_promises(whim in any::<u64>(), turns in vec(turn(true), 1..60)) {
        run(Style::Delta, whim, &turns);
    }

    /// A cut is left out: a state-of-the-world client does not say what it has, so what it loses cannot be known.
    #[test]
    fn state_of_the_world_keeps_its_promises(whim in any::<u64>(), turns in vec(turn(false), 1..60)) {
        run(Style::Sotw, whim, &turns);
    }

    /// A client that follows no rules at all: no panic, no end without rest, no more names than it may have.
    #[test]
    fn nonsense_is_survived(sotw in any::<bool>(), turns in vec(nonsense(), 1..60)) {
        let limits = Limits { names: 20, aliases: 4, aliases_per_resource: 2, ..Limits::default() };
        let style = if sotw { Style::Sotw } else { Style::Delta };
        let mut bench = Bench::with(style, limits, None);
        let mut world = World::default();
        for turn in turns {
            match turn {
                Nonsense::Edit(edit) => {
                    world.edit(&edit);
                    bench.publish(world.resources().into_values().collect(), &[(Kind::Route, "r0"), (Kind::Cluster, "c1")]);
                }
                Nonsense::Subscription { kind, plus, minus, held, nonce, error, version } => {
                    let name = |at: u8| ["*", "", "c0", "c1", "r0", "g|s0", "l0", "x", "y", "z"].map(Name::from)[at as usize % 10].clone();
                    let names = |list: Vec<u8>| list.into_iter().map(name).collect::<Vec<_>>();
                    let subscription = match style {
                        Style::Delta => Subscription::Delta {
                            subscribe: names(plus),
                            unsubscribe: names(minus),
                            initial_versions: names(held).into_iter().map(|name| (name, version)).collect(),
                        },
                        Style::Sotw => Subscription::Sotw { names: names(plus), version: Some(version).filter(|v| *v != 0) },
                    };
                    let error = error.then(|| "c0: no".to_owned());
                    let request = Request { kind: Kind::ALL[kind as usize % Kind::COUNT], nonce, error, subscription };
                    if bench.session.on_request(request, bench.now).is_err() {
                        break;
                    }
                }
                Nonsense::Wait(millis) => bench.wait(Duration::from_millis(millis.into())),
            }
            bench.responses();
            prop_assert!(bench.session.count_names() <= 30);
        }
    }
}

#[derive(Clone, Debug)]
enum Nonsense {
    Edit(Edit),
    Subscription {
        kind: u8,
        plus: Vec<u8>,
        minus: Vec<u8>,
        held: Vec<u8>,
        nonce: Option<u64>,
        error: bool,
        version: u64,
    },
    Wait(u16),
}

fn nonsense() -> impl Strategy<Value = Nonsense> {
    let names = || vec(any::<u8>(), 0..4);
    let nonce = prop::option::of(0..12u64);
    let subscription = (any::<u8>(), names(), names(), names(), nonce, any::<bool>(), 0..3u64);
    prop_oneof![
        2 => edit().prop_map(Nonsense::Edit),
        6 => subscription.prop_map(|(kind, plus, minus, held, nonce, error, version)| {
            Nonsense::Subscription { kind, plus, minus, held, nonce, error, version }
        }),
        1 => any::<u16>().prop_map(Nonsense::Wait),
    ]
}
