//! The last span of a batch: until every proxy of the fleets that were given something has acknowledged it.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::mpsc::OwnedPermit;
use tokio::time::timeout;
use xds::{FleetAcks, Server};

use super::{BatchTrace, Stage};

/// For how long proxies are waited for.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits beside the loop, and then hands the batch to the exporter. How many wait at a time is bounded by the queue, in which each
/// has its place.
pub fn wait(server: Server, mut batch: BatchTrace, place: OwnedPermit<BatchTrace>) {
    tokio::spawn(async move {
        let begun = Instant::now();
        let acks = server.all_acks().into_iter().filter(|(fleet, _)| batch.fleets.contains(fleet));
        let waiting: Vec<_> = acks.map(|(_, acks)| in_step(acks)).collect();
        batch.unacknowledged = timeout(LONGEST, join_all(waiting)).await.is_err();
        batch.mark(Stage::Acknowledge, begun, Instant::now());
        place.send(batch);
    });
}

/// Waits until nobody of a fleet is behind. A later batch may make it longer.
async fn in_step(acks: FleetAcks) {
    let mut answers = acks.answers();
    while !acks.stuck(Duration::ZERO).is_empty() {
        if answers.changed().await.is_err() {
            return;
        }
    }
}
