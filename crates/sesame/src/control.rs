//! The control loop: what sources say goes into the pipeline, what comes out goes to the xDS server and to whoever listens.
//!
//! There are no timers. A batch is taken as soon as anything has changed; while it is worked on, further changes gather.
//! Nothing is published before every source has said everything it knows: a proxy never sees half a world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use certgen::Authority;
use futures::FutureExt;
use model::tls::KeyPair;
use model::{ObjectRef, SecretId, Verdict};
use pipeline::{Output, Pipeline};
use source::{Batch, Feed, Origins, Problem, Subject};
use tracing::{debug, error, warn};
use xds::{Fleet, Server};

/// How long a certificate that we sign ourselves is valid: longer than anybody works on one thing.
const SELF_SIGNED_FOR: Duration = Duration::from_secs(60 * 60 * 24 * 30);

/// What a batch brought, for people.
pub struct News<'a> {
    /// Everything that is now wrong with each of these subjects; an empty list says that it is mended.
    pub problems: &'a BTreeMap<Subject, Vec<Problem>>,
    /// The objects about which there is something new to say; nothing for those that are no longer ours.
    pub verdicts: &'a [(ObjectRef, Option<Arc<Vec<Verdict>>>)],
    /// Where objects stand in files.
    pub origins: &'a Origins,
    /// Whether anything was sent to proxies.
    pub published: bool,
    /// How long it took from the change to the bytes.
    pub took: Duration,
}

/// The loop and what it holds.
pub struct Control {
    pipeline: Pipeline,
    server: Server,
    fleet: Fleet,
    origins: Origins,
    authority: Option<Authority>,
    /// Every source has said everything it knows.
    synced: bool,
    /// Proxies have been given a whole world, so parts of the next one may go out early.
    complete: bool,
}

impl Control {
    /// A loop that feeds one fleet of a server.
    pub fn new(pipeline: Pipeline, server: Server, fleet: Fleet) -> Self {
        Self { pipeline, server, fleet, origins: Origins::default(), authority: None, synced: false, complete: false }
    }

    /// Works until every source has ended; tells what each batch brought.
    pub async fn run(mut self, mut feed: Feed, mut tell: impl FnMut(&News<'_>)) {
        while let Some(batch) = feed.next().await {
            let begun = Instant::now();
            let mut problems = self.take(batch);
            let mut output = Output::default();
            let published = self.synced && self.work(&mut feed, &mut problems, &mut output).await;
            let took = begun.elapsed();
            debug!(?took, published, "batch done");
            tell(&News { problems: &problems, verdicts: &output.verdicts, origins: &self.origins, published, took });
        }
    }

    /// Works off everything that waits, and what comes in meanwhile; says whether anything was published.
    async fn work(
        &mut self,
        feed: &mut Feed,
        problems: &mut BTreeMap<Subject, Vec<Problem>>,
        output: &mut Output,
    ) -> bool {
        let mut published = false;
        loop {
            let more = self.pipeline.step(output) == engine::Progress::More;
            if !more && self.sign() {
                continue;
            }
            if !more || self.complete {
                published |= self.publish(output);
            }
            if !more {
                self.complete = true;
                return published;
            }
            if let Some(Some(batch)) = feed.next().now_or_never() {
                problems.extend(self.take(batch));
            }
            tokio::task::yield_now().await;
        }
    }

    fn take(&mut self, batch: Batch) -> BTreeMap<Subject, Vec<Problem>> {
        self.origins.apply(&batch);
        self.synced |= batch.synced;
        for change in batch.changes {
            self.pipeline.put(&change.key, change.object);
        }
        batch.problems
    }

    fn publish(&mut self, output: &mut Output) -> bool {
        let changes = std::mem::take(&mut output.xds);
        if changes.upserts.is_empty() && changes.removes.is_empty() {
            return false;
        }
        let published = self.server.publish(xds::Batch { fleet: self.fleet.clone(), changes });
        if let Err(error) = &published {
            error!(%error, "nothing of the batch was sent to proxies");
        }
        published.is_ok()
    }

    /// Makes the certificates of hosts without a Secret; says whether there were any.
    fn sign(&mut self) -> bool {
        let wanted = self.pipeline.unsigned();
        let mut any = false;
        for id in wanted {
            match self.signed(&id) {
                Ok(pair) => {
                    self.pipeline.sign(&id, pair);
                    any = true;
                }
                Err(error) => warn!(host = %id.name, %error, "no certificate could be made"),
            }
        }
        any
    }

    fn signed(&mut self, id: &SecretId) -> Result<KeyPair, certgen::IssueError> {
        let authority = match self.authority.take() {
            Some(authority) => authority,
            None => Authority::new(SystemTime::now(), SELF_SIGNED_FOR)?,
        };
        let pair = self.authority.insert(authority).host(&id.name)?;
        Ok(KeyPair { chain: pair.certificate.into(), key: pair.key.into() })
    }
}
