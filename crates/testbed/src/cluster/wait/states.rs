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
mod tests;
