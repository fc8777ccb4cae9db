//! The xDS client against the xDS server: what it asks for, what it is given, and what the server makes of its answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "xds_client/connect.rs"]
mod connect;
#[path = "xds_client/exchange.rs"]
mod exchange;
#[path = "xds_client/world.rs"]
mod world;
