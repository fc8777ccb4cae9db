//! The loop with a source that is played by the test: what it asks for, and what it publishes while there is no answer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use kinds::{HttpProxy, Typed, kind};
use serde_json::{Value, json};
use source::fetch::{Request, Requests};
use source::{Change, ChangeSource, Feeder, Update, feed};
use testbed::cases::object;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(60);

/// What a batch brought, as far as these tests care.
struct Heard {
    published: bool,
    is_complete: bool,
    is_blocked: bool,
    slices: u64,
    /// How many rows were computed on another thread.
    jobs: u64,
    /// How many hosts of a wide edit wait for their turn.
    backlog: usize,
    verdicts: BTreeMap<String, usize>,
    objects: BTreeSet<String>,
}

struct Bed {
    objects: Feeder,
    answers: Feeder,
    requests: Requests<ObjectRef>,
    heard: mpsc::UnboundedReceiver<Heard>,
    task: JoinHandle<Result<(), Divergence>>,
}

impl Bed {
    fn start() -> Bed {
        Bed::with(xds::Config::default(), true)
    }

    fn with(config: xds::Config, checks: bool) -> Bed {
        let (wants, requests) = source::fetch::wants();
        let ((objects, fed), (answers, answered)) = (feed(1 << 16), feed(1 << 16));
        let settings = pipeline::Settings { fetched_secrets: true, ..pipeline::Settings::default() };
        let server = Server::new(config);
        let replicas = Replicas::new(server.clone(), None);
        let control = Control::new(Pipeline::new(&settings), server, replicas)
            .fetching(Secrets::new(wants, answered))
            .reporting(|kind| HttpProxy::KINDS.contains(&kind))
            .checking(checks);
        let (reports, heard) = mpsc::unbounded_channel();
        let task = tokio::spawn(control.run(fed, move |news| {
            let verdicts = news.verdicts.iter().filter_map(|(object, list)| {
                let errors = list.as_ref()?.iter().filter(|verdict| verdict.code.severity() == model::Severity::Error);
                Some((object.to_string(), errors.count()))
            });
            let objects = news.objects.iter().map(|(key, _)| key.name.to_string()).collect();
            let (published, is_complete, is_blocked) = (news.published, news.is_complete, news.blocked.is_some());
            let (slices, verdicts) = (news.pipeline.engine().last_batch().slices, verdicts.collect());
            let jobs = news.pipeline.engine().jobs();
            let backlog = news.pipeline.backlog();
            let _ =
                reports.send(Heard { published, is_complete, is_blocked, slices, jobs, backlog, verdicts, objects });
        }));
        Bed { objects, answers, requests, heard, task }
    }

    /// A loop that has published its first build.
    async fn complete() -> Bed {
        Bed::completed(Bed::start()).await
    }

    async fn completed(mut bed: Bed) -> Bed {
        bed.put([endpoints("b", 1), service("b")]).await;
        bed.objects.synced();
        bed.until(|heard| heard.is_complete).await;
        bed
    }

    async fn put(&self, objects: impl IntoIterator<Item = Object>) {
        let changes = objects.into_iter().map(|object| (object.key(), Some(object)));
        self.objects.send(update(changes)).await.unwrap();
    }

    /// Answers that there is no such Secret.
    async fn absent(&self, keys: impl IntoIterator<Item = ObjectRef>) {
        self.answers.send(update(keys.into_iter().map(|key| (key, None)))).await.unwrap();
    }

    async fn asked(&mut self) -> Request<ObjectRef> {
        tokio::time::timeout(TIMEOUT, self.requests.recv()).await.expect("a question").unwrap()
    }

    async fn until(&mut self, wish: impl Fn(&Heard) -> bool) -> Heard {
        let look = async {
            loop {
                match self.heard.recv().await {
                    Some(heard) if wish(&heard) => return heard,
                    Some(_) => {}
                    None => panic!("the loop ended: {:?}", (&mut self.task).await),
                }
            }
        };
        tokio::time::timeout(TIMEOUT, look).await.expect("it is published")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn update(changes: impl Iterator<Item = (ObjectRef, Option<Object>)>) -> Update {
    let changes = changes.map(|(key, object)| Change { key, object, source: ChangeSource::Cluster });
    Update { changes: changes.collect(), ..Update::default() }
}

fn service(namespace: &str) -> Object {
    let metadata = json!({ "namespace": namespace, "name": "web" });
    object(
        &json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "ports": [{ "port": 80 }] } }),
    )
}

fn endpoints(namespace: &str, last: u8) -> Object {
    let labels = json!({ "kubernetes.io/service-name": "web" });
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "namespace": namespace, "name": "web", "labels": labels }, "addressType": "IPv4",
        "ports": [{ "port": 80, "name": "" }], "endpoints": [{ "addresses": [format!("192.0.2.{last}")] }],
    }))
}

fn proxy(namespace: &str, name: &str, tls: Option<&str>, routes: &[Value]) -> Object {
    let mut host = json!({ "fqdn": format!("{name}.example.com") });
    if let Some(secret) = tls {
        host["tls"] = json!({ "secretName": secret });
    }
    let metadata = json!({ "namespace": namespace, "name": name });
    let spec = json!({ "virtualhost": host, "routes": routes });
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": metadata, "spec": spec }))
}

fn route(path: &str) -> Value {
    json!({ "conditions": [{ "prefix": path }], "services": [{ "name": "web", "port": 80 }] })
}

fn matching(regex: &str) -> Value {
    json!({ "conditions": [{ "regex": regex }], "services": [{ "name": "web", "port": 80 }] })
}

fn trusting(path: &str, ca: &str) -> Value {
    let validation = json!({ "caSecret": ca, "subjectName": "web" });
    let service = json!({ "name": "web", "port": 80, "protocol": "tls", "validation": validation });
    json!({ "conditions": [{ "prefix": path }], "services": [service] })
}

fn secret(name: &str) -> ObjectRef {
    ObjectRef::new(kind::SECRET, "a", name)
}

#[tokio::test]
async fn nobody_waits_for_three_thousand_secrets_that_are_never_answered() {
    let mut bed = Bed::complete().await;
    bed.put([proxy("b", "mine", None, &[route("/")])]).await;
    bed.until(|heard| heard.published).await;
    let routes: Vec<_> = (0..3000).map(|n| trusting(&format!("/{n}"), &format!("ca-{n}"))).collect();
    bed.put([service("a"), proxy("a", "hostile", None, &routes)]).await;
    let mut asked = Vec::new();
    while asked.len() < 3000 {
        let Request::Want(key) = bed.asked().await else { panic!("only wants are expected") };
        asked.push(key);
    }
    // An endpoint and a route of somebody else.
    bed.put([endpoints("b", 2)]).await;
    bed.until(|heard| heard.published).await;
    bed.put([proxy("b", "new", None, &[route("/edited")])]).await;
    let heard = bed.until(|heard| heard.published).await;
    assert!(heard.verdicts.keys().any(|object| object.ends_with("b/new")), "{:?}", heard.verdicts);
    assert!(!heard.verdicts.keys().any(|object| object.ends_with("a/hostile")), "{:?}", heard.verdicts);
    // It is gone, and so are its questions.
    bed.objects.send(update([(proxy("a", "hostile", None, &[]).key(), None)].into_iter())).await.unwrap();
    for _ in 0..3000 {
        assert!(matches!(bed.asked().await, Request::Forget(_)));
    }
}

#[tokio::test]
async fn an_object_is_told_of_when_its_secrets_are_known() {
    let mut bed = Bed::complete().await;
    bed.put([service("a"), proxy("a", "host", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.published).await;
    assert!(heard.objects.contains("host"));
    bed.put([proxy("a", "host", Some("cert"), &[route("/")])]).await;
    assert_eq!(bed.asked().await, Request::Want(secret("cert")));
    bed.put([proxy("b", "other", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.published).await;
    assert_eq!(heard.objects, ["other".to_owned()].into(), "what is said of the host is about what it was");
    bed.absent([secret("cert")]).await;
    let heard = bed.until(|heard| heard.published).await;
    assert_eq!(heard.objects, ["host".to_owned()].into());
    assert!(heard.verdicts.iter().any(|(object, errors)| object.ends_with("a/host") && *errors == 1));
}

#[tokio::test]
async fn an_object_is_told_of_when_it_may_not_use_the_secret_any_more() {
    let mut bed = Bed::complete().await;
    let delegation = object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "TLSCertificateDelegation",
        "metadata": { "namespace": "a", "name": "all" },
        "spec": { "delegations": [{ "secretName": "cert", "targetNamespaces": ["*"] }] },
    }));
    // It is told that it may not, and then what is said stays the same while it may, and nothing is known of the Secret.
    bed.put([proxy("b", "host", Some("a/cert"), &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("host")).await;
    assert!(heard.verdicts.iter().any(|(object, errors)| object.ends_with("b/host") && *errors == 1));
    bed.put([delegation.clone()]).await;
    assert_eq!(bed.asked().await, Request::Want(secret("cert")));
    bed.put([proxy("b", "host", Some("a/cert"), &[route("/edited")]), proxy("b", "other", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("other")).await;
    assert_eq!(heard.objects, ["other".to_owned()].into());
    bed.objects.send(update([(delegation.key(), None)].into_iter())).await.unwrap();
    let heard = bed.until(|heard| !heard.objects.is_empty()).await;
    assert_eq!(heard.objects, ["host".to_owned()].into());
}

#[tokio::test]
async fn the_first_build_waits_for_answers_but_not_for_ever_new_names() {
    let mut bed = Bed::start();
    bed.put([service("a"), endpoints("a", 1), proxy("a", "first", Some("s-0"), &[route("/")])]).await;
    bed.objects.synced();
    assert_eq!(bed.asked().await, Request::Want(secret("s-0")));
    let mut name = "first".to_owned();
    for round in 0..secrets::ROUNDS - 1 {
        // While it waits somebody names another.
        let next = round + 1;
        bed.put([proxy("a", &format!("more-{next}"), Some(&format!("s-{next}")), &[route("/")])]).await;
        assert_eq!(bed.asked().await, Request::Want(secret(&format!("s-{next}"))));
        bed.absent([secret(&format!("s-{round}"))]).await;
        let heard = bed.until(|heard| heard.is_complete || heard.objects.contains(&name)).await;
        assert_eq!((heard.published, heard.is_complete), (false, false), "it is published in round {round}");
        name = format!("more-{next}");
    }
    bed.put([proxy("a", "last", Some("never"), &[route("/")])]).await;
    assert_eq!(bed.asked().await, Request::Want(secret("never")));
    bed.absent([secret(&format!("s-{}", secrets::ROUNDS - 1))]).await;
    let heard = bed.until(|heard| heard.is_complete).await;
    assert!(heard.published);
    assert!(heard.verdicts.keys().any(|object| object.ends_with("a/first")));
    assert!(!heard.verdicts.keys().any(|object| object.ends_with("a/last")), "it is pending like any other");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_edits_without_end_does_not_hold_up_others() {
    let mut bed = Bed::completed(Bed::with(xds::Config::default(), false)).await;
    // Its translation takes longer than a slice, and whenever the loop looks there is another edit of it.
    let edits: Vec<_> = (0..20)
        .map(|edit| {
            let mut routes: Vec<_> = (0..600).map(|n| matching(&format!("/{n}/(a{{30}}){{30}}"))).collect();
            routes.push(route(&format!("/{edit}")));
            proxy("a", "busy", None, &routes)
        })
        .collect();
    let source = bed.objects.another();
    let busy = tokio::spawn(async move {
        for edit in edits.iter().cycle() {
            source.send(update([(edit.key(), Some(edit.clone()))].into_iter())).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    bed.until(|heard| heard.jobs > 0).await;
    bed.put([proxy("b", "mine", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("mine")).await;
    assert!(heard.slices < 100, "it was worked on for {} slices", heard.slices);
    assert!(heard.published && heard.verdicts.keys().any(|object| object.ends_with("b/mine")), "{:?}", heard.verdicts);
    busy.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_object_is_computed_on_another_thread_and_told_of_when_that_is_done() {
    let mut bed = Bed::completed(Bed::with(xds::Config::default(), false)).await;
    let large = |edit: usize| {
        let routes: Vec<_> = (0..pipeline::large::ROUTES + 1).map(|n| route(&format!("/{n}-{edit}"))).collect();
        proxy("a", "large", None, &routes)
    };
    bed.put([service("a"), large(0)]).await;
    let heard = bed.until(|heard| heard.objects.contains("large")).await;
    assert_eq!(heard.jobs, 3, "the translation, the virtual host and the scope");
    assert!(heard.published);
    // Somebody else's edit in the same batch does not wait for it.
    bed.put([large(1), proxy("b", "mine", None, &[route("/")])]).await;
    let heard = bed.until(|heard| !heard.objects.is_empty()).await;
    assert_eq!((heard.published, heard.objects), (true, ["mine".to_owned()].into()));
    let heard = bed.until(|heard| !heard.objects.is_empty()).await;
    assert_eq!((heard.published, heard.objects, heard.jobs), (true, ["large".to_owned()].into(), 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_endpoints_are_computed_on_another_thread_and_few_are_published_meanwhile() {
    let mut bed = Bed::completed(Bed::with(xds::Config::default(), false)).await;
    let many = |port: u16| {
        let address = |n: usize| json!({ "addresses": [format!("10.0.{}.{}", n / 250, n % 250 + 1)] });
        object(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "namespace": "a", "name": "web", "labels": { "kubernetes.io/service-name": "web" } },
            "ports": [{ "port": port, "name": "" }],
            "endpoints": (0..=pipeline::large::ENDPOINTS).map(address).collect::<Vec<_>>(),
        }))
    };
    let hosts = ["a", "b"].map(|namespace| proxy(namespace, namespace, None, &[route("/")]));
    bed.put(hosts.into_iter().chain([service("a"), many(80)])).await;
    let heard = bed.until(|heard| heard.jobs > 0).await;
    assert_eq!((heard.published, heard.jobs), (true, 1), "the endpoint set");
    // Somebody else's endpoints in the same batch do not wait for it.
    bed.put([many(81), endpoints("b", 2)]).await;
    let heard = bed.until(|_| true).await;
    assert_eq!((heard.published, heard.jobs), (true, 1));
    let heard = bed.until(|_| true).await;
    assert_eq!((heard.published, heard.jobs), (true, 2));
}

#[tokio::test]
async fn an_edit_that_reaches_many_hosts_is_worked_off_in_parts_and_others_are_published_between_them() {
    let mut bed = Bed::completed(Bed::with(xds::Config::default(), false)).await;
    let backend = json!({ "service": { "name": "b", "port": { "number": 80 } } });
    let rule = |n: usize| {
        let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": backend }]);
        json!({ "host": format!("h{n}.wide.example.com"), "http": { "paths": paths } })
    };
    let wide = object(&json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "namespace": "b", "name": "wide" }, "spec": { "rules": (0..160).map(rule).collect::<Vec<_>>() } }));
    bed.put([wide.clone(), proxy("b", "same-batch", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("same-batch")).await;
    assert!(heard.published && heard.backlog > 100, "{} hosts wait", heard.backlog);
    bed.put([proxy("b", "later", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("later")).await;
    assert!(heard.published && heard.backlog > 0);
    // Nothing else comes in: the rest is worked off by itself.
    bed.until(|heard| heard.backlog == 0).await;
}

#[tokio::test]
async fn what_does_not_fit_is_no_first_build() {
    let mut bed = Bed::completed(Bed::with(xds::Config { table_bytes: 20_000, ..xds::Config::default() }, true)).await;
    // Even what stands in for them is too large.
    bed.put((0..500).map(|n| proxy("b", &format!("host-{n}"), None, &[route("/")]))).await;
    let heard = bed.until(|heard| heard.is_blocked).await;
    assert!(heard.is_complete, "proxies have a whole world, if an old one");
    assert!(heard.verdicts.keys().any(|object| object.ends_with("b/host-1")));
    bed.put([proxy("b", "mine", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("mine")).await;
    assert!(!heard.verdicts.keys().any(|object| object.ends_with("b/host-1")), "that was told already");
}

/// What stands in for it is computed on another thread, too: the loop goes on until that is done.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_object_that_does_not_fit_is_withheld_when_its_job_is_done() {
    let config = xds::Config { table_bytes: 60_000, ..xds::Config::default() };
    let mut bed = Bed::completed(Bed::with(config, false)).await;
    let routes: Vec<_> = (0..=pipeline::large::ROUTES).map(|n| route(&format!("/{n}"))).collect();
    bed.put([service("a"), proxy("a", "large", None, &routes)]).await;
    let is_told =
        |heard: &Heard| heard.verdicts.iter().any(|(object, errors)| object.ends_with("a/large") && *errors == 1);
    let heard = bed.until(is_told).await;
    assert!(heard.published && !heard.is_blocked, "its stand-in fits");
    bed.put([proxy("b", "mine", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("mine")).await;
    assert!(heard.published && !heard.is_blocked);
}

/// Most of the hosts wait for their turn when the first of them no longer fit: the loop neither spins on those nor holds up others.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_many_hosts_that_do_not_fit_comes_to_an_end() {
    for table_bytes in (30_000..=60_000).step_by(5_000) {
        let config = xds::Config { table_bytes, ..xds::Config::default() };
        let mut bed = Bed::completed(Bed::with(config, false)).await;
        let routes = |count: usize| (0..count).map(|n| route(&format!("/{n}"))).collect::<Vec<_>>();
        let hosts = (1..=40).map(|n| proxy("a", &format!("host-{n}"), None, &routes(n)));
        bed.put(hosts.chain([service("a")])).await;
        // All of its hosts answer 503, and are sent anew; then they are served again.
        for (name, service_of_a) in [("without", None), ("with", Some(service("a")))] {
            bed.objects.send(update([(service("a").key(), service_of_a)].into_iter())).await.unwrap();
            bed.put([proxy("b", name, None, &[route("/")])]).await;
            let heard = bed.until(|heard| heard.objects.contains(name)).await;
            if heard.backlog > 0 {
                bed.until(|heard| heard.backlog == 0).await;
            }
        }
    }
}

/// As with hosts. Each endpoint has some 25 bytes.
#[tokio::test(flavor = "multi_thread")]
async fn many_endpoints_that_do_not_fit_are_withheld_when_their_job_is_done() {
    let config = xds::Config { table_bytes: 60_000, ..xds::Config::default() };
    let mut bed = Bed::completed(Bed::with(config, false)).await;
    let address = |n: usize| json!({ "addresses": [format!("10.0.{}.{}", n / 250, n % 250 + 1)] });
    let slice = object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "namespace": "a", "name": "web", "labels": { "kubernetes.io/service-name": "web" } },
        "ports": [{ "port": 80, "name": "" }], "endpoints": (0..5_000).map(address).collect::<Vec<_>>(),
    }));
    bed.put([service("a"), proxy("a", "many", None, &[route("/")]), slice]).await;
    let is_told =
        |heard: &Heard| heard.verdicts.iter().any(|(object, errors)| object.ends_with("a/web") && *errors == 1);
    let heard = bed.until(is_told).await;
    assert!(heard.published && !heard.is_blocked);
    bed.put([proxy("b", "mine", None, &[route("/")])]).await;
    let heard = bed.until(|heard| heard.objects.contains("mine")).await;
    assert!(heard.published && !heard.is_blocked);
}

/// A fleet is published its own listeners, and nothing of another's.
#[tokio::test]
async fn each_fleet_is_published_what_is_its_own() {
    let fleet = FleetId::named("team", "gateway");
    let mut pipeline = Pipeline::new(&pipeline::Settings { admin_port: 9001, ..Default::default() });
    let http = Some(pipeline::settings::Bind::any(80));
    pipeline.set_fleet(&fleet, Some(pipeline::FleetSettings { http, ..Default::default() }));
    let server = Server::new(xds::Config::default());
    let replicas = Replicas::new(server.clone(), None);
    let control = Control::new(pipeline, server.clone(), replicas).checking(true);
    let (mut feeder, fed) = feed(16);
    let task = tokio::spawn(control.run(fed, |_| {}));
    feeder.synced();
    let published = async |fleet: &FleetId| {
        let mut snapshots = server.snapshots(&xds_fleet(fleet));
        let found = tokio::time::timeout(TIMEOUT, snapshots.wait_for(Option::is_some)).await;
        let snapshot = found.expect("it is published").unwrap().clone().unwrap();
        let names = ["ingress_http", "stats-health", "envoy-admin"];
        names.map(|name| snapshot.get(xds::Kind::Listener, name).is_some())
    };
    assert_eq!(published(&fleet).await, [true, false, false]);
    assert_eq!(published(&FleetId::Shared).await, [true, true, true]);
    task.abort();
}
