//! The leader lease, status and events against a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;
mod events;
mod http_proxy;
mod lease;
mod shared_lists;
mod versions;
mod writes;
