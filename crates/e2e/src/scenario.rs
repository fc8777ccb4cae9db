//! What happens to an installation. Each scenario leaves it as it found it.

mod beside_contour;
mod cert_manager;
mod contour;
mod forms;
mod isolation;
mod outage;
mod upgrade;

use beside_contour::beside_contour;
use cert_manager::cert_manager;
use contour::contour_manifests;
use forms::{certgen_install, gateway_install, kustomize_install};
use isolation::isolation;
use outage::{api_outage, long_api_outage};
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

use crate::installation::{self, HOST, Installation, LIMIT, NAMESPACE, ingress, metric_of, served};
use crate::{Row, Traffic, TrafficReport};

/// Requests of each protocol while streams are open on Envoys that have been told to go.
const DRAINING: u64 = 500;

/// What controllers count of the bytes of resources that they send, by type.
const SENT: &str = "sesame_xds_response_bytes_total";

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
        /// anew, and those from `gateway-install` on replace that installation.
        pub const SCENARIOS: &[Scenario] =
            &[$(Scenario { name: $name, about: $about, run: |installation| Box::pin($run(installation)) }),*];
    };
}

scenarios! {
    "install" install "the YAML is applied to an empty cluster; ends with the first requests that are served";
    "envoy-rollout" envoy_rollout "all Envoys are replaced";
    "controller-rollout" controller_rollout "all controllers are replaced; nothing is sent to proxies again";
    "both-rollouts" both_rollouts "controllers and Envoys are replaced at the same time";
    "leader-kill" leader_kill "the leader is killed; another one writes status";
    "kill-all" kill_all "all controllers are killed at once";
    "api-outage" api_outage "the API server is away for 60 seconds, in which all controllers and then all Envoys are killed";
    "long-api-outage" long_api_outage "the same for ten minutes";
    "certificate-rotation" certificate_rotation "a new CA for xDS connections, in all steps; no stream ends";
    "isolation" isolation "another pod asks for debug pages, the admin interface and what changes something; a tenant aims routes at them";
    "scale" scale "Envoys are scaled from two to three, to one and back";
    "node-drain" node_drain "one of the two nodes is drained and comes back";
    "upgrade" upgrade "to the previous version and back, controllers and then Envoys; both versions serve at once for a while";
    "daemonset-rollout" daemon_set_rollout "the other form of the manifests: a DaemonSet with host ports, all Envoys replaced";
    "gateway-install" gateway_install "the installation is deleted; the provisioner alone is installed, and a Gateway served by proxies of its own";
    "certgen-install" certgen_install "the installation is deleted; the YAML with certificates by a Job is applied";
    "kustomize-install" kustomize_install "the installation is deleted; the kustomize base is applied: a DaemonSet with host ports";
    "chart-install" chart_install "the installation is deleted; helm installs the chart";
    "cert-manager" cert_manager "the installation is deleted; Helm installs the chart with certificates of cert-manager, which gets those of hosts from an ACME server, too";
    "beside-contour" beside_contour "the installation is deleted; Contour is installed, and Sesame beside it: one host moves, then Contour ends and all others follow";
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

    /// Runs it. That the API server refused Sesame something is an error, too.
    pub async fn run(&self, installation: &Installation) -> Row {
        let begun = Instant::now();
        let ended = (self.run)(installation).await;
        let (mut traffic, error) = match ended {
            Ok(traffic) => (traffic, None),
            Err(error) => (TrafficReport::default(), Some(format!("{error:#}"))),
        };
        if traffic.failed > 0 {
            let counts = installation.upstream_failures().await;
            traffic.failures.extend(counts.unwrap_or_else(|error| vec![format!("no statistics of Envoys: {error:#}")]));
        }
        let took = begun.elapsed();
        let refused = installation.nothing_refused().err().map(|error| format!("{error:#}"));
        Row { name: self.name, traffic, took, error: error.or(refused) }
    }
}

/// Requests and streams that have begun.
async fn traffic(installation: &Installation) -> Result<(Traffic, SocketAddr)> {
    let at = installation.address(NAMESPACE).await?;
    Ok((traffic_at(at).await?, at))
}

/// The same, where the address is known: the API server need not answer.
async fn traffic_at(at: SocketAddr) -> Result<Traffic> {
    served(at, HOST).await?;
    let mut traffic = Traffic::start(at, HOST);
    traffic.open_streams().await?;
    traffic.answered(50).await;
    Ok(traffic)
}

/// Ends traffic after everything has been quiet for a moment.
async fn settle(traffic: Traffic) -> TrafficReport {
    traffic.answered(100).await;
    traffic.stop().await
}

async fn install(installation: &Installation) -> Result<TrafficReport> {
    installation.install_crds().await?;
    let begun = Instant::now();
    let at = installation.install("sesame-deployment.yaml").await?;
    let took = begun.elapsed();
    eprintln!("e2e: install: the first requests were served {took:.1?} after the manifests were applied");
    let limit = installation.first_request;
    ensure!(took <= limit, "it took {took:.1?} until requests were served, more than {limit:?}");
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

/// Envoys go, and their streams stay until their clients close them; then the pods are gone, too.
async fn drained(
    installation: &Installation,
    mut traffic: Traffic,
    old: &BTreeMap<String, Pod>,
) -> Result<TrafficReport> {
    traffic.answered(DRAINING).await;
    let mut report = traffic.close_streams().await;
    gone(installation, old).await?;
    report.add(settle(traffic).await);
    Ok(report)
}

async fn envoy_rollout(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, _) = traffic(installation).await?;
    let old = installation.pods(NAMESPACE, "envoy").await?;
    installation.restart("deployments", "envoy").await?;
    installation.cluster.deployment_available(NAMESPACE, "envoy").await?;
    drained(installation, traffic, &old).await
}

async fn controller_rollout(installation: &Installation) -> Result<TrafficReport> {
    let (traffic, at) = traffic(installation).await?;
    let old = installation.pods(NAMESPACE, "sesame").await?;
    let mut before = BTreeMap::new();
    for (name, pod) in &old {
        before.insert(name.clone(), sent_by(pod).await?);
    }
    let replaced = async {
        installation.restart("deployments", "sesame").await?;
        installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
        gone(installation, &old).await
    };
    let mut noted = BTreeMap::new();
    tokio::select! {
        replaced = replaced => replaced?,
        () = note_sent(&old, &mut noted) => {}
    }
    for (name, before) in before {
        let scrapes = noted.get(&name).copied().unwrap_or_default();
        ensure!(
            scrapes.count > 0,
            "nothing is known of the controller {name}: it answered no scrape during the rollout"
        );
        let (count, last) = (scrapes.count, scrapes.last);
        ensure!(last == before, "{name} sent resources again, in bytes: {before} and after {count} scrapes {last}");
    }
    let mut sent = 0.0;
    for pod in installation.pods(NAMESPACE, "sesame").await?.values() {
        sent += sent_by(pod).await?;
    }
    ensure!(sent == 0.0, "{sent} bytes of resources were sent again by the new controllers");
    new_host(installation, at, "rolled").await?;
    // Its Service, the endpoints of that and its listener are those of other hosts.
    for kind in ["cds", "eds", "lds", "sds"] {
        let sent = installation.metric(SENT, &format!("\"{kind}\"")).await?;
        ensure!(sent == 0.0, "{sent} bytes of {kind} were sent again with a new host");
    }
    Ok(settle(traffic).await)
}

/// How many bytes of resources a controller has sent. The layer of runtime values is not among them: each stream that asks for it is
/// told anew that there is none.
async fn sent_by(pod: &Pod) -> Result<f64> {
    // One page for all of it: what is sent between two would count as sent again.
    metric_of(pod, SENT, |line| !line.contains("\"rtds\"")).await
}

/// The scrapes of one controller that succeeded.
#[derive(Clone, Copy, Default)]
struct Scrapes {
    /// How many.
    count: usize,
    /// How many bytes of resources it had sent by the last one.
    last: f64,
}

/// Notes again and again how many bytes of resources these controllers have sent, as long as they answer. Never ends.
async fn note_sent(pods: &BTreeMap<String, Pod>, noted: &mut BTreeMap<String, Scrapes>) {
    loop {
        for (name, pod) in pods {
            if let Ok(Ok(bytes)) = tokio::time::timeout(Duration::from_secs(1), sent_by(pod)).await {
                let scrapes = noted.entry(name.clone()).or_default();
                *scrapes = Scrapes { count: scrapes.count + 1, last: bytes };
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
    new_host(installation, at, "both").await?;
    drained(installation, traffic, &old).await
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

async fn scale(installation: &Installation) -> Result<TrafficReport> {
    let (mut traffic, at) = traffic(installation).await?;
    let mut report = TrafficReport::default();
    for replicas in [3, 1, 3, 2] {
        installation.patch("deployments", "envoy", json!({ "spec": { "replicas": replicas } })).await?;
        installation.cluster.deployment_available(NAMESPACE, "envoy").await?;
        traffic.answered(DRAINING / 2).await;
        report.add(traffic.close_streams().await);
        let settled = async || match installation.pods(NAMESPACE, "envoy").await {
            Ok(pods) if pods.len() == replicas => Ok(()),
            Ok(pods) => Err(format!("{} pods", pods.len())),
            Err(error) => Err(error.to_string()),
        };
        eventually(format!("{replicas} Envoys"), LIMIT, settled).await?;
        traffic.open_streams().await?;
    }
    served(at, HOST).await?;
    report.add(settle(traffic).await);
    Ok(report)
}

async fn node_drain(installation: &Installation) -> Result<TrafficReport> {
    let (mut traffic, at) = traffic(installation).await?;
    let pods = installation.pods(NAMESPACE, "envoy").await?;
    let node = pods.values().find_map(|pod| pod.spec.as_ref()?.node_name.clone()).context("an Envoy on a node")?;
    let drain = ["drain", &node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=170s"];
    // The drain lasts until the streams are closed. The backend is a DaemonSet, which a drain leaves alone.
    let streams = async {
        traffic.answered(DRAINING).await;
        traffic.close_streams().await
    };
    let (drained, mut report) = tokio::join!(installation.kubectl(&drain), streams);
    drained?;
    for name in ["sesame", "envoy"] {
        installation.cluster.deployment_available(NAMESPACE, name).await?;
    }
    new_host(installation, at, "drained").await?;
    installation.kubectl(&["uncordon", &node]).await?;
    report.add(settle(traffic).await);
    Ok(report)
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
    let (mut traffic, _) = traffic(installation).await?;
    let old = installation.pods(NAMESPACE, "envoy").await?;
    installation.restart("daemonsets", "envoy").await?;
    // One node after the other: an Envoy is replaced when the streams on it are closed.
    let streams = async {
        traffic.answered(DRAINING).await;
        let mut report = traffic.close_streams().await;
        traffic.open_streams().await?;
        traffic.answered(DRAINING).await;
        report.add(traffic.close_streams().await);
        Ok::<_, anyhow::Error>(report)
    };
    let (available, report) = tokio::join!(installation.cluster.daemon_set_available(NAMESPACE, "envoy"), streams);
    available?;
    let mut report = report?;
    gone(installation, &old).await?;
    report.add(settle(traffic).await);
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
    installation
        .kubectl(&["delete", "clusterrole,clusterrolebinding,ingressclass", "sesame", "--ignore-not-found"])
        .await?;
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
