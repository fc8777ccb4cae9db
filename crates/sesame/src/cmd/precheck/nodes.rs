//! Whether nodes can run the images, and whether the ports of Envoy are free on them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{Check, CheckResult, unread};

/// The architectures that images are made for.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
/// How many pods are named.
const SHOWN: usize = 5;

/// Looks at all of them.
pub async fn check(client: &Client, ports: &[u16]) -> Vec<Check> {
    let nodes = match Api::<Node>::all(client.clone()).list(&ListParams::default()).await {
        Ok(nodes) => architectures(&nodes.items),
        Err(error) => unread("nodes", "listing nodes", error),
    };
    if ports.is_empty() {
        return vec![nodes];
    }
    let pods = match Api::<Pod>::all(client.clone()).list(&ListParams::default()).await {
        Ok(pods) => host_ports(&pods.items, ports),
        Err(error) => unread("ports", "listing pods", error),
    };
    vec![nodes, pods]
}

fn architectures(nodes: &[Node]) -> Check {
    let of = |node: &Node| {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        info.map(|info| format!("{}/{}", info.operating_system, info.architecture)).unwrap_or_default()
    };
    let all: BTreeSet<String> = nodes.iter().map(of).collect();
    let fits = |name: &String| ARCHITECTURES.iter().any(|architecture| *name == format!("linux/{architecture}"));
    let listed = all.iter().cloned().collect::<Vec<_>>().join(", ");
    let fit = nodes.iter().filter(|node| fits(&of(node))).count();
    match fit {
        0 => Check::new(
            "nodes",
            CheckResult::Error,
            format!("no node of Linux on {}: {listed}", ARCHITECTURES.join(" or ")),
        ),
        _ if fit < nodes.len() => {
            let message =
                format!("{fit} of {} nodes can run Envoy ({listed}): select them with envoy.nodeSelector", nodes.len());
            Check::new("nodes", CheckResult::Warning, message)
        }
        _ => Check::new("nodes", CheckResult::Ok, format!("{} nodes: {listed}", nodes.len())),
    }
}

/// Pods that have the ports of nodes already.
fn host_ports(pods: &[Pod], ports: &[u16]) -> Check {
    let mut taken = Vec::new();
    for pod in pods {
        let is_over = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let Some(spec) = pod.spec.as_ref().filter(|_| !matches!(is_over, Some("Succeeded" | "Failed"))) else {
            continue;
        };
        let is_host = spec.host_network.unwrap_or_default();
        for port in spec.containers.iter().flat_map(|container| container.ports.iter().flatten()) {
            let of_node = port.host_port.or_else(|| is_host.then_some(port.container_port));
            let is_tcp = port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
            if let Some(port) = of_node.and_then(|port| u16::try_from(port).ok())
                && is_tcp
                && ports.contains(&port)
            {
                taken.push(format!("{} of {}/{}", port, pod.namespace().unwrap_or_default(), pod.name_any()));
            }
        }
    }
    let wanted = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    if taken.is_empty() {
        return Check::new("ports", CheckResult::Ok, format!("no pod has the ports {wanted} of a node"));
    }
    let rest = taken.len().saturating_sub(SHOWN);
    taken.truncate(SHOWN);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let message = format!(
        "ports of nodes are taken: {}{more}. Envoy as a DaemonSet does not start there; use deploy/sesame-deployment.yaml, or remove these",
        taken.join(", ")
    );
    Check::new("ports", CheckResult::Warning, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, host_network: bool, phase: &str, port: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "other" },
            "spec": { "hostNetwork": host_network, "containers": [{ "name": "c", "ports": [port] }] },
            "status": { "phase": phase },
        }))
        .unwrap()
    }

    #[test]
    fn ports_of_nodes_are_found_by_either_way_to_have_them() {
        let free = [
            pod("inside", false, "Running", json!({ "containerPort": 80 })),
            pod("over", true, "Succeeded", json!({ "containerPort": 80 })),
            pod("udp", false, "Running", json!({ "containerPort": 1, "hostPort": 443, "protocol": "UDP" })),
        ];
        assert_eq!(host_ports(&free, &[80, 443]).result, CheckResult::Ok);
        let taken = [
            pod("network", true, "Running", json!({ "containerPort": 80 })),
            pod("port", false, "Pending", json!({ "containerPort": 8443, "hostPort": 443 })),
        ];
        let check = host_ports(&taken, &[80, 443]);
        assert_eq!(check.result, CheckResult::Warning);
        assert!(check.message.contains("80 of other/network, 443 of other/port"), "{}", check.message);
    }

    #[test]
    fn nodes_that_cannot_run_envoy_are_told() {
        let node = |architecture: &str| -> Node {
            let info = json!({ "architecture": architecture, "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "", "systemUUID": "" });
            serde_json::from_value(json!({ "metadata": {}, "status": { "nodeInfo": info } })).unwrap()
        };
        assert_eq!(architectures(&[node("amd64"), node("arm64")]).result, CheckResult::Ok);
        assert_eq!(architectures(&[node("amd64"), node("riscv64")]).result, CheckResult::Warning);
        assert_eq!(architectures(&[node("riscv64")]).result, CheckResult::Error);
    }
}
