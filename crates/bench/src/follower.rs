//! The client that counts: asks as Envoy does, takes everything at once, keeps no message, stamps arrivals.
//!
//! In: a controller that gives all kinds on one delta stream. Out: when something arrived, how much of it. It shows what
//! the controller takes; what is left of the time until a request is served is Envoy's.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use testbed::xds_client::{Kind, Known, State};
use testbed::{Client, XdsClient};

use crate::world::World;

/// How soon a connection that was refused is tried again.
const AGAIN: Duration = Duration::from_millis(1);

/// A client that follows a controller.
pub struct Follower(XdsClient);

impl Follower {
    /// Connects as soon as the server accepts.
    pub async fn connect(xds: SocketAddr) -> Result<Follower> {
        loop {
            match XdsClient::to(Client::new(xds)).as_envoy().count_only().connect().await {
                Ok(client) => return Ok(Follower(client)),
                Err(failure) if failure.is_refused() => tokio::time::sleep(AGAIN).await,
                Err(failure) => return Err(failure).context("the client that counts cannot connect"),
            }
        }
    }

    /// Connects again to a controller that was restarted, telling what it has.
    pub async fn reconnect(self) -> Result<Follower> {
        Ok(Follower(self.0.reconnect(None).await.context("the client that counts cannot connect again")?))
    }

    /// Whether its stream goes on.
    pub fn is_connected(&self) -> bool {
        self.0.look(|state| state.end.is_none())
    }

    /// What it has, for others to say that they have it.
    pub fn known(&self) -> Known {
        self.0.known()
    }

    /// Waits for the first response of any kind, and tells when it came.
    pub async fn first(&self) -> Result<Instant> {
        until(&self.0, "the first response", |state| last(state, &Kind::ALL).is_some()).await?;
        Ok(self.0.look(|state| last(state, &Kind::ALL)).unwrap_or_else(Instant::now))
    }

    /// Waits until it has everything of a world and has taken it, and tells when the last of it came.
    pub async fn all(&self, world: World) -> Result<Instant> {
        until(&self.0, "everything", |state| has_all(state, world)).await?;
        Ok(self.0.look(|state| last(state, &Kind::ALL)).unwrap_or_else(Instant::now))
    }

    /// How many responses of these kinds came so far.
    pub fn responses(&self, kinds: &[Kind]) -> u64 {
        self.0.look(|state| responses(state, kinds))
    }

    /// Waits for one more response of these kinds than `before`, and tells when it came.
    pub async fn more(&self, kinds: &[Kind], before: u64) -> Result<Instant> {
        until(&self.0, "one more response", |state| responses(state, kinds) > before).await?;
        Ok(self.0.look(|state| last(state, kinds)).unwrap_or_else(Instant::now))
    }

    /// How many resources of a kind came so far.
    pub fn resources(&self, kind: Kind) -> u64 {
        self.0.look(|state| state.counts(kind).resources)
    }

    /// Waits until so many resources of a kind have come, and tells when the last of them did.
    pub async fn until_resources(&self, kind: Kind, count: u64) -> Result<Instant> {
        until(&self.0, "as many resources", |state| state.counts(kind).resources >= count).await?;
        Ok(self.0.look(|state| last(state, &[kind])).unwrap_or_else(Instant::now))
    }

    /// When the last response came.
    pub fn last(&self) -> Option<Instant> {
        self.0.look(|state| last(state, &Kind::ALL))
    }

    /// Resources and removals that came so far, and the bytes of all responses.
    pub fn came(&self) -> (u64, u64) {
        let sum = |state: &State| {
            let counts = Kind::ALL.map(|kind| state.counts(kind));
            let resources = counts.iter().map(|counts| counts.resources + counts.removed).sum();
            (resources, counts.iter().map(|counts| counts.bytes).sum())
        };
        self.0.look(sum)
    }

    /// The names it asks for, and how many resources it has, by kind.
    pub fn asks(&self) -> Vec<(Kind, Vec<String>, u64)> {
        let of = |state: &State, kind| {
            let names = state.asked(kind).into_iter().map(str::to_owned).collect();
            (kind, names, state.count(kind) as u64)
        };
        self.0.look(|state| Kind::ALL.map(|kind| of(state, kind)).into())
    }
}

/// Waits until what a client has is as wanted. How long that may take is the caller's business.
pub async fn until(client: &XdsClient, what: &str, wanted: impl Fn(&State) -> bool) -> Result<()> {
    while client.until(what, &wanted).await.is_err() {
        if let Some(end) = client.look(|state| state.end.clone()) {
            bail!("the stream ended while waiting for {what}: {end:?}");
        }
    }
    Ok(())
}

/// The kinds that routes travel by, whatever the packing.
pub const ROUTES: [Kind; 3] = [Kind::Route, Kind::ScopedRoute, Kind::VirtualHost];

/// How many responses of these kinds came.
pub fn responses(state: &State, kinds: &[Kind]) -> u64 {
    kinds.iter().map(|kind| state.counts(*kind).responses).sum()
}

/// When the last response of these kinds came.
pub fn last(state: &State, kinds: &[Kind]) -> Option<Instant> {
    kinds.iter().filter_map(|kind| state.counts(*kind).last).max()
}

/// Clusters and endpoints of all hosts, some routes (how many decides the packing; they come with the others or not at
/// all), the certificates that listeners name, and nothing that waits to be taken.
fn has_all(state: &State, world: World) -> bool {
    let every_host = |kind| state.count(kind) >= world.size;
    let routes = ROUTES.iter().any(|kind| state.count(*kind) > 0);
    let asked = ROUTES.iter().chain(&[Kind::Secret]).all(|kind| state.count(*kind) >= state.asked(*kind).len());
    let taken = |kind: &Kind| state.counts(*kind).acked == state.counts(*kind).responses;
    every_host(Kind::Cluster)
        && every_host(Kind::Endpoints)
        && state.count(Kind::Listener) > 0
        && routes
        && asked
        && Kind::ALL.iter().all(taken)
}
