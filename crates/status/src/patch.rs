//! One write of one object's status: a server-side apply of our part of it, or a JSON patch of our entries in it.
//!
//! With a server-side apply the API server knows which fields are whose, so foreign conditions and fields stay, and what we no
//! longer state goes. The uid and the version of the object are part of either request: a write that was decided on another
//! object of the same name, or before another controller's write, is refused instead of undoing it.
//!
//! Requests name the version that the kind is read in ([`source::cluster::ServedVersions`]): an API server may serve no other.

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
    core::{Request, Status, params::GetParams},
};
use serde_json::{Value, json};

/// The reason of an API server that knows the kind and has no such object.
const NOT_FOUND: &str = "NotFound";

/// Sends it, in a version of the kind that the API server serves.
pub(crate) async fn send(
    client: &kube::Client,
    manager: &str,
    version: &'static str,
    write: &Write,
) -> Result<Outcome, RequestError> {
    match try_send(client, manager, version, write).await {
        Ok(object) => Ok(Outcome::Written(object)),
        Err(RequestError::Api(kube::Error::Api(status))) if status.is_conflict() || status.is_not_found() => {
            current(client, version, &write.key).await.map(Outcome::Conflict)
        }
        // The answer to a JSON patch whose test fails, and to a status that is not valid: the version tells which.
        Err(RequestError::Api(kube::Error::Api(status)))
            if is_invalid(&status) && matches!(write.change, Change::Patch(_) | Change::Withdraw(_)) =>
        {
            match current(client, version, &write.key).await? {
                Some(current) if is_same(current.meta(), &write.object) => Err(kube::Error::Api(status).into()),
                current => Ok(Outcome::Conflict(current)),
            }
        }
        Err(error) => Err(error),
    }
}

fn is_invalid(status: &Status) -> bool {
    status.code == StatusCode::UNPROCESSABLE_ENTITY
}

fn is_same(current: &Meta, known: &Observed) -> bool {
    current.uid == known.uid && current.resource_version == known.version
}

async fn try_send(client: &kube::Client, manager: &str, version: &str, write: &Write) -> Result<Object, RequestError> {
    let request = match &write.change {
        Change::Apply(status) => apply(manager, version, write, Some(status)),
        Change::Withdraw(_) => apply(manager, version, write, None),
        Change::Patch(operations) => json_patch(manager, version, write, operations),
    };
    let answer = match (client.request_text(request?).await, &write.change) {
        (Err(kube::Error::Api(status)), Change::Withdraw(operations)) if is_invalid(&status) => {
            client.request_text(json_patch(manager, version, write, operations)?).await
        }
        (answer, _) => answer,
    };
    decode(write.key.kind, &answer?)
}

fn apply(
    manager: &str,
    version: &str,
    write: &Write,
    status: Option<&Value>,
) -> Result<http::Request<Vec<u8>>, RequestError> {
    let parameters = PatchParams::apply(manager).force();
    let patch = Patch::Apply(body(version, write, status));
    let request = collection(&write.key, version).patch_subresource("status", &write.key.name, &parameters, &patch);
    Ok(request.map_err(kube::Error::BuildRequest)?)
}

/// The operations, on exactly the object and version that they were decided on.
fn json_patch(
    manager: &str,
    version: &str,
    write: &Write,
    operations: &[Value],
) -> Result<http::Request<Vec<u8>>, RequestError> {
    let Observed { uid, version: known, .. } = &write.object;
    let test = |path: &str, value: String| json!({ "op": "test", "path": path, "value": value });
    let mut all = vec![test("/metadata/uid", uid.to_string()), test("/metadata/resourceVersion", known.to_string())];
    all.extend(operations.iter().cloned().map(stamped));
    let collection = collection(&write.key, version).url_path;
    let url = format!("{collection}/{}/status?fieldManager={manager}", write.key.name);
    let request =
        http::Request::builder().method(Method::PATCH).uri(url).header(CONTENT_TYPE, "application/json-patch+json");
    Ok(request.body(Value::from(all).to_string().into_bytes()).map_err(kube::Error::HttpError)?)
}

/// The object as it is now, if it is still there.
async fn current(
    client: &kube::Client,
    version: &'static str,
    key: &ObjectRef,
) -> Result<Option<Object>, RequestError> {
    let request = collection(key, version).get(&key.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request_text(request).await {
        Ok(text) => decode(key.kind, &text).map(Some),
        Err(error) => gone(error, key.kind, version).map(|()| None),
    }
}

/// What the failure of a read means: that the object is gone, or an error. An API server that does not serve the version answers "not
/// found", too, but in plain text, and that says nothing about the object.
pub(crate) fn gone(error: kube::Error, kind: Kind, version: &'static str) -> Result<(), RequestError> {
    match error {
        kube::Error::Api(status) if status.code == 404 && status.reason == NOT_FOUND => Ok(()),
        kube::Error::Api(status) if status.code == 404 => Err(RequestError::NotServed(kind, version)),
        error => Err(error.into()),
    }
}

fn decode(kind: Kind, text: &str) -> Result<Object, RequestError> {
    kinds::decode_json(kind, text.as_bytes())
        .map(|decoded| decoded.object)
        .map_err(|error| RequestError::Answer(kind, error))
}

/// The collection of objects of a kind in a namespace.
pub(crate) fn collection(key: &ObjectRef, version: &str) -> Request {
    let root = if key.kind.group().is_empty() { "/api" } else { "/apis" };
    let namespace = match &*key.namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    Request::new(format!("{root}/{}{namespace}/{}", api_version(key.kind, version), key.kind.plural()))
}

/// The group of a kind and a version as `apiVersion` has them.
pub(crate) fn api_version(kind: Kind, version: &str) -> String {
    match kind.group() {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

fn body(version: &str, write: &Write, status: Option<&Value>) -> Value {
    let ObjectRef { kind, namespace, name } = &write.key;
    let mut body = json!({
        "apiVersion": api_version(*kind, version),
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
    use std::{path::Path, time::Instant};
    use testbed::ApiServer;

    fn condition(type_: &str) -> Value {
        json!({ "type": type_, "status": "True", "reason": "Tested", "message": "as the test says",
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
    }

    #[test]
    fn a_version_that_is_not_served_says_nothing_about_an_object() {
        let answer = |message: &str, reason: &str| {
            let status = Status::failure(message, reason).with_code(404);
            gone(kube::Error::Api(status.boxed()), kind::TCP_ROUTE, "v1")
        };
        assert!(answer("tcproutes.gateway.networking.k8s.io \"web\" not found", NOT_FOUND).is_ok());
        let error = answer("404 page not found", "Failed to parse error data").unwrap_err();
        assert_eq!(error.to_string(), "the API server does not serve tcproutes in version v1");
        assert!(!error.is_refusal(), "another version may be served");
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
            let object = Observed::new(&current(&client, "v1", &key).await.unwrap().unwrap()).unwrap();
            let write = Write { key: key.clone(), object, change, besides_proxies: 0, sent_at: Instant::now() };
            let sent = send(&client, "sesame", "v1", &write).await;
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
        let (status, _) = say(Change::Withdraw(Vec::new())).await;
        assert_eq!(status["conditions"], json!([condition("Foreign")]));
    }
}
