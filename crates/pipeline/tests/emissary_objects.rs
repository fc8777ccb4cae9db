//! The objects of Emissary that are for this instance, in the API server and in annotations: who reads which, and who is told.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use kinds::{
    Kind, Object, ObjectRef, Typed,
    emissary::{DevPortal, HasAmbassadorId, Mapping, Module},
    http_proxy::security::AuthorizationServer,
    kind,
};
use model::{Timeout, route::Action};
use pipeline::{
    Output, Pipeline, Settings,
    authorization::{GlobalAuthorization, of_operator},
    emissary::{Emissary, EmissaryObject, Modules, authorization::EmissaryAuthService},
    extensions::ExtensionName,
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

const FORMS: &str = "\
---
apiVersion: getambassador.io/v3alpha1
kind: Mapping
metadata:
  name: whole
  labels: {team: b}
spec:
  prefix: /whole/
  hostname: a.example.com
  service: whole
---
# The flat form, of a time before there were CRDs.
apiVersion: ambassador/v2
kind: Mapping
name: flat
metadata_labels: {team: c}
prefix: /flat/
service: flat
tls: true
---
{apiVersion: ambassador/v1, kind: Mapping, name: json, ambassador_id: default, prefix: /json/, service: json, host: b.example.com}
---
apiVersion: getambassador.io/v3alpha1
kind: Mapping
metadata: {name: mixed}
name: mixed-name
spec: {prefix: /no/, service: mixed}
prefix: /mixed/
";

#[test]
fn every_form_of_the_annotation_is_read() {
    for kind in [kind::SERVICE, kind::INGRESS] {
        let mut pipeline = Pipeline::new(&settings("default"));
        let annotated = annotated(kind, "annotated", 0, FORMS);
        put(&mut pipeline, &annotated);
        let told = reported(&pipeline.settle());
        // No Service and no Host is there; the annotation itself is fine.
        let of_annotation = |line: &&String| line.starts_with("SES90");
        assert_eq!(told[&annotated.key().to_string()].iter().find(of_annotation), None, "{told:?}");
        let mapping = |name: &str| {
            let found = found::<Mapping>(&pipeline, name).unwrap_or_else(|| panic!("no Mapping {name}"));
            assert_eq!(found.annotated.as_ref(), Some(&annotated.key()));
            let mapping = found.object.clone();
            let text =
                |field: &kinds::Checked<Option<Box<str>>>| field.get().unwrap().as_deref().unwrap_or("-").to_owned();
            let label = mapping.meta.labels.get("team").unwrap().unwrap().to_string();
            assert!(mapping.meta.created > "2900-01-01T00:00:00Z".parse().ok(), "{:?}", mapping.meta.created);
            (text(&mapping.spec.prefix), text(&mapping.spec.hostname), text(&mapping.spec.service), label)
        };
        let of = |prefix: &str, host: &str, service: &str, label: &str| {
            (prefix.to_owned(), host.to_owned(), service.to_owned(), label.to_owned())
        };
        assert_eq!(mapping("whole"), of("/whole/", "a.example.com", "whole", "b"));
        assert_eq!(mapping("flat"), of("/flat/", "*", "https://flat", "c"));
        assert_eq!(mapping("json"), of("/json/", "b.example.com", "json", "a"));
        assert_eq!(mapping("mixed-name"), of("/mixed/", "-", "mixed", "a"));
        pipeline.put(&annotated.key(), None);
        pipeline.settle();
        assert!(found::<Mapping>(&pipeline, "whole").is_none());
        assert_eq!(pipeline.self_check(), Ok(()));
    }
}

const TROUBLE: &str = "\
---
apiVersion: getambassador.io/v3alpha1
kind: DevPortal
name: portal
---
apiVersion: getambassador.io/v2
kind: Mapping
name: bad
prefix: /bad/
service: bad
weight: much
prefx: /
---
apiVersion: ambassador/v0
kind: Mapping
name: old
---
apiVersion: apps/v1
kind: Deployment
---
apiVersion: getambassador.io/v2
kind: Mapping
prefix: /nameless/
---
[not an object]
---
a: [
---
apiVersion: getambassador.io/v2
kind: Mapping
name: elsewhere
namespace: kube-system
---
apiVersion: getambassador.io/v3alpha1
kind: DevPortal
metadata: {name: portal}
";

#[test]
fn verdicts_stand_on_the_annotated_object_with_their_line() {
    let mut pipeline = Pipeline::new(&settings("default"));
    let service = annotated(kind::SERVICE, "web", 0, TROUBLE);
    put(&mut pipeline, &service);
    let output = pipeline.settle();
    let told = reported(&output);
    assert_eq!(told.keys().collect::<Vec<_>>(), ["Service shop/web"], "nothing is told on objects that are none");
    let mut lines = told["Service shop/web"].clone();
    lines.retain(|line| line.starts_with("SES90"));
    lines.sort();
    let expected = [
        "SES9001 line 2: DevPortal portal spec: Sesame has no developer portal",
        "SES9010 line 25: ",
        "SES9010 line 27: ",
        "SES9011 line 14: Mapping of ambassador/v0 is not read",
        "SES9011 line 18: Deployment of apps/v1 is not read",
        "SES9012 line 11: Mapping bad spec.weight: expected a number, found text",
        "SES9012 line 21: Mapping: metadata.name is missing",
        "SES9013 line 12: Mapping bad: there is no field `spec.prefx`; did you mean `prefix`?",
        "SES9014 line 32: Mapping elsewhere is for namespace kube-system",
        "SES9016 line 36: DevPortal shop/portal is already defined in this annotation",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line} is not {expected}");
    }
    let fields: Vec<_> =
        output.verdicts.iter().flat_map(|(_, list)| list.iter().flat_map(|list| list.iter())).collect();
    assert!(
        fields
            .iter()
            .all(|verdict| verdict.origin.field.as_str() == "metadata.annotations[\"getambassador.io/config\"]")
    );
    assert!(found::<Mapping>(&pipeline, "bad").unwrap().object.spec.weight.get().is_err());
    assert!(found::<Mapping>(&pipeline, "elsewhere").is_none());

    let mut trusting = settings("default");
    trusting.emissary.cross_namespace = true;
    pipeline.set_settings(&trusting);
    pipeline.settle();
    let elsewhere = ObjectRef::new(kind::MAPPING, "kube-system", "elsewhere");
    assert!(pipeline.engine().get::<Emissary<Mapping>>(&elsewhere).is_some());
    assert_eq!(pipeline.self_check(), Ok(()));
}

#[test]
fn of_two_definitions_one_is_in_effect_and_the_other_is_told() {
    let mut pipeline = Pipeline::new(&settings("default"));
    let portal = "{apiVersion: getambassador.io/v2, kind: DevPortal, name: portal}";
    let (old, new) = (annotated(kind::INGRESS, "old", 1, portal), annotated(kind::SERVICE, "new", 2, portal));
    put(&mut pipeline, &new);
    let owner = |pipeline: &Pipeline| found::<DevPortal>(pipeline, "portal").unwrap().annotated.clone();
    pipeline.settle();
    assert_eq!(owner(&pipeline), Some(new.key()));

    put(&mut pipeline, &old);
    let output = reported(&pipeline.settle());
    assert_eq!(owner(&pipeline), Some(old.key()));
    let lost = "SES9016 line 1: DevPortal shop/portal is already defined in the annotation of Ingress shop/old";
    assert_eq!(output["Service shop/new"], [lost]);
    let effect = "SES9001 line 1: DevPortal portal spec: Sesame has no developer portal";
    assert_eq!(output["Ingress shop/old"], [effect]);

    let own = object(kind::DEV_PORTAL, "portal", &json!({}));
    put(&mut pipeline, &own);
    let output = reported(&pipeline.settle());
    assert_eq!(owner(&pipeline), None);
    let lost = "SES9016 line 1: DevPortal shop/portal is already defined as an object of its own";
    assert_eq!(
        (&output["Ingress shop/old"][..], &output["Service shop/new"][..]),
        (&[lost.into()][..], &[lost.into()][..])
    );
    assert_eq!(output["DevPortal shop/portal"], ["SES9001 Sesame has no developer portal"]);
    assert_eq!(pipeline.self_check(), Ok(()));

    pipeline.put(&own.key(), None);
    let output = pipeline.settle();
    assert_eq!(reported(&output)["Ingress shop/old"], [effect]);
    assert!(
        output.verdicts.iter().any(|(object, list)| *object == own.key() && list.is_none()),
        "no longer told there"
    );
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

#[test]
fn an_annotation_is_bounded() {
    let portal = |name: usize| format!("---\n{{apiVersion: getambassador.io/v2, kind: DevPortal, name: p{name}}}\n");
    let many: String = (0..502).map(portal).collect();
    let large = format!("# {}\n{}", "x".repeat(256 * 1024), portal(0));
    let levels: String = ('b'..='k')
        .map(|level| {
            let before = (level as u8 - 1) as char;
            let names = vec![format!("*{before}"); 9].join(", ");
            format!("{level}: &{level} [{names}]\n")
        })
        .collect();
    let bomb = format!("a: &a [x, x, x, x, x, x, x, x, x]\n{levels}{}", portal(0));
    let deep = format!("a: {}{}\n{}", "[".repeat(200), "]".repeat(200), portal(0));
    for (annotation, why, is_first, is_last) in [
        (&many, "it has more than 500 objects", true, false),
        (&large, "it has more than 256 KiB", false, false),
        (&bomb, "line ", false, false),
        (&deep, "line 1: ", true, false),
    ] {
        let mut pipeline = Pipeline::new(&settings("default"));
        put(&mut pipeline, &annotated(kind::SERVICE, "web", 0, annotation));
        let told = reported(&pipeline.settle());
        let limit = told["Service shop/web"]
            .iter()
            .find(|line| line.starts_with("SES9015"))
            .unwrap_or_else(|| panic!("{told:?}"));
        assert!(limit.contains(why), "{limit}");
        assert_eq!(found::<DevPortal>(&pipeline, "p0").is_some(), is_first, "{why}");
        assert_eq!(found::<DevPortal>(&pipeline, "p501").is_some(), is_last, "{why}");
    }
    // A value that is no text is told as well.
    let service =
        json!({ "metadata": { "name": "web", "namespace": "shop", "annotations": { "getambassador.io/config": 7 } } });
    let mut pipeline = Pipeline::new(&settings("default"));
    put(&mut pipeline, &decoded(kind::SERVICE, &service));
    assert!(reported(&pipeline.settle())["Service shop/web"][0].starts_with("SES9010"));
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

/// Whoever may edit Services alone has no say about the requests of all namespaces.
#[test]
fn a_module_in_an_annotation_is_in_effect_in_sesames_namespace_alone() {
    let base = settings("default");
    let (mut own, mut trusting) = (base.clone(), base.clone());
    own.resolve.namespace = "shop".into();
    trusting.emissary.cross_namespace = true;
    let mut pipeline = Pipeline::new(&base);
    let annotation = "\
{apiVersion: ambassador/v1, kind: Module, name: ambassador, config: {server_name: annotated, service_port: 1}}
---
{apiVersion: ambassador/v1, kind: Module, name: ambassador, namespace: shop, ambassador_id: other, config: {}}
";
    put(&mut pipeline, &annotated(kind::SERVICE, "web", 0, annotation));
    let mut told = reported(&pipeline.settle());
    for trusted in [&own, &trusting] {
        assert!(pipeline.engine().get::<Modules>(&()).is_none());
        assert!(found::<Module>(&pipeline, "ambassador").is_none());
        let refused = "SES9017 line 1: Module ambassador would hold for the requests of all namespaces; it is read from annotations in namespace projectsesame alone";
        assert_eq!(told["Service shop/web"], [refused]);
        pipeline.set_settings(trusted);
        let told_there = reported(&pipeline.settle());
        let module = pipeline.engine().get::<Modules>(&()).unwrap();
        assert_eq!(module.settings.server_name.get().unwrap().as_deref(), Some("annotated"));
        let annotated = found::<Module>(&pipeline, "ambassador").unwrap().annotated.clone();
        assert_eq!(annotated.unwrap().to_string(), "Service shop/web");
        let effect = "SES9002 line 1: Module ambassador spec.config.service_port: `service_port` has no effect; use `port` of a Listener";
        assert!(told_there["Service shop/web"].contains(&effect.to_owned()), "{told_there:?}");
        pipeline.set_settings(&base);
        told = reported(&pipeline.settle());
        pipeline.self_check().unwrap();
    }
}

/// An old Service of one namespace is no older claim to a host name than a Host of another.
#[test]
fn an_object_in_an_annotation_is_younger_than_every_object_of_its_own() {
    let mut pipeline = Pipeline::new(&settings("default"));
    let host = json!({ "name": "real", "namespace": "other", "creationTimestamp": "2026-02-01T00:00:00Z" });
    let spec = json!({ "hostname": "shop.example.com" });
    put(&mut pipeline, &decoded(kind::HOST, &json!({ "metadata": host, "spec": spec })));
    let listener = json!({
        "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": { "namespace": { "from": "ALL" } },
    });
    put(&mut pipeline, &object(kind::LISTENER, "http", &listener));
    let annotation = "{apiVersion: getambassador.io/v2, kind: Host, name: thief, hostname: shop.example.com}";
    put(&mut pipeline, &annotated(kind::SERVICE, "old", 0, annotation));
    let told = reported(&pipeline.settle());
    let lost =
        "SES9120 line 1: Host thief spec.hostname: Duplicate Host shop.example.com; keeping definition from other/real";
    let losers: Vec<_> =
        told.iter().filter(|(_, lines)| lines.iter().any(|line| line.starts_with("SES9120"))).collect();
    assert_eq!(losers, [(&"Service shop/old".to_owned(), &vec![lost.to_owned()])], "{told:?}");
}

/// Each document is parsed once more for the lines of all verdicts about it: together they are within the limit of values.
#[test]
fn every_verdict_about_a_large_document_has_its_line() {
    let filler = "0, ".repeat(60_000);
    let annotation = format!(
        "{{apiVersion: getambassador.io/v3alpha1, kind: Mapping, name: large, filler: [{filler}0],\n hostname: '*', prefix: /, service: nowhere,\n path_redirect: /a,\n prefix_redirect: /b}}"
    );
    let mut pipeline = Pipeline::new(&settings("default"));
    put(&mut pipeline, &annotated(kind::SERVICE, "web", 0, &annotation));
    let told = reported(&pipeline.settle());
    let lines: Vec<_> =
        told["Service shop/web"].iter().filter_map(|line| line.split_once(" line ")?.1.split_once(':')).collect();
    let count = |number: &str| lines.iter().filter(|(line, _)| *line == number).count();
    assert_eq!(count("0"), 0, "{lines:?}");
    assert!(count("2") > 0 && count("3") > 0 && count("4") > 0, "{lines:?}");
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

/// Whoever may write AuthServices in a namespace of their own cannot set the operator's authorization aside.
#[test]
fn an_auth_service_of_a_tenant_does_not_take_the_place_of_the_operators_server() {
    let mut settings = settings("default");
    let extension = ExtensionName { namespace: "operator".into(), name: "guard".into() };
    let server = of_operator(&AuthorizationServer::default()).unwrap();
    settings.authorization = Some(GlobalAuthorization { extension, settings: server });
    settings.resolve.namespace = "elsewhere".into();
    let mut pipeline = Pipeline::new(&settings);
    put(&mut pipeline, &object(kind::AUTH_SERVICE, "mine", &json!({ "auth_service": "open" })));
    let output = pipeline.settle();
    assert!(pipeline.engine().get::<EmissaryAuthService>(&()).is_none());
    assert!(
        reported(&output)["AuthService shop/mine"][0].starts_with("SES9003 the operator has configured globalExtAuth"),
        "{:?}",
        reported(&output)
    );
    settings.resolve.namespace = "shop".into();
    pipeline.set_settings(&settings);
    pipeline.settle();
    assert!(pipeline.engine().get::<EmissaryAuthService>(&()).is_some(), "the operator's own does");
    pipeline.self_check().unwrap();

    // Where the operator's server is asked only about routes that say so, which Mappings cannot, they do not pass unasked.
    let closing = |pipeline: &Pipeline| {
        let service = pipeline.engine().get::<EmissaryAuthService>(&())?;
        (!service.is_usable).then(|| service.object.to_string())
    };
    settings.resolve.namespace = "elsewhere".into();
    settings.authorization.as_mut().unwrap().settings.disabled = true;
    pipeline.set_settings(&settings);
    let output = pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("AuthService shop/mine"));
    let told = reported(&output);
    assert!(told["AuthService shop/mine"][0].starts_with("SES9203 globalExtAuth is configured"), "{told:?}");
    pipeline.self_check().unwrap();
    settings.emissary.cross_namespace = true;
    pipeline.set_settings(&settings);
    let told = reported(&pipeline.settle());
    assert!(told["AuthService shop/mine"][0].starts_with("SES3001 "), "it is in effect: {told:?}");
    settings.emissary.cross_namespace = false;
    pipeline.set_settings(&settings);
    pipeline.settle();

    // A Module closes them, too, once there is no AuthService.
    let module = |namespace: &str, day: u32| {
        let created = format!("2026-01-{day:02}T00:00:00Z");
        let metadata = json!({ "name": "authentication", "namespace": namespace, "creationTimestamp": created });
        decoded(kind::MODULE, &json!({ "metadata": metadata, "spec": { "config": { "auth_service": "open" } } }))
    };
    put(&mut pipeline, &module("elsewhere", 9));
    let told = reported(&pipeline.settle());
    assert_eq!(closing(&pipeline).as_deref(), Some("AuthService shop/mine"));
    assert!(told["Module elsewhere/authentication"][0].starts_with("SES9001 "), "{told:?}");
    pipeline.put(&ObjectRef::new(kind::AUTH_SERVICE, "shop", "mine"), None);
    pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("Module elsewhere/authentication"));
    pipeline.self_check().unwrap();

    // Of several Modules that of Sesame's namespace closes, then the oldest.
    put(&mut pipeline, &module("b", 2));
    put(&mut pipeline, &module("a", 3));
    pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("Module elsewhere/authentication"));
    pipeline.put(&ObjectRef::new(kind::MODULE, "elsewhere", "authentication"), None);
    pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("Module b/authentication"));
    for namespace in ["a", "b"] {
        pipeline.put(&ObjectRef::new(kind::MODULE, namespace, "authentication"), None);
    }
    settings.resolve.namespace = "shop".into();
    settings.authorization.as_mut().unwrap().settings.disabled = false;
    pipeline.set_settings(&settings);
    pipeline.settle();
    pipeline.self_check().unwrap();

    // Nor do tenants close all Mappings by the older form, which cannot be asked.
    put(&mut pipeline, &object(kind::MODULE, "authentication", &json!({ "config": { "auth_service": "open" } })));
    pipeline.settle();
    let service = pipeline.engine().get::<EmissaryAuthService>(&());
    assert!(service.is_some_and(|service| !service.is_usable), "the operator's own closes them");
    settings.resolve.namespace = "elsewhere".into();
    pipeline.set_settings(&settings);
    let output = pipeline.settle();
    assert!(pipeline.engine().get::<EmissaryAuthService>(&()).is_none());
    let told = reported(&output);
    assert!(told["Module shop/authentication"][0].starts_with("SES9001 a Module `authentication`"), "{told:?}");
    pipeline.self_check().unwrap();

    // An operator's server that is asked only about routes that say so is asked about no Mapping.
    settings.authorization.as_mut().unwrap().settings.disabled = true;
    pipeline.set_settings(&settings);
    pipeline.settle();
    let service = pipeline.engine().get::<EmissaryAuthService>(&());
    assert!(service.is_some_and(|service| !service.is_usable), "nobody else guards them");
    pipeline.self_check().unwrap();
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
