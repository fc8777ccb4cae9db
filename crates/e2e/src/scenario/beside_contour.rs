//! Contour and Sesame on one cluster: a host moves from one to the other, and then all of them.
//!
//! In: Contour's own manifests with its own program, and steps 3 to 5 of `docs/from-contour.md`. Out: requests to the load balancers of both,
//! of which none fails. Contour's Envoys are of the version that Sesame is tested with, as on that page.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use testbed::image::ready;
use testbed::{Client, eventually};

use super::contour::is_valid;
use super::{settle, uninstall};
use crate::installation::{HOST, Installation, LIMIT, NAMESPACE, manifest, served};
use crate::{Traffic, TrafficReport};

const CONTOUR: &str = "projectcontour";
const FORM: &str = "sesame-deployment.yaml";
/// The host that moves alone.
const MOVED: &str = "moved.example.com";

pub(super) async fn beside_contour(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    installation.cluster.load_image(ready::contour()?).await?;
    install_contour(installation).await?;
    let theirs = installation.address(CONTOUR).await?;
    installation.cluster.apply_yaml(&proxy(&installation.apps, "before", None)).await?;
    for host in [HOST, MOVED] {
        served(theirs, host).await?;
    }
    let mut traffic = vec![Traffic::start(theirs, HOST), Traffic::start(theirs, MOVED)];

    // Step 3: Sesame has a class of its own, and leaves all other objects alone.
    let flag = "        - --xds-certificates-dir=/certs\n";
    let apart = manifest(FORM)?.replace(flag, &format!("{flag}        - --ingress-class-name=sesame\n"));
    ensure!(apart.contains("--ingress-class-name=sesame"), "{FORM} has no line {flag:?}");
    installation.cluster.apply_yaml(&apart).await?;
    let ours = installation.address(NAMESPACE).await?;

    // Step 4: a copy of the object has the class of Sesame. When DNS has moved, the old one goes.
    installation.cluster.apply_yaml(&proxy(&installation.apps, "after", Some("sesame"))).await?;
    served(ours, MOVED).await?;
    answered(ours, HOST, 404).await?;
    is_valid(installation, "after").await?;
    is_valid(installation, "before").await?;
    traffic.push(Traffic::start(ours, MOVED));
    traffic[2].answered(100).await;
    let mut report = settle(traffic.remove(1)).await;
    installation.kubectl(&["--namespace", &installation.apps, "delete", "httpproxy", "before"]).await?;
    answered(theirs, MOVED, 404).await?;

    // Step 5: Contour ends, and Sesame takes what has no class, too. Contour's Envoys serve what they have.
    installation.kubectl(&["--namespace", CONTOUR, "scale", "deployment", "contour", "--replicas=0"]).await?;
    installation.cluster.apply_yaml(&manifest(FORM)?).await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    served(ours, HOST).await?;
    traffic.push(Traffic::start(ours, HOST));
    for traffic in traffic {
        report.add(settle(traffic).await);
    }
    installation.kubectl(&["--namespace", &installation.apps, "delete", "httpproxy", "after"]).await?;
    remove_contour(installation).await?;
    Ok(report)
}

/// Contour as it publishes itself, but for the CRDs, which are there, and for Envoy's version.
async fn install_contour(installation: &Installation) -> Result<()> {
    let envoy = format!("envoy:distroless-v{}", parts::version("envoy").context("the version of Envoy")?);
    let folder = tempfile::tempdir()?;
    for entry in std::fs::read_dir(parts::folder("contour-examples")?)? {
        let entry = entry?;
        let text = std::fs::read_to_string(entry.path())?.replace("envoy:distroless-v1.38.3", &envoy);
        if entry.file_name() != "01-crds.yaml" {
            std::fs::write(folder.path().join(entry.file_name()), text)?;
        }
    }
    let folder = folder.path().to_str().context("the path of a temporary folder is text")?;
    installation.kubectl(&["apply", "--filename", folder]).await?;
    installation.cluster.deployment_available(CONTOUR, "contour").await?;
    installation.cluster.daemon_set_available(CONTOUR, "envoy").await?;
    Ok(())
}

/// Pods first: a namespace that is being deleted is looked at again after half of the grace period of its pods.
async fn remove_contour(installation: &Installation) -> Result<()> {
    installation.kubectl(&["--namespace", CONTOUR, "delete", "deployments,daemonsets,jobs", "--all"]).await?;
    installation.kubectl(&["--namespace", CONTOUR, "wait", "--for=delete", "pod", "--all", "--timeout=170s"]).await?;
    installation.kubectl(&["delete", "namespace", CONTOUR, "--wait=true", "--timeout=170s"]).await.map(drop)
}

/// The host that moves, as an HTTPProxy of a class or of none.
fn proxy(namespace: &str, name: &str, class: Option<&str>) -> String {
    let class = class.map(|class| format!("ingressClassName: {class}, ")).unwrap_or_default();
    format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{{class}virtualhost: {{fqdn: {MOVED}}}, routes: [{{services: [{{name: web, port: 80}}]}}]}}\n"
    )
}

/// Waits until a host is answered with a status.
async fn answered(at: SocketAddr, host: &str, status: u16) -> Result<()> {
    let look = async || match Client::new(at).host(host).get("/").await {
        Ok(answer) if answer.status == status => Ok(()),
        Ok(answer) => Err(answer.status.to_string()),
        Err(failure) => Err(failure.to_string()),
    };
    Ok(eventually(format!("{host} to be answered with {status}"), LIMIT, look).await?)
}
