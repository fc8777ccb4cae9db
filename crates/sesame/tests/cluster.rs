//! The manifests in `deploy` on a real Kubernetes of two nodes: replicas of the controller, proxies, and requests through
//! the load balancer, with no more rights than the manifests give.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, DeleteParams, ListParams};
use testbed::apiserver::AuditEntry;
use testbed::cluster::{self, Cluster, Nodes};
use testbed::image::ready;
use testbed::{Client, Load, eventually};

const NAMESPACE: &str = "projectsesame";
const LIMIT: Duration = Duration::from_secs(120);

/// All files of a folder below `deploy`, in the order of their names.
fn deploy(folder: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| format!("---\n{}\n", std::fs::read_to_string(file).unwrap())).collect()
}

/// A file in `deploy`.
fn manifest(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)).unwrap()
}

fn app(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec:\n  rules:\n  - host: {name}.example.com\n    http: {{paths: [{{path: /, pathType: Prefix, backend: \
         {{service: {{name: web, port: {{number: 80}}}}}}}}]}}\n"
    )
}

fn backend(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: {namespace}}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers: [{{name: echo, image: '{}', args: ['--http', '0.0.0.0:8080']}}]\n",
        ready::ECHO
    )
}

async fn served(at: SocketAddr, host: &str) {
    let look = async || match Client::new(at).host(host).get("/").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(answer.status.to_string()),
        Err(failure) => Err(failure.to_string()),
    };
    eventually(format!("{host} to be served"), LIMIT, look).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifests_serve_requests_through_a_load_balancer() {
    if !cluster::available() {
        return;
    }
    let binary = env!("CARGO_BIN_EXE_sesame");
    let sesame = ready::sesame(binary).unwrap();
    let sesame = sesame.also_named(concat!("ghcr.io/projectsesame/sesame:v", env!("CARGO_PKG_VERSION")));
    let images = Cluster::config().nodes(Nodes::Two).audit().image(sesame).image(ready::echo(binary).unwrap());
    let cluster = images.image(ready::envoy().unwrap()).start().await.unwrap();
    cluster.apply_yaml(&deploy("crds")).await.unwrap();
    cluster.apply_yaml(&manifest("sesame-deployment.yaml")).await.unwrap();
    let namespace = cluster.namespace("shop").await.unwrap();
    cluster.apply_yaml(&backend(&namespace)).await.unwrap();
    cluster.apply_yaml(&app(&namespace, "web")).await.unwrap();
    let sesame = cluster.deployment_available(NAMESPACE, "sesame").await.unwrap();
    assert_eq!(sesame.status.unwrap().ready_replicas, Some(2));
    cluster.deployment_available(NAMESPACE, "envoy").await.unwrap();
    let address = cluster.load_balancer_address(NAMESPACE, "envoy").await.unwrap();
    let at = SocketAddr::new(address, 80);
    served(at, "web.example.com").await;
    let ingresses = Api::<Ingress>::namespaced(cluster.client().unwrap(), &namespace);
    let told = async || {
        let status = ingresses.get("web").await.unwrap().status.unwrap_or_default();
        let points = status.load_balancer.and_then(|balancer| balancer.ingress).unwrap_or_default();
        match points.iter().any(|point| point.ip == Some(address.to_string())) {
            true => Ok(()),
            false => Err(format!("{points:?}")),
        }
    };
    eventually("the address on the Ingress", LIMIT, told).await.unwrap();

    // The stand-in for a cloud changes its routes when the second proxy is there.
    let steady = async || {
        for _ in 0..20 {
            let answer =
                Client::new(at).host("web.example.com").get("/").await.map_err(|failure| failure.to_string())?;
            if answer.status != 200 {
                return Err(answer.status.to_string());
            }
        }
        Ok(())
    };
    eventually("twenty answers in a row", LIMIT, steady).await.unwrap();

    // Both replicas are replaced one after the other, as a drain of their nodes would.
    let load = Load::of(Client::new(at).host("web.example.com").get("/")).per_second(100).start();
    load.answered(50).await;
    let pods = Api::<Pod>::namespaced(cluster.client().unwrap(), NAMESPACE);
    for pod in pods.list(&ListParams::default().labels("app=sesame")).await.unwrap() {
        let name = pod.metadata.name.unwrap();
        pods.delete(&name, &DeleteParams::default()).await.unwrap();
        cluster.gone::<Pod>(NAMESPACE, &name).await.unwrap();
        cluster.deployment_available(NAMESPACE, "sesame").await.unwrap();
    }
    cluster.apply_yaml(&app(&namespace, "new")).await.unwrap();
    served(at, "new.example.com").await;
    load.stop().await.assert_nothing_lost();

    // The other form over it: a proxy on each node, which its ports lead to.
    Api::<Deployment>::namespaced(cluster.client().unwrap(), NAMESPACE)
        .delete("envoy", &DeleteParams::default())
        .await
        .unwrap();
    cluster.apply_yaml(&manifest("sesame.yaml")).await.unwrap();
    cluster.daemon_set_available(NAMESPACE, "envoy").await.unwrap();
    for node in Api::<Node>::all(cluster.client().unwrap()).list(&ListParams::default()).await.unwrap() {
        let addresses = node.status.unwrap().addresses.unwrap();
        let internal = addresses.iter().find(|address| address.type_ == "InternalIP").unwrap();
        served(SocketAddr::new(internal.address.parse().unwrap(), 80), "web.example.com").await;
    }
    if let Ok(api) = cluster.api() {
        let ours = |entry: &AuditEntry| entry.user.starts_with("system:serviceaccount:projectsesame:");
        let (allowed, refused): (Vec<_>, Vec<_>) =
            api.audit().unwrap().into_iter().filter(ours).partition(|entry| entry.allowed);
        assert!(!allowed.is_empty() && refused.is_empty(), "{refused:?}");
    }
    cluster.stop().await.unwrap();
}
