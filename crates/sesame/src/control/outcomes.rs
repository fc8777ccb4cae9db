//! What the proxies of all fleets make of what they are given.
//!
//! In: the fleets that have been published to, and the resources whose outcome is awaited. Out: outcomes, one after the other,
//! whichever fleet they are of. Each fleet's are waited for by a task of its own, so that a fleet without news costs nothing.

use std::collections::BTreeMap;

use model::FleetId;
use pipeline::xds_fleet;
use replicas::Replicas;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use xds::{Kind, Name, ResourceOutcome};

/// Resources whose outcome is awaited.
type Probes = Vec<(Kind, Name)>;

/// The outcomes of all fleets.
pub struct FleetOutcomes {
    replicas: Replicas,
    fleets: BTreeMap<FleetId, UnboundedSender<Probes>>,
    sender: UnboundedSender<(FleetId, ResourceOutcome)>,
    receiver: UnboundedReceiver<(FleetId, ResourceOutcome)>,
}

impl FleetOutcomes {
    /// The outcomes of no fleet yet.
    pub fn new(replicas: Replicas) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { replicas, fleets: BTreeMap::new(), sender, receiver }
    }

    /// The fleets whose outcomes are followed.
    pub fn fleets(&self) -> Vec<FleetId> {
        self.fleets.keys().cloned().collect()
    }

    /// Follows a fleet from now on; before it is published to for the first time, so that nothing is missed. Says whether that is
    /// new.
    pub fn follow(&mut self, fleet: &FleetId) -> bool {
        if self.fleets.contains_key(fleet) {
            return false;
        }
        let (probes, mut probed) = mpsc::unbounded_channel::<Probes>();
        let mut outcomes = self.replicas.outcomes(xds_fleet(fleet));
        let (sender, of) = (self.sender.clone(), fleet.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    probes = probed.recv() => match probes {
                        Some(probes) => outcomes.expect(probes),
                        None => return,
                    },
                    outcome = outcomes.next() => {
                        if sender.send((of.clone(), outcome)).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        self.fleets.insert(fleet.clone(), probes);
        true
    }

    /// A fleet is gone: its outcomes do not matter any more.
    pub fn forget(&mut self, fleet: &FleetId) {
        self.fleets.remove(fleet);
    }

    /// Waits for the outcome of resources that have been published.
    pub fn expect(&mut self, fleet: &FleetId, probes: Probes) {
        if probes.is_empty() {
            return;
        }
        self.follow(fleet);
        if let Some(task) = self.fleets.get(fleet) {
            // The task lives as long as this does.
            let _ = task.send(probes);
        }
    }

    /// The next outcome.
    pub async fn next(&mut self) -> (FleetId, ResourceOutcome) {
        match self.receiver.recv().await {
            Some(outcome) => outcome,
            // There is a sender here.
            None => std::future::pending().await,
        }
    }
}
