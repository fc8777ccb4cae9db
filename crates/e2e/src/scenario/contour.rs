//! Contour's own example manifests with our image, by the commands of the page that people follow.
//!
//! In: `docs/from-contour.md`, and the manifests as Contour publishes them. Out: an HTTPProxy that is served and told so. What the
//! page does not say is not done here, so whatever has to differ is on the page.

use std::path::Path;

use anyhow::{Result, ensure};
use testbed::eventually;

use super::{settle, uninstall};
use crate::installation::{Installation, LIMIT, served};
use crate::page::blocks;
use crate::{Traffic, TrafficReport};

const PAGE: &str = include_str!("../../../../docs/from-contour.md");
const HEADING: &str = "### Or swap the image in Contour's own manifests";

pub(super) async fn contour_manifests(installation: &Installation) -> Result<TrafficReport> {
    uninstall(installation).await?;
    let folder = tempfile::tempdir()?;
    let manifests = folder.path().join("examples/contour");
    std::fs::create_dir_all(&manifests)?;
    for entry in std::fs::read_dir(parts::folder("contour-examples")?)? {
        let entry = entry?;
        std::fs::copy(entry.path(), manifests.join(entry.file_name()))?;
    }
    let commands = blocks(PAGE, HEADING, "sh")?.concat();
    let script = format!("set -euo pipefail\ncd '{}'\n{commands}", folder.path().display());
    let kubectl = parts::program("kubectl")?;
    let programs = [kubectl.as_path(), &installation.sesame].map(|program| program.parent().unwrap_or(Path::new("/")));
    installation.shell(&script, &programs).await?;
    installation.cluster.deployment_available("projectcontour", "contour").await?;
    installation.cluster.daemon_set_available("projectcontour", "envoy").await?;
    let proxy = format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: swapped, namespace: {}}}\n\
         spec: {{virtualhost: {{fqdn: swapped.example.com}}, routes: [{{services: [{{name: web, port: 80}}]}}]}}\n",
        installation.apps
    );
    installation.cluster.apply_yaml(&proxy).await?;
    let at = installation.address("projectcontour").await?;
    served(at, "swapped.example.com").await?;
    is_valid(installation, "swapped").await?;
    let images = ["-n", "projectcontour", "get", "pods", "-o", "jsonpath={..image}"];
    let images = installation.kubectl(&images).await?;
    ensure!(!images.contains("projectcontour/contour"), "an image of Contour is left: {images}");
    let traffic = Traffic::start(at, "swapped.example.com");
    Ok(settle(traffic).await)
}

/// Waits until an HTTPProxy is told to be valid.
pub(super) async fn is_valid(installation: &Installation, name: &str) -> Result<()> {
    let words = ["-n", &installation.apps, "get", "httpproxy", name, "-o", "jsonpath={.status.currentStatus}"];
    let look = async || match installation.kubectl(&words).await {
        Ok(status) if status == "valid" => Ok(()),
        other => Err(format!("{other:?}")),
    };
    Ok(eventually(format!("the status of the HTTPProxy {name}"), LIMIT, look).await?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_page_has_the_commands_with_the_image_of_this_version() {
        let commands = blocks(PAGE, HEADING, "sh").unwrap().concat();
        assert!(commands.contains(concat!("ghcr.io/projectsesame/sesame:v", env!("CARGO_PKG_VERSION"))), "{commands}");
        assert!(commands.contains("sesame rbac --namespace=projectcontour --service-account=contour"), "{commands}");
    }
}
