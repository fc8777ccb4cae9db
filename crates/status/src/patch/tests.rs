#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use kinds::Vendor;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use std::path::Path;
use testbed::ApiServer;

fn condition(type_: &str) -> Value {
    json!({ "type": type_, "status": "True", "reason": "Tested", "message": "as the test says",
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

/// Conditions have one list for all: ours come and go, and those of others stay as they are.
#[tokio::test]
async fn foreign_conditions_are_untouched() {
    let api = ApiServer::shared().await.unwrap();
    let crd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/httpproxies.projectcontour.io.yaml");
    api.install([crd]).await.unwrap();
    let namespace = api.namespace("conditions").await.unwrap();
    let kind = Kind::HttpProxy(Vendor::Contour);
    let resource = GroupVersionKind::gvk(kind.group(), kind.version(), kind.name());
    let resource = ApiResource::from_gvk_with_plural(&resource, kind.plural());
    let client = api.client().unwrap();
    let proxies = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    let spec = json!({ "spec": { "virtualhost": { "fqdn": "a.example" } } });
    proxies.create(&PostParams::default(), &DynamicObject::new("web", &resource).data(spec)).await.unwrap();
    let foreign = json!({ "status": { "conditions": [condition("Foreign")] } });
    let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
    proxies.patch_status("web", &others, &Patch::Merge(foreign)).await.unwrap();

    let key = ObjectKey::new(kind, namespace.as_str(), "web");
    let say = async |change: Change| {
        let object = current(&client, &key).await.unwrap().unwrap();
        let write = Write { key: key.clone(), object, change };
        let (outcome, result) = send(&client, "sesame", &write).await;
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?} {result}");
        let proxy = proxies.get("web").await.unwrap();
        (proxy.data["status"].clone(), proxy.metadata.resource_version)
    };
    let ours = json!({ "currentStatus": "valid", "conditions": [condition("Valid")] });
    let (status, _) = say(Change::Say(ours.clone())).await;
    assert_eq!(status["conditions"], json!([condition("Foreign"), condition("Valid")]));
    assert_eq!(status["currentStatus"], "valid");
    let (_, before) = say(Change::Say(ours.clone())).await;
    let (_, after) = say(Change::Say(ours)).await;
    assert_eq!(before, after, "the same again is no write");
    let (status, _) = say(Change::Withdraw).await;
    assert_eq!(status["conditions"], json!([condition("Foreign")]));
}
