//! The control loop: what sources say goes into the pipeline, what comes out goes to the xDS server and to whoever listens.
//!
//! There are no timers, but for the moment at which a certificate ends. A batch is taken as soon as anything has changed;
//! while it is worked on, further changes gather.
//! Nothing is published before every source has said everything it knows, and every Secret that is referred to then has been
//! looked for: a proxy never sees half a world. From then on nothing is waited for: an object that refers to a Secret that has
//! not been read yet keeps what it had ([`pipeline::pending`]). What proxies refuse comes back as a change like any other.

mod secrets;
mod signing;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::{Divergence, Progress};
use futures::FutureExt;
use kinds::{Kind, Object, kind};
use model::{ObjectRef, Verdict};
use pipeline::{ObjectResource, Output, Pipeline};
use replicas::{Outcomes, Replicas, Shared};
use source::outage::{Outage, OutageEvent};
use source::{Batch, Feed, Origins, Problem, Subject};
use tokio::sync::watch;
use tracing::{debug, error, info, warn};
use xds::{Fleet, PublishError, ResourceOutcome, Server};

pub use secrets::Secrets;
use signing::Signer;

/// What a batch brought, for people.
pub struct BatchReport<'a> {
    /// Everything that is now wrong with each of these subjects; an empty list says that it is mended.
    pub problems: &'a BTreeMap<Subject, Vec<Problem>>,
    /// The objects about which there is something new to say; nothing for those that are no longer ours.
    pub verdicts: &'a [(ObjectRef, Option<Arc<Vec<Verdict>>>)],
    /// What carries each object, where that has changed; nothing for those that are no longer ours.
    pub object_resources: &'a [(ObjectRef, Option<Arc<Vec<ObjectResource>>>)],
    /// The objects that are new, other or gone, of the kinds that were [asked for](Control::telling).
    pub objects: Vec<(ObjectRef, Option<Object>)>,
    /// Where objects stand in files.
    pub origins: &'a Origins,
    /// The pipeline as it is now.
    pub pipeline: &'a Pipeline,
    /// Whether every source has said everything it knows, and the first build is published.
    pub is_complete: bool,
    /// Whether anything was sent to proxies.
    pub published: bool,
    /// Why proxies cannot be given all that they need, where that is so and no object can be told.
    pub blocked: Option<String>,
    /// How long it took from the change to the bytes.
    pub took: Duration,
}

/// What there is to work on.
enum Input {
    /// Something of a source.
    Batch(Batch),
    /// What proxies made of a resource.
    ResourceOutcome(ResourceOutcome),
    /// What other replicas withhold has changed.
    Others,
    /// A certificate begins or ceases to be valid.
    Time,
}

/// The longest that the time is not looked at while a certificate has one: clocks are set.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// For how many slices of work what sources say joins it. Each edit may undo what was done: who edits faster than that is
/// worked off would keep everybody else from being published.
const LONGEST_GATHERING: u32 = 10;

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// What sources have said in the middle of a batch: everything, or endpoints only. Those make little work, and none in translations.
fn arrived(feed: &mut Feed, all: bool) -> Option<Batch> {
    if all {
        return feed.next().now_or_never().flatten();
    }
    let changes = feed.take_only(|key| key.kind == kind::ENDPOINT_SLICE);
    (!changes.is_empty()).then(|| Batch { changes, ..Batch::default() })
}

/// What sources brought, while a batch is worked on.
#[derive(Default)]
struct Brought {
    problems: BTreeMap<Subject, Vec<Problem>>,
    objects: HashMap<ObjectRef, Option<Object>>,
}

/// The loop and what it holds.
pub struct Control {
    pipeline: Pipeline,
    server: Server,
    fleet: Fleet,
    replicas: Replicas,
    outcomes: Outcomes,
    others: watch::Receiver<Shared>,
    origins: Origins,
    signer: Signer,
    secrets: Option<Secrets>,
    tells: fn(Kind) -> bool,
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
    /// The last batch waits in the server: the resources of a type have become too large together.
    excess: Option<PublishError>,
    /// While nothing is left to be withheld: every batch finds that again.
    stuck: Outage,
}

impl Control {
    /// A loop that feeds one fleet of a server, one of several replicas.
    pub fn new(pipeline: Pipeline, server: Server, fleet: Fleet, replicas: Replicas) -> Self {
        Self {
            pipeline,
            outcomes: replicas.outcomes(fleet.clone()),
            others: replicas.others(),
            replicas,
            server,
            fleet,
            origins: Origins::default(),
            signer: Signer::default(),
            secrets: None,
            tells: |_| false,
            deferred: HashMap::new(),
            resolved: 0,
            checks: false,
            is_synced: false,
            is_complete: false,
            excess: None,
            stuck: Outage::default(),
        }
    }

    /// The same, with Secrets that the source brings only when it is asked for them.
    pub fn fetching(self, secrets: Secrets) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// The same, with news of the objects of some kinds.
    pub fn telling(self, tells: fn(Kind) -> bool) -> Self {
        Self { tells, ..self }
    }

    /// The same, comparing every table with a build from nothing after each batch.
    pub fn checking(self, checks: bool) -> Self {
        Self { checks, ..self }
    }

    /// Works until every source has ended; tells what each batch brought.
    ///
    /// # Errors
    /// That the check found a table to be other than a build from nothing.
    pub async fn run(mut self, mut feed: Feed, mut tell: impl FnMut(BatchReport<'_>)) -> Result<(), Divergence> {
        // Until the first build is complete, what comes out gathers here.
        let mut output = Output::default();
        while let Some(input) = self.next(&mut feed).await {
            let begun = Instant::now();
            let mut brought = Brought::default();
            match input {
                Input::Batch(batch) => self.take(batch, &mut brought),
                Input::ResourceOutcome(outcome) => self.pipeline.on_outcome(&outcome),
                Input::Others => self.pipeline.withhold(self.others.borrow_and_update().of(&self.fleet)),
                Input::Time => {}
            }
            let published = self.is_synced && self.work(&mut feed, &mut brought, &mut output).await;
            let took = begun.elapsed();
            debug!(?took, published, "batch done");
            if self.checks && self.is_synced {
                self.pipeline.self_check()?;
            }
            let objects = self.undeferred(brought.objects);
            tell(BatchReport {
                problems: &brought.problems,
                verdicts: &output.verdicts,
                object_resources: &output.object_resources,
                objects,
                origins: &self.origins,
                pipeline: &self.pipeline,
                is_complete: self.is_complete,
                published,
                blocked: self.excess.as_ref().map(ToString::to_string).or_else(|| self.pipeline.untold()),
                took,
            });
            if self.is_complete {
                output = Output::default();
            }
        }
        Ok(())
    }

    async fn next(&mut self, feed: &mut Feed) -> Option<Input> {
        let answers = async {
            match &mut self.secrets {
                Some(secrets) => secrets.next().await,
                None => std::future::pending().await,
            }
        };
        let due = self.pipeline.time_due();
        let time = async {
            match due {
                Some(at) => {
                    let left = Duration::from_secs(u64::try_from(at.saturating_sub(now())).unwrap_or_default());
                    tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => Some(Input::Time),
            batch = feed.next() => batch.map(Input::Batch),
            batch = answers => batch.map(Input::Batch),
            outcome = self.outcomes.next() => Some(Input::ResourceOutcome(outcome)),
            // The sender lives as long as our handle does.
            _ = self.others.changed() => Some(Input::Others),
        }
    }

    /// Works off everything that waits, and what comes in meanwhile; says whether anything was published. After
    /// [some slices](LONGEST_GATHERING) only endpoints come in, so there is an end to it. It ends early while the first build
    /// waits for answers.
    async fn work(&mut self, feed: &mut Feed, brought: &mut Brought, output: &mut Output) -> bool {
        let (mut published, mut slices) = (false, 0);
        loop {
            if self.pipeline.step(output) == Progress::More {
                if self.is_complete {
                    published |= self.publish(output);
                }
                slices += 1;
                if let Some(batch) = arrived(feed, slices < LONGEST_GATHERING) {
                    self.take(batch, brought);
                }
                tokio::task::yield_now().await;
                continue;
            }
            if self.signer.sign(&mut self.pipeline) {
                continue;
            }
            if self.secrets.as_mut().is_some_and(|secrets| !secrets.ask(&mut self.pipeline)) {
                continue;
            }
            if self.pipeline.set_time(now()) {
                continue;
            }
            if !self.is_complete && self.secrets.as_mut().is_some_and(|secrets| !secrets.is_ready()) {
                return published;
            }
            self.pipeline.finish(output);
            published |= self.publish(output);
            if self.fit() {
                continue;
            }
            self.outcomes.expect(std::mem::take(&mut output.probes));
            if let Some(withheld) = output.withheld.take() {
                self.replicas.report(&self.fleet, withheld);
            }
            // Once they have it they go on with it, whatever does not fit later.
            self.is_complete |= self.excess.is_none();
            return published;
        }
    }

    fn take(&mut self, batch: Batch, brought: &mut Brought) {
        self.origins.apply(&batch);
        self.is_synced |= batch.synced;
        for change in batch.changes {
            if let Some(secrets) = &mut self.secrets
                && !secrets.admits(&change, &batch.problems, &mut self.pipeline)
            {
                continue;
            }
            if (self.tells)(change.key.kind) {
                brought.objects.insert(change.key.clone(), change.object.clone());
            }
            self.pipeline.put(&change.key, change.object);
        }
        brought.problems.extend(batch.problems);
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
        let (deferred, told): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|(key, object)| object.is_some() && self.pipeline.is_pending(key));
        self.deferred.extend(deferred);
        told
    }

    fn publish(&mut self, output: &mut Output) -> bool {
        let changes = std::mem::take(&mut output.xds);
        if changes.upserts.is_empty() && changes.removes.is_empty() {
            return false;
        }
        self.excess = self.server.publish(xds::Batch { fleet: self.fleet.clone(), changes }).err();
        self.excess.is_none()
    }

    /// Brings what is to be published in line with what can be sent: withholds the largest where a type has too much, and
    /// lets go of what fits again. Says whether there is more to work on.
    fn fit(&mut self) -> bool {
        let Some(PublishError::TooLarge { kind, bytes, limit }) = self.excess else {
            if let Some(OutageEvent::Ended(stuck)) = self.stuck.worked(Instant::now()) {
                info!(?stuck, "everything can be sent again, but for what is withheld");
            }
            return self.pipeline.readmit(|kind| self.server.room(&self.fleet, kind));
        };
        let any = self.pipeline.shed(kind, bytes - limit, limit);
        if any {
            warn!(%kind, bytes, limit, "too large to be sent; the largest are withheld, and the others are sent");
        } else if self.stuck.failed(Instant::now()).is_some() {
            error!(%kind, bytes, limit, "too large to be sent, and nothing is left to be withheld; proxies go on with what they have");
        }
        any
    }
}

#[cfg(test)]
mod tests;
