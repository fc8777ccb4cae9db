//! The other forms that are shipped, each installed on the empty cluster and asked for a host: the provisioner of Gateways, certificates by
//! a Job, and the kustomize base.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{Api, ListParams};
use testbed::eventually;

use super::{new_host, settle, uninstall};
use crate::installation::{self, HOST, Installation, LIMIT, NAMESPACE, ingress, served};
use crate::{Traffic, TrafficReport};

/// The label of what is provisioned for a Gateway.
const GATEWAY_LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// A Gateway of the class that is installed, and a route on it.
fn gateway(namespace: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: public, namespace: {namespace}}}\n\
         spec: {{gatewayClassName: sesame, listeners: [{{name: http, port: 80, protocol: HTTP}}]}}\n---\n\
         apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: routed, namespace: {namespace}}}\n\
         spec: {{parentRefs: [{{name: public}}], hostnames: [routed.example.com], \
         rules: [{{backendRefs: [{{name: web, port: 80}}]}}]}}\n"
    )
}

/// The Service of a Gateway with proxies of its own: its name, and its address.
pub(super) async fn gateway_service(installation: &Installation, gateway: &str) -> Result<(String, IpAddr)> {
    let services = Api::<Service>::namespaced(installation.cluster.client()?, &installation.apps);
    let label = format!("{GATEWAY_LABEL}={gateway}");
    let provisioned = async || {
        let list = services.list(&ListParams::default().labels(&label)).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = list.items.into_iter().filter_map(|service| service.metadata.name).collect();
        <[String; 1]>::try_from(names).map_err(|names| format!("Services: {names:?}"))
    };
    let [name] = eventually(format!("the Service of the Gateway {gateway}"), LIMIT, provisioned).await?;
    let address = installation.cluster.load_balancer_address(&installation.apps, &name).await?;
    Ok((name, address))
}

/// Deletes all Gateways and their routes, and waits until this Service is gone: their proxies go with them.
pub(super) async fn remove_gateways(installation: &Installation, service: &str) -> Result<()> {
    installation.kubectl(&["--namespace", &installation.apps, "delete", "httproute,gateway", "--all"]).await?;
    let services = Api::<Service>::namespaced(installation.cluster.client()?, &installation.apps);
    let removed = async || match services.get_opt(service).await {
        Ok(None) => Ok(()),
        other => Err(format!("{:?}", other.map(|service| service.map(|it| it.metadata.name)))),
    };
    Ok(eventually("the Service of the Gateway to be gone", LIMIT, removed).await?)
}

/// Waits until proxies have the Gateway.
async fn is_programmed(installation: &Installation) -> Result<()> {
    let path = "jsonpath={.status.conditions[?(@.type==\"Programmed\")].status}";
    let words = ["--namespace", &installation.apps, "get", "gateway", "public", "-o", path];
    let look = async || match installation.kubectl(&words).await {
        Ok(status) if status == "True" => Ok(()),
        other => Err(format!("{other:?}")),
    };
    Ok(eventually("the Gateway to be programmed", LIMIT, look).await?)
}

/// Gateway API's CRDs, the provisioner alone, and a Gateway with proxies of its own.
pub(super) async fn gateway_install(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    let crds = parts::folder("gateway-api-crds")?.join("standard");
    let crds = crds.to_str().context("the path of the CRDs is text")?;
    installation.kubectl(&["apply", "--server-side", "--filename", crds]).await?;
    installation.cluster.apply_yaml(&installation::manifest("sesame-gateway.yaml")?).await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    let shared = installation.pods(NAMESPACE, "envoy").await?;
    ensure!(shared.is_empty(), "there are Envoys that no Gateway asked for: {:?}", shared.keys());
    installation.cluster.apply_yaml(&gateway(&installation.apps)).await?;
    is_programmed(installation).await?;
    let (name, address) = gateway_service(installation, "public").await?;
    let at = SocketAddr::new(address, 80);
    served(at, "routed.example.com").await?;
    let report = settle(Traffic::start(at, "routed.example.com")).await;
    remove_gateways(installation, &name).await?;
    installation.kubectl(&["delete", "--filename", crds]).await?;
    Ok(report)
}

/// Certificates that a Job makes; the controller writes no Secret.
pub(super) async fn certgen_install(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    let at = installation.install("sesame-certgen.yaml").await?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    let client = installation.cluster.client()?;
    let jobs = Api::<Job>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await?;
    let has_succeeded = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
    ensure!(jobs.items.iter().any(has_succeeded), "no Job has made certificates");
    let secrets = Api::<Secret>::namespaced(client, NAMESPACE);
    ensure!(secrets.get_opt("sesame-ca").await?.is_none(), "the controller has made a CA of its own");
    with_new_host(installation, at, "generated").await
}

/// The base, as `kubectl apply --kustomize` applies it: a DaemonSet with host ports.
pub(super) async fn kustomize_install(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    let base = installation::kustomize_base();
    let base = base.to_str().context("the path of the base is text")?;
    installation.kubectl(&["apply", "--kustomize", base]).await?;
    installation.cluster.apply_yaml(&ingress(&installation.apps, "web")).await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    installation.cluster.daemon_set_available(NAMESPACE, "envoy").await?;
    let at = installation.address(NAMESPACE).await?;
    with_new_host(installation, at, "kustomized").await
}

/// Traffic, in which a host is added and told its address.
async fn with_new_host(installation: &Installation, at: SocketAddr, name: &str) -> Result<TrafficReport> {
    served(at, HOST).await?;
    let traffic = Traffic::start(at, HOST);
    new_host(installation, at, name).await?;
    Ok(settle(traffic).await)
}
