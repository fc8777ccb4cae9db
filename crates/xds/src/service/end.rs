//! Why a call ends.
//!
//! In: a fleet that is removed or whose clients must authenticate again, a credential that expires, a server that stops. Out: an [`End`].
//! Streams and fetches wait for it beside everything that they wait for, and look at it first: what is published to a fleet later may be for
//! the clients of another owner.

use std::time::{Duration, SystemTime};

use tokio::time;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::Connection;
use super::client_fleet::ClientFleet;

/// Why a call ends: what is counted, and what the client is told.
pub(super) struct End {
    pub reason: &'static str,
    pub status: Status,
}

impl End {
    pub fn new(reason: &'static str, status: Status) -> Self {
        Self { reason, status }
    }
}

/// Done when a call must end, whatever its client does. The fleet may not be known yet.
pub(super) async fn must_end(connection: &Connection, fleet: Option<&ClientFleet>) -> End {
    tokio::select! {
        biased;
        () = cancelled(fleet.map(|fleet| &fleet.runtime.gone)) => removed(),
        () = cancelled(fleet.map(|fleet| &fleet.clients_end)) => expired(),
        () = connection.stop.cancelled() => going(),
        () = expiry(connection) => expired(),
    }
}

/// When a token is cancelled; never if there is none.
async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Done when the client's certificate or token has expired.
async fn expiry(connection: &Connection) {
    let Some(expires) = connection.credential.expires() else { return std::future::pending().await };
    while let Ok(left) = expires.duration_since(SystemTime::now()) {
        // The wall clock may be set, so it is looked at now and then.
        time::sleep(left.min(Duration::from_secs(60))).await;
    }
}

pub(super) fn not_live() -> End {
    End::new("not_live", Status::unavailable("nothing is published yet, keep what you have"))
}

pub(super) fn removed() -> End {
    End::new("fleet_gone", Status::unavailable("the fleet is gone"))
}

fn going() -> End {
    End::new("shutdown", Status::unavailable("this replica is going away, connect to another"))
}

fn expired() -> End {
    End::new(
        "expired",
        Status::unauthenticated(
            "the client certificate or token has expired, or its fleet belongs to somebody else by now",
        ),
    )
}
