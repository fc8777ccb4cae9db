//! What happens to an installation. Each scenario leaves it as it found it.

mod contour;
mod upgrade;

use contour::contour_manifests;
use upgrade::upgrade;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use testbed::eventually;

use crate::installation::{self, HOST, Installation, LIMIT, NAMESPACE, ingress, served};
use crate::{Row, Traffic, TrafficReport};

/// How long the API server is away.
const OUTAGE: Duration = Duration::from_secs(60);

type Running<'a> = Pin<Box<dyn Future<Output = Result<TrafficReport>> + 'a>>;

/// Something that happens.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What happens, in a line.
    pub about: &'static str,
    run: for<'a> fn(&'a Installation) -> Running<'a>,
}

macro_rules! scenarios {
    ($($name:literal $run:ident $about:literal;)*) => {
        /// All of them, in the order in which they are run. The first installs Sesame; `upgrade` installs it
        /// anew, and the last two replace that installation.
        pub const SCENARIOS: &[Scenario] =
            &[$(Scenario { name: $name, about: $about, run: |installation| Box::pin($run(installation)) }),*];
    };
}

scenarios! {
    "install" install "the YAML is applied to an empty cluster; ends with the first requests that are served";
    "envoy-rollout" envoy_rollout "all Envoys are replaced; a WebSocket stays open until its client closes it";
    "controller-rollout" controller_rollout "all controllers are replaced; nothing is sent to proxies again";
    "both-rollouts" both_rollouts "controllers and Envoys are replaced at the same time";
    "leader-kill" leader_kill "the leader is killed; another one writes status";
    "kill-all" kill_all "all controllers are killed at once";
    "api-outage" api_outage "the API server is away for 60 seconds, in which all controllers are killed";
    "certificate-rotation" certificate_rotation "a new CA for xDS connections, in all steps; no stream ends";
    "isolation" isolation "another pod asks for debug pages, the admin interface and what changes something";
    "scale" scale "Envoys are scaled from two to three, to one and back";
    "node-drain" node_drain "one of the two nodes is drained and comes back";
    "upgrade" upgrade "to the previous version and back, controllers and then Envoys; both versions serve at once for a while";
    "daemonset-rollout" daemon_set_rollout "the other form of the manifests: a DaemonSet with host ports, all Envoys replaced";
    "chart-install" chart_install "the installation is deleted; helm installs the chart";
    "contour-manifests" contour_manifests "the installation is deleted; Contour's own manifests are applied with our image";
}

impl Scenario {
    /// Those with these names; all if there are none. Whatever is chosen, Sesame is installed first.
    pub fn chosen(names: &[String]) -> Result<Vec<&'static Scenario>> {
        let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            anyhow::bail!("there is no scenario {unknown}; there are: {}", known.join(", "));
        }
        let chosen = |scenario: &&Scenario| names.is_empty() || names.iter().any(|name| name == scenario.name);
        Ok(SCENARIOS
            .iter()
            .enumerate()
            .filter(|(at, scenario)| *at == 0 || chosen(scenario))
            .map(|(_, it)| it)
            .collect())
    }

    /// Runs it.
    pub async fn run(&self, installation: &Installation) -> Row {
        let begun = Instant::now();
        let ended = (self.run)(installation).await;
        let (traffic, error) = match ended {
            Ok(traffic) => (traffic, None),
            Err(error) => (TrafficReport::default(), Some(format!("{error:#}"))),
        };
        Row { name: self.name, traffic, took: begun.elapsed(), error }
    }
}

/// Traffic that has begun.
async fn traffic(installation: &Installation) -> Result<(Traffic, SocketAddr)> {
    let at = installation.address(NAMESPACE).await?;
    served(at, HOST).await?;
    let traffic = Traffic::start(at, HOST);
    traffic.answered(50).await;
    Ok((traffic, at))
}

/// Ends traffic after everything has been quiet for a moment.
async fn settle(traffic: Traffic) -> TrafficReport {
    traffic.answered(100).await;
    traffic.stop().await
}

async fn install(installation: &Installation) -> Result<TrafficReport> {
    let at = installation.install("sesame-deployment.yaml").await?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    served(at, HOST).await?;
    let traffic = Traffic::start(at, HOST);
    Ok(settle(traffic).await)
}

/// Waits until none of these pods is left.
async fn gone(installation: &Installation, pods: &BTreeMap<String, Pod>) -> Result<()> {
    let api = Api::<Pod>::namespaced(installation.cluster.client()?, NAMESPACE);
    for name in pods.keys() {
        let look = async || match api.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{:?}", other.map(|pod| pod.and_then(|pod| pod.status).and_then(|it| it.phase)))),
        };
        eventually(format!("{name} to be gone"), LIMIT, look).await?;
    }
    Ok(())
}

async fn envoy_rollout(installation: &Installation) -> Result<TrafficReport> {
    let at = installation.address(NAMESPACE).await?;
    served(at, HOST).await?;
    let old = installation.pods(NAMESPACE, "envoy").await?;
    let mut traffic = Traffic::with_streams(at, HOST).await?;
    traffic.answered(50).await;
    installation.restart("deployments", "envoy").await?;
    installation.cluster.deployment_available(NAMESPACE, "envoy").await?;
    traffic.answered(500).await;
    let mut report = traffic.close_streams().await;
    gone(installation, &old).await?;
    report.add(settle(traffic).await);
    Ok(report)
}

async fn controller_rollout(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let old = installation.pods(NAMESPACE, "sesame").await?;
    installation.restart("deployments", "sesame").await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    gone(installation, &old).await?;
    let sent = installation.metric("sesame_xds_response_bytes_total", "").await?
        - installation.metric("sesame_xds_response_bytes_total", "rtds").await?;
    new_host(installation, at, "rolled").await?;
    let report = settle(traffic).await;
    ensure!(sent == 0.0, "{sent} bytes of resources were sent again");
    Ok(report)
}

async fn both_rollouts(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let mut old = installation.pods(NAMESPACE, "sesame").await?;
    old.extend(installation.pods(NAMESPACE, "envoy").await?);
    installation.restart("deployments", "sesame").await?;
    installation.restart("deployments", "envoy").await?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    gone(installation, &old).await?;
    new_host(installation, at, "both").await?;
    Ok(settle(traffic).await)
}

/// A new host is served and told its address: somebody leads.
async fn new_host(installation: &Installation, at: SocketAddr, name: &str) -> Result<()> {
    installation.cluster.apply_yaml(&ingress(&installation.apps, name)).await?;
    served(at, &format!("{name}.example.com")).await?;
    let ingresses = Api::<Ingress>::namespaced(installation.cluster.client()?, &installation.apps);
    let told = async || {
        let ingress = ingresses.get(name).await.map_err(|error| error.to_string())?;
        let points = ingress.status.and_then(|status| status.load_balancer).and_then(|balancer| balancer.ingress);
        points.filter(|points| !points.is_empty()).map(drop).ok_or_else(|| "no address".to_owned())
    };
    eventually(format!("the address on the Ingress {name}"), LIMIT, told).await?;
    ingresses.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

async fn leader_kill(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let leader = installation.leader().await?;
    let pods = Api::<Pod>::namespaced(installation.cluster.client()?, NAMESPACE);
    pods.delete(&leader, &DeleteParams::default().grace_period(0)).await?;
    let another = async || match installation.leader().await {
        Ok(now) if now != leader => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("another leader", LIMIT, another).await?;
    new_host(installation, at, "led").await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    Ok(settle(traffic).await)
}

async fn kill_all(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let killed = installation.kill_controllers()?;
    ensure!(killed == 2, "{killed} controllers were killed");
    new_host(installation, at, "survived").await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    Ok(settle(traffic).await)
}

async fn api_outage(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    installation.cluster.api()?.kill().await?;
    let begun = Instant::now();
    // Kubelets restart what is killed, without the API server.
    traffic.answered(500).await;
    let killed = installation.kill_controllers()?;
    ensure!(killed == 2, "{killed} controllers were killed");
    tokio::time::sleep(OUTAGE.saturating_sub(begun.elapsed())).await;
    installation.cluster.api()?.restart().await?;
    new_host(installation, at, "back").await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    Ok(settle(traffic).await)
}

async fn certificate_rotation(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let secrets = Api::<Secret>::namespaced(installation.cluster.client()?, NAMESPACE);
    let ca = async |name: &str| -> Result<Vec<u8>> {
        let data = secrets.get(name).await?.data.unwrap_or_default();
        Ok(data.get("ca.crt").with_context(|| format!("{name} has no CA"))?.0.clone())
    };
    let ended = async || installation.metric("sesame_xds_streams_ended_total", "").await;
    let (first, before) = (ca("sesame-ca").await?, ended().await?);
    let rotate = json!({ "metadata": { "annotations": { "projectsesame.io/rotate-ca": "now" } } });
    secrets.patch("sesame-ca", &PatchParams::default(), &Patch::Merge(rotate)).await?;
    let done = async || {
        let read =
            async || Ok::<_, anyhow::Error>([ca("sesame-ca").await?, ca("sesamecert").await?, ca("envoycert").await?]);
        match read().await {
            Ok([now, server, envoy]) if now != first && now == server && now == envoy => Ok(()),
            Ok(_) => Err("it goes on".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
    eventually("the new CA to be the only one", LIMIT, done).await?;
    new_host(installation, at, "rotated").await?;
    let after = ended().await?;
    ensure!(after == before, "{} xDS streams were ended", after - before);
    let report = settle(traffic).await;
    // Who connects from now on has certificates of the new CA.
    let old = installation.pods(NAMESPACE, "envoy").await?;
    installation.restart("deployments", "envoy").await?;
    installation.cluster.deployment_available(NAMESPACE, "envoy").await?;
    gone(installation, &old).await?;
    served(at, HOST).await?;
    Ok(report)
}

/// What answers at an address to whoever reaches it.
async fn answer(at: SocketAddr, method: &str, path: &str) -> String {
    let client = testbed::Client::new(at).timeout(Duration::from_secs(5));
    let request = if method == "POST" { client.post(path, "") } else { client.get(path) };
    request.await.map_or_else(|_| "nothing".to_owned(), |answer| answer.status.as_u16().to_string())
}

async fn isolation(installation: &Installation) -> Result<TrafficReport> {
    let ip = |pod: &Pod| -> Result<std::net::IpAddr> {
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()).context("a pod without address")?;
        Ok(ip.parse()?)
    };
    // The load balancer, the nodes and this program reach pods like any other pod does.
    for pod in installation.pods(NAMESPACE, "sesame").await?.values() {
        let at = |port| Ok::<_, anyhow::Error>(SocketAddr::new(ip(pod)?, port));
        for (port, path, wanted) in [
            (8000, "/healthz", "200"),
            (8000, "/debug/fleets", "404"),
            (6060, "/debug/fleets", "nothing"),
            (8001, "/", "nothing"),
        ] {
            let found = answer(at(port)?, "GET", path).await;
            ensure!(found == wanted, "port {port} of a controller answers {path} with {found}");
        }
    }
    for pod in installation.pods(NAMESPACE, "envoy").await?.values() {
        let at = |port| Ok::<_, anyhow::Error>(SocketAddr::new(ip(pod)?, port));
        for (method, path, wanted) in [
            ("GET", "/ready", "200"),
            ("GET", "/stats", "200"),
            ("GET", "/config_dump", "404"),
            ("GET", "/certs", "404"),
            ("GET", "/stats/../config_dump", "404"),
            ("POST", "/quitquitquit", "404"),
            ("POST", "/healthcheck/fail", "404"),
            ("POST", "/stats", "404"),
        ] {
            let found = answer(at(8002)?, method, path).await;
            ensure!(found == wanted, "an Envoy answers {method} {path} with {found}");
        }
        for port in [9001, 19000, 15000] {
            let found = answer(at(port)?, "GET", "/config_dump").await;
            ensure!(found == "nothing", "port {port} of an Envoy answers {found}");
        }
    }
    let (traffic, _) = traffic(installation).await?;
    Ok(settle(traffic).await)
}

async fn scale(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    for replicas in [3, 1, 3, 2] {
        installation.patch("deployments", "envoy", json!({ "spec": { "replicas": replicas } })).await?;
        installation.cluster.deployment_available(NAMESPACE, "envoy").await?;
        let settled = async || match installation.pods(NAMESPACE, "envoy").await {
            Ok(pods) if pods.len() == replicas => Ok(()),
            Ok(pods) => Err(format!("{} pods", pods.len())),
            Err(error) => Err(error.to_string()),
        };
        eventually(format!("{replicas} Envoys"), LIMIT, settled).await?;
    }
    served(at, HOST).await?;
    Ok(settle(traffic).await)
}

async fn node_drain(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let pods = installation.pods(NAMESPACE, "envoy").await?;
    let node = pods.values().find_map(|pod| pod.spec.as_ref()?.node_name.clone()).context("an Envoy on a node")?;
    let drain = ["drain", &node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=170s"];
    installation.kubectl(&drain).await?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    new_host(installation, at, "drained").await?;
    installation.kubectl(&["uncordon", &node]).await?;
    Ok(settle(traffic).await)
}

async fn daemon_set_rollout(installation: &Installation) -> Result<TrafficReport> {
    installation.kubectl(&["--namespace", NAMESPACE, "delete", "deployment,pdb", "envoy", "--wait=true"]).await?;
    gone(installation, &installation.pods(NAMESPACE, "envoy").await?).await?;
    installation.cluster.apply_yaml(&installation::manifest("sesame.yaml")?).await?;
    installation.cluster.daemon_set_available(NAMESPACE, "envoy").await?;
    for node in Api::<Node>::all(installation.cluster.client()?).list(&ListParams::default()).await? {
        let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
        let internal = addresses.iter().find(|address| address.type_ == "InternalIP").context("a node's address")?;
        served(SocketAddr::new(internal.address.parse()?, 80), HOST).await?;
    }
    let (traffic, _) = traffic(installation).await?;
    let old = installation.pods(NAMESPACE, "envoy").await?;
    installation.restart("daemonsets", "envoy").await?;
    installation.cluster.daemon_set_available(NAMESPACE, "envoy").await?;
    gone(installation, &old).await?;
    let report = settle(traffic).await;
    installation.kubectl(&["--namespace", NAMESPACE, "delete", "daemonset", "envoy", "--wait=true"]).await?;
    gone(installation, &installation.pods(NAMESPACE, "envoy").await?).await?;
    installation.install("sesame-deployment.yaml").await?;
    Ok(report)
}

/// Deletes the installation and everything of it that is in no namespace. Pods first: Kubernetes looks at a namespace that is being
/// deleted again only after half of the longest grace period of its pods, and Envoy's is five minutes.
async fn uninstall(installation: &Installation) -> Result<()> {
    let mut pods = installation.pods(NAMESPACE, "sesame").await?;
    pods.extend(installation.pods(NAMESPACE, "envoy").await?);
    installation
        .kubectl(&["--namespace", NAMESPACE, "delete", "deployments,daemonsets", "--all", "--wait=true"])
        .await?;
    gone(installation, &pods).await?;
    installation.kubectl(&["delete", "namespace", NAMESPACE, "--wait=true", "--timeout=170s"]).await?;
    installation.kubectl(&["delete", "clusterrole,clusterrolebinding,ingressclass", "sesame"]).await?;
    Ok(())
}

async fn chart_install(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    let chart = installation::chart();
    let chart = chart.to_str().context("the path of the chart is text")?;
    let helm = parts::program("helm")?;
    let words =
        ["install", "sesame", chart, "--namespace", NAMESPACE, "--create-namespace", "--set", "envoy.kind=Deployment"];
    installation.run(helm, &words).await?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    let (traffic, at) = traffic(installation).await?;
    new_host(installation, at, "chart").await?;
    Ok(settle(traffic).await)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn one_scenario_is_chosen_by_name_after_the_installation() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            let chosen = Scenario::chosen(&only)?;
            Ok::<_, anyhow::Error>(chosen.iter().map(|scenario| scenario.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), SCENARIOS.len());
        assert_eq!(names(&["scale"]).unwrap(), ["install", "scale"]);
        assert!(
            names(&["nothing"]).unwrap_err().to_string().contains("there is no scenario nothing; there are: install")
        );
    }
}
