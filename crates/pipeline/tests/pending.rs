//! Secrets that are brought on reference: until the answer comes, whoever refers to one keeps what it had, everybody else
//! moves on, and the tables are those of a build from nothing whatever the order of edits and answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "pending/client_validation.rs"]
mod client_validation;
#[path = "pending/delegation.rs"]
mod delegation;
#[path = "pending/emissary.rs"]
mod emissary;
#[path = "pending/gateway.rs"]
mod gateway;

use kinds::{Object, kind};
use model::{ObjectRef, Severity};
use pipeline::{FetchResult, Output, Pipeline, Settings};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};
use testbed::{cases::object, certs::Ca};

fn leaf() -> &'static (String, String) {
    static LEAF: OnceLock<(String, String)> = OnceLock::new();
    LEAF.get_or_init(|| {
        let leaf = Ca::new("pending").leaf("a.example.com").make();
        (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned())
    })
}

/// A Secret that is both a certificate and a CA bundle.
fn secret(id: &ObjectRef) -> Object {
    let (chain, key) = leaf();
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": &*id.namespace, "name": &*id.name },
        "type": "kubernetes.io/tls", "stringData": { "tls.crt": chain, "tls.key": key, "ca.crt": chain },
    }))
}

fn secret_key(id: &ObjectRef) -> ObjectRef {
    ObjectRef::new(kind::SECRET, id.namespace.clone(), id.name.clone())
}

fn service(namespace: &str, name: &str) -> Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": namespace, "name": name },
        "spec": { "ports": [{ "port": 443 }] },
    }))
}

fn route(path: &str, ca: Option<&str>) -> Value {
    let mut service = json!({ "name": "web", "port": 443 });
    if let Some(ca) = ca {
        service["protocol"] = "tls".into();
        service["validation"] = json!({ "caSecret": ca, "subjectName": "web" });
    }
    json!({ "conditions": [{ "prefix": path }], "services": [service] })
}

fn proxy(namespace: &str, name: &str, spec: &Value) -> Object {
    let metadata = json!({ "namespace": namespace, "name": name });
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": metadata, "spec": spec }))
}

fn root(namespace: &str, name: &str, tls: Option<&str>, children: &[(&str, &str)], routes: &[Value]) -> Object {
    let mut host = json!({ "fqdn": format!("{name}.example.com") });
    if let Some(secret) = tls {
        host["tls"] = json!({ "secretName": secret });
    }
    let includes = children.iter().map(|(namespace, name)| {
        json!({ "namespace": namespace, "name": name, "conditions": [{ "prefix": format!("/{name}") }] })
    });
    let includes: Vec<_> = includes.collect();
    proxy(namespace, name, &json!({ "virtualhost": host, "includes": includes, "routes": routes }))
}

/// What the source and the control loop do for a pipeline, and what an outside that hears only of changes knows.
struct World {
    pipeline: Pipeline,
    wanted: BTreeSet<ObjectRef>,
    answered: BTreeMap<ObjectRef, FetchResult>,
    objects: BTreeMap<ObjectRef, Object>,
    resources: BTreeMap<(xds::Kind, xds::Name), Vec<u8>>,
    verdicts: BTreeMap<String, Vec<String>>,
}

impl World {
    fn new() -> World {
        let settings = Settings { fetched_secrets: true, ..Settings::default() };
        World {
            pipeline: Pipeline::new(&settings),
            wanted: BTreeSet::new(),
            answered: BTreeMap::new(),
            objects: BTreeMap::new(),
            resources: BTreeMap::new(),
            verdicts: BTreeMap::new(),
        }
    }

    fn put(&mut self, object: Object) {
        self.pipeline.put(&object.key(), Some(object.clone()));
        self.objects.insert(object.key(), object);
    }

    fn remove(&mut self, key: &ObjectRef) {
        self.pipeline.put(key, None);
        self.objects.remove(key);
    }

    /// Works until nothing waits, and asks for what is wanted as the control loop does.
    fn settle(&mut self) {
        loop {
            let output = self.pipeline.settle();
            self.on_outcome(output);
            let wants = self.pipeline.secret_refs();
            for id in &wants.gone {
                self.wanted.remove(id);
                self.answered.remove(id);
                self.pipeline.put(&secret_key(id), None);
                self.pipeline.set_fetch_result(id, None);
            }
            self.wanted.extend(wants.new);
            if wants.gone.is_empty() {
                return;
            }
        }
    }

    fn answer(&mut self, id: &ObjectRef, answer: FetchResult) {
        let found = (answer == FetchResult::Found).then(|| secret(id));
        self.pipeline.put(&secret_key(id), found);
        self.pipeline.set_fetch_result(id, Some(answer.clone()));
        self.answered.insert(id.clone(), answer);
    }

    /// Works, and then again with these Secrets.
    fn found(&mut self, secrets: &[ObjectRef]) {
        self.settle();
        secrets.iter().for_each(|id| self.answer(id, FetchResult::Found));
        self.settle();
    }

    fn on_outcome(&mut self, output: Output) {
        for (kind, name) in output.xds.removes {
            self.resources.remove(&(kind, name));
        }
        for resource in output.xds.upserts {
            self.resources.insert((resource.kind, resource.name), resource.body.to_vec());
        }
        for (object, list) in output.verdicts {
            match list {
                Some(list) => {
                    // Warnings about certificates and endpoints are not what is tested here.
                    let errors = list.iter().filter(|verdict| verdict.code.severity() == Severity::Error);
                    _ = self.verdicts.insert(object.to_string(), errors.map(ToString::to_string).collect());
                }
                None => _ = self.verdicts.remove(&object.to_string()),
            }
        }
    }

    /// The same objects and the same answers, from nothing.
    fn rebuilt(&self) -> World {
        let mut world = World::new();
        for object in self.objects.values().rev() {
            world.put(object.clone());
        }
        loop {
            world.settle();
            let new: Vec<_> = world.wanted.iter().filter(|id| !world.answered.contains_key(id)).cloned().collect();
            let Some(id) = new.first() else { return world };
            // Some are asked for only until others are answered; what those hold does not matter.
            world.answer(id, self.answered.get(id).cloned().unwrap_or(FetchResult::Found));
        }
    }

    fn verdicts_of(&self, object: &str) -> Option<&[String]> {
        let found = self.verdicts.iter().find(|(name, _)| name.ends_with(object));
        found.map(|(_, list)| list.as_slice())
    }

    /// The resources that speak of something.
    fn mentions(&self, text: &str) -> usize {
        let contains = |body: &[u8]| body.windows(text.len()).any(|window| window == text.as_bytes());
        self.resources.values().filter(|body| contains(body)).count()
    }

    /// Whether proxies are sent a Secret.
    fn has_secret(&self, name: &str) -> bool {
        let secret = |(kind, found): &(xds::Kind, xds::Name)| *kind == xds::Kind::Secret && found.contains(name);
        self.resources.keys().any(secret)
    }
}

fn id(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::new(kinds::kind::SECRET, namespace, name)
}

#[test]
fn a_new_host_is_not_there_until_its_secret_is_known_and_others_are_published() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(service("b", "web"));
    world.put(root("a", "new", Some("cert"), &[("a", "child")], &[route("/", None)]));
    world.put(proxy("a", "child", &json!({ "routes": [route("/x", None)] })));
    world.settle();
    assert_eq!(world.mentions("new.example.com"), 0, "nothing of it is served yet");
    assert_eq!(world.verdicts_of("a/new"), None, "and nothing is said yet");
    assert_eq!(world.verdicts_of("a/child"), None, "nor of what it includes");
    assert_eq!(world.wanted, [id("a", "cert")].into());
    world.put(root("b", "other", None, &[], &[route("/", None)]));
    world.settle();
    assert!(world.mentions("other.example.com") > 0);
    assert_eq!(world.verdicts_of("b/other"), Some(&[][..]));
    world.pipeline.self_check().unwrap();
    world.answer(&id("a", "cert"), FetchResult::Found);
    world.settle();
    assert!(world.mentions("new.example.com") > 0);
    assert_eq!((world.verdicts_of("a/new"), world.verdicts_of("a/child")), (Some(&[][..]), Some(&[][..])));
}

#[test]
fn a_host_that_refers_to_another_secret_keeps_what_it_had_until_that_is_known() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(root("a", "host", Some("old"), &[], &[route("/", None)]));
    world.settle();
    world.answer(&id("a", "old"), FetchResult::Found);
    world.settle();
    let before = world.resources.clone();
    assert!(!before.is_empty());
    for new in ["new", "newer"] {
        world.put(root("a", "host", Some(new), &[], &[route("/edited", None)]));
        world.settle();
        assert_eq!(world.resources, before, "nothing changed yet");
        assert_eq!(world.verdicts_of("a/host"), Some(&[][..]));
        assert_eq!(world.wanted, [id("a", "old"), id("a", new)].into(), "what is kept is still referred to");
        assert!(world.pipeline.is_pending(&proxy("a", "host", &json!({})).key()));
        world.pipeline.self_check().unwrap();
    }
    world.answer(&id("a", "newer"), FetchResult::NotReadable("it is forbidden".into()));
    world.settle();
    let verdicts = world.verdicts_of("a/host").unwrap();
    assert!(verdicts.len() == 1 && verdicts[0].contains("Secret a/newer: it is forbidden"), "{verdicts:?}");
    assert_eq!(world.wanted, [id("a", "newer")].into());
    // It is asked again from time to time, and one day it works.
    world.answer(&id("a", "newer"), FetchResult::Found);
    world.settle();
    assert_eq!(world.verdicts_of("a/host"), Some(&[][..]));
    assert!(world.mentions("/edited") > 0);
    world.pipeline.self_check().unwrap();
}

#[test]
fn an_included_object_that_is_pending_holds_up_its_own_routes_only() {
    let mut world = World::new();
    for namespace in ["a", "b", "c"] {
        world.put(service(namespace, "web"));
    }
    let children = [("b", "slow"), ("c", "quick")];
    world.put(root("a", "host", None, &children, &[route("/own", None)]));
    world.put(proxy("b", "slow", &json!({ "routes": [route("/before", None)] })));
    world.put(proxy("c", "quick", &json!({ "routes": [route("/before", None)] })));
    world.settle();
    world.put(proxy("b", "slow", &json!({ "routes": [route("/after", Some("ca"))] })));
    world.put(proxy("c", "quick", &json!({ "routes": [route("/after", None)] })));
    world.settle();
    let served = |world: &World, path: &str| world.mentions(path) > 0;
    assert!(served(&world, "/slow/before") && !served(&world, "/slow/after"));
    assert!(served(&world, "/quick/after") && !served(&world, "/quick/before"));
    assert!(served(&world, "/own"));
    assert_eq!((world.verdicts_of("b/slow"), world.verdicts_of("c/quick")), (Some(&[][..]), Some(&[][..])));
    world.pipeline.self_check().unwrap();
    world.answer(&id("b", "ca"), FetchResult::Absent);
    world.settle();
    assert!(!served(&world, "/slow/before"));
    assert_eq!(world.verdicts_of("b/slow").unwrap().len(), 1);
    assert_eq!(world.verdicts_of("c/quick"), Some(&[][..]));
    // A root that decides to leave it out does not wait for it.
    world.put(proxy("b", "slow", &json!({ "routes": [route("/after", Some("another"))] })));
    world.put(root("a", "host", None, &children[1..], &[route("/own", None)]));
    world.settle();
    assert!(!served(&world, "/slow/"));
    world.pipeline.self_check().unwrap();
}

#[test]
fn an_object_with_more_faults_than_are_listed_holds_up_its_own_routes_only() {
    let mut world = World::new();
    for namespace in ["a", "b"] {
        world.put(service(namespace, "web"));
    }
    let child = |path: &str, ca: Option<&str>| {
        let bad = (0..1000).map(|n| json!({ "conditions": [{ "prefix": format!("/bad{n}") }], "services": [{ "name": "none", "port": 1 }] }));
        let routes: Vec<_> = bad.chain([route(path, ca)]).collect();
        proxy("b", "slow", &json!({ "routes": routes }))
    };
    world.put(root("a", "host", None, &[("b", "slow")], &[route("/own-before", None)]));
    world.put(child("/before", None));
    world.settle();
    world.put(root("a", "host", None, &[("b", "slow")], &[route("/own-after", None)]));
    world.put(child("/after", Some("ca")));
    world.settle();
    assert!(world.mentions("/own-after") > 0, "the root does not wait for what it includes");
    assert!(world.mentions("/slow/before") > 0 && world.mentions("/slow/after") == 0);
    world.pipeline.self_check().unwrap();
}

#[test]
fn connections_go_where_they_went_while_a_ca_of_an_included_object_is_not_known() {
    let mut world = World::new();
    for name in ["alpha", "beta", "gamma"] {
        world.put(service("b", name));
    }
    let host = json!({ "fqdn": "tcp.example.com", "tls": { "passthrough": true } });
    let include = json!({ "include": { "namespace": "b", "name": "stream" } });
    world.put(proxy("a", "tcp", &json!({ "virtualhost": host, "tcpproxy": include })));
    let stream = |services: Value| proxy("b", "stream", &json!({ "tcpproxy": { "services": services } }));
    world.put(stream(json!([{ "name": "alpha", "port": 443 }])));
    world.settle();
    let before = world.resources.clone();
    assert!(world.mentions("alpha") > 0);
    let validated = json!({ "name": "beta", "port": 443, "protocol": "tls", "validation": { "caSecret": "ca", "subjectName": "x" } });
    world.put(stream(json!([validated, { "name": "gamma", "port": 443 }])));
    world.settle();
    assert!(world.resources == before, "all connections go where they went");
    world.pipeline.self_check().unwrap();
    world.answer(&id("b", "ca"), FetchResult::Found);
    world.settle();
    let is_used = |name: &str| world.mentions(name) > 0;
    assert_eq!(["alpha", "beta", "gamma"].map(is_used), [false, true, true]);
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_pending_root_of_somebody_else_holds_up_no_status() {
    let mut world = World::new();
    world.put(service("b", "web"));
    world.put(root("b", "own", None, &[("b", "child")], &[]));
    world.put(root("a", "foreign", Some("cert"), &[("b", "child")], &[]));
    world.put(proxy("b", "child", &json!({ "routes": [route("/x", None)] })));
    world.settle();
    assert_eq!(world.verdicts_of("b/child"), Some(&[][..]));
    let bad = json!({ "services": [{ "name": "none", "port": 1 }] });
    world.put(proxy("b", "child", &json!({ "routes": [bad] })));
    world.settle();
    assert_eq!(world.verdicts_of("b/child").unwrap().len(), 1);
    assert_eq!(world.verdicts_of("a/foreign"), None);
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_root_gives_up_a_host_at_once_also_while_it_is_pending() {
    let mut world = World::new();
    world.put(service("a", "web"));
    world.put(service("b", "web"));
    let root = |namespace: &str, fqdn: &str, secret: Option<&str>, path: &str| {
        let mut host = json!({ "fqdn": fqdn });
        if let Some(secret) = secret {
            host["tls"] = json!({ "secretName": secret });
        }
        proxy(namespace, "host", &json!({ "virtualhost": host, "routes": [route(path, None)] }))
    };
    world.put(root("a", "x.example.com", Some("old"), "/of-a"));
    world.put(root("b", "x.example.com", None, "/of-b"));
    world.settle();
    world.answer(&id("a", "old"), FetchResult::Found);
    world.settle();
    let before = world.resources.clone();
    assert!(world.mentions("/of-a") > 0 && world.mentions("/of-b") == 0);
    world.put(root("a", "y.example.com", Some("new"), "/of-a"));
    world.settle();
    assert!(world.mentions("/of-b") > 0, "the host has another owner");
    assert_eq!((world.mentions("/of-a"), world.mentions("y.example.com")), (0, 0));
    world.pipeline.self_check().unwrap();
    world.put(root("a", "x.example.com", Some("new"), "/edited"));
    world.settle();
    assert!(world.resources == before, "what it asks for again it keeps");
    world.pipeline.self_check().unwrap();
}

#[test]
fn an_ingress_keeps_the_tls_of_all_hosts_that_it_still_names() {
    let mut world = World::new();
    world.put(service("a", "web"));
    let ingress = |secret: &str, hosts: &[&str]| {
        let backend = json!({ "service": { "name": "web", "port": { "number": 443 } } });
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
        let rules = json!([{ "host": "a.example.com", "http": { "paths": [path] } }]);
        let spec = json!({ "rules": rules, "tls": [{ "hosts": hosts, "secretName": secret }] });
        let metadata = json!({ "namespace": "a", "name": "i" });
        object(&json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec }))
    };
    world.put(ingress("old", &["*.example.com", "given-up.example.org"]));
    world.settle();
    world.answer(&id("a", "old"), FetchResult::Found);
    world.settle();
    let before = world.resources.clone();
    world.put(ingress("new", &["*.example.com", "given-up.example.org"]));
    world.settle();
    assert!(world.resources == before);
    world.put(ingress("new", &["*.example.com"]));
    world.settle();
    assert!(world.mentions("*.example.com") > 0);
    assert_eq!(world.mentions("given-up.example.org"), 0);
    world.pipeline.self_check().unwrap();
}

#[test]
fn a_pending_object_is_not_served_as_it_was_where_its_parents_say_something_else() {
    let allow = json!([{ "source": "Remote", "cidr": "10.0.0.0/8" }]);
    let prefix = |path: &str| json!([{ "prefix": path }]);
    let inner = |path: &str| json!({ "includes": [{ "namespace": "c", "name": "slow", "conditions": prefix(path) }] });
    let root = |host: Value, path: &str| {
        let includes = json!([{ "namespace": "b", "name": "middle", "conditions": prefix(path) }]);
        proxy("a", "host", &json!({ "virtualhost": host, "includes": includes, "routes": [route("/", None)] }))
    };
    let plain = json!({ "fqdn": "host.example.com" });
    let narrowed = json!({ "fqdn": "host.example.com", "ipAllowPolicy": allow });
    let stream = json!({ "fqdn": "host.example.com", "tls": { "passthrough": true } });
    let edits = [
        (root(plain.clone(), "/outer"), inner("/inner"), "/outer/inner/", true),
        (root(narrowed, "/outer"), inner("/inner"), "/outer/inner/", false),
        (root(stream, "/outer"), inner("/inner"), "/outer/inner/", false),
        (root(plain.clone(), "/moved"), inner("/inner"), "/moved/inner/", false),
        (root(plain.clone(), "/outer"), inner("/moved"), "/outer/moved/", false),
    ];
    for (at, (root_after, middle_after, place, is_kept)) in edits.into_iter().enumerate() {
        let mut world = World::new();
        world.put(service("a", "web"));
        world.put(service("c", "behind"));
        let child = |path: &str, ca: Option<&str>| {
            let mut route = route(path, ca);
            route["services"][0]["name"] = "behind".into();
            proxy("c", "slow", &json!({ "routes": [route] }))
        };
        world.put(root(plain.clone(), "/outer"));
        world.put(proxy("b", "middle", &inner("/inner")));
        world.put(child("/before", None));
        world.settle();
        assert!(world.mentions("behind") > 0 && world.mentions("/outer/inner/before") > 0);
        world.put(root_after);
        world.put(proxy("b", "middle", &middle_after));
        world.put(child("/after", Some("ca")));
        world.settle();
        assert_eq!(world.mentions("behind") > 0, is_kept, "{at}");
        assert_eq!(world.mentions("/outer/inner/before") > 0, is_kept, "{at}");
        // No wider route takes the requests meanwhile.
        assert_eq!(world.mentions(&format!("{place}after")) > 0, !is_kept, "{at}");
        world.pipeline.self_check().unwrap();
        world.answer(&id("c", "ca"), FetchResult::Found);
        world.settle();
        assert!(world.mentions(&format!("{place}after")) > 0, "{at}");
        world.pipeline.self_check().unwrap();
    }
}

#[test]
fn names_that_cannot_be_are_refused_at_once_and_never_wanted() {
    let mut world = World::new();
    world.put(service("a", "web"));
    let routes: Vec<_> = (0..3000).map(|n| route(&format!("/{n}"), Some(&format!("x%{n}")))).collect();
    world.put(root("a", "host", Some("Not_A_Name"), &[], &[]));
    world.put(root("a", "many", None, &[], &routes));
    world.settle();
    assert!(world.wanted.is_empty(), "{:?}", world.wanted);
    let verdicts = world.verdicts_of("a/host").unwrap();
    let is_told = |verdict: &String| verdict.contains("Secret a/Not_A_Name cannot exist: a name consists of");
    assert!(verdicts.iter().any(is_told), "{verdicts:?}");
    let verdicts = world.verdicts_of("a/many").unwrap();
    assert!(verdicts.iter().any(|verdict| verdict.contains("Secret a/x%1 cannot exist: ")), "{:?}", &verdicts[..3]);
}

#[derive(Clone, Debug)]
enum Step {
    /// A root: which, its certificate, whether it includes each child, its CA.
    Root(usize, Option<usize>, [bool; 2], Option<usize>),
    /// A child: which, its CA.
    Child(usize, Option<usize>),
    Remove(usize),
    Ingress(Option<usize>),
    /// One of the Secrets that are wanted, answered or not.
    FetchResult(usize, FetchResult),
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    let secret = || proptest::option::weighted(0.7, 0..3_usize);
    let answer = prop_oneof![
        3 => Just(FetchResult::Found),
        1 => Just(FetchResult::Absent),
        1 => Just(FetchResult::NotReadable("forbidden".into())),
    ];
    prop_oneof![
        4 => (0..2_usize, secret(), any::<[bool; 2]>(), secret()).prop_map(|(n, tls, children, ca)| Step::Root(n, tls, children, ca)),
        3 => (0..2_usize, secret()).prop_map(|(n, ca)| Step::Child(n, ca)),
        1 => (0..4_usize).prop_map(Step::Remove),
        1 => secret().prop_map(Step::Ingress),
        5 => (0..6_usize, answer).prop_map(|(n, answer)| Step::FetchResult(n, answer)),
        2 => Just(Step::Check),
    ]
}

const CHILDREN: [(&str, &str); 2] = [("a", "c0"), ("b", "c1")];

fn name(secret: Option<usize>) -> Option<String> {
    secret.map(|number| format!("s{number}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_edits_and_answers_ends_as_a_build_from_nothing(script in vec((step(), any::<u8>()), 1..40)) {
        let mut world = World::new();
        world.put(service("a", "web"));
        world.put(service("b", "web"));
        for (step, path) in script {
            let path = format!("/p{}", path % 3);
            match step {
                Step::Root(n, tls, children, ca) => {
                    let children: Vec<_> = CHILDREN.into_iter().zip(children).filter(|(_, is)| *is).map(|(child, _)| child).collect();
                    let (tls, ca) = (name(tls), name(ca));
                    world.put(root("a", &format!("r{n}"), tls.as_deref(), &children, &[route(&path, ca.as_deref())]));
                }
                Step::Child(n, ca) => {
                    let (namespace, child) = CHILDREN[n];
                    world.put(proxy(namespace, child, &json!({ "routes": [route(&path, name(ca).as_deref())] })));
                }
                Step::Remove(n) => {
                    let (namespace, name) = [("a", "r0"), ("a", "r1"), CHILDREN[0], CHILDREN[1]][n];
                    world.remove(&proxy(namespace, name, &json!({})).key());
                }
                Step::Ingress(tls) => {
                    let path = json!({ "path": path, "pathType": "Prefix", "backend": { "service": { "name": "web", "port": { "number": 443 } } } });
                    let mut spec = json!({ "rules": [{ "host": "r0.example.com", "http": { "paths": [path] } }] });
                    if let Some(secret) = name(tls) {
                        spec["tls"] = json!([{ "hosts": ["r0.example.com"], "secretName": secret }]);
                    }
                    let metadata = json!({ "namespace": "a", "name": "i" });
                    world.put(object(&json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec })));
                }
                Step::FetchResult(n, answer) => {
                    let wanted: Vec<_> = world.wanted.iter().cloned().collect();
                    if let Some(id) = wanted.get(n) {
                        world.answer(id, answer);
                    }
                }
                Step::Check => world.pipeline.self_check().unwrap(),
            }
            world.settle();
        }
        world.pipeline.self_check().unwrap();
        // Everything is answered at last: nothing is left of the order in which it was.
        loop {
            let open: Vec<_> = world.wanted.iter().filter(|id| !world.answered.contains_key(id)).cloned().collect();
            let Some(id) = open.first() else { break };
            world.answer(id, FetchResult::Found);
            world.settle();
        }
        let rebuilt = world.rebuilt();
        prop_assert_eq!(&world.verdicts, &rebuilt.verdicts);
        prop_assert!(world.resources == rebuilt.resources, "a build from nothing differs");
    }
}
