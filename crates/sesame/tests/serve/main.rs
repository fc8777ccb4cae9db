//! `sesame serve` as it runs in a cluster: the real binary, a real API server, real Envoys over mutual TLS.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bed;
mod cases;
mod disk_cache;
mod emissary;
mod expired;
mod fleets;
mod gateway;
mod jwt;
mod keys;
mod life;
mod live;
mod metrics;
mod monitoring;
mod operate;
mod out_of_files;
mod outage;
mod overload;
mod programmed;
mod protected;
mod refusal;
mod replicas;
mod rotation;
mod secrets;
mod size;
mod skew;
mod status;
mod tracing;
