//! The log lines about proxies: one when a proxy connects, one when it disconnects, one for each resource that it rejects.
//!
//! In: the events of the xDS server. Out: lines at info and warn. The xDS server logs at debug what else it knows of a stream, so that
//! at the default level each fact is one line, in `serve` as in `run`.

use model::Code;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tracing::field::display;
use tracing::{info, warn};
use xds::{Event, Rejection};

/// Logs events until the xDS server has stopped.
pub async fn log(mut events: Receiver<Event>) {
    loop {
        match events.recv().await {
            Ok(event) => log_event(&event),
            Err(RecvError::Lagged(missed)) => warn!(missed, "too many proxy events at once; some are not logged"),
            Err(RecvError::Closed) => return,
        }
    }
}

fn log_event(event: &Event) {
    match event {
        Event::Joined(client) => {
            let peer = client.address.map(display);
            info!(node = %client.node, fleet = %client.fleet, version = %client.version, peer, "proxy connected");
        }
        Event::Left { client, reason } => {
            let peer = client.address.map(display);
            info!(node = %client.node, fleet = %client.fleet, version = %client.version, peer, reason, "proxy disconnected");
        }
        Event::Rejected(rejection) => log_rejection(rejection),
    }
}

/// The text is Envoy's own.
fn log_rejection(rejection: &Rejection) {
    let (code, client) = (Code::EnvoyRejected, &rejection.client);
    let (peer, origin) = (client.address.map(display), rejection.origin.as_ref().map(display));
    warn!(%code, node = %client.node, fleet = %client.fleet, version = %client.version, peer, origin,
        "{code}: {}: {} {}: {}", code.title(), rejection.kind, rejection.name, rejection.text);
}
