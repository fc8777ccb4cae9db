//! The API server of the bed: one for all tests of a process, checks rights, takes CRDs, has controllers on request.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{Api, DynamicObject, ListParams, ObjectMeta, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use serde_json::json;
use testbed::ApiServer;
use testbed::apiserver::{Fate, Front};

const LIMIT: Duration = Duration::from_secs(60);

fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some(BTreeMap::from([("key".to_owned(), "value".to_owned())])), ..ConfigMap::default() }
}

/// Two tests that look alike on purpose: they share one server, each from a runtime of its own.
async fn writes_to_a_namespace_of_its_own() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("own").await.unwrap();
    assert!(namespace.starts_with("own-"));
    let maps = Api::<ConfigMap>::namespaced(api.client().unwrap(), &namespace);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 0);
    maps.create(&PostParams::default(), &config_map("same-name")).await.unwrap();
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn one_test_has_its_namespace() {
    writes_to_a_namespace_of_its_own().await;
}

#[tokio::test]
async fn another_test_has_another_namespace() {
    writes_to_a_namespace_of_its_own().await;
}

#[tokio::test]
async fn rights_are_checked() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("rights").await.unwrap();
    let read_as = async |client: kube::Client| {
        Api::<ConfigMap>::namespaced(client, &namespace).list(&ListParams::default()).await.map(|list| list.items.len())
    };
    let refused = |result: Result<usize, kube::Error>| match result {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403),
        other => panic!("{other:?}"),
    };
    refused(read_as(api.client_as("bob", &[]).unwrap()).await);
    api.apply(&format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: readers, namespace: {namespace}}},
          rules: [{{apiGroups: [''], resources: [configmaps], verbs: [list]}}]}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: readers, namespace: {namespace}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: readers}},
  subjects: [{{kind: Group, name: readers}}, {{kind: ServiceAccount, name: robot, namespace: {namespace}}}]}}"
    ))
    .await
    .unwrap();
    // The server learns of the new binding by a watch of its own.
    let allowed = async || read_as(api.client_as("bob", &["readers"]).unwrap()).await;
    testbed::eventually("the binding to take effect", LIMIT, allowed).await.unwrap();
    refused(read_as(api.client_as("bob", &["writers"]).unwrap()).await);

    // A service account, as a program would log in: by kubeconfig.
    let robot = async |name: &str| {
        let file = api.kubeconfig_of_service_account(&namespace, name).await.unwrap();
        let kubeconfig = kube::config::Kubeconfig::read_from(file).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        read_as(kube::Client::try_from(config).unwrap()).await
    };
    assert_eq!(robot("robot").await.unwrap(), 0);
    refused(robot("toaster").await);
}

#[tokio::test]
async fn crds_can_be_used_once_they_are_installed() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("crds").await.unwrap();
    let crd = |kind: &str, plural: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.example.com") },
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }}}],
            },
        })
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("teapot.yaml"), crd("Teapot", "teapots").to_string()).unwrap();
    std::fs::write(folder.path().join("cup.yaml"), crd("Cup", "cups").to_string()).unwrap();
    std::fs::write(folder.path().join("kustomization.yaml"), "resources: [cup.yaml]").unwrap();
    api.install([folder.path()]).await.unwrap();

    let teapot = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Teapot"), "teapots");
    let teapots = Api::<DynamicObject>::namespaced_with(api.client().unwrap(), &namespace, &teapot);
    let green = DynamicObject::new("green", &teapot).data(json!({ "spec": { "litres": 2 } }));
    teapots.create(&PostParams::default(), &green).await.unwrap();
    assert_eq!(teapots.get("green").await.unwrap().data["spec"]["litres"], 2);
}

#[tokio::test]
async fn the_gateway_api_can_be_installed() {
    let api = ApiServer::shared().await.unwrap();
    let began = std::time::Instant::now();
    api.install([parts::folder("gateway-api-crds").unwrap().join("experimental")]).await.unwrap();
    println!("Gateway API installed in {:?}", began.elapsed());
    api.apply("{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: ours}, spec: {controllerName: example.com/c}}").await.unwrap();
}

#[tokio::test]
async fn a_proxy_in_front_lets_hang_and_refuses_what_it_is_told_to() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("front").await.unwrap();
    let rule = |_: &http::Method, path: &str| match path.rsplit('/').next() {
        Some("hung") => Fate::Hang,
        Some("busy") => Fate::Refuse(429),
        _ => Fate::Pass,
    };
    let front = Front::start(api, rule).await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::read_from(front.kubeconfig()).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    config.default_retry = false;
    let maps = Api::<ConfigMap>::namespaced(kube::Client::try_from(config).unwrap(), &namespace);

    // What passes is answered by the API server, as it comes.
    let made = await_condition(maps.clone(), "good", |map: Option<&ConfigMap>| map.is_some());
    let make = async { maps.create(&PostParams::default(), &config_map("good")).await };
    let (made, _) = tokio::join!(testbed::within("the watch", LIMIT, made), make);
    made.unwrap().unwrap();
    assert_eq!(front.faults(), 0);
    match maps.get("busy").await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 429),
        other => panic!("{other:?}"),
    }
    assert!(tokio::time::timeout(Duration::from_millis(200), maps.get("hung")).await.is_err());
    assert_eq!(front.faults(), 2);
}

#[tokio::test]
async fn what_it_is_asked_is_recorded() {
    let api = ApiServer::config().audit().start().await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(api.client_as("bob", &[]).unwrap(), "default");
    assert!(maps.get("secret-plan").await.is_err());
    let asked = async || {
        let of_bob = api.audit().unwrap().into_iter().find(|entry| entry.user == "bob");
        of_bob.ok_or("nothing of bob's")
    };
    let asked = testbed::eventually("the entry", LIMIT, asked).await.unwrap();
    assert_eq!((&*asked.verb, &*asked.resource, &*asked.name), ("get", "configmaps", "secret-plan"));
    assert!(!asked.allowed);
}

#[tokio::test]
async fn controllers_turn_deployments_into_pods() {
    let api = ApiServer::start().await.unwrap();
    api.controllers().await.unwrap();
    let namespace = api.namespace("apps").await.unwrap();
    let client = api.client().unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &namespace);
    let made = await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some());
    testbed::within("the service account of the namespace", LIMIT, made).await.unwrap().unwrap();

    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    }))
    .unwrap();
    Api::namespaced(client.clone(), &namespace).create(&PostParams::default(), &deployment).await.unwrap();
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let two = async || match pods.list(&ListParams::default()).await {
        Ok(list) if list.items.len() == 2 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    testbed::eventually("two pods", LIMIT, two).await.unwrap();
}
