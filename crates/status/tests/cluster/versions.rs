//! Kinds that an API server serves in an older version only: status and events are written in that version, and in another once the API
//! server serves that.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kinds::{Kind, Object, kind};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use model::status::{Acknowledgement, Scope, StatusFacts, StatusInput, StatusKind, StatusLayout, StatusValue};
use model::{Code, ObjectRef, Verdict};
use source::cluster::{Cluster, Options};
use source::feed;
use status::{CONTROLLER, Leadership, Report, Reporter, Settings};
use testbed::ApiServer;
use tokio::sync::watch;

use crate::bed::{ADDRESS, LIMIT, Replica};

const STATUS: StatusKind = StatusKind {
    layout: StatusLayout { fields: &["state"], ..StatusLayout::EMPTY },
    facts: translated,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// The translation has decided everything.
fn translated(input: &StatusInput<'_>) -> StatusFacts {
    input.translated.cloned().unwrap_or_default()
}

fn kinds(kind: Kind) -> Option<&'static StatusKind> {
    (kind == kind::MAPPING).then_some(&STATUS)
}

/// The CRD of Mappings, of which one version is served.
fn crd(served: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/mappings.getambassador.io.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut parts = text.split("served: true");
    let mut crd = parts.next().unwrap().to_owned();
    for (version, part) in ["v1", "v2", "v3alpha1"].into_iter().zip(parts) {
        crd += &format!("served: {}{part}", version == served);
    }
    crd
}

fn facts(state: &str) -> Option<Arc<StatusFacts>> {
    let object = Scope { values: vec![("state", StatusValue::text(state))], ..Scope::default() };
    Some(Arc::new(StatusFacts { object, lists: Vec::new() }))
}

/// What is reported of a Mapping that is read: its state, and an event.
fn report(key: ObjectRef, object: Option<Object>, state: &str) -> Report {
    let verdict = Verdict::new(Code::ServiceNotFound, key.at("spec.service"), "Service a does not exist");
    Report {
        objects: vec![(key.clone(), object)],
        verdicts: vec![(key.clone(), Some(Arc::new(vec![verdict])))],
        facts: vec![(key, facts(state))],
        ..Report::default()
    }
}

/// Reads Mappings as Sesame does, and reports them as being in this state.
async fn follow(client: kube::Client, options: Options, reporter: Reporter, state: watch::Receiver<&'static str>) {
    let (cluster, _wants) = Cluster::new(client, options);
    let ((objects, mut feed), (answers, _answered)) = (feed(feed::CAPACITY), feed(feed::CAPACITY));
    let told = async {
        while let Some(batch) = feed.next().await {
            batch
                .changes
                .into_iter()
                .for_each(|change| reporter.report(report(change.key, change.object, *state.borrow())));
            reporter.report(Report { synced: batch.synced, ..Report::default() });
        }
    };
    tokio::join!(cluster.run(objects, answers), told);
}

#[tokio::test]
async fn a_kind_is_written_in_the_version_that_is_served() {
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("served").await.unwrap();
    api.apply(&crd("v2")).await.unwrap();
    let options = Options { kinds: vec![kind::MAPPING], ..Options::default() };
    let settings = Settings::new("replica-0", ADDRESS.parse().unwrap(), kinds);
    let settings = Settings { versions: options.versions.clone(), ..settings };
    let replica = Replica::with(api.client().unwrap(), settings, Leadership::always());
    let (state, reported) = watch::channel("Inactive");
    let following = tokio::spawn(follow(api.client().unwrap(), options, replica.reporter.clone(), reported));

    let mapping = format!(
        "{{apiVersion: getambassador.io/v2, kind: Mapping, metadata: {{name: web, namespace: {namespace}}}, \
         spec: {{prefix: /, service: a}}}}"
    );
    // The API server takes a while until it serves what a CRD defines.
    testbed::eventually("the Mapping to be taken", LIMIT, async || api.apply(&mapping).await).await.unwrap();
    let says = async |version: &str, state: &str| {
        let resource = GroupVersionKind::gvk("getambassador.io", version, "Mapping");
        let resource = ApiResource::from_gvk_with_plural(&resource, "mappings");
        let mappings = Api::<DynamicObject>::namespaced_with(api.client().unwrap(), &namespace, &resource);
        let probe = async || match mappings.get("web").await {
            Ok(object) if object.data["status"]["state"] == state => Ok(()),
            other => Err(format!("{other:?}")),
        };
        testbed::eventually(format!("{state} in {version}"), LIMIT, probe).await.unwrap();
    };
    says("v2", "Inactive").await;
    replica.until("the event", |replica| replica.count("sesame_events_total", "created") == 1).await;
    let events = Api::<Event>::namespaced(api.client().unwrap(), &namespace);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let ours = events.iter().find(|event| event.reporting_controller.as_deref() == Some(CONTROLLER));
    let regarding = ours.and_then(|event| event.regarding.as_ref()).unwrap();
    assert_eq!(regarding.api_version.as_deref(), Some("getambassador.io/v2"));

    // An upgrade of the CRD: what is written before the source has found the other version is written again.
    api.apply(&crd("v3alpha1")).await.unwrap();
    let key = ObjectRef::new(kind::MAPPING, namespace.as_str(), "web");
    state.send_replace("Running");
    replica.reporter.report(Report { facts: vec![(key, facts("Running"))], ..Report::default() });
    says("v3alpha1", "Running").await;
    following.abort();
    replica.stop().await;
}
