//! One change at a time, each from rest: a new host, an edited route, changed endpoints, an edited provider of tokens.
//!
//! Time starts when the write is sent, so it holds the API server's own share, which is a row of its own. It ends when
//! the client that counts has the change, and when the first request is answered as the change wants it.

use std::time::Instant;

use anyhow::{Context, Result};
use testbed::certs::Ca;
use testbed::xds_client;

use super::{Fixture, LIMIT, milliseconds};
use crate::follower::ROUTES;
use crate::progress::Progress;
use crate::proxy::ExpectedAnswer;
use crate::report::{Run, Step};
use crate::usage::Threads;
use crate::world::{FIRST, FIRST_PATH, Object, Protection, SECOND, SECOND_AUDIENCE, Wording};

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An Ingress with its Service and EndpointSlice.
    NewHost,
    /// The path of an Ingress.
    RouteEdit,
    /// The address in an EndpointSlice.
    Endpoints,
    /// The audience in a provider of tokens; enforced once tokens for the new one are let through.
    Provider,
}

impl Kind {
    /// Those that are measured in worlds of a wording, in order.
    pub fn all(wording: Wording) -> &'static [Kind] {
        match wording {
            Wording::Protected => &[Kind::NewHost, Kind::RouteEdit, Kind::Endpoints, Kind::Provider],
            _ => &[Kind::NewHost, Kind::RouteEdit, Kind::Endpoints],
        }
    }

    /// What is done, for people.
    pub fn what(self) -> &'static str {
        match self {
            Kind::NewHost => "new hosts",
            Kind::RouteEdit => "route edits",
            Kind::Endpoints => "endpoint changes",
            Kind::Provider => "provider edits",
        }
    }

    /// Its step.
    pub fn step(self) -> Step {
        match self {
            Kind::NewHost => Step::NewHost,
            Kind::RouteEdit => Step::RouteEdit,
            Kind::Endpoints => Step::Endpoints,
            Kind::Provider => Step::Provider,
        }
    }

    /// The xDS kinds that the last of the change travels by.
    fn travels_by(self) -> &'static [xds_client::Kind] {
        match self {
            Kind::NewHost | Kind::RouteEdit => &ROUTES,
            Kind::Endpoints => &[xds_client::Kind::Endpoints],
            Kind::Provider => &[xds_client::Kind::Extension],
        }
    }
}

/// Makes the change as often as wanted.
pub async fn measure(fixture: &mut Fixture<'_>, kind: Kind, run: &mut Run) -> Result<()> {
    let (step, samples) = (kind.step().key(), fixture.options.samples);
    let (controller, envoy) = (fixture.controller.pid(), fixture.proxy.pid());
    let progress = Progress::new(kind.what(), samples);
    let (mut controller_cpu, mut envoy_cpu) = (0.0, 0.0);
    for sample in 0..samples {
        fixture.at_rest().await?;
        let change = Change::prepare(fixture, kind, sample).await?;
        let before = (Threads::of(controller)?, Threads::of(envoy)?);
        let seen = change.make(fixture, kind).await?;
        run.sample(&format!("{step}.write"), seen.write);
        if let Some(xds) = seen.xds {
            run.sample(&format!("{step}.xds"), xds);
        }
        run.sample(&format!("{step}.served"), seen.served);
        fixture.at_rest().await?;
        controller_cpu += before.0.used_since()?.as_secs_f64() * 1000.0;
        envoy_cpu += before.1.used_since()?.as_secs_f64() * 1000.0;
        progress.step();
    }
    run.percentiles(&format!("{step}.write"), &[50]);
    run.percentiles(&format!("{step}.xds"), &[50, 99]);
    run.percentiles(&format!("{step}.served"), &[50, 99]);
    run.put(&format!("{step}.cpu"), controller_cpu / samples as f64);
    run.put(&format!("{step}.envoy-cpu"), envoy_cpu / samples as f64);
    Ok(())
}

/// What one change took, in milliseconds.
struct Seen {
    write: f64,
    xds: Option<f64>,
    served: f64,
}

/// A change that is ready to be made.
struct Change {
    write: Write,
    expected: ExpectedAnswer,
}

enum Write {
    Create(Object),
    Edit((String, serde_json::Value)),
}

impl Change {
    /// Spreads the changes over all hosts; the three kinds change different ones.
    async fn prepare(fixture: &Fixture<'_>, kind: Kind, sample: usize) -> Result<Change> {
        let stride = (fixture.world.size / fixture.options.samples).max(1);
        let spread = |offset: usize| (sample * stride + offset) % fixture.world.size;
        Ok(match kind {
            Kind::NewHost => {
                let number = fixture.world.size + sample;
                let mut objects = fixture.world.objects(number, &Ca::new("bench"));
                let ingress = objects.pop().expect("every host has an Ingress, which comes last");
                for object in &objects {
                    fixture.writer.create(object).await?;
                }
                Change { write: Write::Create(ingress), expected: ExpectedAnswer::new(number, FIRST_PATH, FIRST) }
            }
            Kind::RouteEdit => {
                let (number, path) = (spread(0), format!("/edit-{sample}"));
                let write = Write::Edit(fixture.world.path_edit(number, &path));
                Change { write, expected: ExpectedAnswer::new(number, path, FIRST) }
            }
            Kind::Endpoints => {
                let number = spread(1);
                let write = Write::Edit(fixture.world.endpoints_edit(number, SECOND));
                Change { write, expected: ExpectedAnswer::new(number, FIRST_PATH, SECOND) }
            }
            Kind::Provider => {
                // Hosts that no other step asks or changes.
                let is_left_alone = |n: &usize| *n >= fixture.options.writes && n % stride > 1;
                let asks_for_tokens = |n: &usize| fixture.world.protection(*n) == Some(Protection::Tokens);
                let mut numbers = (0..fixture.world.size).filter(is_left_alone).filter(asks_for_tokens);
                let number = numbers.nth(sample).context("there are too few providers")?;
                let write = Write::Edit(fixture.world.provider_edit(number, SECOND_AUDIENCE));
                let expected = ExpectedAnswer::new(number, FIRST_PATH, FIRST);
                Change { write, expected: ExpectedAnswer { audience: SECOND_AUDIENCE, ..expected } }
            }
        })
    }

    /// Makes it, and waits on both sides at once.
    async fn make(self, fixture: &Fixture<'_>, kind: Kind) -> Result<Seen> {
        let before = fixture.follower.as_ref().map(|follower| follower.responses(kind.travels_by()));
        let start = Instant::now();
        let write = async {
            match &self.write {
                Write::Create(object) => fixture.writer.create(object).await?,
                Write::Edit(edit) => fixture.writer.edit(edit).await?,
            }
            Ok(Instant::now())
        };
        let follow = async {
            match fixture.follower.as_ref().zip(before) {
                Some((follower, before)) => follower.more(kind.travels_by(), before).await.map(Some),
                None => Ok(None),
            }
        };
        let served = async { Ok(fixture.proxy.until_served(&self.expected).await) };
        let all = async { futures::try_join!(write, follow, served) };
        let (write, xds, served) = fixture.controller.brings("a change to be served", LIMIT, all).await?;
        let from_start = |at| milliseconds(start, at);
        Ok(Seen { write: from_start(write), xds: xds.map(from_start), served: from_start(served) })
    }
}
