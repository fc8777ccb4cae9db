use std::collections::BTreeSet;

use model::FleetName;

use super::*;
use crate::XdsAddress;
use crate::spec::{Owner, Port, Transport};

fn settings() -> Settings {
    Settings {
        envoy_image: "envoy:1".to_owned(),
        sesame_image: "sesame:1".to_owned(),
        xds: XdsAddress { host: "sesame.projectsesame.svc".to_owned(), port: 8001, ca: None },
        namespace: "projectsesame".to_owned(),
        namespaces: Vec::new(),
        manager: "sesame".to_owned(),
        replicas: 2,
    }
}

fn spec() -> FleetSpec {
    let owner = Owner { api_version: "gateway.networking.k8s.io/v1".into(), kind: "Gateway".into(), uid: "u-1".into() };
    let ports = [(80, Transport::Tcp), (443, Transport::Tcp), (443, Transport::Udp)];
    FleetSpec {
        name: FleetName::new("shop", "edge"),
        owner,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        ports: ports.into_iter().map(|(port, transport)| Port { port, transport }).collect(),
        address: None,
    }
}

fn objects(spec: FleetSpec) -> FleetObjects {
    FleetObjects::new(Arc::new(spec), &settings(), Some("PEM"))
}

fn body(objects: &FleetObjects, kind: ObjectKind) -> &Value {
    &objects.get(kind).expect("the fleet has one").body
}

#[test]
fn everything_belongs_to_the_gateway_and_is_found_by_its_name() {
    let objects = objects(spec());
    for object in &objects.objects {
        let metadata = &object.body["metadata"];
        assert_eq!(metadata["name"], objects.name);
        assert_eq!(metadata["namespace"], "shop");
        assert_eq!(metadata["labels"][GATEWAY_LABEL], "edge");
        let owner = json!([{
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "edge", "uid": "u-1", "controller": true,
        }]);
        assert_eq!(metadata["ownerReferences"], owner);
    }
    let template = &body(&objects, ObjectKind::Deployment)["spec"]["template"];
    assert_eq!(template["metadata"]["labels"][GATEWAY_LABEL], "edge");
    assert_eq!(template["spec"]["serviceAccountName"], objects.name);
}

#[test]
fn the_service_has_every_port_and_selects_the_pods() {
    let objects = objects(spec());
    let service = &body(&objects, ObjectKind::Service)["spec"];
    let port = |name: &str, port: u16, protocol: &str| json!({ "name": name, "port": port, "targetPort": port, "protocol": protocol });
    assert_eq!(
        service["ports"],
        json!([port("tcp-80", 80, "TCP"), port("tcp-443", 443, "TCP"), port("udp-443", 443, "UDP")])
    );
    let deployment = &body(&objects, ObjectKind::Deployment)["spec"];
    assert_eq!(service["selector"], deployment["selector"]["matchLabels"]);
    let label = deployment["template"]["metadata"]["labels"][FLEET_LABEL].clone();
    assert_eq!(service["selector"][FLEET_LABEL], label);
}

#[test]
fn a_fleet_without_ports_has_no_service() {
    let objects = objects(FleetSpec { ports: BTreeSet::new(), ..spec() });
    assert!(objects.get(ObjectKind::Service).is_none());
    assert!(objects.get(ObjectKind::Deployment).is_some());
}

#[test]
fn ports_and_nothing_else_of_listeners_leave_the_pods_alone() {
    let before = objects(spec());
    let more = spec().ports.into_iter().chain([Port { port: 8443, transport: Transport::Tcp }]).collect();
    let after = objects(FleetSpec { ports: more, ..spec() });
    assert_eq!(body(&before, ObjectKind::Deployment), body(&after, ObjectKind::Deployment));
    assert_ne!(before.get(ObjectKind::Service), after.get(ObjectKind::Service));
    let page = objects(FleetSpec { ports: [Port { port: 19001, transport: Transport::Tcp }].into(), ..spec() });
    assert_ne!(body(&before, ObjectKind::Deployment), body(&page, ObjectKind::Deployment), "a page makes way");
}

#[test]
fn infrastructure_goes_onto_everything_and_replaces_nothing_of_ours() {
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let labels = text(&[
        ("team", "shop"),
        (GATEWAY_LABEL, "other"),
        (FLEET_LABEL, "other"),
        ("app.kubernetes.io/managed-by", "me"),
        ("projectsesame.io/anything", "x"),
        ("pod-template-hash", "x"),
    ]);
    let annotations = text(&[("cost", "1"), (HASH_ANNOTATION, "x"), ("deployment.kubernetes.io/revision", "9")]);
    let plain = objects(spec());
    let objects = objects(FleetSpec { labels, annotations, ..spec() });
    let template = body(&objects, ObjectKind::Deployment)["spec"]["template"].clone();
    let all = objects.objects.iter().map(|object| object.body.clone()).chain([template]);
    for object in all {
        let (labels, annotations) = (&object["metadata"]["labels"], &object["metadata"]["annotations"]);
        assert_eq!((&labels["team"], &annotations["cost"]), (&json!("shop"), &json!("1")));
        assert_eq!(labels[FLEET_LABEL], objects.name);
        let ours = body(&plain, ObjectKind::Service)["metadata"]["labels"].as_object().expect("labels").len();
        assert_eq!(labels.as_object().map(Map::len), Some(ours + 1), "{labels}");
        assert_ne!(annotations[HASH_ANNOTATION], "x");
        assert_eq!(annotations["deployment.kubernetes.io/revision"], Value::Null);
    }
    let selector = |objects: &FleetObjects| body(objects, ObjectKind::Deployment)["spec"]["selector"].clone();
    assert_eq!(selector(&objects), selector(&plain), "a selector cannot be changed");
}

#[test]
fn a_pod_has_a_token_for_the_xds_server_and_no_other() {
    let objects = objects(spec());
    let pod = &body(&objects, ObjectKind::Deployment)["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    let volumes = pod["volumes"].as_array().expect("volumes");
    let token = volumes.iter().find(|volume| volume["name"] == "token").expect("a token");
    let source = &token["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!((&source["audience"], &source["path"]), (&json!(AUDIENCE), &json!("token")));
    assert!(volumes.iter().all(|volume| volume.get("secret").is_none()));
    let insecure = FleetObjects::new(Arc::new(spec()), &settings(), None);
    let pod = &body(&insecure, ObjectKind::Deployment)["spec"]["template"]["spec"];
    assert!(!pod.to_string().contains("token\""), "without TLS there is nobody to show it to");
}

/// What the shared fleet's manifest says about draining and hardening holds for every fleet.
#[test]
fn pods_are_made_like_those_of_the_shared_fleet() {
    let objects = objects(spec());
    let pod = &body(&objects, ObjectKind::Deployment)["spec"]["template"]["spec"];
    let containers: Vec<&Value> =
        ["initContainers", "containers"].iter().flat_map(|list| pod[list].as_array().expect("a list")).collect();
    assert_eq!(containers.iter().map(|it| &it["name"]).collect::<Vec<_>>(), ["bootstrap", "envoy", "shutdown-manager"]);
    for container in &containers {
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    }
    let (envoy, manager) = (containers[1], containers[2]);
    assert_eq!(envoy["readinessProbe"]["periodSeconds"], 1);
    let port = &envoy["lifecycle"]["preStop"]["httpGet"]["port"];
    assert!(manager["command"].as_array().expect("words").contains(&json!(format!("--serve-port={port}"))));
    assert_ne!(*port, envoy["readinessProbe"]["httpGet"]["port"]);
    assert!(manager.get("livenessProbe").is_none());
}

#[test]
fn the_load_balancer_is_asked_for_the_address_of_the_gateway() {
    let address = |objects: &FleetObjects| body(objects, ObjectKind::Service)["spec"]["loadBalancerIP"].clone();
    assert_eq!(address(&objects(spec())), Value::Null);
    let asked = FleetSpec { address: Some([192, 0, 2, 7].into()), ..spec() };
    assert_eq!(address(&objects(asked)), "192.0.2.7");
}
