//! A timeout of the configuration file changes: how long until listeners, or the clusters of all hosts, have the new one.
//!
//! Time starts when the file is written. The connection idle timeout stands in every listener, the connect timeout in the
//! cluster of every host, so the second is the widest change that a setting can be. Mappings have a connect timeout of their own.
//! Meanwhile the newest host is under a light load, of which no request may fail.

use std::time::Instant;

use anyhow::{Context, Result};
use testbed::{Load, xds_client::Kind};

use super::{Fixture, LIMIT, milliseconds};
use crate::report::{Run, Step};
use crate::world::{FIRST_PATH, Wording};

/// How often each is changed; the rows are medians.
const CHANGES: u64 = 5;
/// Counts the clusters that Envoy has replaced.
const REPLACED: &str = "cluster_manager.cluster_modified";

/// Changes both, one after the other.
pub async fn measure(fixture: &mut Fixture<'_>, run: &mut Run) -> Result<()> {
    let mut failed = 0;
    for change in 1..=CHANGES {
        fixture.at_rest().await?;
        let load = self::load(fixture);
        let listeners = listeners(fixture, 60 + change).await?;
        failed += lost(load, run).await;
        run.sample("settings.listeners", listeners);
        if matches!(fixture.world.wording, Wording::Mappings(_)) {
            continue;
        }
        fixture.at_rest().await?;
        let load = self::load(fixture);
        let (clusters, replaced) = clusters(fixture, 2 + change).await?;
        failed += lost(load, run).await;
        run.sample("settings.clusters", clusters);
        run.sample("settings.clusters-envoy", replaced);
    }
    run.medians(&["settings.listeners", "settings.clusters", "settings.clusters-envoy"]);
    run.put("settings.failed", failed as f64);
    Ok(())
}

/// A light load on the newest host.
fn load(fixture: &Fixture<'_>) -> Load {
    let newest = fixture.world.size;
    let request = fixture.proxy.client(newest).get(&fixture.world.path(newest, FIRST_PATH));
    Load::of(request).per_second(100).start()
}

/// Ends it; how many requests of it have failed.
async fn lost(load: Load, run: &mut Run) -> usize {
    let report = load.stop().await;
    if let Some(failed) = report.failed.first() {
        run.note(Step::Settings, format!("first failed request: {}", failed.what));
    }
    report.failed.len()
}

/// Until the client that counts has the changed listeners.
async fn listeners(fixture: &Fixture<'_>, seconds: u64) -> Result<f64> {
    let follower = fixture.follower.as_ref().context("nobody counts")?;
    let before = follower.responses(&[Kind::Listener]);
    let start = Instant::now();
    fixture.instance.configure(&format!("timeouts:\n  connection-idle-timeout: {seconds}s\n"))?;
    let came = fixture.controller.brings("changed listeners", LIMIT, follower.more(&[Kind::Listener], before)).await?;
    Ok(milliseconds(start, came))
}

/// Until the client that counts has the clusters of all hosts, and until Envoy has replaced them.
async fn clusters(fixture: &Fixture<'_>, seconds: u64) -> Result<(f64, f64)> {
    let follower = fixture.follower.as_ref().context("nobody counts")?;
    let admin = fixture.proxy.envoy.admin();
    let size = fixture.world.size as u64;
    let (before, replaced) = (follower.resources(Kind::Cluster), admin.stat(REPLACED).await?.unwrap_or(0));
    let start = Instant::now();
    fixture.instance.configure(&format!("timeouts:\n  connect-timeout: {seconds}s\n"))?;
    let counted = async { follower.until_resources(Kind::Cluster, before + size).await };
    let in_envoy = async {
        admin.expect_stat(REPLACED, LIMIT, |count| count >= replaced + size).await?;
        Ok(Instant::now())
    };
    let both = async { futures::try_join!(counted, in_envoy) };
    let (counted, in_envoy) = fixture.controller.brings("the clusters of all hosts", LIMIT, both).await?;
    Ok((milliseconds(start, counted), milliseconds(start, in_envoy)))
}
