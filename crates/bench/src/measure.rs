//! The rows: what is done to one implementation in one world, in order, and what is written down.
//!
//! In: a [`Implementation`], a [`World`], [`Options`]. Out: a [`Run`] with every row that could be had. Each step starts when
//! controller and Envoy rest, and ends with a look at what both have used.

mod cached;
mod change;
mod cold;
mod crowd;
mod restart;
mod scrape;
mod settings;
mod storm;

use std::time::{Duration, Instant};

use anyhow::Result;
use testbed::{ApiServer, StateDir};

use crate::follower::Follower;
use crate::implementation::{Implementation, Instance, Running};
use crate::proxy::Proxy;
use crate::report::{Run, Step};
use crate::usage::{self, Usage};
use crate::world::{Wording, World};
use crate::writer::Writer;

/// How long one step may take; an implementation that needs longer has its row left empty.
const LIMIT: Duration = Duration::from_secs(1800);

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each kind of change is made.
    pub samples: usize,
    /// How many writes are made as fast as the API server takes them.
    pub writes: usize,
    /// How many clients connect at once, in worlds of which size.
    pub clients: usize,
    /// How many come back after a restart, in the same worlds.
    pub returning: usize,
    pub clients_at: usize,
    /// How often it is started from nothing; the row is the median.
    pub starts: usize,
    /// For how long routes are edited at a steady rate.
    pub editing: Duration,
}

/// One implementation at work in one world.
pub struct Fixture<'a> {
    options: &'a Options,
    world: World,
    instance: Instance,
    writer: Writer,
    controller: Running<'a>,
    proxy: Proxy,
    /// The client that counts, where the implementation speaks its language.
    follower: Option<Follower>,
}

/// Measures all rows of one implementation in one world. What was measured before something failed is kept.
pub async fn measure(implementation: &dyn Implementation, world: World, api: &ApiServer, options: &Options) -> Run {
    let mut run = Run::new(implementation.name(), implementation.version(), world);
    if let Err(error) = steps(implementation, world, api, options, &mut run).await {
        eprintln!("bench: {}, {world}: {error:#}", implementation.name());
        run.failed = Some(format!("{error:#}"));
    }
    run
}

async fn steps(
    implementation: &dyn Implementation,
    world: World,
    api: &ApiServer,
    options: &Options,
    run: &mut Run,
) -> Result<()> {
    let say = |what: &str| eprintln!("bench: {}, {world}: {what}", implementation.name());
    let serves_gateways = world.wording == Wording::Routes;
    let mut instance = Instance { serves_gateways, ..Instance::new(api.kubeconfig()?)? };
    let files = StateDir::new("configuration")?;
    if implementation.reloads_configuration() {
        instance.configuration = Some(files.write("sesame.yaml", "{}")?);
    }
    let writer = Writer::new(api.client()?);

    say("cold start");
    cold::followed(implementation, &instance, world, options, run).await?;
    if implementation.has_disk_cache() {
        say("start from the disk cache");
        cached::measure(implementation, &instance, world, options, run).await?;
    }
    if implementation.has_disk_cache() && world.wording == Wording::Ingresses {
        say("writes of the disk cache");
        cached::writes(implementation, &instance, world, &writer, options, run).await?;
    }
    let (controller, proxy) = cold::served(implementation, &instance, world, options, run).await?;
    let follower = match implementation.is_delta() {
        true => Some(Follower::connect(instance.xds).await?),
        false => None,
    };
    let mut fixture = Fixture { options, world, instance, writer, controller, proxy, follower };
    if let Some(follower) = &fixture.follower {
        follower.all(world).await?;
    }
    usage::at_rest_within(&[fixture.controller.pid(), fixture.proxy.pid()], LIMIT).await?;
    if implementation.has_disk_cache() {
        scrape::status_written(&fixture).await?;
        scrape::measure(&fixture, run).await?;
    }
    for &kind in change::Kind::all(world.wording) {
        say(kind.what());
        fixture.step(kind.step(), run, async |fixture, run| change::measure(fixture, kind, run).await).await?;
    }
    say("many writes");
    fixture.step(Step::Storm, run, storm::measure).await?;
    if implementation.reloads_configuration() {
        say("changed timeouts");
        fixture.step(Step::Settings, run, settings::measure).await?;
    }
    say("restart");
    fixture.step(Step::Restart, run, restart::measure).await?;
    if implementation.is_delta() && world.size == options.clients_at && world.wording == Wording::Ingresses {
        say("many clients");
        fixture.step(Step::Clients, run, crowd::measure).await?;
    }
    fixture.controller.stop().await
}

impl<'a> Fixture<'a> {
    /// One step, from rest, with what it used.
    async fn step(
        &mut self,
        step: Step,
        run: &mut Run,
        measure: impl AsyncFnOnce(&mut Fixture<'a>, &mut Run) -> Result<()>,
    ) -> Result<()> {
        self.at_rest().await?;
        measure(self, run).await?;
        self.at_rest().await?;
        run.unexpected(step, self.proxy.unexpected());
        run.used(step, Usage::of(self.controller.pid())?, Usage::of(self.proxy.pid())?);
        Ok(())
    }

    /// Waits until nothing is left to do.
    async fn at_rest(&self) -> Result<()> {
        usage::at_rest(&[self.controller.pid(), self.proxy.pid()]).await
    }
}

/// Milliseconds from one moment to another; none when it came before.
fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1000.0
}
