//! A timeout of the configuration file changes: how long until listeners, or the clusters of all hosts, have the new one, and until
//! requests are held to it.
//!
//! Time starts when the file is written. The connection idle timeout stands in every listener, as does the request timeout, which shows
//! in an answer: 408 to a request whose body does not come. The connect timeout stands in the cluster of every host, so it is the
//! widest change that a setting can be. Mappings have a connect timeout of their own. Meanwhile the newest host is under a light load,
//! of which no request may fail.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use testbed::{Client, Load, xds_client::Kind};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::{Fixture, LIMIT, milliseconds};
use crate::report::{Run, Step};
use crate::world::{FIRST_PATH, Wording};

/// How often each is changed; the rows are medians.
const CHANGES: u64 = 5;
/// How long a request may take to arrive once that is limited.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(300);
/// How often a request without its body is begun meanwhile.
const BEGIN: Duration = Duration::from_millis(10);
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
        let connect = 2 + change;
        fixture.at_rest().await?;
        let load = self::load(fixture);
        let (clusters, replaced) = clusters(fixture, connect).await?;
        failed += lost(load, run).await;
        fixture.at_rest().await?;
        let load = self::load(fixture);
        let served = request_timeout(fixture, connect).await?;
        failed += lost(load, run).await;
        run.sample("settings.served", served);
        run.sample("settings.clusters", clusters);
        run.sample("settings.clusters-envoy", replaced);
    }
    run.medians(&["settings.listeners", "settings.served", "settings.clusters", "settings.clusters-envoy"]);
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

/// Until requests are held to a request timeout: when the first request was begun that was answered 408. The connect timeout stays as it is.
async fn request_timeout(fixture: &Fixture<'_>, connect: u64) -> Result<f64> {
    // The routes of the others were edited before.
    let newest = fixture.world.size;
    let client = fixture.proxy.client(newest);
    let (path, host) = (fixture.world.path(newest, FIRST_PATH), fixture.world.host(newest));
    let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 1\r\n\r\n");
    let start = Instant::now();
    let request = REQUEST_TIMEOUT.as_millis();
    fixture
        .instance
        .configure(&format!("timeouts:\n  connect-timeout: {connect}s\n  request-timeout: {request}ms\n"))?;
    let held = async {
        let (mut begin, mut requests) = (interval(BEGIN), JoinSet::new());
        loop {
            tokio::select! {
                _ = begin.tick() => drop(requests.spawn(timed_out(client.clone(), head.clone()))),
                Some(begun) = requests.join_next() => {
                    if let Some(begun) = begun? {
                        return Ok(begun);
                    }
                }
            }
        }
    };
    let begun = fixture.controller.brings("a changed request timeout", LIMIT, held).await?;
    Ok(milliseconds(start, begun))
}

/// Sends the head of a request, and says when it was begun if it is answered 408.
async fn timed_out(client: Client, head: String) -> Option<Instant> {
    let begun = Instant::now();
    let mut wire = client.open().await.ok()?;
    wire.write(head).await.ok()?;
    let status = timeout(4 * REQUEST_TIMEOUT, wire.read_until(b"\r\n")).await.ok()?.ok()?;
    status.starts_with(b"HTTP/1.1 408").then_some(begun)
}
