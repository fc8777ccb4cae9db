//! The server over real sockets, seen by clients that were generated from Envoy's API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod certificates;
mod client;
mod delta;
mod fleet_acks;
mod fleets;
mod handshakes;
mod limits;
mod restored;
mod tokens;
mod variants;
