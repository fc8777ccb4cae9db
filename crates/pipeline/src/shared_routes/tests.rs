//! Routes that hosts take by selectors, and routes that combine, through all tables: who is recomputed, and who is told.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::{Pipeline, Settings, hosts::VirtualHosts, translations::Translations, verdicts::Verdicts};
use model::{
    Code, FleetId, Host, ListenerId, ObjectRef, Route, Translation,
    route::{
        Action, Depth, Dialect, DirectResponse, Forward, OnEqual, Path, PathMatch, Precedence, Share, TieBreak,
        WeightedCluster,
    },
    shared_routes::{Exposure, Labels, RoutePool, RouteSelector, SharedRoutes},
    translation::RoutePiece,
};
use std::sync::Arc;

const DIALECT: Dialect = Dialect { rank: 30, tie_break: TieBreak::Age, falls_through: false };

fn object(name: &str) -> ObjectRef {
    ObjectRef::new(kinds::kind::SERVICE, "ns", name)
}

fn labels(text: &str) -> Labels {
    Labels::new(text.split_once('=').map(|(name, value)| (name.into(), value.into())))
}

fn route(name: &str, created: i64, path: &str) -> Route {
    Route {
        path: PathMatch::Prefix(Path::parse(path).unwrap()),
        conditions: Default::default(),
        depth: Depth::OneLabel,
        action: Action::DirectResponse(DirectResponse::unavailable()),
        policy: Default::default(),
        precedence: Precedence::by_age(DIALECT, created, "ns".into(), name.into(), 0),
        origin: object(name).at("spec"),
        fraction: None,
        combined: None,
    }
}

/// An object that owns a host in plaintext, and takes shared routes with these labels, or those that name the host.
fn host(name: &str, host: &str, selects: Option<&str>) -> Translation {
    let (listener, host) = (ListenerId::http(), Host::parse(host).unwrap());
    let (labels, exposure) = (selects.map(labels), Exposure::All);
    let selector = RouteSelector { listener: listener.clone(), host: host.clone(), pool: "test", labels, exposure };
    let selectors = Box::new([selector]);
    Translation { hosts: vec![(listener, host)], selectors, ..Translation::empty(object(name)) }.sorted()
}

/// An object that shares a route.
fn shared(name: &str, created: i64, hosts: Option<&str>, labelled: &str, path: &str) -> Translation {
    let shared = SharedRoutes {
        pool: RoutePool { fleet: FleetId::Shared, name: "test" },
        hosts: hosts.map(|host| Host::parse(host).unwrap()),
        labels: labels(labelled),
        routes: vec![Arc::new(route(name, created, path))],
    };
    Translation { shared: Box::new([shared]), ..Translation::empty(object(name)) }
}

struct Bed(Pipeline);

impl Bed {
    fn new(translations: impl IntoIterator<Item = Translation>) -> Self {
        let mut bed = Self(Pipeline::new(&Settings::default()));
        for translation in translations {
            bed.set(translation);
        }
        bed.0.settle();
        bed
    }

    fn set(&mut self, translation: Translation) {
        self.0.contribute(&translation.subject.clone(), Some(translation));
    }

    /// How many virtual hosts are recomputed for a change.
    fn recomputed(&mut self, change: impl FnOnce(&mut Self)) -> u64 {
        let count = |bed: &Self| bed.0.engine().counters_of::<VirtualHosts>().computed;
        let before = count(self);
        change(self);
        self.0.settle();
        count(self) - before
    }

    /// The objects whose routes a host has, in the order in which they are tried.
    fn served(&self, host: &str) -> Vec<String> {
        let key = (ListenerId::http(), Host::parse(host).unwrap());
        let found = self.0.engine().get::<VirtualHosts>(&key).unwrap();
        found.host.routes.iter().map(|route| route.origin.object.name.to_string()).collect()
    }

    fn reported(&self, name: &str) -> Vec<Code> {
        let verdicts = self.0.engine().get::<Verdicts>(&object(name)).unwrap();
        verdicts.iter().map(|verdict| verdict.code).collect()
    }
}

/// A thousand hosts: every second one selects by a label, the others take what names them.
fn thousand() -> Bed {
    let hosts = (0..1_000).map(|at| {
        let selects = (at % 2 == 0).then_some("app=x");
        host(&format!("host-{at}"), &format!("h{at}.example.com"), selects)
    });
    Bed::new(hosts)
}

#[test]
fn a_shared_route_costs_the_hosts_that_take_it_and_no_others() {
    let mut bed = thousand();
    let by_name = |path| shared("wildcard", 1, Some("*.example.com"), "", path);
    assert_eq!(bed.recomputed(|bed| bed.set(by_name("/a"))), 500, "the hosts that do not look at labels");
    assert_eq!((bed.served("h1.example.com").len(), bed.served("h2.example.com").len()), (1, 0));
    let by_label = |path| shared("labelled", 2, None, "app=x", path);
    assert_eq!(bed.recomputed(|bed| bed.set(by_label("/b"))), 500);
    assert_eq!(bed.served("h2.example.com"), ["labelled"]);
    assert_eq!(bed.recomputed(|bed| bed.set(shared("other", 2, None, "app=y", "/b"))), 0);
    assert_eq!(bed.recomputed(|bed| bed.set(shared("one", 3, Some("h7.example.com"), "", "/c"))), 1);
    assert_eq!(bed.served("h7.example.com"), ["one", "wildcard"]);
    let both = |label: &str| shared("both", 4, Some("h8.example.com"), label, "/d");
    assert_eq!(bed.recomputed(|bed| bed.set(both("app=y"))), 0);
    assert_eq!(bed.recomputed(|bed| bed.set(both("app=x"))), 1);
    // An edit costs the same, and a host costs itself.
    assert_eq!(bed.recomputed(|bed| bed.set(by_label("/other"))), 500);
    assert_eq!(bed.recomputed(|bed| bed.set(host("new", "new.example.com", None))), 1);
    assert_eq!(bed.served("new.example.com"), ["wildcard"]);
    assert_eq!(bed.recomputed(|bed| bed.0.contribute(&object("wildcard"), None)), 501);
    assert!(bed.served("new.example.com").is_empty());
    assert_eq!(bed.0.self_check(), Ok(()));
}

#[test]
fn a_shared_route_loses_to_an_older_one_and_is_told() {
    let own = |created| {
        let (listener, name) = (ListenerId::http(), Host::parse("a.example.com").unwrap());
        let route = Arc::new(route("host", created, "/a"));
        let routes = vec![RoutePiece { listener, host: name, route }];
        Translation { routes, ..host("host", "a.example.com", None) }
    };
    let mut bed = Bed::new([own(1), shared("shared", 2, Some("*"), "", "/a")]);
    assert_eq!(
        (bed.served("a.example.com"), bed.reported("shared")),
        (vec!["host".to_owned()], vec![Code::RouteConflict])
    );
    bed.set(own(3));
    bed.0.settle();
    assert_eq!(
        (bed.served("a.example.com"), bed.reported("host")),
        (vec!["shared".to_owned()], vec![Code::RouteConflict])
    );
    assert!(bed.reported("shared").is_empty());
}

#[test]
fn two_selectors_that_take_one_route_take_it_once() {
    let both = [host("one", "a.example.com", Some("app=x")), host("two", "a.example.com", Some("tier=y"))];
    let mut given = shared("shared", 1, None, "app=x", "/a");
    given.shared[0].labels = Labels::new([("app".into(), "x".into()), ("tier".into(), "y".into())]);
    let bed = Bed::new(both.into_iter().chain([given]));
    assert_eq!(bed.served("a.example.com"), ["shared"]);
    assert!(bed.reported("shared").is_empty());
}

#[test]
fn routes_that_no_host_takes_are_told() {
    let given = || shared("shared", 1, Some("a.example.com"), "app=x", "/a");
    let mut bed = Bed::new([given()]);
    let unused = vec![Code::SharedRoutesUnused];
    assert_eq!(bed.reported("shared"), unused);
    for (other, selects, expected) in [
        ("b.example.com", None, &unused),
        ("a.example.com", Some("app=y"), &unused),
        ("*.example.com", Some("app=x"), &Vec::new()),
        ("*", None, &Vec::new()),
    ] {
        bed.set(host("host", other, selects));
        bed.0.settle();
        assert_eq!(&bed.reported("shared"), expected, "{other} {selects:?}");
    }
    bed.0.contribute(&object("host"), None);
    bed.0.settle();
    assert_eq!(bed.reported("shared"), unused);
}

#[test]
fn what_hosts_and_routes_make_together_is_bounded_and_told() {
    use assemble::shared_routes::MOST_IN_HOST;
    // One object has all but two of the routes that a host may have, three others have one each.
    let mut many = shared("shared", 0, Some("*"), "", "/");
    let paths = (2..MOST_IN_HOST).map(|at| Arc::new(route("shared", 0, &format!("/{at}"))));
    many.shared[0].routes = paths.collect();
    let others = ["a", "b", "c"].map(|name| shared(name, 1, Some("*"), "", &format!("/{name}")));
    let mut bed = Bed::new(others.into_iter().chain([many, host("host", "a.example.com", None)]));
    // And what is left out answers 503.
    assert_eq!(bed.served("a.example.com").len(), MOST_IN_HOST + 1);
    assert_eq!((bed.reported("c"), bed.reported("b")), (vec![Code::SharedRoutesLimit], Vec::new()));
    bed.0.contribute(&object("a"), None);
    bed.0.settle();
    assert!(bed.reported("c").is_empty());
    assert_eq!(bed.0.self_check(), Ok(()));
}

/// Two thousand hosts share one list of a thousand routes, and one more has a route of its own: none is left out.
#[test]
fn routes_that_hosts_have_in_common_do_not_count_for_each_of_them() {
    let mut many = shared("shared", 0, Some("*"), "", "/");
    many.shared[0].routes = (0..1_000).map(|at| Arc::new(route("shared", 0, &format!("/{at}")))).collect();
    let hosts = (0..2_000).map(|at| host(&format!("host-{at}"), &format!("h{at}.example.com"), None));
    let mut bed = Bed::new(hosts.chain([many, shared("one", 1, Some("h7.example.com"), "", "/own")]));
    assert!(bed.reported("shared").is_empty());
    assert_eq!((bed.served("h6.example.com").len(), bed.served("h7.example.com").len()), (1_000, 1_001));
    // Another host that has the same routes recomputes none of the others.
    assert_eq!(bed.recomputed(|bed| bed.set(host("new", "new.example.com", None))), 1);
}

/// A route that loses is told of each host by its name, and the hosts still have one list in common.
#[test]
fn hosts_share_their_routes_though_some_of_them_lost() {
    let hosts = ["a.example.com", "b.example.com"];
    let owners = hosts.map(|name| host(name, name, None));
    let routes = [shared("old", 1, Some("*"), "", "/a"), shared("young", 2, Some("*"), "", "/a")];
    let canaries = [("main", 0), ("canary", 60), ("late", 60)].map(|(name, percent)| {
        let mut given = shared(name, 0, Some("*"), "", "/");
        given.shared[0].routes = vec![canary(name, 3, percent, "/b")];
        given
    });
    let mut bed = Bed::new(owners.into_iter().chain(routes).chain(canaries));
    let row = |bed: &Bed, name: &str| {
        let key = (ListenerId::http(), Host::parse(name).unwrap());
        bed.0.engine().get::<VirtualHosts>(&key).unwrap().host.routes.clone()
    };
    let [first, second] = hosts.map(|name| row(&bed, name));
    assert_eq!(first.len(), 2);
    assert!(first.iter().zip(&second).all(|(one, other)| Arc::ptr_eq(one, other)), "combined routes are made once");
    for (loser, count) in [("young", 2), ("late", 2), ("old", 0), ("main", 0)] {
        let verdicts = bed.0.engine().get::<Verdicts>(&object(loser)).unwrap();
        assert_eq!(verdicts.len(), count, "{loser}: {verdicts:?}");
        for (verdict, host) in verdicts.iter().zip(hosts) {
            assert!(verdict.message.starts_with(&format!("host {host}, path ")), "{verdict}");
        }
    }
    // A host that leaves the others says the same.
    let before = bed.0.engine().get::<Verdicts>(&object("young")).cloned();
    bed.set(shared("own", 4, Some("b.example.com"), "", "/own"));
    bed.0.settle();
    assert_eq!(bed.0.engine().get::<Verdicts>(&object("young")).cloned(), before);
    assert_eq!(bed.0.self_check(), Ok(()));
}

fn cluster(name: &str) -> WeightedCluster {
    let backend = model::EndpointsId::tcp("ns", name, 80);
    WeightedCluster::new(model::ClusterId::from(backend), 1)
}

/// A route for a share of the requests, which a host has or shares.
fn canary(name: &str, created: i64, percent: u8, path: &str) -> Arc<Route> {
    let mut route = route(name, created, path);
    route.action = Action::Forward(Box::new(Forward { clusters: vec![cluster(name)], ..Default::default() }));
    let share = if percent == 0 { Share::Rest } else { Share::Percent(percent) };
    route.precedence.on_equal = OnEqual::Combine { share, across_namespaces: false };
    Arc::new(route)
}

#[test]
fn routes_that_combine_are_one_route_of_all_their_objects() {
    let with = |name: &str, route: Arc<Route>| {
        let mut given = shared(name, 0, Some("*"), "", "/a");
        given.shared[0].routes = vec![route];
        given
    };
    let mut bed = Bed::new([
        host("host", "a.example.com", None),
        with("main", canary("main", 1, 0, "/a")),
        with("canary", canary("canary", 2, 10, "/a")),
    ]);
    let key = (ListenerId::http(), Host::parse("a.example.com").unwrap());
    let weights = |bed: &Bed| -> Vec<(String, u32)> {
        let found = bed.0.engine().get::<VirtualHosts>(&key).unwrap();
        let Action::Forward(forward) = &found.host.routes[0].action else { return Vec::new() };
        forward.clusters.iter().map(|it| (it.cluster.service().unwrap().service.to_string(), it.weight)).collect()
    };
    assert_eq!(weights(&bed), [("main".to_owned(), 900_000), ("canary".to_owned(), 100_000)]);
    assert!(bed.reported("main").is_empty() && bed.reported("canary").is_empty());
    bed.set(with("canary", canary("canary", 2, 25, "/a")));
    bed.0.settle();
    assert_eq!(weights(&bed), [("main".to_owned(), 750_000), ("canary".to_owned(), 250_000)]);
    // Without the one that takes the rest there is nobody to share with.
    bed.0.contribute(&object("main"), None);
    bed.0.settle();
    assert_eq!(weights(&bed), [("canary".to_owned(), 1)]);
    assert_eq!(bed.0.self_check(), Ok(()));
}

/// Small numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }

    fn translation(&mut self, name: &str) -> Translation {
        const NAMES: [&str; 6] =
            ["*", "*.example.com", "a.example.com", "b.example.com", "*.b.example.com", "x.b.example.com"];
        const LABELS: [&str; 4] = ["", "app=x", "app=y", "tier=y"];
        let (names, labelled) = (self.pick(&NAMES), self.pick(&LABELS));
        let mut translation = if self.roll(2) == 0 {
            host(name, names, (self.roll(2) == 0).then_some(labelled))
        } else {
            let hosts = (self.roll(3) > 0).then_some(names);
            shared(name, self.roll(3) as i64, hosts, labelled, self.pick(&["/", "/a", "/b"]))
        };
        for route in translation.shared.iter_mut().flat_map(|shared| &mut shared.routes) {
            if self.roll(2) == 0 {
                *route = canary(name, self.roll(3) as i64, self.roll(4) as u8 * 30, "/a");
            }
            let mut changed = Route::clone(route);
            changed.precedence.priority = self.roll(3) as i32 - 1;
            changed.precedence.widening = self.roll(2) as u16;
            *route = Arc::new(changed);
        }
        translation
    }
}

#[test]
fn any_script_of_edits_ends_as_a_build_from_nothing() {
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let mut bed = Bed::new([]);
        for _ in 0..40 {
            let name = format!("object-{}", dice.roll(12));
            if dice.roll(4) == 0 {
                bed.0.contribute(&object(&name), None);
            } else {
                let translation = dice.translation(&name);
                bed.set(translation);
            }
            if dice.roll(2) == 0 {
                bed.0.settle();
            }
        }
        bed.0.settle();
        assert_eq!(bed.0.self_check(), Ok(()), "seed {seed}");
        assert!(bed.0.engine().rows::<Translations>().count() > 4);
    }
}
