//! Sesame as its manifests install it, on a cluster that has the CRDs of Gateway API and the suite's backends.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use testbed::Cluster;
use testbed::image::ready;

/// The form of the manifests that is installed.
const FORM: &str = "sesame-deployment.yaml";

/// The namespace of the manifests.
const NAMESPACE: &str = "projectsesame";

/// The two ways to write routes for Envoy; `sesame serve --packing` has the same words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Packing {
    /// Scoped routes.
    #[default]
    Scoped,
    /// One route table for each port.
    Plain,
}

/// A cluster on which Sesame serves Gateways of the class `sesame`.
#[derive(Debug)]
pub struct Installation {
    cluster: Cluster,
}

impl Installation {
    /// Starts a node with the images of `binary`, or takes the cluster that `SESAME_KUBECONFIG` names, which must have
    /// them; then applies CRDs and manifests and waits until the controller is ready.
    pub async fn start(binary: &Path, packing: Packing, progress: fn(&str)) -> Result<Installation> {
        let sesame =
            ready::sesame(binary)?.also_named(concat!("ghcr.io/projectsesame/sesame:v", env!("CARGO_PKG_VERSION")));
        let config =
            Cluster::config().progress(progress).image(sesame).image(ready::envoy()?).image(ready::echo_basic()?);
        let cluster = config.start().await.context("starting a Kubernetes node")?;
        progress("applying the CRDs of Gateway API and the manifests of Sesame");
        let crds = parts::folder("gateway-api-crds")?.join("experimental");
        for path in [crds, deploy("crds"), deploy(FORM), deploy("gateway-api")] {
            let text = with_flags(&manifests(&path)?, packing);
            cluster.apply_yaml(&text).await.with_context(|| path.display().to_string())?;
        }
        cluster.deployment_available(NAMESPACE, "sesame").await?;
        Ok(Installation { cluster })
    }

    /// The file that the suite connects by.
    pub fn kubeconfig(&self) -> &Path {
        self.cluster.kubeconfig()
    }

    /// An address that a load balancer of the cluster has, if that is known.
    pub fn usable_address(&self) -> Option<Ipv4Addr> {
        self.cluster.requestable_address().ok()
    }

    /// What the replicas of the controller have logged so far.
    pub async fn controller_logs(&self) -> Result<Vec<String>> {
        let pods = Api::<Pod>::namespaced(self.cluster.client()?, NAMESPACE);
        let mut logs = Vec::new();
        for pod in pods.list(&ListParams::default().labels("app=sesame")).await? {
            let name = pod.metadata.name.unwrap_or_default();
            logs.push(self.cluster.logs(NAMESPACE, &name).await?);
        }
        Ok(logs)
    }

    /// Ends the node; a cluster that the user named is left as it is.
    pub async fn stop(self) -> Result<()> {
        Ok(self.cluster.stop().await?)
    }
}

/// A file or folder in `deploy`.
fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// All objects in a file, or in the files of a folder in the order of their names. A kustomization is no object.
fn manifests(folder: &Path) -> Result<String> {
    if folder.is_file() {
        return fs::read_to_string(folder).with_context(|| folder.display().to_string());
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml") && !file.ends_with("kustomization.yaml"));
    files.sort();
    let texts = files.iter().map(|file| fs::read_to_string(file).map(|text| format!("---\n{text}\n")));
    Ok(texts.collect::<Result<String, _>>()?)
}

/// The manifests with flags for the controller: one proxy for each Gateway, because the suite makes a hundred Gateways on a
/// single node, and the packing if it is not the default.
fn with_flags(manifests: &str, packing: Packing) -> String {
    let packing = match packing {
        Packing::Scoped => "",
        Packing::Plain => "        - --packing=plain\n",
    };
    manifests.replace("        - serve\n", &format!("        - serve\n        - --fleet-replicas=1\n{packing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_of_the_controller_take_flags() {
        let shipped = manifests(&deploy(FORM)).expect("the manifests are there");
        let count = |packing, flag: &str| with_flags(&shipped, packing).matches(flag).count();
        assert_eq!(count(Packing::Scoped, "- --fleet-replicas=1\n"), 1);
        assert_eq!(count(Packing::Scoped, "--packing"), 0);
        assert_eq!(count(Packing::Plain, "- --packing=plain\n"), 1);
    }
}
