//! The page of metrics: how long it takes, and what it says about proxies.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use testbed::{Client, eventually};

use super::{Fixture, LIMIT, milliseconds};
use crate::report::Run;

/// The port of metrics, on the address of the xDS server.
const PORT: u16 = 8000;
/// How often it is asked for.
const SCRAPES: usize = 100;

/// Asks for it again and again, on one connection, as Prometheus does.
pub async fn measure(fixture: &Fixture<'_>, run: &mut Run) -> Result<()> {
    let connection = Client::new(address(fixture)).connect().await?;
    let mut times = Vec::new();
    for _ in 0..SCRAPES {
        let start = Instant::now();
        let page = connection.get("/metrics").await?;
        ensure!(page.status == 200, "/metrics answers {}", page.status);
        times.push(milliseconds(start, Instant::now()));
    }
    times.sort_by(f64::total_cmp);
    run.put("metrics.p50", times[SCRAPES / 2]);
    run.put("metrics.p99", times[SCRAPES - 1]);
    Ok(())
}

/// How many proxies have everything, as the controller counts them.
pub async fn in_step(fixture: &Fixture<'_>) -> Result<f64> {
    sum(fixture, |line| line.starts_with("sesame_proxies{") && line.contains("state=\"in_step\"")).await
}

/// Waits until no status is left to be written: after a cold start that takes longer than anything else, and its CPU time is not that
/// of the changes that are measured next.
pub async fn status_written(fixture: &Fixture<'_>) -> Result<()> {
    let outstanding = async || match sum(fixture, |line| line.starts_with("sesame_status_behind ")).await {
        Ok(0.0) => Ok(()),
        other => Err(format!("{other:?} outstanding")),
    };
    Ok(eventually("every status to be written", LIMIT, outstanding).await?)
}

/// The sum of the series whose lines are `wanted`.
async fn sum(fixture: &Fixture<'_>, wanted: impl Fn(&str) -> bool) -> Result<f64> {
    let page = Client::new(address(fixture)).get("/metrics").await.map_err(|failure| anyhow!("{failure}"))?;
    let text = String::from_utf8_lossy(&page.body);
    let lines = text.lines().filter(|line| wanted(line));
    Ok(lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum())
}

fn address(fixture: &Fixture<'_>) -> SocketAddr {
    SocketAddr::new(fixture.instance.xds.ip(), PORT)
}
