//! Verdicts as events: once, where people look, over restarts.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Event as CoreEvent, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use kinds::kind;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use model::{Code, ObjectRef, Verdict};
use serde_json::{Value, json};
use status::{CONTROLLER, Leadership, Report};
use testbed::ApiServer;

use crate::bed::{ADDRESS, LIMIT, Replica, create, ingress, until_says};

/// The events of Sesame in a namespace. The API server has some of its own, such as about an address of a Service that it repairs.
async fn all(api: &ApiServer, namespace: &str) -> Vec<Event> {
    let events = Api::<Event>::namespaced(api.client().unwrap(), namespace);
    let ours = |event: &Event| event.reporting_controller.as_deref() == Some(CONTROLLER);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    events.into_iter().filter(ours).collect()
}

async fn annotate(ingresses: &Api<Ingress>, name: &str, wrong: Value) {
    let edit = Patch::Merge(json!({ "metadata": { "annotations": { "wrong": wrong } } }));
    ingresses.patch(name, &PatchParams::default(), &edit).await.unwrap();
}

#[tokio::test]
async fn a_verdict_is_told_once_and_counted_when_it_comes_back() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("events").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let replica = Replica::watching(api.client().unwrap(), &namespace, Leadership::always());
    let created = create(&ingresses, &ingress("web")).await;
    annotate(&ingresses, "web", json!("Service web does not exist")).await;
    replica.until("the event", |replica| replica.count("sesame_events_total", "created") == 1).await;

    // As `kubectl describe` looks for it.
    let uid = created.uid().unwrap();
    let described = ListParams::default().fields(&format!("involvedObject.uid={uid},involvedObject.kind=Ingress"));
    let events = Api::<CoreEvent>::namespaced(api.client().unwrap(), &namespace);
    let found = events.list(&described).await.unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].type_.as_deref(), Some("Warning"));
    assert_eq!(found[0].reason.as_deref(), Some("ServiceNotFound"));
    let help = "create it, or correct the name";
    let note = format!("SES3001: spec.defaultBackend.service: Service web does not exist; {help}");
    assert_eq!(found[0].message.as_deref(), Some(&*note));

    // Edits that change nothing about it say nothing.
    let edit = Patch::Merge(json!({ "metadata": { "labels": { "edited": "yes" } } }));
    ingresses.patch("web", &PatchParams::default(), &edit).await.unwrap();
    annotate(&ingresses, "web", Value::Null).await;
    annotate(&ingresses, "web", json!("Service web does not exist")).await;
    replica.until("the count", |replica| replica.count("sesame_events_total", "counted") == 1).await;
    let events = all(api, &namespace).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].series.as_ref().unwrap().count, 2);
    replica.stop().await;

    // A restart says nothing that was said.
    let restarted = Replica::watching(api.client().unwrap(), &namespace, Leadership::always());
    restarted.until("the event to be known", |replica| replica.count("sesame_events_total", "known") == 1).await;
    create(&ingresses, &ingress("last")).await;
    until_says(&ingresses, "last", &[ADDRESS]).await;
    let after = all(api, &namespace).await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].resource_version(), events[0].resource_version());
    assert_eq!(restarted.count("sesame_events_total", "created"), 0);
    restarted.stop().await;
}

#[tokio::test]
async fn objects_that_have_no_status_of_ours_are_told_too() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("events").await.unwrap();
    let services = Api::<Service>::namespaced(api.client().unwrap(), &namespace);
    let service = json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    let service: Service = serde_json::from_value(service).unwrap();
    let service = services.create(&PostParams::default(), &service).await.unwrap();
    let replica = Replica::idle(api.client().unwrap(), Leadership::always());
    let of = |name: &str, code: Code, message: &str| {
        Verdict::new(
            code,
            ObjectRef::new(kinds::kind::SERVICE, namespace.as_str(), name).at("metadata.annotations"),
            message,
        )
    };
    let subject = ObjectRef::new(kinds::kind::SERVICE, namespace.as_str(), "web");
    let said =
        Arc::new(vec![of("web", Code::AnnotationValue, "no number"), of("web", Code::UnknownKind, "only a note")]);
    let gone = ObjectRef::new(kinds::kind::SERVICE, namespace.as_str(), "gone");
    let unread = ObjectRef::new(kind::SERVICE, namespace.as_str(), "web");
    replica.reporter.report(Report {
        verdicts: vec![(subject, Some(said)), (gone, Some(Arc::new(vec![of("gone", Code::NoEndpoints, "never")])))],
        problems: vec![(unread, vec![of("web", Code::NotDecodable, "not a Service")])],
        synced: true,
        ..Report::default()
    });
    replica.until("three events", |replica| replica.count("sesame_events_total", "created") == 3).await;
    replica.until("nobody to tell", |replica| replica.count("sesame_events_total", "gone") == 1).await;
    let events = all(api, &namespace).await;
    assert_eq!(events.len(), 3);
    for event in &events {
        assert_eq!(event.regarding.as_ref().unwrap().uid, service.uid());
        let normal = event.reason.as_deref() == Some("UnknownKind");
        assert_eq!(event.type_.as_deref(), Some(if normal { "Normal" } else { "Warning" }));
    }
    replica.stop().await;
}

#[tokio::test]
async fn followers_say_nothing_and_a_new_leader_goes_on() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("events").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let lease = |replica: &str| status::lease::Settings::new(&namespace, replica);
    let leader = status::Election::new(api.client().unwrap(), lease("leader")).unwrap();
    let follower = status::Election::new(api.client().unwrap(), lease("follower")).unwrap();
    let (leading, following) = (leader.leadership(), follower.leadership());
    let first = Replica::watching(api.client().unwrap(), &namespace, leading.clone());
    let second = Replica::watching(api.client().unwrap(), &namespace, following.clone());
    let stop = tokio_util::sync::CancellationToken::new();
    let leader = tokio::spawn(leader.run(stop.clone().cancelled_owned()));
    testbed::within("a leader", LIMIT, leading.watch().wait_for(|is| *is)).await.unwrap().unwrap();
    let _follower = tokio::spawn(follower.run(std::future::pending()));
    let mut wrong = ingress("wrong");
    wrong.annotations_mut().insert("wrong".to_owned(), "Service web does not exist".to_owned());
    create(&ingresses, &wrong).await;
    until_says(&ingresses, "wrong", &[ADDRESS]).await;
    first.until("the event", |replica| replica.count("sesame_events_total", "created") == 1).await;
    assert_eq!((first.written(), second.written()), (1, 0));

    stop.cancel();
    leader.await.unwrap();
    testbed::within("the follower to lead", LIMIT, following.watch().wait_for(|is| *is)).await.unwrap().unwrap();
    create(&ingresses, &ingress("after")).await;
    until_says(&ingresses, "after", &[ADDRESS]).await;
    second.until("the event to be known", |replica| replica.count("sesame_events_total", "known") == 1).await;
    // The test may see what was written before whoever wrote it has the answer.
    second.until("the write to be counted", |replica| replica.written() >= 1).await;
    assert_eq!((first.written(), second.written()), (1, 1), "only what was new");
    assert_eq!(all(api, &namespace).await.len(), 1);
    first.stop().await;
    second.stop().await;
}

/// A role that may write events and not read them: what returns cannot be counted.
fn writers(namespace: &str) -> String {
    format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: writer, namespace: {namespace}}}
rules:
- {{apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}}
- {{apiGroups: [''], resources: [services], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: writer, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}}
subjects: [{{kind: User, name: writer}}]
"
    )
}

#[tokio::test]
async fn an_event_that_is_refused_keeps_no_other_from_being_told() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("refused").await.unwrap();
    api.apply(&writers(&namespace)).await.unwrap();
    let services = Api::<Service>::namespaced(api.client().unwrap(), &namespace);
    let service = json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let client = api.client_as("writer", &["system:authenticated"]).unwrap();
    let mine = Api::<Service>::namespaced(client.clone(), &namespace);
    testbed::eventually("the role to take effect", LIMIT, async || mine.get("web").await).await.unwrap();

    let replica = Replica::idle(client, Leadership::always());
    let subject = ObjectRef::new(kinds::kind::SERVICE, namespace.as_str(), "web");
    let verdict = |message: &str| Verdict::new(Code::NoEndpoints, subject.at("spec"), message);
    let say = |messages: &[&str]| {
        let verdicts = Arc::new(messages.iter().map(|message| verdict(message)).collect());
        let verdicts = vec![(subject.clone(), Some(verdicts))];
        replica.reporter.report(Report { verdicts, synced: true, ..Report::default() });
    };
    let reported = async |messages: &[&str], result: &str, count: u64| {
        say(messages);
        replica.until(result, |replica| replica.count("sesame_events_total", result) == count).await;
    };
    reported(&["a"], "created", 1).await;
    reported(&["m"], "created", 2).await;
    reported(&["a"], "refused", 1).await;
    reported(&["a", "z"], "created", 3).await;
    assert_eq!(replica.count("sesame_events_total", "refused"), 1, "it is not tried again at once");
    assert_eq!(all(api, &namespace).await.len(), 3);
    replica.stop().await;
}
