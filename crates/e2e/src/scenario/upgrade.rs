//! From the previous version to this one, back, and to this one again.
//!
//! In: the program and the manifests of the commit in `deploy/previous-version` (`cargo xtask previous`). Out: what became of
//! requests while manifests of either version were applied over those of the other, as people do it: controllers and Envoys roll at
//! once, and for a while replicas of both versions serve Envoys of both. CRDs change before the rest, and after it.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testbed::eventually;

use super::{gone, new_host, settle, traffic, uninstall};
use crate::TrafficReport;
use crate::installation::{
    HOST, Installation, LIMIT, NAMESPACE, PREVIOUS, crds, crds_of, ingress, manifest, manifest_of, served,
};

/// When the CRDs of a version are applied: before its manifests, or after its pods are there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crds {
    First,
    Last,
}

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
    let (ours, theirs) = (crds()?, crds_of(&previous.join("deploy"))?);
    installation.cluster.apply_yaml(&theirs).await?;
    let (mut traffic, at) = traffic(installation).await?;
    let mut report = TrafficReport::default();
    let steps = [
        ("upgraded", Crds::First, &ours, &after),
        ("downgraded", Crds::Last, &theirs, &before),
        ("again", Crds::Last, &ours, &after),
    ];
    for (name, order, crds, manifest) in steps {
        if order == Crds::First {
            installation.cluster.apply_yaml(crds).await?;
        }
        let mut old = installation.pods(NAMESPACE, "sesame").await?;
        old.extend(installation.pods(NAMESPACE, "envoy").await?);
        installation.cluster.apply_yaml(manifest).await.with_context(|| name.to_owned())?;
        both_versions(installation).await.with_context(|| name.to_owned())?;
        new_host(installation, at, &format!("{name}-both")).await?;
        for workload in ["sesame", "envoy"] {
            installation.cluster.deployment_available(NAMESPACE, workload).await?;
        }
        if order == Crds::Last {
            installation.cluster.apply_yaml(crds).await?;
        }
        report.add(traffic.close_streams().await);
        gone(installation, &old).await?;
        new_host(installation, at, name).await?;
        traffic.open_streams().await?;
    }
    installation.patch("deployments", "sesame", json!({ "spec": { "minReadySeconds": null } })).await?;
    report.add(settle(traffic).await);
    installation.skip_refused()?;
    Ok(report)
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
