//! The controller is restarted while Envoy is attached: what is sent to those who have everything, and what users notice.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use testbed::Load;

use super::{Fixture, milliseconds};
use crate::report::{Run, Step};
use crate::world::FIRST_PATH;

/// How long an Envoy may take to come back, and for how long it must be sent nothing to be done.
const COMES_BACK: Duration = Duration::from_secs(300);
const SILENCE: Duration = Duration::from_secs(2);

/// Restarts, under a light load on the newest host.
pub async fn measure(fixture: &mut Fixture<'_>, run: &mut Run) -> Result<()> {
    let newest = fixture.world.size;
    let request = fixture.proxy.client(newest).get(&fixture.world.path(newest, FIRST_PATH));
    let load = Load::of(request).per_second(100).start();
    let came = fixture.follower.as_ref().map(|follower| follower.came());
    let start = Instant::now();
    fixture.controller.restart().await?;
    run.put("restart.listening", milliseconds(start, Instant::now()));
    if let (Some(follower), Some((resources, bytes))) = (fixture.follower.take(), came) {
        let follower = follower.reconnect().await?;
        run.put("restart.envoy-bytes", envoy_received(fixture).await? as f64);
        let (resources_now, bytes_now) = follower.came();
        run.put("restart.resources", (resources_now - resources) as f64);
        run.put("restart.bytes", (bytes_now - bytes) as f64);
        fixture.follower = Some(follower);
    } else {
        run.put("restart.envoy-bytes", envoy_received(fixture).await? as f64);
    }
    let report = load.stop().await;
    run.put("restart.failed", report.failed.len() as f64);
    if let Some(failed) = report.failed.first() {
        run.note(Step::Restart, format!("first failed request: {}", failed.what));
    }
    Ok(())
}

/// What Envoy has received on its new connections to the controller, once nothing more comes. The kernel counts it, so
/// it is the same for every implementation and statistics; it holds HTTP/2's own frames and empty responses, too.
async fn envoy_received(fixture: &Fixture<'_>) -> Result<u64> {
    let start = Instant::now();
    let mut last = None;
    loop {
        tokio::time::sleep(SILENCE).await;
        let now = received(fixture).await?;
        if now.is_some() && now == last {
            return now.context("just seen");
        }
        if start.elapsed() > COMES_BACK {
            bail!("Envoy did not come back to the restarted controller, or is sent something without end");
        }
        last = now;
    }
}

/// The bytes on Envoy's open connections to the controller, or nothing when it has none.
async fn received(fixture: &Fixture<'_>) -> Result<Option<u64>> {
    let xds = fixture.instance.xds;
    let output = tokio::process::Command::new("ss")
        .args([
            "-tnpHi",
            "state",
            "established",
            "dst",
            &xds.ip().to_string(),
            "dport",
            "=",
            &format!(":{}", xds.port()),
        ])
        .output()
        .await
        .context("ss of iproute2 is needed to count bytes")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let owner = format!("pid={},", fixture.proxy.pid());
    // A connection is a line that says whose it is, and an indented one with its numbers.
    let (mut ours, mut sum) = (false, None);
    for line in text.lines() {
        if !line.starts_with([' ', '\t']) {
            ours = line.contains(&owner);
        }
        let bytes = line.split_whitespace().find_map(|word| word.strip_prefix("bytes_received:")?.parse::<u64>().ok());
        if let (true, Some(bytes)) = (ours, bytes) {
            *sum.get_or_insert(0) += bytes;
        }
    }
    Ok(sum)
}
