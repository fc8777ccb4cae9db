//! Many writes as fast as the API server takes them: how long after the last one everything is served.

use std::time::Instant;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::{Fixture, LIMIT, milliseconds};
use crate::progress::Progress;
use crate::proxy::ExpectedAnswer;
use crate::report::Run;
use crate::usage::cpu;
use crate::world::{FIRST, SECOND};

/// Writes under way at once.
const AT_ONCE: usize = 32;

/// Edits the paths of as many hosts as there are writes; in small worlds of each several times.
pub async fn measure(fixture: &mut Fixture<'_>, run: &mut Run) -> Result<()> {
    let (writes, size) = (fixture.options.writes, fixture.world.size);
    let path = |round: usize| format!("/storm-{round}");
    let progress = Progress::new("writes", writes);
    let before = (cpu(fixture.controller.pid())?, fixture.follower.as_ref().map(|follower| follower.came()));
    let start = Instant::now();
    // Round by round, so that no host's writes overtake each other.
    for (round, numbers) in (0..writes).collect::<Vec<_>>().chunks(size).enumerate() {
        let (path, progress, fixture) = (path(round), &progress, &*fixture);
        let write = |n: &usize| {
            let edit = fixture.world.path_edit(n % size, &path);
            async move { fixture.writer.edit(&edit).await.inspect(|()| progress.step()) }
        };
        stream::iter(numbers).map(write).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    }
    let written = Instant::now();
    drop(progress);
    let last_round = |n: usize| (writes - 1 - n) / size;
    // Some of these hosts had their endpoints changed before; any backend will do, but the expected names one.
    let expected = (0..writes.min(size)).map(|number| {
        let backend = if fixture.has_second_backend(number) { SECOND } else { FIRST };
        ExpectedAnswer::new(number, path(last_round(number)), backend)
    });
    let all = fixture.proxy.each(expected.collect());
    let served =
        fixture.controller.brings("all writes to be served", LIMIT, all).await?.context("there were no writes")?;
    fixture.at_rest().await?;
    run.put("storm.write", milliseconds(start, written));
    run.put("storm.served", milliseconds(written, served));
    if let (Some(follower), Some((_, bytes))) = (&fixture.follower, before.1) {
        run.put("storm.xds", follower.last().map_or(0.0, |last| milliseconds(written, last)));
        run.put("storm.bytes", (follower.came().1 - bytes) as f64);
    }
    run.put("storm.cpu", (cpu(fixture.controller.pid())? - before.0).as_secs_f64() * 1000.0 / writes as f64);
    Ok(())
}

impl Fixture<'_> {
    /// Whether the step of endpoint changes has changed those of this host.
    fn has_second_backend(&self, number: usize) -> bool {
        let stride = (self.world.size / self.options.samples).max(1);
        (0..self.options.samples).any(|sample| (sample * stride + 1) % self.world.size == number)
    }
}
