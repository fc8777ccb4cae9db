//! What is written to objects, and above all what is not.

use std::collections::HashMap;
use std::time::Instant;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kinds::{ObjectRef, kind};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use status::{Addresses, Leadership, Report, Settings};
use testbed::ApiServer;

use crate::bed::{ADDRESS, Replica, create, ingress, kinds, report, says, until_says};

#[tokio::test]
async fn a_thousand_ingresses_are_written_once_each_and_a_restart_writes_nothing() {
    const COUNT: usize = 1_000;
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("thousand").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let replica = Replica::watching(api.client().unwrap(), &namespace, Leadership::always());
    let begun = Instant::now();
    let created: HashMap<String, Ingress> = stream::iter(0..COUNT)
        .map(async |n| create(&ingresses, &ingress(&format!("web-{n}"))).await)
        .buffer_unordered(8)
        .map(|object| (object.name_any(), object))
        .collect()
        .await;
    println!("{COUNT} created in {:?}", begun.elapsed());
    replica.until("all to be written", |replica| replica.written() == COUNT as u64).await;
    println!("all written {:?} after the first was created", begun.elapsed());
    let after = ingresses.list(&ListParams::default()).await.unwrap();
    for object in &after.items {
        assert_eq!(says(object), [ADDRESS]);
        assert_eq!(object.metadata.generation, created[&object.name_any()].metadata.generation);
    }
    let conflicts = replica.count("sesame_status_writes_total", "conflict");
    replica.stop().await;

    let restarted = Replica::watching(api.client().unwrap(), &namespace, Leadership::always());
    // One more tells us when the others have been looked at.
    create(&ingresses, &ingress("one-more")).await;
    until_says(&ingresses, "one-more", &[ADDRESS]).await;
    assert_eq!(restarted.written(), 1);
    let again = ingresses.list(&ListParams::default()).await.unwrap();
    let versions: HashMap<_, _> = again.items.iter().map(|object| (object.name_any(), object)).collect();
    for object in &after.items {
        let now = versions[&object.name_any()];
        assert_eq!(now.resource_version(), object.resource_version(), "{} was written again", object.name_any());
    }
    println!("{conflicts} conflicts; 0 writes after a restart");
    restarted.stop().await;
}

#[tokio::test]
async fn addresses_follow_the_service_of_the_proxies() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("addresses").await.unwrap();
    let client = api.client().unwrap();
    let ingresses = Api::<Ingress>::namespaced(client.clone(), &namespace);
    let settings = Settings::new("replica-0", Addresses::of_service(&namespace, "envoy"), kinds);
    let mut replica = Replica::with(client.clone(), settings, Leadership::always());
    replica.watch(client.clone(), &namespace);
    for name in ["a", "b", "c"] {
        create(&ingresses, &ingress(name)).await;
    }
    let services = Api::<Service>::namespaced(client, &namespace);
    let envoy =
        json!({ "metadata": { "name": "envoy" }, "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] } });
    services.create(&PostParams::default(), &serde_json::from_value(envoy).unwrap()).await.unwrap();
    let key = ObjectRef::new(kind::SERVICE, namespace.as_str(), "envoy");
    let balance = async |addresses: serde_json::Value| {
        let status = json!({ "status": { "loadBalancer": { "ingress": addresses } } });
        let service = services.patch_status("envoy", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        let json = serde_json::to_vec(&service).unwrap();
        let object = kinds::decode_json(kind::SERVICE, &json).unwrap().object;
        replica.reporter.report(Report { objects: vec![(key.clone(), Some(object))], ..Report::default() });
    };
    balance(json!([{ "ip": "192.0.2.7" }, { "hostname": "lb.example" }])).await;
    for name in ["a", "b", "c"] {
        until_says(&ingresses, name, &["192.0.2.7", "lb.example"]).await;
    }
    assert_eq!(replica.written(), 3);
    balance(json!([])).await;
    for name in ["a", "b", "c"] {
        until_says(&ingresses, name, &[]).await;
    }
    assert_eq!(replica.written(), 6);
    replica.stop().await;
}

#[tokio::test]
async fn what_is_no_longer_ours_is_taken_back_and_what_others_said_stays() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("others").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let replica = Replica::watching(api.client().unwrap(), &namespace, Leadership::always());
    create(&ingresses, &ingress("leaves")).await;
    until_says(&ingresses, "leaves", &[ADDRESS]).await;

    // Another controller with the same address: on an object that was never ours, and on one that leaves us.
    let foreign = async |name: &str| {
        let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ADDRESS }] } } });
        let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
        ingresses.patch_status(name, &others, &Patch::Merge(status)).await.unwrap()
    };
    let mut theirs = ingress("theirs");
    theirs.spec.as_mut().unwrap().ingress_class_name = Some("another".to_owned());
    create(&ingresses, &theirs).await;
    let said = foreign("theirs").await;

    let leave = Patch::Merge(json!({ "spec": { "ingressClassName": "another" } }));
    ingresses.patch("leaves", &PatchParams::default(), &leave).await.unwrap();
    let left = until_says(&ingresses, "leaves", &[]).await;
    assert!(left.managed_fields().iter().all(|fields| fields.manager.as_deref() != Some("sesame")), "{left:?}");
    create(&ingresses, &ingress("last")).await;
    until_says(&ingresses, "last", &[ADDRESS]).await;
    let now = ingresses.get("theirs").await.unwrap();
    assert_eq!((says(&now), now.resource_version()), (vec![ADDRESS.to_owned()], said.resource_version()));
    replica.stop().await;
}

#[tokio::test]
async fn a_conflict_is_looked_at_and_tried_again() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("conflict").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let replica = Replica::idle(api.client().unwrap(), Leadership::always());
    let conflicts = |replica: &Replica| replica.count("sesame_status_writes_total", "conflict");

    // A write of which we would never be told, since it changes nothing that we read.
    let old = create(&ingresses, &ingress("touched")).await;
    let touch = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/touched"] } }));
    ingresses.patch("touched", &PatchParams::default(), &touch).await.unwrap();
    replica.reporter.report(Report { synced: true, ..report(&old) });
    let object = until_says(&ingresses, "touched", &[ADDRESS]).await;
    assert_eq!(object.finalizers(), ["example.com/touched"]);
    assert_eq!((conflicts(&replica), replica.written()), (1, 1));

    // One that may change whose it is: we wait for what the watch brings.
    let old = create(&ingresses, &ingress("edited")).await;
    let edit = Patch::Merge(json!({ "metadata": { "annotations": { "edited": "meanwhile" } } }));
    let new = ingresses.patch("edited", &PatchParams::default(), &edit).await.unwrap();
    replica.reporter.report(report(&old));
    replica.until("a conflict", |replica| conflicts(replica) == 2).await;
    replica.reporter.report(report(&new));
    let object = until_says(&ingresses, "edited", &[ADDRESS]).await;
    assert_eq!(object.annotations()["edited"], "meanwhile");

    // The name has gone to another object: what was decided about the old one is not written to the new one.
    let old = create(&ingresses, &ingress("replaced")).await;
    ingresses.delete("replaced", &DeleteParams::default()).await.unwrap();
    let mut theirs = ingress("replaced");
    theirs.spec.as_mut().unwrap().ingress_class_name = Some("another".to_owned());
    let new = create(&ingresses, &theirs).await;
    replica.reporter.report(report(&old));
    replica.until("a conflict", |replica| conflicts(replica) == 3).await;
    replica.reporter.report(report(&new));
    create(&ingresses, &ingress("last")).await;
    replica.reporter.report(report(&ingresses.get("last").await.unwrap()));
    until_says(&ingresses, "last", &[ADDRESS]).await;
    assert_eq!(ingresses.get("replaced").await.unwrap().resource_version(), new.resource_version());
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    ingresses.patch("touched", &PatchParams::default(), &release).await.unwrap();
    replica.stop().await;
}

#[tokio::test]
async fn the_rights_that_are_needed_are_few() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("rights").await.unwrap();
    let rules = json!([
        { "apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": ["networking.k8s.io"], "resources": ["ingresses/status"], "verbs": ["patch"] },
        { "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "get", "patch"] },
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"] },
    ]);
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules,
        "metadata": { "name": "sesame", "namespace": namespace } });
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "sesame", "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "sesame" },
        "subjects": [{ "kind": "User", "name": "sesame" }] });
    api.apply(&format!("{role}\n---\n{binding}")).await.unwrap();
    let sesame = || api.client_as("sesame", &[]).unwrap();

    let election = status::Election::new(sesame(), status::lease::Settings::new(&namespace, "replica-0")).unwrap();
    let leadership = election.leadership();
    let stop = tokio_util::sync::CancellationToken::new();
    let electing = tokio::spawn(election.run(stop.clone().cancelled_owned()));
    let replica = Replica::watching(sesame(), &namespace, leadership);
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let mut wrong = ingress("wrong");
    wrong.annotations_mut().insert("wrong".to_owned(), "Service web is not there".to_owned());
    create(&ingresses, &wrong).await;
    until_says(&ingresses, "wrong", &[ADDRESS]).await;
    replica.until("an event", |replica| replica.count("sesame_events_total", "created") == 1).await;
    stop.cancel();
    electing.await.unwrap();
    replica.stop().await;
}

#[tokio::test]
async fn what_could_not_be_written_is_written_when_the_api_server_is_back() {
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("outage").await.unwrap();
    let ingresses = Api::<Ingress>::namespaced(api.client().unwrap(), &namespace);
    let mut created = Vec::new();
    for n in 0..50 {
        created.push(create(&ingresses, &ingress(&format!("web-{n}"))).await);
    }
    let replica = Replica::idle(api.client().unwrap(), Leadership::always());
    api.kill().await.unwrap();
    for object in &created {
        replica.reporter.report(Report { synced: true, ..report(object) });
    }
    let failed = |replica: &Replica| replica.count("sesame_status_writes_total", "failed");
    replica.until("all to have failed", |replica| failed(replica) >= 50).await;
    api.restart().await.unwrap();
    for object in &created {
        until_says(&ingresses, object.metadata.name.as_deref().unwrap(), &[ADDRESS]).await;
    }
    println!("{} requests failed, {} wrote", failed(&replica), replica.written());
    assert_eq!(replica.written(), 50);
    assert!(failed(&replica) < 50 * 12, "{} tries", failed(&replica));
    replica.stop().await;
}
