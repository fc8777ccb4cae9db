//! The rows: what is done to one contender in one world, in order, and what is written down.
//!
//! In: a [`Contender`], a [`World`], [`Options`]. Out: a [`Run`] with every row that could be had. Each step starts when
//! controller and Envoy rest, and ends with a look at what both have used.

mod change;
mod cold;
mod crowd;
mod restart;
mod storm;

use std::time::{Duration, Instant};

use anyhow::Result;
use testbed::ApiServer;

use crate::contender::{Contender, Place, Running};
use crate::follower::Follower;
use crate::proxy::Proxy;
use crate::report::{Run, Step};
use crate::usage::{self, Usage};
use crate::world::{Wording, World};
use crate::writer::Writer;

/// How long one step may take; a contender that needs longer has its row left empty.
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
    pub clients_at: usize,
    /// How often it is started from nothing; the row is the median.
    pub starts: usize,
}

/// One contender at work in one world.
pub struct Bed<'a> {
    options: &'a Options,
    world: World,
    place: Place,
    writer: Writer,
    controller: Running<'a>,
    proxy: Proxy,
    /// The client that counts, where the contender speaks its language.
    follower: Option<Follower>,
}

/// Measures all rows of one contender in one world. What was measured before something failed is kept.
pub async fn measure(contender: &dyn Contender, world: World, api: &ApiServer, options: &Options) -> Run {
    let mut run = Run::new(contender.name(), contender.version(), world);
    if let Err(error) = steps(contender, world, api, options, &mut run).await {
        eprintln!("bench: {}, {world}: {error:#}", contender.name());
        run.failed = Some(format!("{error:#}"));
    }
    run
}

async fn steps(
    contender: &dyn Contender,
    world: World,
    api: &ApiServer,
    options: &Options,
    run: &mut Run,
) -> Result<()> {
    let say = |what: &str| eprintln!("bench: {}, {world}: {what}", contender.name());
    let (place, writer) = (Place::new(api.kubeconfig()?)?, Writer::new(api.client()?));

    say("cold start");
    cold::followed(contender, &place, world, options, run).await?;
    let (controller, proxy) = cold::served(contender, &place, world, options, run).await?;
    let follower = match contender.is_delta() {
        true => Some(Follower::connect(place.xds).await?),
        false => None,
    };
    let mut bed = Bed { options, world, place, writer, controller, proxy, follower };
    if let Some(follower) = &bed.follower {
        follower.all(world).await?;
    }
    for kind in change::Kind::ALL {
        say(kind.what());
        bed.step(kind.step(), run, async |bed, run| change::measure(bed, kind, run).await).await?;
    }
    say("many writes");
    bed.step(Step::Storm, run, storm::measure).await?;
    say("restart");
    bed.step(Step::Restart, run, restart::measure).await?;
    if contender.is_delta() && world.size == options.clients_at && world.wording == Wording::Ingresses {
        say("many clients");
        bed.step(Step::Clients, run, crowd::measure).await?;
    }
    bed.controller.stop().await
}

impl<'a> Bed<'a> {
    /// One step, from rest, with what it used.
    async fn step(
        &mut self,
        step: Step,
        run: &mut Run,
        measure: impl AsyncFnOnce(&mut Bed<'a>, &mut Run) -> Result<()>,
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
