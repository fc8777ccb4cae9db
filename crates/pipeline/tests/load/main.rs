//! Edits under a steady load: whatever changes, no request is lost.
//!
//! 200 requests a second go through a real Envoy while objects change under them. A change is whatever a test does to the
//! pipeline; it is published and awaited as in earnest. The tests take turns: what is asked is whether a change loses
//! requests, not how many a small machine can make at once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod authorization;
mod bed;
mod emissary;
mod emissary_kat;
mod emissary_rate_limit;
mod emissary_telemetry;
mod gateway;
mod httpproxy;
mod ingress;
mod jwt;
mod rate_limit;
mod tracing;
