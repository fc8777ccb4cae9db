//! The objects of Emissary that are for this instance, in the API server and in annotations: who reads which, and who is told.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "emissary_objects/annotations.rs"]
mod annotations;
#[path = "emissary_objects/authorization.rs"]
mod authorization;

use kinds::{
    Kind, Object, ObjectRef, Typed,
    emissary::{DevPortal, HasAmbassadorId},
    kind,
};
use model::{Timeout, route::Action};
use pipeline::{
    Output, Pipeline, Settings,
    emissary::{Emissary, EmissaryObject, Modules},
    translations::Translations,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

fn settings(id: &str) -> Settings {
    let mut settings = Settings::default();
    settings.emissary.ambassador_id = id.into();
    settings
}

fn decoded(kind: Kind, json: &Value) -> Object {
    kinds::decode_json(kind, json.to_string().as_bytes()).unwrap().object
}

/// An object with the annotation, created so many days after others.
fn annotated(kind: Kind, name: &str, day: u32, annotation: &str) -> Object {
    let metadata = json!({
        "name": name, "namespace": "shop", "labels": { "team": "a" }, "creationTimestamp": format!("2026-01-{:02}T00:00:00Z", day + 1),
        "annotations": { "getambassador.io/config": annotation },
    });
    // An Ingress of another controller: Emissary's objects in it are read all the same.
    decoded(kind, &json!({ "metadata": metadata, "spec": { "ingressClassName": "other" } }))
}

fn object(kind: Kind, name: &str, spec: &Value) -> Object {
    let api_version = "getambassador.io/v3alpha1";
    decoded(
        kind,
        &json!({ "apiVersion": api_version, "metadata": { "name": name, "namespace": "shop" }, "spec": spec }),
    )
}

fn put(pipeline: &mut Pipeline, object: &Object) {
    pipeline.put(&object.key(), Some(object.clone()));
}

/// What is told, by object.
fn reported(output: &Output) -> BTreeMap<String, Vec<String>> {
    let line = |verdict: &model::Verdict| format!("{} {}", verdict.code, verdict.message);
    let told = output.verdicts.iter().filter_map(|(object, list)| Some((object, list.as_ref()?)));
    told.map(|(object, list)| (object.to_string(), list.iter().map(line).collect())).collect()
}

fn found<T>(pipeline: &Pipeline, name: &str) -> Option<Arc<EmissaryObject<T>>>
where
    T: Typed + HasAmbassadorId,
{
    pipeline.engine().get::<Emissary<T>>(&ObjectRef::new(T::KINDS[0], "shop", name)).cloned()
}

#[test]
fn two_instances_with_two_ids_share_nothing() {
    let annotation = "\
{apiVersion: getambassador.io/v2, kind: DevPortal, name: annotated-blue, ambassador_id: blue}
---
{apiVersion: getambassador.io/v2, kind: DevPortal, name: annotated-default}
";
    let objects = [
        object(kind::DEV_PORTAL, "blue", &json!({ "ambassador_id": ["blue"] })),
        object(kind::DEV_PORTAL, "default", &json!({})),
        object(kind::DEV_PORTAL, "every", &json!({ "ambassador_id": ["_automatic_"] })),
        object(kind::DEV_PORTAL, "both", &json!({ "ambassador_id": ["blue", "default"] })),
        object(kind::DEV_PORTAL, "broken", &json!({ "ambassador_id": { "a": 1 } })),
        object(kind::MODULE, "ambassador", &json!({ "ambassador_id": ["blue"], "config": { "server_name": "blue" } })),
        annotated(kind::SERVICE, "web", 0, annotation),
    ];
    let names = ["blue", "default", "every", "both", "broken", "annotated-blue", "annotated-default"];
    let mut pipeline = Pipeline::new(&settings("blue"));
    objects.iter().for_each(|object| put(&mut pipeline, object));
    let blue = reported(&pipeline.settle());
    let read = |pipeline: &Pipeline| -> Vec<&str> {
        names.into_iter().filter(|name| found::<DevPortal>(pipeline, name).is_some()).collect()
    };
    assert_eq!(read(&pipeline), ["blue", "every", "both", "annotated-blue"]);
    let portals: Vec<_> = blue.keys().filter(|key| key.starts_with("DevPortal")).collect();
    assert_eq!(portals, ["DevPortal shop/blue", "DevPortal shop/both", "DevPortal shop/every"]);
    assert_eq!(
        blue["Service shop/web"],
        ["SES9001 line 1: DevPortal annotated-blue spec: Sesame has no developer portal"]
    );
    let module = pipeline.engine().get::<Modules>(&()).unwrap();
    assert_eq!(module.settings.server_name.get().unwrap().as_deref(), Some("blue"));

    // Another id: what was said about the others is taken back, and nothing is said about them any more.
    pipeline.set_settings(&settings("default"));
    let output = pipeline.settle();
    let gone: Vec<_> =
        output.verdicts.iter().filter(|(_, list)| list.is_none()).map(|(key, _)| key.to_string()).collect();
    assert!(gone.contains(&"DevPortal shop/blue".to_owned()), "{gone:?}");
    assert_eq!(read(&pipeline), ["default", "every", "both", "annotated-default"]);
    assert!(pipeline.engine().get::<Modules>(&()).is_none());
    assert_eq!(
        reported(&output)["Service shop/web"],
        ["SES9001 line 3: DevPortal annotated-default spec: Sesame has no developer portal"]
    );
    assert_eq!(pipeline.self_check(), Ok(()));
}

/// One edit of the objects.
#[derive(Clone, Debug)]
enum Edit {
    Annotated(Kind, u8, u8, Vec<(u8, u8)>),
    NotAnnotated(Kind, u8),
    Object(u8, u8),
    NoObject(u8),
    Instance(u8),
}

fn edits() -> impl Strategy<Value = Edit> {
    let kind = || prop::sample::select(vec![kind::SERVICE, kind::INGRESS]);
    prop_oneof![
        4 => (kind(), 0..3_u8, 0..4_u8, prop::collection::vec((0..4_u8, 0..4_u8), 0..4))
            .prop_map(|(kind, name, day, objects)| Edit::Annotated(kind, name, day, objects)),
        1 => (kind(), 0..3_u8).prop_map(|(kind, name)| Edit::NotAnnotated(kind, name)),
        2 => (0..4_u8, 0..4_u8).prop_map(|(name, id)| Edit::Object(name, id)),
        1 => (0..4_u8).prop_map(Edit::NoObject),
        1 => (0..2_u8).prop_map(Edit::Instance),
    ]
}

const IDS: [&str; 4] = ["default", "blue", "_automatic_", "green"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After any edits the tables are those of a build from nothing, and each object of this instance is told exactly once: on
    /// itself, or on the annotated object.
    #[test]
    fn any_edits_end_as_a_build_from_nothing(script in prop::collection::vec(edits(), 1..24)) {
        let mut pipeline = Pipeline::new(&settings("default"));
        let mut told: BTreeMap<ObjectRef, Arc<Vec<model::Verdict>>> = BTreeMap::new();
        for edit in script {
            match edit {
                Edit::Annotated(kind, name, day, objects) => {
                    let documents = objects.iter().map(|(name, id)| {
                        let id = IDS[usize::from(*id)];
                        format!("---\n{{apiVersion: getambassador.io/v2, kind: DevPortal, name: p{name}, ambassador_id: {id}}}\n")
                    });
                    put(&mut pipeline, &annotated(kind, &format!("c{name}"), day.into(), &documents.collect::<String>()));
                }
                Edit::NotAnnotated(kind, name) => pipeline.put(&ObjectRef::new(kind, "shop", format!("c{name}")), None),
                Edit::Object(name, id) => {
                    let spec = json!({ "ambassador_id": [IDS[usize::from(id)]] });
                    put(&mut pipeline, &object(kind::DEV_PORTAL, &format!("p{name}"), &spec));
                }
                Edit::NoObject(name) => pipeline.put(&ObjectRef::new(kind::DEV_PORTAL, "shop", format!("p{name}")), None),
                Edit::Instance(id) => pipeline.set_settings(&settings(IDS[usize::from(id)])),
            }
            for (object, list) in pipeline.settle().verdicts {
                match list {
                    Some(list) => _ = told.insert(object, list),
                    None => _ = told.remove(&object),
                }
            }
            prop_assert_eq!(pipeline.self_check(), Ok(()));
            let count = told.values().flat_map(|list| list.iter()).filter(|verdict| verdict.code == model::Code::EmissaryNoEffect);
            let here = (0..4).filter(|name| found::<DevPortal>(&pipeline, &format!("p{name}")).is_some());
            prop_assert_eq!(count.count(), here.count());
        }
    }
}

/// Emissary leaves other routes on the values of the old Module where a Mapping comes with the new one.
#[test]
fn an_edit_of_the_module_reaches_every_mapping_and_only_keys_of_theirs_do() {
    let mut pipeline = Pipeline::new(&settings("default"));
    let mapping = |name: &str, prefix: &str| {
        object(kind::MAPPING, name, &json!({ "hostname": "*", "prefix": prefix, "service": "web" }))
    };
    let module = |config: Value| object(kind::MODULE, "ambassador", &json!({ "config": config }));
    put(&mut pipeline, &object(kind::SERVICE, "web", &json!({ "ports": [{ "port": 80 }] })));
    put(&mut pipeline, &mapping("a", "/a/"));
    put(&mut pipeline, &mapping("b", "/b/"));
    put(&mut pipeline, &module(json!({ "cluster_request_timeout_ms": 1000 })));
    pipeline.settle();
    let timeouts = |pipeline: &Pipeline| {
        ["a", "b"].map(|name| {
            let key = ObjectRef::new(kind::MAPPING, "shop", name);
            let translation = pipeline.engine().get::<Translations>(&key).unwrap();
            let Action::Forward(forward) = &translation.shared[0].routes[0].action else { panic!("it forwards") };
            forward.timeout
        })
    };
    let seconds = |count| [Timeout::After(Duration::from_secs(count)); 2];
    assert_eq!(timeouts(&pipeline), seconds(1));
    put(&mut pipeline, &mapping("a", "/a/c/"));
    put(&mut pipeline, &module(json!({ "cluster_request_timeout_ms": 9000 })));
    pipeline.settle();
    assert_eq!(timeouts(&pipeline), seconds(9));

    let computed = |pipeline: &Pipeline| {
        let counters = pipeline.engine().counters();
        counters.iter().find(|table| table.name == "translations").map(|table| table.computed).unwrap()
    };
    let before = computed(&pipeline);
    put(&mut pipeline, &module(json!({ "cluster_request_timeout_ms": 9000, "server_name": "edge" })));
    pipeline.settle();
    assert_eq!(computed(&pipeline) - before, 1, "the Module alone");
    pipeline.put(&ObjectRef::new(kind::MODULE, "shop", "ambassador"), None);
    pipeline.settle();
    assert_eq!(timeouts(&pipeline), seconds(3));
}

#[test]
fn an_ingress_of_emissarys_class_is_read_by_the_instance_that_its_id_names() {
    let ingress = |name: &str, ids: Value| {
        let mut annotations = json!({ "kubernetes.io/ingress.class": "ambassador" });
        if !ids.is_null() {
            annotations["getambassador.io/ambassador-id"] = ids;
        }
        let metadata = json!({ "name": name, "namespace": "shop", "annotations": annotations });
        decoded(kind::INGRESS, &json!({ "metadata": metadata, "spec": {} }))
    };
    for (id, expected) in [("default", ["every", "none"]), ("blue", ["blue", "every"])] {
        let expected = expected.map(|name| format!("Ingress shop/{name}"));
        let mut settings = settings(id);
        settings.ingress.emissary_class = true;
        let mut pipeline = Pipeline::new(&settings);
        put(&mut pipeline, &ingress("none", Value::Null));
        put(&mut pipeline, &ingress("blue", "blue".into()));
        put(&mut pipeline, &ingress("every", "_automatic_".into()));
        let told = reported(&pipeline.settle());
        assert!(told.keys().eq(&expected), "{id}: {told:?}");
    }
}
