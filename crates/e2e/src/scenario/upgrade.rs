//! From the previous version to this one, back, and to this one again.
//!
//! In: the program and the manifests of the commit in `deploy/previous-version` (`cargo xtask previous`). Out: what became of
//! requests while manifests of either version were applied over those of the other, as people do it: controllers and Envoys roll at
//! once, and for a while replicas of both versions serve Envoys of both.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testbed::eventually;

use super::{gone, new_host, settle, traffic, uninstall};
use crate::TrafficReport;
use crate::installation::{HOST, Installation, LIMIT, NAMESPACE, PREVIOUS, ingress, manifest, manifest_of, served};

const FORM: &str = "sesame-deployment.yaml";
/// How long a new replica serves beside those of the other version before the next one is replaced.
const SIDE_BY_SIDE: u32 = 20;

pub(super) async fn upgrade(installation: &Installation) -> Result<TrafficReport> {
    let previous = installation.previous.as_ref().context("the previous version is missing: see --previous")?;
    let before = manifest_of(&previous.join("deploy"), FORM)?.replace(SHIPPED, PREVIOUS);
    let after = manifest(FORM)?;
    uninstall(installation).await?;
    installation.cluster.apply_yaml(&before).await?;
    installation.cluster.apply_yaml(&ingress(&installation.apps, "web")).await?;
    served(installation.address(NAMESPACE).await?, HOST).await?;
    let slowly = json!({ "spec": { "minReadySeconds": SIDE_BY_SIDE } });
    installation.patch("deployments", "sesame", slowly).await?;
    let (traffic, at) = traffic(installation).await?;
    for (name, manifest) in [("upgraded", &after), ("downgraded", &before), ("again", &after)] {
        let mut old = installation.pods(NAMESPACE, "sesame").await?;
        old.extend(installation.pods(NAMESPACE, "envoy").await?);
        installation.cluster.apply_yaml(manifest).await.with_context(|| name.to_owned())?;
        both_versions(installation).await.with_context(|| name.to_owned())?;
        new_host(installation, at, &format!("{name}-both")).await?;
        for workload in ["sesame", "envoy"] {
            installation.cluster.deployment_available(NAMESPACE, workload).await?;
        }
        gone(installation, &old).await?;
        new_host(installation, at, name).await?;
    }
    installation.patch("deployments", "sesame", json!({ "spec": { "minReadySeconds": null } })).await?;
    Ok(settle(traffic).await)
}

/// The image in manifests.
const SHIPPED: &str = concat!("ghcr.io/projectsesame/sesame:v", env!("CARGO_PKG_VERSION"));

/// Waits until controllers of both versions are ready.
async fn both_versions(installation: &Installation) -> Result<()> {
    let is_ready = |pod: &&Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
    };
    let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.clone());
    let look = async || {
        let pods = installation.pods(NAMESPACE, "sesame").await.map_err(|error| error.to_string())?;
        let images: BTreeSet<String> = pods.values().filter(is_ready).filter_map(image).collect();
        if images.len() == 2 { Ok(()) } else { Err(format!("{images:?}")) }
    };
    Ok(eventually("controllers of both versions", LIMIT, look).await?)
}
