//! `sesame serve` as it runs in a cluster: the real binary, a real API server, real Envoys over mutual TLS.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;
mod cases;
mod disk_cache;
mod fleets;
mod gateway;
mod jwt;
mod life;
mod live;
mod metrics;
mod monitoring;
mod operate;
mod outage;
mod overload;
mod programmed;
mod refusal;
mod rotation;
mod secrets;
mod size;
mod status;
mod tracing;
