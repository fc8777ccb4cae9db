//! The control loop: what sources say goes into the pipeline, what comes out goes to the xDS server and to whoever listens.
//!
//! There are no timers. A batch is taken as soon as anything has changed; while it is worked on, further changes gather.
//! Nothing is published before every source has said everything it knows, and every Secret that is referred to has been
//! looked for: a proxy never sees half a world. What proxies refuse comes back as a change like any other.

mod secrets;
mod signing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Divergence, Progress};
use futures::FutureExt;
use kinds::{Kind, Object, ObjectKey};
use model::{ObjectRef, Verdict};
use pipeline::{Carrier, Output, Pipeline};
use replicas::{Replicas, Rulings, Shared};
use source::{Batch, Feed, Origins, Problem, Subject};
use tokio::sync::watch;
use tracing::{debug, error, warn};
use xds::{Fleet, PublishError, Ruling, Server};

pub use secrets::Secrets;
use signing::Signer;

/// What a batch brought, for people.
pub struct News<'a> {
    /// Everything that is now wrong with each of these subjects; an empty list says that it is mended.
    pub problems: &'a BTreeMap<Subject, Vec<Problem>>,
    /// The objects about which there is something new to say; nothing for those that are no longer ours.
    pub verdicts: &'a [(ObjectRef, Option<Arc<Vec<Verdict>>>)],
    /// What carries each object, where that has changed; nothing for those that are no longer ours.
    pub carriers: &'a [(ObjectRef, Option<Arc<Vec<Carrier>>>)],
    /// The objects that are new, other or gone, of the kinds that were [asked for](Control::telling).
    pub objects: Vec<(ObjectKey, Option<Object>)>,
    /// Where objects stand in files.
    pub origins: &'a Origins,
    /// The pipeline as it is now.
    pub pipeline: &'a Pipeline,
    /// Whether every source has said everything it knows.
    pub is_synced: bool,
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
    Ruling(Ruling),
    /// What other replicas withhold has changed.
    Others,
}

/// What sources brought, while a batch is worked on.
#[derive(Default)]
struct Brought {
    problems: BTreeMap<Subject, Vec<Problem>>,
    objects: Vec<(ObjectKey, Option<Object>)>,
}

/// The loop and what it holds.
pub struct Control {
    pipeline: Pipeline,
    server: Server,
    fleet: Fleet,
    replicas: Replicas,
    rulings: Rulings,
    others: watch::Receiver<Shared>,
    origins: Origins,
    signer: Signer,
    secrets: Option<Secrets>,
    tells: fn(Kind) -> bool,
    checks: bool,
    /// Every source has said everything it knows.
    is_synced: bool,
    /// Proxies have been given a whole world, so parts of the next one may go out early.
    is_complete: bool,
    /// The last batch waits in the server: the resources of a type have become too large together.
    excess: Option<PublishError>,
}

impl Control {
    /// A loop that feeds one fleet of a server, one of several replicas.
    pub fn new(pipeline: Pipeline, server: Server, fleet: Fleet, replicas: Replicas) -> Self {
        Self {
            pipeline,
            rulings: replicas.rulings(fleet.clone()),
            others: replicas.others(),
            replicas,
            server,
            fleet,
            origins: Origins::default(),
            signer: Signer::default(),
            secrets: None,
            tells: |_| false,
            checks: false,
            is_synced: false,
            is_complete: false,
            excess: None,
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
    pub async fn run(mut self, mut feed: Feed, mut tell: impl FnMut(News<'_>)) -> Result<(), Divergence> {
        while let Some(input) = self.next(&mut feed).await {
            let begun = Instant::now();
            let mut brought = Brought::default();
            match input {
                Input::Batch(batch) => self.take(batch, &mut brought),
                Input::Ruling(ruling) => self.pipeline.hear(&ruling),
                Input::Others => self.pipeline.withhold(self.others.borrow_and_update().of(&self.fleet)),
            }
            let mut output = Output::default();
            let published = self.is_synced && self.work(&mut feed, &mut brought, &mut output).await;
            let took = begun.elapsed();
            debug!(?took, published, "batch done");
            if self.checks && self.is_synced {
                self.pipeline.self_check()?;
            }
            tell(News {
                problems: &brought.problems,
                verdicts: &output.verdicts,
                carriers: &output.carriers,
                objects: brought.objects,
                origins: &self.origins,
                pipeline: &self.pipeline,
                is_synced: self.is_synced,
                published,
                blocked: self.excess.as_ref().map(ToString::to_string).or_else(|| self.pipeline.untold()),
                took,
            });
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
        tokio::select! {
            batch = feed.next() => batch.map(Input::Batch),
            batch = answers => batch.map(Input::Batch),
            ruling = self.rulings.next() => Some(Input::Ruling(ruling)),
            // The sender lives as long as our handle does.
            _ = self.others.changed() => Some(Input::Others),
        }
    }

    /// Works off everything that waits, and what comes in meanwhile; says whether anything was published.
    async fn work(&mut self, feed: &mut Feed, brought: &mut Brought, output: &mut Output) -> bool {
        let mut published = false;
        loop {
            if self.pipeline.step(output) == Progress::More {
                if self.is_complete {
                    published |= self.publish(output);
                }
                if let Some(Some(batch)) = feed.next().now_or_never() {
                    self.take(batch, brought);
                }
                tokio::task::yield_now().await;
                continue;
            }
            if self.signer.sign(&mut self.pipeline) {
                continue;
            }
            if let Some(secrets) = &mut self.secrets {
                let settled = secrets.ask(&mut self.pipeline);
                if secrets.is_waiting() {
                    // Nothing else is taken meanwhile: while new ones are asked for all the time, old ones must come out.
                    let Some(answers) = secrets.next().await else { return published };
                    self.take(answers, brought);
                    continue;
                }
                if !settled {
                    continue;
                }
            }
            self.pipeline.finish(output);
            published |= self.publish(output);
            if self.fit() {
                continue;
            }
            self.rulings.expect(std::mem::take(&mut output.probes));
            if let Some(holds) = output.holds.take() {
                self.replicas.report(&self.fleet, holds);
            }
            self.is_complete = self.excess.is_none();
            return published;
        }
    }

    fn take(&mut self, batch: Batch, brought: &mut Brought) {
        self.origins.apply(&batch);
        self.is_synced |= batch.synced;
        for change in batch.changes {
            if self.secrets.as_mut().is_some_and(|secrets| !secrets.admits(&change.key)) {
                continue;
            }
            if (self.tells)(change.key.kind) {
                brought.objects.push((change.key.clone(), change.object.clone()));
            }
            self.pipeline.put(&change.key, change.object);
        }
        brought.problems.extend(batch.problems);
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
            return self.pipeline.readmit(|kind| self.server.room(&self.fleet, kind));
        };
        let any = self.pipeline.shed(kind, bytes - limit, limit);
        if any {
            warn!(%kind, bytes, limit, "too large to be sent; the largest are withheld, and the others are sent");
        } else {
            error!(%kind, bytes, limit, "too large to be sent, and nothing is left to be withheld; proxies go on with what they have");
        }
        any
    }
}
