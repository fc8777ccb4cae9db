//! When an object counts as settled, and what to say of it when it is not.

use std::net::IpAddr;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ContainerState, Node, Pod, Service};

/// Said of what does not exist.
pub(super) const ABSENT: &str = "it does not exist";

/// A kind of object that settles.
pub(in super::super) trait State {
    /// What it is waited for to do.
    const SETTLED: &str;

    /// What is still missing; nothing when it is settled.
    fn unsettled(&self) -> Option<String>;
}

impl State for Node {
    const SETTLED: &str = "to be ready";

    fn unsettled(&self) -> Option<String> {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        match conditions.iter().find(|condition| condition.type_ == "Ready") {
            Some(ready) if ready.status == "True" => None,
            Some(ready) => Some(ready.message.clone().unwrap_or_default()),
            None => Some("it says nothing of itself".to_owned()),
        }
    }
}

impl State for Pod {
    const SETTLED: &str = "to be ready";

    fn unsettled(&self) -> Option<String> {
        let status = self.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
            return None;
        }
        let mut seen = vec![status.phase.unwrap_or_default()];
        let lacking = conditions.iter().filter(|condition| condition.status != "True");
        seen.extend(lacking.filter_map(|condition| condition.message.clone()));
        for container in status.container_statuses.unwrap_or_default() {
            seen.push(format!("{} {}", container.name, doing(&container.state.unwrap_or_default())));
        }
        Some(seen.join("; "))
    }
}

fn doing(state: &ContainerState) -> String {
    let words = |parts: [&Option<String>; 2]| parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(": ");
    match (&state.waiting, &state.terminated) {
        (Some(waiting), _) => format!("waits ({})", words([&waiting.reason, &waiting.message])),
        (_, Some(ended)) => format!("ended with {} ({})", ended.exit_code, words([&ended.reason, &ended.message])),
        (None, None) => "runs".to_owned(),
    }
}

impl State for Deployment {
    const SETTLED: &str = "to be available";

    fn unsettled(&self) -> Option<String> {
        let wanted = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let status = self.status.clone().unwrap_or_default();
        let [all, updated, available] =
            [status.replicas, status.updated_replicas, status.available_replicas].map(Option::unwrap_or_default);
        let seen = status.observed_generation >= self.metadata.generation;
        if seen && [all, updated, available] == [wanted; 3] {
            return None;
        }
        let conditions = status.conditions.unwrap_or_default();
        let words = conditions.iter().filter(|condition| condition.status != "True").filter_map(|c| c.message.clone());
        let words: Vec<String> = words.collect();
        Some(format!(
            "{available} of {wanted} pods available, {updated} up to date, {all} in all; {}",
            words.join("; ")
        ))
    }
}

impl State for DaemonSet {
    const SETTLED: &str = "to be available";

    fn unsettled(&self) -> Option<String> {
        let status = self.status.clone().unwrap_or_default();
        let wanted = status.desired_number_scheduled;
        let [updated, available] =
            [status.updated_number_scheduled, status.number_available].map(Option::unwrap_or_default);
        let seen = status.observed_generation >= self.metadata.generation;
        if seen && wanted > 0 && [updated, available] == [wanted; 2] {
            return None;
        }
        Some(format!("{available} of {wanted} pods available, {updated} up to date"))
    }
}

/// The first address of a load balancer.
pub(super) fn address(service: &Service) -> Result<IpAddr, String> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let first = balancer.and_then(|balancer| balancer.ingress.as_ref()?.first());
    let first = first.ok_or("it has none")?;
    let ip = first.ip.as_deref().ok_or_else(|| format!("it has a name only: {:?}", first.hostname))?;
    ip.parse().map_err(|_| format!("{ip:?} is no address"))
}

#[cfg(test)]
mod tests {
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
}
