//! Conditions of listeners and of parents, on a real API server: lists that it merges, and lists that several controllers
//! write and that it does not merge.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinds::{Kind, Object, kind};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::{Request, params::GetParams};
use model::ObjectRef;
use model::status::{
    Acknowledgement, AtomicList, Condition, Entry, ListLayout, Mark, Scope, StatusFacts, StatusInput, StatusKind,
    StatusLayout, StatusValue, Truth,
};
use serde_json::{Value, json};
use status::{Leadership, Report, Settings};
use testbed::ApiServer;

use crate::bed::{ADDRESS, LIMIT, Replica};

const KIND: Kind = kind::SESAME_HTTP_PROXY;
const US: &str = "example.com/us";

/// A route: its status is a list of parents, which belong to several controllers.
const ROUTE: StatusKind = StatusKind {
    layout: StatusLayout {
        lists: &[ListLayout {
            field: "parents",
            fields: &[],
            conditions: &["Accepted"],
            atomic: Some(AtomicList { owner: "controllerName", limit: 4 }),
        }],
        ..StatusLayout::EMPTY
    },
    facts: translated,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};
/// A gateway: conditions of its own, and listeners with counts and conditions.
const GATEWAY: StatusKind = StatusKind {
    layout: StatusLayout {
        conditions: &["Accepted"],
        lists: &[ListLayout {
            field: "listeners",
            fields: &["attachedRoutes"],
            conditions: &["Accepted"],
            atomic: None,
        }],
        marks: &[Mark::Condition("Accepted", &["Tested."])],
        ..StatusLayout::EMPTY
    },
    facts: translated,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// The translation has decided everything.
fn translated(input: &StatusInput<'_>) -> StatusFacts {
    input.translated.cloned().unwrap_or_default()
}

fn replica(api: &ApiServer, controller: &str, kinds: fn(Kind) -> Option<&'static StatusKind>) -> Replica {
    let manager = controller.rsplit('/').next().unwrap().to_owned();
    let settings = Settings::new("replica-0", ADDRESS.parse().unwrap(), kinds);
    let settings = Settings { controller: controller.to_owned(), manager, ..settings };
    Replica::with(api.client().unwrap(), settings, Leadership::always())
}

fn accepted(status: Truth) -> Scope {
    Scope { conditions: vec![Condition::new("Accepted", status, "Tested", "Tested.")], ..Scope::default() }
}

fn parent(name: &str, status: Truth) -> Entry {
    let reference = StatusValue::Record(vec![("name", StatusValue::text(name)), ("port", StatusValue::Integer(80))]);
    Entry { identity: vec![("parentRef", reference)], scope: accepted(status) }
}

fn parents(entries: Vec<Entry>) -> StatusFacts {
    StatusFacts { object: Scope::default(), lists: vec![("parents", entries)] }
}

/// The objects of a namespace.
struct Objects {
    api: Api<DynamicObject>,
    client: kube::Client,
    namespace: String,
}

impl Objects {
    async fn new(api: &ApiServer) -> Objects {
        let crd = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/shared_lists.yaml");
        api.install([crd]).await.unwrap();
        let namespace = api.namespace("lists").await.unwrap();
        let resource = GroupVersionKind::gvk(KIND.group(), KIND.version(), KIND.name());
        let resource = ApiResource::from_gvk_with_plural(&resource, KIND.plural());
        let client = api.client().unwrap();
        Objects { api: Api::namespaced_with(client.clone(), &namespace, &resource), client, namespace }
    }

    async fn create(&self, name: &str) -> Object {
        let object =
            json!({ "apiVersion": KIND.api_version(), "kind": KIND.name(), "metadata": { "name": name }, "spec": {} });
        let object = serde_json::from_value(object).unwrap();
        read(&self.api.create(&PostParams::default(), &object).await.unwrap())
    }

    /// The object as the API server writes it.
    async fn text(&self, name: &str) -> String {
        let path = format!("/apis/{}/namespaces/{}/{}", KIND.api_version(), self.namespace, KIND.plural());
        let request = Request::new(path).get(name, &GetParams::default()).unwrap();
        self.client.request_text(request).await.unwrap()
    }

    /// Writes the status as another controller does that replaces all of it.
    async fn overwrite(&self, name: &str, status: Value) -> Object {
        let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({ "status": status }));
        read(&self.api.patch_status(name, &others, &patch).await.unwrap())
    }

    async fn status(&self, name: &str) -> Value {
        self.api.get(name).await.unwrap().data["status"].clone()
    }

    /// Waits until the status is as it should be.
    async fn until(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let probe = async || match self.status(name).await {
            status if is(&status) => Ok(status),
            status => Err(status.to_string()),
        };
        testbed::eventually(what.to_owned(), LIMIT, probe).await.unwrap()
    }

    fn subject(&self, name: &str) -> ObjectRef {
        ObjectRef::new(KIND, self.namespace.as_str(), name)
    }

    /// What is reported of an object of ours.
    fn report(&self, name: &str, object: Option<Object>, facts: StatusFacts) -> Report {
        let key = self.subject(name);
        Report {
            objects: object.into_iter().map(|object| (key.clone(), Some(object))).collect(),
            verdicts: vec![(key.clone(), Some(Arc::default()))],
            facts: vec![(key, Some(Arc::new(facts)))],
            synced: true,
            ..Report::default()
        }
    }

    /// What is reported of an object that is not ours.
    fn not_ours(&self, name: &str, object: Object) -> Report {
        let key = self.subject(name);
        let (objects, verdicts) = (vec![(key.clone(), Some(object))], vec![(key, None)]);
        Report { objects, verdicts, synced: true, ..Report::default() }
    }
}

fn read(object: &DynamicObject) -> Object {
    kinds::decode_json(KIND, &serde_json::to_vec(object).unwrap()).unwrap().object
}

/// An entry of another controller, with fields and values that we know nothing of.
fn foreign(name: &str) -> Value {
    json!({ "parentRef": { "name": name, "port": 80 }, "controllerName": "example.com/them", "ratio": 0.1,
        "large": 12345678901234567i64, "note": { "b": { "c": "" }, "a": ["é", 1e21] },
        "conditions": [{ "type": "Accepted", "status": "False", "reason": "Theirs", "message": "",
            "observedGeneration": 77, "lastTransitionTime": "2023-01-01T00:00:00Z" }] })
}

/// The text of the entries of others, one by one, in their order.
fn foreign_texts(text: &str) -> Vec<String> {
    let list = &text[text.find("\"parents\":[").unwrap()..];
    let (mut entries, mut depth, mut begun) = (Vec::new(), 0, 0);
    for (at, character) in list.char_indices().skip("\"parents\":[".len()) {
        match character {
            '{' if depth == 0 => (begun, depth) = (at, 1),
            '{' => depth += 1,
            '}' if depth == 1 => {
                depth = 0;
                entries.push(list[begun..=at].to_owned());
            }
            '}' => depth -= 1,
            ']' if depth == 0 => break,
            _ => {}
        }
    }
    entries.retain(|entry| entry.contains("example.com/them"));
    entries
}

fn owners(status: &Value) -> Vec<&str> {
    let list = status["parents"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().map(|entry| entry["controllerName"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn our_parents_come_change_and_go_and_those_of_others_stay_byte_for_byte() {
    let api = ApiServer::start().await.unwrap();
    let objects = Objects::new(&api).await;
    let replica = replica(&api, US, |kind| (kind == KIND).then_some(&ROUTE));
    let conflicts = || replica.count("sesame_status_writes_total", "conflict");
    let old = objects.create("a").await;
    objects.overwrite("a", json!({ "parents": [foreign("x"), foreign("y")] })).await;
    let before = foreign_texts(&objects.text("a").await);
    assert_eq!(before.len(), 2);

    // The first try is on a version that is gone: it is refused, looked at and tried again.
    let facts = parents(vec![parent("x", Truth::True), parent("z", Truth::True)]);
    replica.reporter.report(objects.report("a", Some(old), facts.clone()));
    let status = objects.until("a", "two entries of ours", |status| owners(status).len() == 4).await;
    assert_eq!(owners(&status), ["example.com/them", "example.com/them", US, US]);
    assert_eq!(status["parents"][2]["conditions"][0]["observedGeneration"], 1);
    let since = status["parents"][3]["conditions"][0]["lastTransitionTime"].clone();
    assert!(since.is_string());
    assert_eq!(foreign_texts(&objects.text("a").await), before);
    assert_eq!((replica.settled().await, conflicts()), (1, 1));

    // The same again, also by a replica that starts, is no write: the other object tells when it was looked at.
    let again = self::replica(&api, US, |kind| (kind == KIND).then_some(&ROUTE));
    let read_now = async || read(&objects.api.get("a").await.unwrap());
    let version = read_now().await.meta().resource_version;
    let other = objects.create("b").await;
    for replica in [&replica, &again] {
        replica.reporter.report(objects.report("a", Some(read_now().await), facts.clone()));
    }
    again.reporter.report(objects.report("b", Some(other), parents(vec![parent("x", Truth::True)])));
    objects.until("b", "an entry of ours", |status| owners(status) == [US]).await;
    assert_eq!((replica.settled().await, again.settled().await), (1, 1));
    assert_eq!(read_now().await.meta().resource_version, version);
    again.stop().await;

    // One entry changes, one goes; the other controller has meanwhile put one of its own between them.
    let mut moved = objects.status("a").await;
    moved["parents"].as_array_mut().unwrap().swap(1, 3);
    let moved = objects.overwrite("a", moved).await;
    let before = foreign_texts(&objects.text("a").await);
    replica.reporter.report(objects.report("a", Some(moved), parents(vec![parent("z", Truth::False)])));
    let status = objects.until("a", "one entry of ours", |status| owners(status).len() == 3).await;
    assert_eq!(owners(&status), ["example.com/them", US, "example.com/them"]);
    let condition = &status["parents"][1]["conditions"][0];
    assert_eq!((&status["parents"][1]["parentRef"]["name"], &condition["status"]), (&"z".into(), &"False".into()));
    assert_eq!(foreign_texts(&objects.text("a").await), before);
    assert_eq!(replica.settled().await, 2, "one write");

    // It is no longer ours.
    let leave = Report { verdicts: vec![(objects.subject("a"), None)], ..Report::default() };
    replica.reporter.report(leave);
    objects.until("a", "no entry of ours", |status| !owners(status).contains(&US)).await;
    assert_eq!(foreign_texts(&objects.text("a").await), before);
    replica.stop().await;
}

#[tokio::test]
async fn two_controllers_that_write_one_list_lose_nothing_of_each_other() {
    const ROUNDS: usize = 10;
    let api = ApiServer::start().await.unwrap();
    let objects = Objects::new(&api).await;
    let object = objects.create("a").await;
    let controllers = [US, "example.com/them"];
    let replicas = controllers.map(|controller| replica(&api, controller, |kind| (kind == KIND).then_some(&ROUTE)));
    let status_of = |status: &Value, owner: &str| {
        let list = status["parents"].as_array().cloned().unwrap_or_default();
        let own: Vec<Value> = list.into_iter().filter(|entry| entry["controllerName"] == owner).collect();
        match own.as_slice() {
            [entry] => entry["conditions"][0]["status"].as_str().unwrap_or_default().to_owned(),
            other => format!("{} entries", other.len()),
        }
    };
    for round in 0..ROUNDS {
        let truth = if round % 2 == 0 { Truth::True } else { Truth::False };
        // Both at once, on the same parent.
        for replica in &replicas {
            let seen = (round == 0).then(|| object.clone());
            replica.reporter.report(objects.report("a", seen, parents(vec![parent("x", truth)])));
        }
        let is = |status: &Value| controllers.iter().all(|owner| status_of(status, owner) == truth.word());
        objects.until("a", &format!("both to say {}", truth.word()), is).await;
    }
    for replica in replicas {
        assert_eq!(replica.settled().await, ROUNDS as u64, "each round is one write of each");
        replica.stop().await;
    }
}

#[tokio::test]
async fn an_entry_that_the_api_server_refuses_is_a_failure_and_no_conflict() {
    let api = ApiServer::start().await.unwrap();
    let objects = Objects::new(&api).await;
    let replica = replica(&api, US, |kind| (kind == KIND).then_some(&ROUTE));
    let mut invalid = parent("x", Truth::True);
    invalid.scope.conditions[0].reason = "";
    let object = objects.create("a").await;
    replica.reporter.report(objects.report("a", Some(object), parents(vec![invalid])));
    let count = |result: &str| replica.count("sesame_status_writes_total", result);
    replica.until("a failure", |replica| replica.count("sesame_status_writes_total", "failed") >= 1).await;
    replica.reporter.report(objects.report("a", None, parents(vec![parent("x", Truth::True)])));
    objects.until("a", "an entry of ours", |status| owners(status) == [US]).await;
    assert_eq!((replica.settled().await, count("conflict")), (1, 0));
    replica.stop().await;
}

fn gateway(listeners: &[(&str, i64)]) -> StatusFacts {
    let listener = |(name, routes): &(&str, i64)| Entry {
        identity: vec![("name", StatusValue::text(*name))],
        scope: Scope { values: vec![("attachedRoutes", StatusValue::Integer(*routes))], ..accepted(Truth::True) },
    };
    StatusFacts { object: accepted(Truth::True), lists: vec![("listeners", listeners.iter().map(listener).collect())] }
}

#[tokio::test]
async fn listeners_have_counts_and_conditions_and_those_of_others_stay() {
    let api = ApiServer::start().await.unwrap();
    let objects = Objects::new(&api).await;
    let replica = replica(&api, US, |kind| (kind == KIND).then_some(&GATEWAY));
    let object = objects.create("a").await;
    replica.reporter.report(objects.report("a", Some(object), gateway(&[("http", 0), ("https", 7)])));
    let names = |status: &Value| -> Vec<(String, Value)> {
        let list = status["listeners"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one["attachedRoutes"].clone())).collect()
    };
    let is = |listeners: &'static [(&str, i64)]| {
        move |status: &Value| {
            names(status) == listeners.iter().map(|(name, n)| ((*name).to_owned(), (*n).into())).collect::<Vec<_>>()
        }
    };
    let status = objects.until("a", "two listeners", is(&[("http", 0), ("https", 7)])).await;
    assert_eq!(status["conditions"][0]["type"], "Accepted");
    let since = status["listeners"][0]["conditions"][0]["lastTransitionTime"].clone();

    // Another controller adds a condition to the object and one to a listener, by server-side apply.
    let checked = json!({ "type": "Checked", "status": "True", "reason": "Theirs", "message": "",
        "lastTransitionTime": "2023-01-01T00:00:00Z" });
    let apply = json!({ "apiVersion": KIND.api_version(), "kind": KIND.name(), "status": {
        "conditions": [checked], "listeners": [{ "name": "http", "conditions": [checked] }] } });
    objects.api.patch_status("a", &PatchParams::apply("another"), &Patch::Apply(apply)).await.unwrap();
    let now = read(&objects.api.get("a").await.unwrap());
    replica.reporter.report(objects.report("a", Some(now), gateway(&[("http", 1), ("https", 7)])));
    let status = objects.until("a", "a route more", is(&[("http", 1), ("https", 7)])).await;
    let find = |of: &Value| of["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Checked").cloned();
    assert_eq!((find(&status), find(&status["listeners"][0])), (Some(checked.clone()), Some(checked.clone())));
    assert_eq!(status["listeners"][0]["conditions"][0]["lastTransitionTime"], since);
    assert_eq!(replica.settled().await, 2, "a count is one write");

    // A listener that is removed goes with what we said about it; what others said about it stays.
    replica.reporter.report(objects.report("a", None, gateway(&[("http", 1)])));
    let status = objects.until("a", "one listener", is(&[("http", 1)])).await;
    assert_eq!(find(&status), Some(checked));
    replica.reporter.report(objects.report("a", None, gateway(&[("http", 1)])));
    let other = objects.create("b").await;
    replica.reporter.report(objects.report("b", Some(other), gateway(&[])));
    objects.until("b", "a condition", |status| status["conditions"][0]["type"] == "Accepted").await;
    assert_eq!(replica.settled().await, 4, "what is said already is no write");
    replica.stop().await;
}

/// Whether an object says that it, or a listener of its, is accepted.
fn is_judged(status: &Value) -> bool {
    let says = |scope: &Value| {
        let conditions = scope["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        conditions.iter().any(|condition| condition["type"] == "Accepted")
    };
    says(status) || status["listeners"].as_array().map_or(&[][..], Vec::as_slice).iter().any(says)
}

#[tokio::test]
async fn a_gateway_that_is_no_longer_ours_says_what_others_said_and_nothing_else() {
    let api = ApiServer::start().await.unwrap();
    let objects = Objects::new(&api).await;
    let gateways = |kind: Kind| (kind == KIND).then_some(&GATEWAY);
    let now = async |name: &str| read(&objects.api.get(name).await.unwrap());
    let first = replica(&api, US, gateways);
    for name in ["a", "b"] {
        let object = objects.create(name).await;
        first.reporter.report(objects.report(name, Some(object), gateway(&[("http", 1), ("https", 7)])));
        objects.until(name, "two listeners", |status| status["listeners"][1]["name"] == "https").await;
    }
    let checked = json!({ "type": "Checked", "status": "True", "reason": "Theirs", "message": "",
        "lastTransitionTime": "2023-01-01T00:00:00Z" });
    let apply = json!({ "apiVersion": KIND.api_version(), "kind": KIND.name(), "status": {
        "conditions": [checked], "listeners": [{ "name": "http", "conditions": [checked] }] } });
    objects.api.patch_status("a", &PatchParams::apply("another"), &Patch::Apply(apply)).await.unwrap();
    first.reporter.report(objects.not_ours("a", now("a").await));
    let status = objects.until("a", "nothing of ours", |status| !is_judged(status)).await;
    assert_eq!(status, json!({ "conditions": [checked], "listeners": [{ "name": "http", "conditions": [checked] }] }));
    let left = objects.api.get("a").await.unwrap();
    assert!(left.managed_fields().iter().all(|fields| fields.manager.as_deref() != Some("us")), "{left:?}");
    assert_eq!(first.settled().await, 3);
    first.stop().await;

    // It stopped being ours while nobody was there to see it. What another controller says in our words on an object of its own stays.
    let again = replica(&api, US, gateways);
    let accepted = json!({ "type": "Accepted", "status": "True", "reason": "Tested", "message": "Tested.",
        "observedGeneration": 1, "lastTransitionTime": "2023-01-01T00:00:00Z" });
    let said = |routes: i64| {
        let listener = json!({ "name": "http", "attachedRoutes": routes, "conditions": [accepted] });
        json!({ "conditions": [accepted], "listeners": [listener] })
    };
    objects.create("theirs").await;
    let theirs = objects.overwrite("theirs", said(1)).await;
    again.reporter.report(objects.not_ours("theirs", theirs.clone()));
    again.reporter.report(objects.not_ours("b", now("b").await));
    let status = objects.until("b", "nothing of ours", |status| !is_judged(status)).await;
    assert!(status["listeners"].as_array().is_none_or(Vec::is_empty), "{status}");
    assert_eq!(again.settled().await, 2, "whose the other one is, the API server tells");
    assert_eq!(now("theirs").await.meta().resource_version, theirs.meta().resource_version);
    let theirs = objects.overwrite("theirs", said(2)).await;
    again.reporter.report(objects.not_ours("theirs", theirs.clone()));
    let object = objects.create("last").await;
    again.reporter.report(objects.report("last", Some(object), gateway(&[("http", 1)])));
    objects.until("last", "a listener", is_judged).await;
    assert_eq!(again.settled().await, 3, "once is enough");
    assert_eq!(now("theirs").await.meta().resource_version, theirs.meta().resource_version);
    again.stop().await;
}
