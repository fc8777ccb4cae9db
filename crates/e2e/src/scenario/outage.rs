//! The API server is away, controllers are killed meanwhile, and then Envoys.
//!
//! Kubelets start again what is killed, without the API server. Controllers have the last good state in their disk cache; Envoys that
//! start now have nothing, and get it from there. Requests are counted while Envoys live: what a killed Envoy drops is not ours to keep.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{new_host, settle, traffic, traffic_at};
use crate::TrafficReport;
use crate::installation::{HOST, Installation, NAMESPACE, pod_address, served};

const SHORT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);
/// Where Envoys serve HTTP in their pods.
const HTTP: u16 = 8080;

pub(super) async fn api_outage(installation: &Installation) -> Result<TrafficReport> {
    outage(installation, SHORT).await
}

pub(super) async fn long_api_outage(installation: &Installation) -> Result<TrafficReport> {
    outage(installation, LONG).await
}

async fn outage(installation: &Installation, away: Duration) -> Result<TrafficReport> {
    let (before, at) = traffic(installation).await?;
    let envoys = installation.pods(NAMESPACE, "envoy").await?;
    installation.cluster.api()?.kill().await?;
    let begun = Instant::now();
    before.answered(500).await;
    let killed = installation.kill_controllers()?;
    ensure!(killed == 2, "{killed} controllers were killed");
    before.answered(1000).await;
    let mut report = settle(before).await;

    let killed = installation.kill_envoys()?;
    ensure!(killed == envoys.len(), "{killed} of {} Envoys were killed", envoys.len());
    for envoy in envoys.values() {
        served(SocketAddr::new(pod_address(envoy)?, HTTP), HOST).await?;
    }
    let after = traffic_at(at).await?;
    tokio::time::sleep(away.saturating_sub(begun.elapsed())).await;
    installation.cluster.api()?.restart().await?;
    installation.skip_refused()?;
    new_host(installation, at, "back").await?;
    installation.cluster.deployment_available(NAMESPACE, "sesame").await?;
    report.add(settle(after).await);
    Ok(report)
}
