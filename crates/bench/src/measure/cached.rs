//! The disk cache: what starting from it takes, and what keeping it up to date costs.
//!
//! A start without an API server lasts until everything that the cache holds is out. All of it counts: the process, the file, its seal, and
//! what an Envoy that has nothing is sent. A proxy that starts while the API server is away waits for nothing else. The cost is the
//! difference in CPU between two controllers under the same steady edits, one with a cache and one without.

use std::time::{Duration, Instant};

use anyhow::Result;
use testbed::{StateDir, eventually};
use tokio::time::MissedTickBehavior;

use super::{LIMIT, Options, milliseconds};
use crate::follower::Follower;
use crate::implementation::{DiskCache, Implementation, Instance, Running};
use crate::report::Run;
use crate::usage::{at_rest_within, cpu};
use crate::world::{FIRST_PATH, World};
use crate::writer::Writer;

const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0\n";
/// An API server that is not there.
const AWAY: &str = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\n\
                    contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\nusers: [{name: a, user: {}}]\n";

/// How many edits there are in a second.
const EDITS_PER_SECOND: u32 = 10;

/// An empty disk cache, and its key.
fn empty(state: &StateDir) -> Result<DiskCache> {
    let folder = state.path().join("cache");
    std::fs::create_dir(&folder)?;
    Ok(DiskCache { folder, key: state.write("key", KEY)? })
}

/// Fills a disk cache and starts from it.
pub async fn measure(
    implementation: &dyn Implementation,
    instance: &Instance,
    world: World,
    options: &Options,
    run: &mut Run,
) -> Result<()> {
    let state = StateDir::new("cache")?;
    let cache = empty(&state)?;
    let file = cache.folder.join("state");
    let full = Instance { cache: Some(cache), ..instance.clone() };
    let controller = Running::start(implementation, &full)?;
    let fill = async {
        Follower::connect(instance.xds).await?.all(world).await?;
        // It is written when what is published has not changed for a moment; a later write replaces it as a whole.
        let written = async || if file.is_file() { Ok(()) } else { Err("not yet".to_owned()) };
        Ok(eventually("the disk cache", LIMIT, written).await?)
    };
    controller.brings("a disk cache", LIMIT, fill).await?;
    controller.stop().await?;

    let away = Instance { kubeconfig: state.write("kubeconfig", AWAY)?, ..full };
    for _ in 0..options.starts {
        let start = Instant::now();
        let controller = Running::start(implementation, &away)?;
        let follow = async {
            let follower = Follower::connect(instance.xds).await?;
            Ok((follower.first().await?, follower.all(world).await?))
        };
        let (first, all) = controller.brings("everything from the disk cache", LIMIT, follow).await?;
        run.sample("cached.first-byte", milliseconds(start, first));
        run.sample("cached.acked", milliseconds(start, all));
        controller.stop().await?;
    }
    run.medians(&["cached.first-byte", "cached.acked"]);
    Ok(())
}

/// Edits routes at a steady rate, with a disk cache and without one; every host ends as it began.
pub async fn writes(
    implementation: &dyn Implementation,
    instance: &Instance,
    world: World,
    writer: &Writer,
    options: &Options,
    run: &mut Run,
) -> Result<()> {
    let state = StateDir::new("cache")?;
    let cached = Instance { cache: Some(empty(&state)?), ..instance.clone() };
    let without = share_of_edits(implementation, instance, world, writer, options.editing).await?;
    let with = share_of_edits(implementation, &cached, world, writer, options.editing).await?;
    run.put("cached.edits", without);
    run.put("cached.edits-written", with);
    run.put("cached.writes", with - without);
    Ok(())
}

/// The percentage of a core that a controller takes while routes are edited for so long.
async fn share_of_edits(
    implementation: &dyn Implementation,
    instance: &Instance,
    world: World,
    writer: &Writer,
    editing: Duration,
) -> Result<f64> {
    let controller = Running::start(implementation, instance)?;
    let follow = async {
        let follower = Follower::connect(instance.xds).await?;
        follower.all(world).await?;
        Ok(follower)
    };
    let _follower = controller.brings("everything", LIMIT, follow).await?;
    at_rest_within(&[controller.pid()], LIMIT).await?;
    let before = cpu(controller.pid())?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / EDITS_PER_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (end, mut edit) = (Instant::now() + editing, 0);
    // Each host is edited twice, there and back.
    while Instant::now() < end || edit % 2 == 1 {
        ticks.tick().await;
        let path = if edit % 2 == 0 { "/cached" } else { FIRST_PATH };
        writer.edit(&world.path_edit(edit / 2 % world.size, path)).await?;
        edit += 1;
    }
    let used = cpu(controller.pid())? - before;
    controller.stop().await?;
    Ok(100.0 * used.as_secs_f64() / editing.as_secs_f64())
}
