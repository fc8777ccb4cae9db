//! From the start of the controller, with everything in the API server, until everything is out.
//!
//! Twice, because the two would slow each other down: once with the client that counts alone, which shows the controller,
//! and once with Envoy alone, which shows what users wait for. Envoy is started as soon as the xDS port accepts: one that
//! was there before would come back by its own timer, and the row would show that.

use std::time::Instant;

use anyhow::Result;

use super::{LIMIT, Options, milliseconds};
use crate::follower::Follower;
use crate::implementation::{Implementation, Instance, Running};
use crate::proxy::Proxy;
use crate::report::{Run, Step};
use crate::usage::{Usage, at_rest};
use crate::world::{FIRST, FIRST_PATH, World};

/// With the client that counts.
pub async fn followed(
    implementation: &dyn Implementation,
    instance: &Instance,
    world: World,
    options: &Options,
    run: &mut Run,
) -> Result<()> {
    if !implementation.is_delta() {
        return Ok(());
    }
    for _ in 0..options.starts {
        let start = Instant::now();
        let controller = Running::start(implementation, instance)?;
        let follow = async {
            let follower = Follower::connect(instance.xds).await?;
            let first = follower.first().await?;
            Ok((first, follower.all(world).await?, follower.came().1))
        };
        let (first, all, bytes) = controller.brings("everything by xDS", LIMIT, follow).await?;
        run.sample("cold.first-byte", milliseconds(start, first));
        run.sample("cold.acked", milliseconds(start, all));
        run.sample("cold.bytes", bytes as f64);
        controller.stop().await?;
    }
    run.medians(&["cold.first-byte", "cold.acked", "cold.bytes"]);
    Ok(())
}

/// With Envoy. Both are left running for the steps that follow.
pub async fn served<'a>(
    implementation: &'a dyn Implementation,
    instance: &Instance,
    world: World,
    options: &Options,
    run: &mut Run,
) -> Result<(Running<'a>, Proxy)> {
    let mut left = start(implementation, instance, world, run).await?;
    for _ in 1..options.starts {
        let (controller, proxy) = left;
        proxy.envoy.stop().await?;
        controller.stop().await?;
        left = start(implementation, instance, world, run).await?;
    }
    run.medians(&["cold.first-served", "cold.served"]);
    let (controller, proxy) = &left;
    // How long it takes to ask every host when all are there: that much of the row above is the asking.
    let again = Instant::now();
    let sweep = proxy.sweep(FIRST_PATH, FIRST).await?;
    run.put("cold.asking", milliseconds(again, sweep.last));
    at_rest(&[controller.pid(), proxy.pid()]).await?;
    run.unexpected(Step::Cold, proxy.unexpected());
    run.used(Step::Cold, Usage::of(controller.pid())?, Usage::of(proxy.pid())?);
    Ok(left)
}

async fn start<'a>(
    implementation: &'a dyn Implementation,
    instance: &Instance,
    world: World,
    run: &mut Run,
) -> Result<(Running<'a>, Proxy)> {
    let start = Instant::now();
    let controller = Running::start(implementation, instance)?;
    controller.listening().await?;
    let proxy = Proxy::new(controller.envoy().await?, instance, world);
    let sweep = controller.brings("all hosts to be served", LIMIT, proxy.sweep(FIRST_PATH, FIRST)).await?;
    run.sample("cold.first-served", milliseconds(start, sweep.first));
    run.sample("cold.served", milliseconds(start, sweep.last));
    Ok((controller, proxy))
}
