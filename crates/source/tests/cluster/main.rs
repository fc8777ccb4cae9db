//! The cluster source: against an API server that is made to misbehave, and against the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod absent;
mod fake;
mod fetch;
mod large;
mod mirror;
mod outage;
mod real;
mod rights;
mod trouble;
mod versions;
