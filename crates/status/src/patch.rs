//! One write of one object's status: a server-side apply of our part of it, or a JSON patch of our entries in it.
//!
//! With a server-side apply the API server knows which fields are whose, so foreign conditions and fields stay, and what we no
//! longer state goes. The uid and the version of the object are part of either request: a write that was decided on another
//! object of the same name, or before another controller's write, is refused instead of undoing it.

use crate::{
    change::Change,
    observed::Observed,
    request_error::RequestError,
    statuses::{Outcome, Write},
};
use http::{Method, StatusCode, header::CONTENT_TYPE};
use kinds::{Kind, Meta, Object, ObjectRef};
use kube::{
    api::{Patch, PatchParams},
    core::{Request, params::GetParams},
};
use serde_json::{Value, json};

/// Sends it.
pub(crate) async fn send(client: &kube::Client, manager: &str, write: &Write) -> Result<Outcome, RequestError> {
    match try_send(client, manager, write).await {
        Ok(object) => Ok(Outcome::Written(object)),
        Err(RequestError::Api(kube::Error::Api(status))) if status.is_conflict() || status.is_not_found() => {
            current(client, &write.key).await.map(Outcome::Conflict)
        }
        // The answer to a JSON patch whose test fails, and to a status that is not valid: the version tells which.
        Err(RequestError::Api(kube::Error::Api(status)))
            if status.code == StatusCode::UNPROCESSABLE_ENTITY && matches!(write.change, Change::Patch(_)) =>
        {
            match current(client, &write.key).await? {
                Some(current) if is_same(current.meta(), &write.object) => Err(kube::Error::Api(status).into()),
                current => Ok(Outcome::Conflict(current)),
            }
        }
        Err(error) => Err(error),
    }
}

fn is_same(current: &Meta, known: &Observed) -> bool {
    current.uid == known.uid && current.resource_version == known.version
}

async fn try_send(client: &kube::Client, manager: &str, write: &Write) -> Result<Object, RequestError> {
    let request = match &write.change {
        Change::Apply(status) => apply(manager, write, Some(status)),
        Change::Withdraw => apply(manager, write, None),
        Change::Patch(operations) => json_patch(manager, write, operations),
    };
    decode(write.key.kind, &client.request_text(request?).await?)
}

fn apply(manager: &str, write: &Write, status: Option<&Value>) -> Result<http::Request<Vec<u8>>, RequestError> {
    let parameters = PatchParams::apply(manager).force();
    let patch = Patch::Apply(body(write, status));
    let request = collection(&write.key).patch_subresource("status", &write.key.name, &parameters, &patch);
    Ok(request.map_err(kube::Error::BuildRequest)?)
}

/// The operations, on exactly the object and version that they were decided on.
fn json_patch(manager: &str, write: &Write, operations: &[Value]) -> Result<http::Request<Vec<u8>>, RequestError> {
    let Observed { uid, version, .. } = &write.object;
    let test = |path: &str, value: String| json!({ "op": "test", "path": path, "value": value });
    let mut all = vec![test("/metadata/uid", uid.to_string()), test("/metadata/resourceVersion", version.to_string())];
    all.extend(operations.iter().cloned().map(stamped));
    let url = format!("{}/{}/status?fieldManager={manager}", collection(&write.key).url_path, write.key.name);
    let request =
        http::Request::builder().method(Method::PATCH).uri(url).header(CONTENT_TYPE, "application/json-patch+json");
    Ok(request.body(Value::from(all).to_string().into_bytes()).map_err(kube::Error::HttpError)?)
}

/// The object as it is now, if it is still there.
async fn current(client: &kube::Client, key: &ObjectRef) -> Result<Option<Object>, RequestError> {
    let request = collection(key).get(&key.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request_text(request).await {
        Ok(text) => decode(key.kind, &text).map(Some),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn decode(kind: Kind, text: &str) -> Result<Object, RequestError> {
    kinds::decode_json(kind, text.as_bytes())
        .map(|decoded| decoded.object)
        .map_err(|error| RequestError::Answer(kind, error))
}

/// The collection of objects of a kind in a namespace.
pub(crate) fn collection(key: &ObjectRef) -> Request {
    let group = match key.kind.group() {
        "" => "/api".to_owned(),
        group => format!("/apis/{group}"),
    };
    let namespace = match &*key.namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    Request::new(format!("{group}/{}{namespace}/{}", key.kind.version(), key.kind.plural()))
}

fn body(write: &Write, status: Option<&Value>) -> Value {
    let ObjectRef { kind, namespace, name } = &write.key;
    let mut body = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "metadata": {
            "name": &**name,
            "namespace": &**namespace,
            "uid": write.object.uid.to_string(),
            "resourceVersion": write.object.version.to_string(),
        },
    });
    if let Some(status) = status {
        body["status"] = stamped(status.clone());
    }
    body
}

/// The same with the time in each condition that has none: its status is new.
fn stamped(mut value: Value) -> Value {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    stamp(&mut value, &now);
    value
}

fn stamp(value: &mut Value, now: &str) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| stamp(value, now)),
        // Only a condition has a generation that it is about.
        Value::Object(fields) => {
            if fields.contains_key("observedGeneration") && !fields.contains_key("lastTransitionTime") {
                fields.insert("lastTransitionTime".to_owned(), now.into());
            }
            fields.values_mut().for_each(|value| stamp(value, now));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use kinds::kind;
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
        let kind = kind::CONTOUR_HTTP_PROXY;
        let resource = GroupVersionKind::gvk(kind.group(), kind.version(), kind.name());
        let resource = ApiResource::from_gvk_with_plural(&resource, kind.plural());
        let client = api.client().unwrap();
        let proxies = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
        let spec = json!({ "spec": { "virtualhost": { "fqdn": "a.example" } } });
        proxies.create(&PostParams::default(), &DynamicObject::new("web", &resource).data(spec)).await.unwrap();
        let foreign = json!({ "status": { "conditions": [condition("Foreign")] } });
        let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
        proxies.patch_status("web", &others, &Patch::Merge(foreign)).await.unwrap();

        let key = ObjectRef::new(kind, namespace.as_str(), "web");
        let say = async |change: Change| {
            let object = Observed::new(&current(&client, &key).await.unwrap().unwrap()).unwrap();
            let write = Write { key: key.clone(), object, change };
            let sent = send(&client, "sesame", &write).await;
            assert!(matches!(sent, Ok(Outcome::Written(_))), "{sent:?}");
            let proxy = proxies.get("web").await.unwrap();
            (proxy.data["status"].clone(), proxy.metadata.resource_version)
        };
        let ours = json!({ "currentStatus": "valid", "conditions": [condition("Valid")] });
        let (status, _) = say(Change::Apply(ours.clone())).await;
        assert_eq!(status["conditions"], json!([condition("Foreign"), condition("Valid")]));
        assert_eq!(status["currentStatus"], "valid");
        let (_, before) = say(Change::Apply(ours.clone())).await;
        let (_, after) = say(Change::Apply(ours)).await;
        assert_eq!(before, after, "the same again is no write");
        let (status, _) = say(Change::Withdraw).await;
        assert_eq!(status["conditions"], json!([condition("Foreign")]));
    }
}
