//! What the API server knows: the objects of the namespace of Sesame other than Secrets and ConfigMaps, the logs of its pods,
//! versions.

use std::time::Duration;

use anyhow::{Error, Result};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::bundle::Bundle;
use crate::operate::cluster::refusal;
use crate::operate::controllers::ControllerFlags;
use crate::operate::redact;

/// How much of a log is taken.
const LOG_LINES: i64 = 20_000;
const LOG_BYTES: i64 = 8 << 20;

/// How often a list is asked for where the API server says that it is busy, and the longest time between two attempts.
const ATTEMPTS: usize = 5;
const LONGEST_WAIT: u32 = 5;

/// What is listed in the namespace. Secrets and ConfigMaps are not.
const NAMESPACED: [(&str, &str); 9] = [
    ("pods", "api/v1"),
    ("services", "api/v1"),
    ("events", "api/v1"),
    ("deployments", "apis/apps/v1"),
    ("daemonsets", "apis/apps/v1"),
    ("replicasets", "apis/apps/v1"),
    ("leases", "apis/coordination.k8s.io/v1"),
    ("contourconfigurations", "apis/projectcontour.io/v1alpha1"),
    ("networkpolicies", "apis/networking.k8s.io/v1"),
];

/// What is listed of the whole cluster.
const CLUSTER: [(&str, &str); 3] = [
    ("ingressclasses", "apis/networking.k8s.io/v1"),
    ("gatewayclasses", "apis/gateway.networking.k8s.io/v1"),
    ("nodes", "api/v1"),
];

/// Collects them.
///
/// # Errors
/// That the API server does not answer at all.
pub async fn collect(bundle: &mut Bundle, client: &Client, flags: &ControllerFlags) -> Result<()> {
    let version = client.apiserver_version().await.map_err(|error| refusal(error, "the version of the API server"))?;
    bundle.add("cluster/version.json", pretty(&serde_json::to_value(version)?));
    let namespace = &flags.cluster.namespace;
    for (resource, api) in NAMESPACED {
        list(bundle, client, resource, &format!("/{api}/namespaces/{namespace}/{resource}")).await;
    }
    for (resource, api) in CLUSTER {
        list(bundle, client, resource, &format!("/{api}/{resource}")).await;
    }
    crds(bundle, client).await;
    match flags.pods(client).await {
        Ok(pods) => {
            for pod in pods {
                logs(bundle, client, namespace, &pod).await;
            }
        }
        Err(error) => bundle.failed("logs", &error),
    }
    Ok(())
}

/// A page of the API server. It may be busy, as it is for a moment with each CRD after it was created; it then says when to ask again.
async fn get(client: &Client, path: &str) -> Result<Value> {
    let mut attempts = 1;
    loop {
        let request = Request::get(path).body(Vec::new())?;
        match client.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.code == 429 && attempts < ATTEMPTS => {
                attempts += 1;
                let seconds = status.details.as_ref().map_or(1, |details| details.retry_after_seconds);
                sleep(Duration::from_secs(seconds.clamp(1, LONGEST_WAIT).into())).await;
            }
            answer => return answer.map_err(|error| refusal(error, &format!("reading {path}"))),
        }
    }
}

async fn list(bundle: &mut Bundle, client: &Client, resource: &str, path: &str) {
    let name = format!("cluster/{resource}.json");
    match get(client, path).await {
        Ok(mut found) => {
            redact::object(&mut found);
            bundle.add(name, pretty(&found));
        }
        // A cluster without that kind.
        Err(error) if is_absent(&error) => {}
        Err(error) => bundle.failed(&name, &error),
    }
}

fn is_absent(error: &Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404))
}

/// Of CRDs, the names and versions: their schemas are ours and long.
async fn crds(bundle: &mut Bundle, client: &Client) {
    let name = "cluster/customresourcedefinitions.json";
    match get(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await {
        Ok(found) => {
            let items = found["items"].as_array().into_iter().flatten().map(|crd| {
                let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
                let versions: Vec<Value> = versions
                    .map(|version| json!({ "name": version["name"], "served": version["served"], "storage": version["storage"] }))
                    .collect();
                json!({ "name": crd["metadata"]["name"], "annotations": crd["metadata"]["annotations"], "versions": versions })
            });
            let mut items = Value::from(items.collect::<Vec<_>>());
            redact::object(&mut items);
            bundle.add(name, pretty(&items));
        }
        Err(error) => bundle.failed(name, &error),
    }
}

/// The logs of all containers of a pod, and of those before a restart.
async fn logs(bundle: &mut Bundle, client: &Client, namespace: &str, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod_name = pod.name_any();
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    for container in statuses {
        let mut runs = vec![false];
        if container.restart_count > 0 {
            runs.push(true);
        }
        for previous in runs {
            let suffix = if previous { ".previous" } else { "" };
            let name = format!("logs/{pod_name}.{}{suffix}.log", container.name);
            let params = LogParams {
                container: Some(container.name.clone()),
                limit_bytes: Some(LOG_BYTES),
                tail_lines: Some(LOG_LINES),
                previous,
                timestamps: true,
                ..LogParams::default()
            };
            match pods.logs(&pod_name, &params).await {
                Ok(text) => bundle.add(name, redact::text(&text)),
                Err(error) => bundle.failed(&name, &refusal(error, &format!("the log of pod {namespace}/{pod_name}"))),
            }
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use http::{Response, StatusCode};
    use kube::client::Body;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An API server that is busy for so many requests; and how many there were.
    fn busy(times: usize) -> (Client, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            let is_busy = count.fetch_add(1, Ordering::Relaxed) < times;
            let (status, body) = match is_busy {
                true => {
                    let details = json!({ "retryAfterSeconds": 1 });
                    let body = json!({ "kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests",
                        "message": "storage is (re)initializing", "details": details });
                    (StatusCode::TOO_MANY_REQUESTS, body)
                }
                false => (StatusCode::OK, json!({ "items": [] })),
            };
            let response = Response::builder().status(status).body(Body::from(body.to_string().into_bytes())).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        (Client::new(service, "default"), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_is_busy_is_asked_again_and_not_for_ever() {
        let (client, asked) = busy(2);
        assert_eq!(get(&client, "/api/v1/nodes").await.unwrap(), json!({ "items": [] }));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        let (client, asked) = busy(usize::MAX);
        let error = format!("{:#}", get(&client, "/api/v1/nodes").await.unwrap_err());
        assert!(error.contains("storage is (re)initializing"), "{error}");
        assert_eq!(asked.load(Ordering::Relaxed), ATTEMPTS);
    }
}
