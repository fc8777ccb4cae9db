//! Objects in annotations: every form of them, their bounds, who is told, and what they may do.

use super::{annotated, decoded, found, object, put, reported, settings};
use kinds::{
    ObjectRef,
    emissary::{DevPortal, Mapping, Module},
    kind,
};
use pipeline::{
    Pipeline,
    emissary::{Emissary, Modules},
};
use serde_json::json;

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
