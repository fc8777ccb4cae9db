//! What the control loop works on next.
//!
//! In: sources, proxies, other replicas, fleets, key servers, the operator, the clock, and what the loop has not finished yet. Out: one
//! [`Input`] at a time. While one is waited for, large rows are computed on another thread; while parts of an edit wait, nobody waits for
//! more than one of them.

use std::time::Duration;

use engine::Finished;
use futures::FutureExt;
use kinds::kind;
use model::{FleetId, FleetName};
use pipeline::Settings;
use provision::FleetStatus;
use source::{Batch, Feed};
use xds::ResourceOutcome;

use super::{Control, now, parts, reconfiguration};
use crate::jwks::JwksUpdate;

/// What there is to work on.
pub(super) enum Input {
    /// Something of a source.
    Batch(Batch),
    /// What proxies of a fleet made of a resource.
    ResourceOutcome(FleetId, ResourceOutcome),
    /// What other replicas withhold has changed.
    Others,
    /// A certificate begins or ceases to be valid.
    Time,
    /// A large row was computed, or its computation was lost.
    Finished(Option<Finished>),
    /// How a fleet of a Gateway is doing.
    Fleet(FleetName, Option<FleetStatus>),
    /// What is known of servers of JSON Web Key Sets.
    Jwks(Vec<JwksUpdate>),
    /// The operator's settings have changed.
    Settings(Box<Settings>),
    /// The next part of an edit that reached many hosts.
    Part,
}

/// The longest that the time is not looked at while a certificate has one: clocks are set.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// What sources have said in the middle of a batch: everything, or endpoints only. Those make little work, and none in translations.
pub(super) fn arrived(feed: &mut Feed, all: bool) -> Option<Batch> {
    if all {
        return feed.next().now_or_never().flatten();
    }
    let changes = feed.take_only(|key| key.kind == kind::ENDPOINT_SLICE);
    (!changes.is_empty()).then(|| Batch { changes, ..Batch::default() })
}

impl Control {
    /// What comes next. While it is waited for, large rows are computed.
    pub(super) async fn next(&mut self, feed: &mut Feed) -> Option<Input> {
        if self.pipeline.backlog() > 0 {
            return Some(self.next_or_part(feed).await);
        }
        if !self.background.is_busy() {
            return self.wait(feed).await;
        }
        self.pipeline.share_tables();
        let input = self.wait(feed).await;
        self.pipeline.reclaim_tables();
        input
    }

    /// What comes next while parts of an edit wait: one of them after each input, and after each other while there is no input. So
    /// nobody waits for more than one part, and what waits is worked off however much comes in.
    async fn next_or_part(&mut self, feed: &mut Feed) -> Input {
        if std::mem::take(&mut self.is_part_due) {
            return Input::Part;
        }
        let input = if self.background.is_busy() {
            // Large rows of others have their share, too.
            self.pipeline.share_tables();
            let input = tokio::time::timeout(parts::READ_TIME, self.wait(feed)).await.ok();
            self.pipeline.reclaim_tables();
            input
        } else {
            tokio::task::yield_now().await;
            self.wait(feed).now_or_never()
        };
        self.is_part_due = matches!(input, Some(Some(_)));
        input.flatten().unwrap_or(Input::Part)
    }

    async fn wait(&mut self, feed: &mut Feed) -> Option<Input> {
        let answers = async {
            match &mut self.secrets {
                Some(secrets) => secrets.next().await,
                None => std::future::pending().await,
            }
        };
        let fleets = async {
            match &mut self.gateway_fleets {
                Some(fleets) => fleets.next().await,
                None => std::future::pending().await,
            }
        };
        let changed_settings = async {
            match &mut self.changed_settings {
                Some(changes) => reconfiguration::next(changes).await,
                None => std::future::pending().await,
            }
        };
        let due = self.pipeline.time_due();
        let time = async {
            match due {
                Some(at) => {
                    let left = Duration::from_secs(u64::try_from(at.saturating_sub(now())).unwrap_or_default());
                    tokio::time::sleep(left.min(MAX_SLEEP)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => Some(Input::Time),
            batch = feed.next() => batch.map(Input::Batch),
            batch = answers => batch.map(Input::Batch),
            (fleet, outcome) = self.outcomes.next() => Some(Input::ResourceOutcome(fleet, outcome)),
            // The sender lives as long as our handle does.
            _ = self.others.changed() => Some(Input::Others),
            finished = self.background.finished() => Some(Input::Finished(finished)),
            (name, status) = fleets => Some(Input::Fleet(name, status)),
            news = self.jwks.next() => Some(Input::Jwks(news)),
            settings = changed_settings => Some(Input::Settings(Box::new(settings))),
        }
    }
}
