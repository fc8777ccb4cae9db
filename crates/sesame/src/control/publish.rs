//! What came out of a batch goes to the xDS server, to each fleet what is its own.
//!
//! In: the output of the pipeline. Out: batches of changes for fleets, and the end of fleets that are gone. A type of resources that has
//! become too large to be sent is brought in line: the largest of the namespaces that have the most are withheld, and let go of when they
//! fit again.

use std::time::Instant;

use model::FleetId;
use pipeline::{Output, xds_fleet};
use source::outage::OutageEvent;
use tracing::{error, info, warn};
use xds::PublishError;

use super::Control;
use crate::trace::Stage;

/// The fleets for which something came out.
pub(super) fn fleets(output: &Output) -> Vec<FleetId> {
    std::iter::once(FleetId::Shared).chain(output.fleets.keys().cloned()).collect()
}

impl Control {
    /// Fleets that are gone end: their streams, tables and acks.
    pub(super) fn remove_fleets(&mut self) {
        for fleet in std::mem::take(&mut self.going) {
            info!(%fleet, "fleet removed");
            self.server.remove_fleet(&xds_fleet(&fleet));
            self.outcomes.forget(&fleet);
            self.excess.remove(&fleet);
            self.gone.push(fleet);
        }
    }

    /// Publishes what came out, to each fleet what is its own; says whether anything was.
    pub(super) fn publish(&mut self, output: &mut Output) -> bool {
        let mut published = false;
        for fleet in fleets(output) {
            let changes = std::mem::take(match &fleet {
                FleetId::Shared => &mut output.xds,
                FleetId::Named(_) => &mut output.fleets.entry(fleet.clone()).or_default().xds,
            });
            if changes.upserts.is_empty() && changes.removes.is_empty() {
                continue;
            }
            if self.outcomes.follow(&fleet) {
                // What other replicas withhold there is looked at anew.
                self.others.mark_changed();
            }
            let publishing = self.tracer.now();
            let done = self.server.publish(xds::Batch { fleet: xds_fleet(&fleet), changes });
            self.tracer.done(Stage::Publish, publishing);
            match done {
                Ok(_) => {
                    self.excess.remove(&fleet);
                    self.tracer.published(&xds_fleet(&fleet));
                    published = true;
                }
                Err(error) => _ = self.excess.insert(fleet, error),
            }
        }
        published
    }

    /// Brings what is to be published in line with what can be sent: withholds something where a type has too much, and
    /// lets go of what fits again. Says whether there is more to work on. A large row that is withheld is sent until it is computed on
    /// another thread. What is withheld while there is work stays so until it is done: its size is estimated, and what just fits by the estimate
    /// may not fit.
    pub(super) fn fit(&mut self, has_shed: &mut bool) -> bool {
        let excess = self
            .excess
            .iter()
            .map(|(fleet, PublishError::TooLarge { kind, bytes, limit })| (fleet.clone(), *kind, *bytes, *limit));
        let excess: Vec<_> = excess.collect();
        if excess.is_empty()
            && let Some(OutageEvent::Ended(stuck)) = self.stuck.worked(Instant::now())
        {
            info!(?stuck, "all resources are within the size limit again, except those that are withheld");
        }
        let mut any = false;
        for (fleet, kind, bytes, limit) in &excess {
            if self.pipeline.shed_in(fleet, *kind, bytes - limit, *limit) {
                warn!(%fleet, %kind, bytes, limit, "too large to be sent; the largest of the namespaces that have the most are withheld, and the others are sent");
                any = true;
            } else if self.pipeline.engine().offloaded() + self.pipeline.backlog() == 0
                && self.stuck.failed(Instant::now()).is_some()
            {
                error!(%fleet, %kind, bytes, limit, "too large to be sent, and nothing is left to be withheld; proxies keep their configuration");
            }
        }
        let room = |fleet: &FleetId, kind| match self.excess.contains_key(fleet) {
            true => 0,
            false => self.server.room(&xds_fleet(fleet), kind),
        };
        *has_shed |= any;
        any || !*has_shed && self.pipeline.readmit_in(room)
    }
}
