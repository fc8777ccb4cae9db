//! What is read, what is passed over, and how far a bad value reaches.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    Ingress, Secret, Service,
    ingress::{HttpPath, PathType},
    kind,
};
use proptest::prelude::*;
use std::sync::Arc;

fn read(kind: Kind, json: &str) -> Decoded {
    decode_json(kind, json.as_bytes()).unwrap()
}

fn ingress(spec: &str) -> (Arc<Ingress>, Vec<String>) {
    let json = format!(r#"{{"metadata": {{"name": "web", "namespace": "shop"}}, "spec": {spec}}}"#);
    let decoded = read(kind::INGRESS, &json);
    let ingress = decoded.object.get::<Ingress>().unwrap().clone();
    (ingress, decoded.faults.iter().map(ToString::to_string).collect())
}

#[test]
fn an_ingress_as_the_api_server_sends_it() {
    let decoded = read(
        kind::INGRESS,
        r#"{
          "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
          "metadata": {
            "name": "web", "namespace": "shop", "uid": "8f5c", "generation": 3, "resourceVersion": "812",
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"team": "a"},
            "annotations": {"a.io/b": "c", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}], "ownerReferences": []
          },
          "spec": {
            "ingressClassName": "sesame",
            "tls": [{"hosts": ["shop.example"], "secretName": "cert"}],
            "rules": [{"host": "shop.example", "http": {"paths": [
              {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
              {"path": "/x", "pathType": "Fuzzy", "backend": {"service": {"name": "web", "port": {"name": "http"}}}}
            ]}}]
          },
          "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.7", "ports": []}]}}
        }"#,
    );
    assert_eq!((decoded.faults, decoded.unknown), (vec![], vec![]));
    assert_eq!(decoded.object.key(), ObjectRef::new(kind::INGRESS, "shop", "web"));
    let ingress = decoded.object.get::<Ingress>().unwrap();
    assert_eq!(
        (ingress.meta.uid.to_string(), ingress.meta.generation, ingress.meta.resource_version),
        ("8f5c".into(), 3, 812)
    );
    assert_eq!(ingress.meta.created.unwrap().as_second(), 1_767_323_045);
    assert!(!ingress.meta.deleting);
    assert_eq!(ingress.meta.annotations.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a.io/b"]);
    assert_eq!(ingress.spec.ingress_class_name.ok().unwrap().as_deref(), Some("sesame"));
    assert_eq!(ingress.spec.tls[0].get().unwrap().secret_name.as_deref(), Some("cert"));
    let paths: Vec<&HttpPath> = ingress.spec.rules[0].get().unwrap().http.paths.good().map(|(_, path)| path).collect();
    assert_eq!(paths[0].path_type, Some(PathType::Prefix));
    assert_eq!(paths[1].path_type, Some(PathType::Unknown("Fuzzy".into())));
    assert_eq!(paths[0].backend.as_ref().unwrap().service.as_ref().unwrap().port.number, Some(80));
    let status = ingress.status.to_json();
    assert_eq!(status["loadBalancer"]["ingress"][0]["ip"], "198.51.100.7");
}

#[test]
fn a_bad_path_spoils_that_path_alone() {
    let (ingress, faults) = ingress(
        r#"{"rules": [{"host": "a", "http": {"paths": [
            {"path": "/ok"}, {"path": 7}, {"path": "/n", "backend": {"service": {"name": "s", "port": {"number": "80"}}}},
            null, {"path": "/last", "backend": {"service": {"port": {}}}}, {"path": "/fine"}
        ]}}]}"#,
    );
    let paths = &ingress.spec.rules[0].get().unwrap().http.paths;
    assert_eq!(paths.good().map(|(index, _)| index).collect::<Vec<_>>(), [0, 5]);
    let expected = [
        "spec.rules[0].http.paths[1].path: expected text, found the number 7: put it in quotes",
        "spec.rules[0].http.paths[2].backend.service.port.number: expected a number, found text: remove the quotes",
        "spec.rules[0].http.paths[3]: expected a map, found nothing",
        "spec.rules[0].http.paths[4].backend.service: `name` is missing",
    ];
    assert_eq!(faults, expected);
    assert_eq!(paths.faults().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn a_bad_field_of_the_spec_cannot_be_mistaken_for_an_absent_one() {
    let (ingress, faults) = ingress(r#"{"ingressClassName": 1, "tls": "none", "rules": {}, "defaultBackend": []}"#);
    assert_eq!(&*ingress.spec.ingress_class_name.fault().unwrap().path, "spec.ingressClassName");
    assert_eq!(&*ingress.spec.default_backend.fault().unwrap().path, "spec.defaultBackend");
    assert_eq!((ingress.spec.tls.len(), ingress.spec.rules.len()), (1, 1));
    assert_eq!(&*ingress.spec.tls[0].fault().unwrap().path, "spec.tls");
    assert_eq!(faults.len(), 4);
}

#[test]
fn of_an_endpoint_slice_only_the_label_that_counts_is_kept() {
    let decoded = read(
        kind::ENDPOINT_SLICE,
        r#"{"metadata": {"name": "a", "labels": {"kubernetes.io/service-name": "web", "b": "c"}, "annotations": {"d": "e"}},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": "10.0.0.2"}]}"#,
    );
    let slice = decoded.object.get::<crate::EndpointSlice>().unwrap();
    assert_eq!(slice.service_name(), Ok(Some("web")));
    assert_eq!((slice.meta.labels.iter().count(), slice.meta.annotations.is_empty()), (1, true));
    assert_eq!(slice.endpoints.good().count(), 1);
}

#[test]
fn null_is_absent() {
    let (ingress, faults) =
        ingress(r#"{"ingressClassName": null, "tls": null, "rules": [{"host": null, "http": null}]}"#);
    assert_eq!((faults, ingress.spec.ingress_class_name.ok()), (vec![], Some(&None)));
    assert!(ingress.spec.rules[0].get().unwrap().http.paths.is_empty());
}

#[test]
fn an_annotation_without_quotes_is_bad_alone() {
    let decoded = read(
        kind::SERVICE,
        r#"{"metadata": {"name": "a", "labels": 5, "creationTimestamp": "yesterday", "generation": "x",
            "annotations": {"n": 3, "s": "3", "null": null}}}"#,
    );
    let service = decoded.object.get::<Service>().unwrap();
    let annotations = &service.meta.annotations;
    assert_eq!(annotations.get("s"), Ok(Some(&"3".into())));
    assert_eq!(annotations.get("null"), Ok(Some(&"".into())));
    assert_eq!(annotations.get("other"), Ok(None));
    assert_eq!(&*annotations.get("n").unwrap_err().path, "metadata.annotations[\"n\"]");
    assert_eq!(&*service.meta.labels.get("any").unwrap_err().path, "metadata.labels");
    assert_eq!(service.meta.created, None);
    let paths: Vec<_> = decoded.faults.iter().map(|fault| &*fault.path).collect();
    assert_eq!(
        paths,
        ["metadata.labels", "metadata.creationTimestamp", "metadata.generation", "metadata.annotations[\"n\"]"]
    );
}

#[test]
fn unknown_fields_are_named_with_what_was_probably_meant() {
    let decoded = read(
        kind::SERVICE,
        r#"{"metadata": {"name": "a", "anotations": {}}, "spec": {"selektor": {}, "selector": {"app": "a"},
            "ports": [{"port": 1, "targetport": 2, "targetPort": 3, "speed": 4}]}, "extra": 1}"#,
    );
    let unknown: Vec<_> = decoded.unknown.iter().map(ToString::to_string).collect();
    assert_eq!(
        unknown,
        [
            "there is no field `extra`",
            "there is no field `metadata.anotations`; did you mean `annotations`?",
            "there is no field `spec.selektor`; did you mean `selector`?",
            "there is no field `spec.ports[0].targetport`; did you mean `targetPort`?",
            "there is no field `spec.ports[0].speed`",
        ]
    );
}

/// Each field that the API has and nothing reads, where it stands.
#[test]
fn known_fields_that_nothing_reads_are_not_reported() {
    let meta = r#""metadata": {"name": "a", "managedFields": [], "selfLink": "", "generateName": "", "ownerReferences": [],
        "deletionGracePeriodSeconds": 1, "finalizers": []}"#;
    let balancer = r#""loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ipMode": "VIP", "ports": []}]}"#;
    let delegation = r#""spec": {"delegations": []}, "status": {}"#;
    for (kind, rest) in [
        (kind::NAMESPACE, r#""spec": {}, "status": {}"#.to_owned()),
        (kind::INGRESS_CLASS, r#""spec": {"controller": "x", "parameters": {}}"#.to_owned()),
        (kind::INGRESS, format!(r#""spec": {{}}, "status": {{{balancer}}}"#)),
        (
            kind::SERVICE,
            format!(
                r#""spec": {{"allocateLoadBalancerNodePorts": true, "clusterIPs": [], "externalIPs": [], "externalTrafficPolicy": "",
                "healthCheckNodePort": 1, "internalTrafficPolicy": "", "ipFamilies": [], "ipFamilyPolicy": "", "loadBalancerClass": "",
                "loadBalancerIP": "", "loadBalancerSourceRanges": [], "publishNotReadyAddresses": true, "selector": {{}},
                "sessionAffinity": "", "sessionAffinityConfig": {{}}, "trafficDistribution": "",
                "ports": [{{"port": 1, "targetPort": 2, "nodePort": 3}}]}}, "status": {{"conditions": [], {balancer}}}"#
            ),
        ),
        (
            kind::ENDPOINT_SLICE,
            r#""endpoints": [{"addresses": [], "deprecatedTopology": {}, "hints": {}, "hostname": "", "nodeName": "", "targetRef": {}}]"#
                .to_owned(),
        ),
        (kind::SECRET, r#""immutable": true"#.to_owned()),
        (kind::CONFIG_MAP, r#""immutable": true, "binaryData": {}"#.to_owned()),
        (kind::CONTOUR_TLS_CERTIFICATE_DELEGATION, delegation.to_owned()),
        (kind::SESAME_TLS_CERTIFICATE_DELEGATION, delegation.to_owned()),
    ] {
        let api_version = kind.api_version();
        let decoded = read(kind, &format!(r#"{{"apiVersion": "{api_version}", "kind": "{kind}", {meta}, {rest}}}"#));
        assert_eq!((decoded.unknown, decoded.faults), (vec![], vec![]), "{kind}");
    }
}

#[test]
fn secrets_are_decoded_entry_by_entry_and_never_shown() {
    let decoded = read(
        kind::SECRET,
        r#"{"metadata": {"name": "a"}, "type": "kubernetes.io/tls",
            "data": {"a": "aHVudGVy\nMg==", "b": "hunter2!", "c": "aHVudGVyMg==", "d": ["hunter2"]},
            "stringData": {"c": "plain"}}"#,
    );
    let secret = decoded.object.get::<Secret>().unwrap();
    assert_eq!(secret.get("a"), Ok(Some(&b"hunter2"[..])));
    assert_eq!(secret.get("c"), Ok(Some(&b"plain"[..])));
    assert_eq!(secret.get("e"), Ok(None));
    assert_eq!(
        secret.get("b").unwrap_err().to_string(),
        "data[\"b\"]: expected base64: plain text belongs in `stringData`"
    );
    assert!(secret.get("d").is_err());
    let shown = format!("{decoded:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVy"), "{shown}");
}

#[test]
fn what_has_no_name_or_no_shape_is_refused() {
    let refused = |json: &str| decode_json(kind::INGRESS, json.as_bytes()).unwrap_err().to_string();
    assert_eq!(refused(r#"{"spec": {}}"#), "metadata.name is missing");
    assert_eq!(refused(r#"{"metadata": {"name": ""}}"#), "metadata.name is missing");
    assert_eq!(
        refused(r#"{"metadata": {"name": 5}}"#),
        "metadata.name: expected text, found the number 5: put it in quotes"
    );
    let long = |field: &str, length: usize| {
        let mut metadata = serde_json::json!({ "name": "a" });
        metadata[field] = "a".repeat(length).into();
        serde_json::json!({ "metadata": metadata }).to_string()
    };
    assert_eq!(refused(&long("name", 254)), "metadata.name is longer than 253 characters");
    assert_eq!(refused(&long("namespace", 64)), "metadata.namespace is longer than 63 characters");
    assert!(decode_json(kind::INGRESS, long("name", 253).as_bytes()).is_ok());
    assert_eq!(refused(r#"{"metadata": {"name": "a"}, "spec": []}"#), "spec: expected a map, found a list");
    assert_eq!(refused("[]"), "expected a map, found a list");
    assert!(refused("{").starts_with("not JSON: "));
}

#[test]
fn namespaces_are_optional_and_cluster_wide_kinds_have_none() {
    let object = read(kind::SERVICE, r#"{"metadata": {"name": "a"}}"#).object;
    assert_eq!(object.key(), ObjectRef::new(kind::SERVICE, "default", "a"));
    let object = read(kind::INGRESS_CLASS, r#"{"metadata": {"name": "a", "namespace": "b"}}"#).object;
    assert_eq!(object.key(), ObjectRef::new(kind::INGRESS_CLASS, "", "a"));
}

#[test]
fn the_group_is_part_of_what_an_object_is() {
    let json =
        r#"{"metadata": {"name": "a"}, "spec": {"delegations": [{"secretName": "s", "targetNamespaces": ["*"]}]}}"#;
    let keys = [kind::CONTOUR_TLS_CERTIFICATE_DELEGATION, kind::SESAME_TLS_CERTIFICATE_DELEGATION]
        .map(|kind| read(kind, json).object.key());
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[0].kind.group(), "projectcontour.io");
}

#[test]
fn only_what_was_written_counts_not_when() {
    let at = |version: u32| {
        read(kind::SERVICE, &format!(r#"{{"metadata": {{"name": "a", "resourceVersion": "{version}"}}}}"#)).object
    };
    assert_eq!(at(1), at(2));
}

#[test]
fn the_identity_of_a_broken_object_is_known() {
    let node = serde_json::from_str(r#"{"metadata": {"name": "a"}, "spec": 1}"#).unwrap();
    assert!(decode(kind::INGRESS, &node).is_err());
    assert_eq!(identity(kind::INGRESS, &node), Some(ObjectRef::new(kind::INGRESS, "default", "a")));
}

/// Any tree: fields that kinds have and others, values of every type.
fn any_node() -> impl Strategy<Value = Node<'static>> {
    use crate::{Value, node::Key};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        "[a-z./*]{0,8}".prop_map(|text| Value::Text(text.into())),
    ];
    let names = prop::sample::select(vec![
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "spec",
        "status",
        "rules",
        "http",
        "paths",
        "backend",
        "service",
        "port",
        "ports",
        "number",
        "tls",
        "hosts",
        "data",
        "stringData",
        "endpoints",
        "addresses",
        "conditions",
        "ready",
        "delegations",
        "secretName",
        "loadBalancer",
        "ingress",
        "type",
        "creationTimestamp",
        "other",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        let node = inner.prop_map(Node::from);
        let entry = (names.clone(), node.clone());
        prop_oneof![
            prop::collection::vec(node, 0..5).prop_map(Value::List),
            prop::collection::vec(entry, 0..6).prop_map(|entries| {
                let key = |text: &'static str| Key::from(text);
                Value::Map(entries.into_iter().map(|(name, node)| (key(name), node)).collect())
            }),
        ]
    })
    .prop_map(Node::from)
}

proptest! {
    #[test]
    fn no_tree_makes_the_decoder_panic(spec in any_node(), kind in prop::sample::select(kind::ALL)) {
        let _ = decode(kind, &spec);
    }

    #[test]
    fn a_named_object_with_a_map_for_a_spec_is_never_lost(tls in any_node(), rules in any_node(), backend in any_node()) {
        use crate::{Value, node::Key};
        let key = |text: &'static str| Key::from(text);
        let map = |entries: Vec<(&'static str, Node<'static>)>| {
            Node::from(Value::Map(entries.into_iter().map(|(name, node)| (key(name), node)).collect()))
        };
        let name = map(vec![("name", Value::Text("a".into()).into())]);
        let spec = map(vec![("tls", tls), ("rules", rules), ("defaultBackend", backend)]);
        let decoded = decode(kind::INGRESS, &map(vec![("metadata", name), ("spec", spec)]));
        prop_assert!(decoded.is_ok(), "{decoded:?}");
    }
}
