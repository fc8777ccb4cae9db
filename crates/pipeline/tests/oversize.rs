//! Resources that are too large to be sent: the largest of the namespace that has the most are withheld, and everybody else is served.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "packing/world.rs"]
#[allow(dead_code, reason = "shared with the tests of packings")]
mod world;

use kinds::Object;
use model::{Code, ObjectRef, Verdict};
use pipeline::{Pipeline, settings::Packing};
use serde_json::json;
use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc};
use world::{http_scope, object, service, settings};
use xds::{Batch, Config, Fleet, Kind, PublishError, Role, Server};

/// A pipeline and a server, driven as the control loop does it.
struct Loop {
    pipeline: Pipeline,
    server: Server,
    verdicts: BTreeMap<ObjectRef, Arc<Vec<Verdict>>>,
}

impl Loop {
    fn new(packing: Packing, table_bytes: usize) -> Self {
        Self {
            pipeline: Pipeline::new(&settings(packing)),
            server: Server::new(Config { table_bytes, ..Config::default() }),
            verdicts: BTreeMap::new(),
        }
    }

    fn put(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.pipeline.put(&object.key(), Some(object));
        }
        for _ in 0..20 {
            let output = self.pipeline.settle();
            for (object, list) in output.verdicts {
                match list {
                    Some(list) => _ = self.verdicts.insert(object, list),
                    None => _ = self.verdicts.remove(&object),
                }
            }
            let published = self.server.publish(Batch { fleet: Fleet::Shared, changes: output.xds });
            let again = match published {
                Ok(_) => self.pipeline.readmit(|kind| self.server.room(&Fleet::Shared, kind)),
                Err(PublishError::TooLarge { kind, bytes, limit }) => {
                    assert!(self.pipeline.shed(kind, bytes - limit, limit), "something is left to withhold");
                    true
                }
            };
            if !again {
                self.pipeline.self_check().unwrap();
                return;
            }
        }
        panic!("it never fits");
    }

    /// The Ingresses that are told that they are too large.
    fn reported(&self) -> Vec<&str> {
        let large = |list: &Vec<Verdict>| list.iter().any(|verdict| verdict.code == Code::ResourceTooLarge);
        self.verdicts.iter().filter(|(_, list)| large(list)).map(|(object, _)| &*object.name).collect()
    }

    fn table(&self, kind: Kind) -> xds::Table {
        self.server.acks(&Fleet::Shared).unwrap().snapshot().unwrap().table(kind).clone()
    }
}

/// An Ingress with so many paths for the host of its name.
fn paths(name: &str, count: usize) -> Object {
    paths_of(name, &format!("{name}.example.com"), count)
}

fn paths_of(name: &str, host: &str, count: usize) -> Object {
    paths_in("default", name, host, count)
}

fn paths_in(namespace: &str, name: &str, host: &str, count: usize) -> Object {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let path = |at: usize| json!({"path": format!("/{at}"), "pathType": "Exact", "backend": backend});
    let paths: Vec<_> = (0..count).map(path).collect();
    let rule = json!({"host": host, "http": {"paths": paths}});
    let meta = json!({"namespace": namespace, "name": name});
    object(kinds::kind::INGRESS, &json!({"metadata": meta, "spec": {"rules": [rule]}}))
}

fn web() -> Object {
    service("web", Ipv4Addr::LOCALHOST)
}

#[test]
fn the_largest_host_is_withheld_and_told_until_it_is_smaller() {
    for (packing, kind) in [(Packing::Scoped, Kind::ScopedRoute), (Packing::Plain, Kind::Route)] {
        let mut bed = Loop::new(packing, 60_000);
        bed.put([web(), paths("a", 1), paths("big", 1_000), paths("b", 2)]);
        assert_eq!(bed.reported(), ["big"], "{packing:?}");
        let table = bed.table(kind);
        let bodies: Vec<_> = table.iter().map(|entry| entry.body.clone()).collect();
        let has = |table: &[bytes::Bytes], name: &str| {
            table.iter().any(|body| body.windows(name.len()).any(|part| part == name.as_bytes()))
        };
        assert!(["a.example.com", "b.example.com"].iter().all(|name| has(&bodies, name)), "{packing:?}");
        assert!(has(&bodies, "big.example.com"), "there is something in its place");
        assert!(table.bytes() < 60_000);
        if packing == Packing::Scoped {
            let stand_in = table.get(&http_scope("big.example.com")).unwrap();
            assert_eq!(stand_in.role, Role::StandIn, "who has something goes on with that");
        }
        // Others move on meanwhile.
        bed.put([paths("c", 3)]);
        assert_eq!(bed.reported(), ["big"], "{packing:?}");
        bed.put([paths("big", 5)]);
        assert!(bed.reported().is_empty(), "{packing:?}: {:?}", bed.verdicts);
        assert!(bed.table(kind).iter().all(|entry| entry.role == Role::Own), "{packing:?}");
    }
}

#[test]
fn the_largest_go_first_whoever_came_first_and_come_back_when_there_is_room() {
    let all = || [paths("huge", 300), paths("large", 200), paths("small", 100), paths("tiny", 1)];
    let mut whole = Loop::new(Packing::Scoped, usize::MAX);
    whole.put(all().into_iter().chain([web()]));
    let limit = whole.table(Kind::ScopedRoute).bytes() - 1;
    // One after the other, the largest first and last, and all at once.
    let mut ends = Vec::new();
    for order in 0..3 {
        let mut bed = Loop::new(Packing::Scoped, limit);
        bed.put([web()]);
        match order {
            0 => all().into_iter().for_each(|object| bed.put([object])),
            1 => all().into_iter().rev().for_each(|object| bed.put([object])),
            _ => bed.put(all()),
        }
        assert_eq!(bed.reported(), ["huge"], "{order}");
        ends.push(bed.table(Kind::ScopedRoute).version());
        // There is room again.
        bed.put([paths("large", 1)]);
        assert!(bed.reported().is_empty(), "{order}: {:?}", bed.reported());
    }
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
}

/// The only object of a namespace stays, though it is larger than each of the many of another, whichever came first.
#[test]
fn the_namespace_that_has_the_most_makes_room_for_the_others() {
    let small = |number: usize| {
        let name = format!("small-{number}");
        paths_in("tb", &name, &format!("{name}.example.com"), 1)
    };
    let all = || (0..40).map(small).chain([paths_in("ta", "large", "large.example.com", 20)]).collect::<Vec<_>>();
    let limit = scopes(all()) - 2_000;
    let mut ends = Vec::new();
    for order in 0..3 {
        let mut bed = Loop::new(Packing::Scoped, limit);
        match order {
            0 => all().into_iter().for_each(|object| bed.put([object])),
            1 => all().into_iter().rev().for_each(|object| bed.put([object])),
            _ => bed.put(all()),
        }
        let reported: Vec<String> = bed.reported().into_iter().map(str::to_owned).collect();
        assert!(
            !reported.is_empty() && reported.iter().all(|name| name.starts_with("small-")),
            "{order}: {reported:?}"
        );
        ends.push((reported, bed.table(Kind::ScopedRoute).version()));
        // There is room again.
        bed.put((0..10).map(|number| paths_in("tb", &format!("small-{number}"), "same.example.com", 1)));
        assert!(bed.reported().is_empty(), "{order}: {:?}", bed.reported());
    }
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
}

#[test]
fn a_listener_that_is_too_large_is_nobodys_and_said_to_the_operator() {
    let objects = || [web(), paths("a", 1)];
    let mut bed = Loop::new(Packing::Scoped, bytes(Kind::Listener, objects()) - 1);
    bed.put(objects());
    let why = bed.pipeline.unreported().unwrap();
    assert!(why.starts_with("listener ingress_http is withheld: it has "), "{why}");
}

/// The bytes of all scopes with these objects, if nothing is withheld.
fn scopes(objects: impl IntoIterator<Item = Object>) -> usize {
    bytes(Kind::ScopedRoute, objects)
}

/// The bytes of all resources of a kind.
fn bytes(kind: Kind, objects: impl IntoIterator<Item = Object>) -> usize {
    let mut bed = Loop::new(Packing::Scoped, usize::MAX);
    bed.put(objects);
    bed.table(kind).bytes()
}

#[test]
fn the_owner_of_the_catch_all_is_told_of_a_wildcard_host_that_its_routes_make_large() {
    let all = || [web(), paths_of("wild", "*.example.com", 1), paths_of("any", "", 80)];
    let mut bed = Loop::new(Packing::Scoped, scopes(all()) - 1);
    bed.put(all());
    assert_eq!(bed.reported(), ["any", "wild"]);
}

#[test]
fn the_scope_of_redirects_is_withheld_like_any_other_and_told_those_who_follow_them() {
    let following = |follows: bool| {
        let mut route = json!({"services": [{"name": "web", "port": 80}]});
        if follows {
            route["internalRedirectPolicy"] = json!({});
        }
        let spec = json!({"virtualhost": {"fqdn": "follows.example.com"}, "routes": [route]});
        let meta = json!({"namespace": "default", "name": "follows"});
        object(kinds::kind::CONTOUR_HTTP_PROXY, &json!({"metadata": meta, "spec": spec}))
    };
    let hosts = || (0..300).map(|at| paths(&format!("a-host-with-a-long-name-{at}"), 1)).chain([web()]);
    let mut bed = Loop::new(Packing::Scoped, scopes(hosts().chain([following(true)])) - 1);
    bed.put(hosts().chain([following(true)]));
    assert_eq!(bed.reported(), ["follows"]);
    let name = envoy::name::redirects_scope(&model::PortId::new(model::FleetId::Shared, "ingress_http"));
    let withheld = |bed: &Loop| bed.table(Kind::ScopedRoute).get(&name).is_none_or(|entry| entry.role != Role::Own);
    assert!(withheld(&bed));
    bed.put([following(false)]);
    assert!(bed.reported().is_empty(), "{:?}", bed.reported());
}
