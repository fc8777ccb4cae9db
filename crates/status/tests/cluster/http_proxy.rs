//! The status of HTTPProxies of both groups, on a real API server.

use std::path::Path;
use std::sync::Arc;

use kinds::{HttpProxy, Kind, Object, Typed, kind};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use model::{Code, ObjectRef, Verdict};
use serde_json::{Value, json};
use status::{Leadership, Report};
use testbed::ApiServer;

use crate::bed::{ADDRESS, LIMIT, Replica};

/// HTTPProxies of a group in a namespace.
struct Proxies {
    api: Api<DynamicObject>,
    kind: Kind,
    namespace: String,
}

impl Proxies {
    fn new(client: kube::Client, kind: Kind, namespace: &str) -> Proxies {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group(), "v1", "HTTPProxy"));
        let resource = ApiResource { plural: kind.plural().to_owned(), ..resource };
        let api = Api::namespaced_with(client, namespace, &resource);
        Proxies { api, kind, namespace: namespace.to_owned() }
    }

    async fn create(&self, name: &str) -> Object {
        let spec = json!({ "virtualhost": { "fqdn": format!("{name}.example.com") } });
        let kind = self.kind;
        let object = json!({ "apiVersion": kind.api_version(), "kind": "HTTPProxy", "metadata": { "name": name }, "spec": spec });
        let object = serde_json::from_value(object).unwrap();
        self.read(&self.api.create(&PostParams::default(), &object).await.unwrap())
    }

    fn read(&self, object: &DynamicObject) -> Object {
        let json = serde_json::to_vec(object).unwrap();
        kinds::decode_json(self.kind, &json).unwrap().object
    }

    fn subject(&self, name: &str) -> ObjectRef {
        ObjectRef::new(self.kind, self.namespace.as_str(), name)
    }

    /// What is reported when the object is ours, with these verdicts.
    fn report(&self, object: Object, name: &str, verdicts: Vec<Verdict>) -> Report {
        let key = ObjectRef::new(self.kind, self.namespace.as_str(), name);
        Report {
            objects: vec![(key, Some(object))],
            verdicts: vec![(self.subject(name), Some(Arc::new(verdicts)))],
            synced: true,
            ..Report::default()
        }
    }

    async fn status(&self, name: &str) -> Value {
        self.api.get(name).await.unwrap().data["status"].clone()
    }

    async fn until(&self, name: &str, current: &str) -> Value {
        let probe = async || match self.status(name).await {
            status if status["currentStatus"] == current => Ok(status),
            status => Err(status.to_string()),
        };
        testbed::eventually(format!("{name} to be {current}"), LIMIT, probe).await.unwrap()
    }
}

#[tokio::test]
async fn an_httpproxy_of_either_group_says_what_became_of_it() {
    let api = ApiServer::start().await.unwrap();
    api.install([Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")]).await.unwrap();
    let namespace = api.namespace("proxies").await.unwrap();
    for &kind in HttpProxy::KINDS {
        let proxies = Proxies::new(api.client().unwrap(), kind, &namespace);
        let replica = Replica::idle(api.client().unwrap(), Leadership::always());
        let object = proxies.create("a").await;
        assert_eq!(proxies.status("a").await["currentStatus"], "NotReconciled");

        // Somebody else's condition is there first, and stays.
        let foreign = json!({ "status": { "conditions": [{ "type": "example.com/Checked", "status": "True",
            "reason": "Fine", "message": "", "lastTransitionTime": "2023-01-01T00:00:00Z" }] } });
        let others = PatchParams { field_manager: Some("another".to_owned()), ..PatchParams::default() };
        let touched = proxies.api.patch_status("a", &others, &Patch::Merge(foreign)).await.unwrap();
        let missing = Verdict::new(
            Code::ServiceNotFound,
            proxies.subject("a").at("spec.routes[0].services[0].name"),
            "Service b/x does not exist",
        );
        replica.reporter.report(proxies.report(object, "a", Vec::new()));
        replica.reporter.report(proxies.report(proxies.read(&touched), "a", vec![missing]));
        let status = proxies.until("a", "invalid").await;
        let find = |status: &Value, name: &str| {
            status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == name).cloned().unwrap()
        };
        let valid = find(&status, "Valid");
        assert_eq!(valid["errors"][0]["reason"], "ServiceUnresolvedReference");
        assert_eq!(find(&status, "example.com/Checked")["reason"], "Fine");
        assert_eq!(status["loadBalancer"]["ingress"], json!([{ "ip": ADDRESS }]));
        let since = valid["lastTransitionTime"].clone();
        assert!(since.is_string());
        let written = replica.settled().await;

        // The watch brings our own write back: nothing is left to say.
        let now = proxies.read(&proxies.api.get("a").await.unwrap());
        let still = || {
            let field = proxies.subject("a").at("spec.routes[0].services[0].name");
            vec![Verdict::new(Code::ServiceNotFound, field, "Service b/x does not exist")]
        };
        replica.reporter.report(proxies.report(now.clone(), "a", still()));
        let other = proxies.create("b").await;
        replica.reporter.report(proxies.report(other, "b", Vec::new()));
        proxies.until("b", "valid").await;
        assert_eq!(replica.settled().await, written + 1, "only b was written");

        // It is mended: one write, and the error is gone from the list.
        replica.reporter.report(proxies.report(now, "a", Vec::new()));
        let status = proxies.until("a", "valid").await;
        let valid = find(&status, "Valid");
        assert_eq!((&valid["status"], &valid["errors"]), (&"True".into(), &Value::Null));
        assert_eq!(find(&status, "example.com/Checked")["reason"], "Fine");
        assert_eq!(replica.settled().await, written + 2);
        replica.stop().await;
    }
}

/// The API server refuses a status for one message that is too long, and would for ever.
#[tokio::test]
async fn a_message_that_is_too_long_is_cut_and_the_status_is_written_once() {
    let api = ApiServer::start().await.unwrap();
    api.install([Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")]).await.unwrap();
    let namespace = api.namespace("long").await.unwrap();
    let proxies = Proxies::new(api.client().unwrap(), kind::CONTOUR_HTTP_PROXY, &namespace);
    let replica = Replica::idle(api.client().unwrap(), Leadership::always());
    let object = proxies.create("a").await;
    let verdicts = || {
        let field = proxies.subject("a").at("spec.routes[0].services[0].name");
        // Longer than a verdict is ever made: the writer relies on nobody.
        vec![Verdict { message: "é".repeat(50_000).into(), ..Verdict::new(Code::ServiceNotFound, field, "") }]
    };
    replica.reporter.report(proxies.report(object, "a", verdicts()));
    let status = proxies.until("a", "invalid").await;
    for text in [&status["description"], &status["conditions"][0]["message"]] {
        let text = text.as_str().unwrap();
        assert!(text.starts_with("SES3001: spec.routes[0].services[0].name: éé"), "{text}");
        assert!(text.ends_with(" more characters)") && text.chars().count() <= 32_768, "{}", text.len());
    }
    let written = replica.settled().await;
    // What it says now is what it should say: nothing is written again, after a restart neither.
    let now = proxies.read(&proxies.api.get("a").await.unwrap());
    replica.reporter.report(proxies.report(now.clone(), "a", verdicts()));
    let again = Replica::idle(api.client().unwrap(), Leadership::always());
    again.reporter.report(proxies.report(now, "a", verdicts()));
    for replica in [&replica, &again] {
        let other = proxies.create(if std::ptr::eq(replica, &again) { "c" } else { "b" }).await;
        let name = other.meta().name.to_string();
        replica.reporter.report(proxies.report(other, &name, Vec::new()));
        proxies.until(&name, "valid").await;
    }
    assert_eq!((replica.settled().await, again.settled().await), (written + 1, 1), "only the others were written");
    assert_eq!(replica.count("sesame_status_writes_total", "failed"), 0);
    replica.until("an event", |replica| replica.count("sesame_events_total", "created") == 1).await;
    replica.stop().await;
    again.stop().await;
}
