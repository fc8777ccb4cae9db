//! Nothing that stands in an object makes Envoy refuse anything: what Envoy would not take is told on the field that holds it, and
//! everybody else is served.
//!
//! Arbitrary values go into every field; what comes out is loaded into a real Envoy. In scopes a refusal names the host that is to
//! blame; in tables it spoils all hosts of a port. The values are the same in every run unless `POISON_SEED` says otherwise.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod dice;
mod emissary;
mod gateway;
mod httpproxy;
