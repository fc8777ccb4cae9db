#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_pod_that_is_not_ready_says_why() {
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    assert_eq!(read::<Pod>(ready).unsettled(), None);
    let waiting = json!({ "reason": "ErrImagePull", "message": "no such image" });
    let pod = json!({ "status": {
        "phase": "Pending",
        "conditions": [{ "type": "Ready", "status": "False", "message": "containers with unready status: [web]" }],
        "containerStatuses": [{
            "name": "web", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": { "waiting": waiting }
        }],
    } });
    assert_eq!(
        read::<Pod>(pod).unsettled().unwrap(),
        "Pending; containers with unready status: [web]; web waits (ErrImagePull: no such image)"
    );
}

#[test]
fn a_deployment_is_available_when_all_pods_are_new() {
    let deployment = |generation: i64, all: i32| {
        let counts = json!({
            "observedGeneration": generation, "replicas": all, "updatedReplicas": 2, "availableReplicas": 2,
        });
        let spec = json!({ "replicas": 2, "selector": {}, "template": {} });
        read::<Deployment>(json!({ "metadata": { "generation": 3 }, "spec": spec, "status": counts }))
    };
    assert_eq!(deployment(3, 2).unsettled(), None);
    assert!(deployment(2, 2).unsettled().is_some(), "the newest version was not seen yet");
    assert!(deployment(3, 3).unsettled().is_some(), "an old pod is left");
}

#[test]
fn a_daemon_set_without_nodes_is_not_available() {
    let status = |wanted: i32| {
        json!({ "status": {
            "currentNumberScheduled": wanted, "desiredNumberScheduled": wanted, "numberMisscheduled": 0,
            "numberReady": wanted, "numberAvailable": wanted, "updatedNumberScheduled": wanted,
        } })
    };
    assert_eq!(read::<DaemonSet>(status(2)).unsettled(), None);
    assert!(read::<DaemonSet>(status(0)).unsettled().is_some());
}

#[test]
fn an_address_is_read_from_the_status() {
    let ingress = |ingress: Value| read::<Service>(json!({ "status": { "loadBalancer": { "ingress": ingress } } }));
    assert_eq!(address(&ingress(json!([{ "ip": "198.18.137.1" }]))), Ok([198, 18, 137, 1].into()));
    assert_eq!(address(&ingress(json!([]))), Err("it has none".to_owned()));
}
