//! The control loop: what sources say goes into the pipeline, what comes out goes to the xDS server and to whoever listens.
//!
//! There are no timers, but for the moment at which a certificate ends. A batch is taken as soon as anything has changed;
//! while it is worked on, further changes gather.
//! Nothing is published before every source has said everything it knows, and every Secret that is referred to then has been
//! looked for: a proxy never sees half a world. From then on nothing is waited for: an object that refers to a Secret that has
//! not been read yet keeps what it had ([`pipeline::pending`]). What proxies refuse comes back as a change like any other.
//! Large objects are computed on another thread, one at a time, and keep what they had meanwhile ([`pipeline::large`]). An edit that
//! reaches many hosts is worked off in parts, and between two parts everybody else's edits are published ([`pipeline::partition`]).

mod background;
mod fleets;
mod input;
mod jwks;
mod outcomes;
mod parts;
mod publish;
mod reconfiguration;
mod secrets;
mod signing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::{Divergence, Finished, Offloading, Progress};
use kinds::{Kind, Object};
use model::{FleetId, ObjectRef, Verdict, status::StatusFacts};
use pipeline::{FleetOutput, Output, Pipeline, ServedObject, Settings, xds_fleet};
use replicas::{Replicas, Shared};
use resolve::Rejection;
use source::outage::Outage;
use source::{Batch, Feed, ObjectLocations, Problem, Subject};
use tokio::sync::{mpsc, watch};
use tracing::{debug, error};
use xds::{PublishError, Server};

use prometheus_client::registry::Registry;

use crate::jwks::{Limits, Metrics};
use crate::trace::{Stage, Tracer};

use background::Background;
pub use fleets::GatewayFleets;
use input::{Input, arrived};
pub use jwks::Jwks;
use outcomes::FleetOutcomes;
use parts::PartSize;
use publish::fleets;
pub use secrets::Secrets;
use signing::Signer;

/// What a batch brought, for people.
pub struct BatchReport<'a> {
    /// Everything that is now wrong with each of these subjects; an empty list says that it is mended.
    pub problems: &'a BTreeMap<Subject, Vec<Problem>>,
    /// The objects about which there is something new to say; nothing for those that are no longer ours.
    pub verdicts: &'a [(ObjectRef, Option<Arc<Vec<Verdict>>>)],
    /// What the status of objects says besides verdicts, where that has changed.
    pub facts: &'a [(ObjectRef, Option<Arc<StatusFacts>>)],
    /// What carries each object, where that has changed; nothing for those that are no longer ours.
    pub object_resources: &'a [(ObjectRef, Option<Arc<ServedObject>>)],
    /// The fleets that are gone, with everything that was published to them.
    pub gone: &'a [FleetId],
    /// The objects that are new, other or gone, of the kinds that were [asked for](Control::telling).
    pub objects: Vec<(ObjectRef, Option<Object>)>,
    /// Where objects stand in files.
    pub origins: &'a ObjectLocations,
    /// The pipeline as it is now.
    pub pipeline: &'a Pipeline,
    /// Whether every source has said everything it knows, and the first build is published.
    pub is_complete: bool,
    /// Whether anything was sent to proxies.
    pub published: bool,
    /// Why proxies cannot be given all that they need, where that is so and no object can be told.
    pub blocked: Option<String>,
    /// What the first build waits for, after everything was listed.
    pub awaited: Option<String>,
    /// How long it took from the change to the bytes.
    pub took: Duration,
}

/// For how many slices of work what sources say joins it. Each edit may undo what was done: who edits faster than that is
/// worked off would keep everybody else from being published.
const LONGEST_GATHERING: u32 = 10;

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// What sources brought, while a batch is worked on.
#[derive(Default)]
struct PendingInput {
    problems: BTreeMap<Subject, Vec<Problem>>,
    objects: HashMap<ObjectRef, Option<Object>>,
}

/// The loop and what it holds.
pub struct Control {
    pipeline: Pipeline,
    server: Server,
    replicas: Replicas,
    outcomes: FleetOutcomes,
    others: watch::Receiver<Shared>,
    origins: ObjectLocations,
    signer: Signer,
    secrets: Option<Secrets>,
    jwks: Jwks,
    jwks_metrics: Metrics,
    /// Why no spans are sent, as it was logged last.
    tracing_problem: Option<Rejection>,
    /// Where changed settings come from.
    changed_settings: Option<mpsc::UnboundedReceiver<Settings>>,
    reports: fn(Kind) -> bool,
    /// Objects of which nothing is told yet, because a Secret that they refer to has not been read: what is said about them
    /// is about what they were before.
    deferred: HashMap<ObjectRef, Option<Object>>,
    /// How many objects had ceased to be pending when those were last looked at.
    resolved: u64,
    checks: bool,
    /// Every source has said everything it knows.
    is_synced: bool,
    /// Proxies have been given a whole world, so parts of the next one may go out early.
    is_complete: bool,
    /// The last batch of these fleets waits in the server: the resources of a type have become too large together.
    excess: BTreeMap<FleetId, PublishError>,
    /// While nothing is left to be withheld: every batch finds that again.
    stuck: Outage,
    /// Computes large rows.
    background: Background,
    /// How much of an edit that reached many hosts is worked off at a time.
    part_size: PartSize,
    /// A part is next, whatever else there is.
    is_part_due: bool,
    /// Where Gateways have fleets of their own.
    gateway_fleets: Option<GatewayFleets>,
    /// Fleets that are gone, until the batch that takes everything from them is published.
    going: BTreeSet<FleetId>,
    /// Fleets that are gone with this batch.
    gone: Vec<FleetId>,
    /// Traces batches, where that is asked for.
    tracer: Tracer,
}

impl Control {
    /// A loop that feeds the fleets of a server, one of several replicas.
    pub fn new(pipeline: Pipeline, server: Server, replicas: Replicas) -> Self {
        let mut outcomes = FleetOutcomes::new(replicas.clone());
        outcomes.follow(&FleetId::Shared);
        let jwks_metrics = Metrics::default();
        Self {
            pipeline,
            outcomes,
            others: replicas.others(),
            replicas,
            server,
            origins: ObjectLocations::default(),
            signer: Signer::default(),
            secrets: None,
            jwks: Jwks::new(Limits::default(), jwks_metrics.clone()),
            jwks_metrics,
            tracing_problem: None,
            changed_settings: None,
            reports: |_| false,
            deferred: HashMap::new(),
            resolved: 0,
            checks: false,
            is_synced: false,
            is_complete: false,
            excess: BTreeMap::new(),
            stuck: Outage::default(),
            background: Background::default(),
            part_size: PartSize::default(),
            is_part_due: false,
            gateway_fleets: None,
            going: BTreeSet::new(),
            gone: Vec::new(),
            tracer: Tracer::off(),
        }
    }

    /// Adds what is counted to a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.jwks_metrics.register(registry);
    }

    /// The same, with Secrets that the source brings only when it is asked for them.
    pub fn fetching(self, secrets: Secrets) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// The same, tracing batches.
    pub fn traced(self, tracer: Tracer) -> Self {
        Self { tracer, ..self }
    }

    /// The same, with settings that change.
    pub fn following(self, changes: mpsc::UnboundedReceiver<Settings>) -> Self {
        Self { changed_settings: Some(changes), ..self }
    }

    /// The same, where Gateways have fleets of their own.
    pub fn provisioning(self, fleets: Option<GatewayFleets>) -> Self {
        Self { gateway_fleets: fleets, ..self }
    }

    /// The same, with news of the objects of some kinds.
    pub fn reporting(self, reports: fn(Kind) -> bool) -> Self {
        Self { reports, ..self }
    }

    /// The same, comparing every table with a build from nothing after each batch.
    pub fn checking(self, checks: bool) -> Self {
        Self { checks, ..self }
    }

    /// Works until every source has ended; reports what each batch brought.
    ///
    /// # Errors
    /// That the check found a table to be other than a build from nothing.
    pub async fn run(mut self, mut feed: Feed, mut report: impl FnMut(BatchReport<'_>)) -> Result<(), Divergence> {
        // Until the first build is complete, what comes out gathers here.
        let mut output = Output::default();
        if self.tracer.is_on() {
            feed.trace();
        }
        while let Some(input) = self.next(&mut feed).await {
            let begun = Instant::now();
            self.tracer.begin();
            let mut pending_input = PendingInput::default();
            // Those who have nothing wait for everything, and a check compares what is finished.
            let offloads = self.is_complete && !self.checks;
            self.pipeline.set_offloading(if offloads { Offloading::Large } else { Offloading::Off });
            let is_part = matches!(input, Input::Part);
            match input {
                Input::Batch(batch) => self.take(batch, &mut pending_input),
                Input::ResourceOutcome(fleet, outcome) => self.pipeline.on_outcome_in(&fleet, &outcome),
                Input::Others => {
                    let others = self.others.borrow_and_update().clone();
                    for fleet in self.outcomes.fleets() {
                        self.pipeline.withhold_in(&fleet, others.of(&xds_fleet(&fleet)));
                    }
                }
                Input::Time => {}
                Input::Finished(finished) => self.finish(finished),
                Input::Jwks(news) => self.jwks.take(news, &mut self.pipeline),
                Input::Fleet(name, status) => fleets::set_state(&mut self.pipeline, &name, status),
                Input::Settings(settings) => self.reconfigure(&settings),
                Input::Part => self.pipeline.admit(self.part_size.partitions()),
            }
            let published = self.is_synced && self.work(&mut feed, is_part, &mut pending_input, &mut output).await;
            let took = begun.elapsed();
            if is_part {
                self.part_size.adapt(took);
            }
            self.tracer.end();
            debug!(?took, published, "batch done");
            if self.checks && self.is_synced {
                self.pipeline.self_check()?;
            }
            if self.is_complete {
                self.report_tracing();
            }
            let objects = self.undeferred(pending_input.objects);
            report(BatchReport {
                problems: &pending_input.problems,
                verdicts: &output.verdicts,
                facts: &output.facts,
                gone: &self.gone,
                object_resources: &output.object_resources,
                objects,
                origins: &self.origins,
                pipeline: &self.pipeline,
                is_complete: self.is_complete,
                published,
                blocked: self.excess.values().next().map(ToString::to_string).or_else(|| self.pipeline.unreported()),
                awaited: self.awaited(),
                took,
            });
            self.gone.clear();
            if self.is_complete {
                output = Output::default();
            }
            if !self.background.is_busy()
                && let Some(job) = self.pipeline.next_job()
            {
                self.background.compute(job);
            }
        }
        Ok(())
    }

    /// What the first build waits for, after everything was listed: the first of what may be thousands.
    fn awaited(&self) -> Option<String> {
        if self.is_complete || !self.is_synced {
            return None;
        }
        let secrets = || self.secrets.iter().flat_map(Secrets::awaited);
        let first = secrets().min().map(ToString::to_string).or_else(|| self.jwks.awaited().min())?;
        Some(match secrets().count() + self.jwks.awaited().count() {
            1 => first,
            count => format!("{first} and {} more", count - 1),
        })
    }

    /// Takes a large row that was computed. What it was before is freed elsewhere: that takes its time, too.
    fn finish(&mut self, finished: Option<Finished>) {
        match finished {
            Some(finished) => {
                let replaced = self.pipeline.finish_job(finished);
                self.background.free(replaced);
            }
            None => {
                error!("background computation of a large object failed; the control loop retries it");
                self.pipeline.recall_jobs();
                self.pipeline.set_offloading(Offloading::Off);
            }
        }
    }

    /// Works off everything that waits, and what comes in meanwhile; says whether anything was published. After
    /// [some slices](LONGEST_GATHERING), or while a part of an edit is worked off, only endpoints come in, so there is an end to it. It
    /// ends early while the first build waits for answers.
    async fn work(
        &mut self,
        feed: &mut Feed,
        is_part: bool,
        pending_input: &mut PendingInput,
        output: &mut Output,
    ) -> bool {
        let (mut published, mut slices, mut has_shed) = (false, 0, false);
        loop {
            let stepping = self.tracer.now();
            let progress = self.pipeline.step(output);
            self.tracer.done(Stage::Compute, stepping);
            if progress == Progress::More {
                if self.is_complete {
                    published |= self.publish(output);
                }
                slices += 1;
                if let Some(batch) = arrived(feed, slices < LONGEST_GATHERING && !is_part) {
                    self.take(batch, pending_input);
                }
                tokio::task::yield_now().await;
                continue;
            }
            if self.signer.sign(&mut self.pipeline) {
                continue;
            }
            let own = self.gateway_fleets.as_mut();
            if own.is_some_and(|fleets| fleets.settle(&mut self.pipeline, &self.server, &mut self.going)) {
                continue;
            }
            if self.secrets.as_mut().is_some_and(|secrets| !secrets.ask(&mut self.pipeline)) {
                continue;
            }
            if !self.jwks.ask(&mut self.pipeline) {
                continue;
            }
            if self.pipeline.set_time(now()) {
                continue;
            }
            if !self.is_complete && self.secrets.as_mut().is_some_and(|secrets| !secrets.is_ready()) {
                return published;
            }
            if !self.is_complete && !self.jwks.is_ready() {
                return published;
            }
            let finishing = self.tracer.now();
            self.pipeline.finish(output);
            self.tracer.done(Stage::Compute, finishing);
            published |= self.publish(output);
            if self.fit(&mut has_shed) {
                continue;
            }
            for fleet in fleets(output) {
                let FleetOutput { probes, withheld, .. } = output.take_fleet(&fleet);
                self.outcomes.expect(&fleet, probes);
                if let Some(withheld) = withheld {
                    self.replicas.report(&xds_fleet(&fleet), withheld);
                }
            }
            self.remove_fleets();
            // Once they have it they go on with it, whatever does not fit later. A fleet that cannot be sent its own delays no other.
            self.is_complete |= !self.excess.contains_key(&FleetId::Shared);
            if let Some(own) = self.gateway_fleets.as_ref().filter(|_| self.is_complete) {
                own.fleets.synced();
            }
            return published;
        }
    }

    fn take(&mut self, batch: Batch, pending_input: &mut PendingInput) {
        self.tracer.took(batch.changes.len(), batch.decoded);
        self.origins.apply(&batch);
        self.is_synced |= batch.synced;
        for change in batch.changes {
            if let Some(secrets) = &mut self.secrets
                && !secrets.admits(&change, &batch.problems, &mut self.pipeline)
            {
                continue;
            }
            if (self.reports)(change.key.kind) {
                pending_input.objects.insert(change.key.clone(), change.object.clone());
            }
            self.pipeline.put(&change.key, change.object);
        }
        pending_input.problems.extend(batch.problems);
    }

    /// The objects that can be told of now: those that came, and those that were kept back before. Those are looked at only
    /// if anything has ceased to be pending.
    fn undeferred(&mut self, mut objects: HashMap<ObjectRef, Option<Object>>) -> Vec<(ObjectRef, Option<Object>)> {
        for key in objects.keys() {
            self.deferred.remove(key);
        }
        let resolved = self.pipeline.resolved();
        if std::mem::replace(&mut self.resolved, resolved) != resolved {
            objects.extend(self.deferred.drain());
        }
        let (deferred, reported): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|(key, object)| object.is_some() && self.pipeline.is_pending(key));
        self.deferred.extend(deferred);
        reported
    }
}

#[cfg(test)]
mod tests;
