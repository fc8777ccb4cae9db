//! Routes and policies on a handful of objects: what is served, and what is said about each parent.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod backends;
mod client_certificate;
mod filters;
mod limits;
mod matches;
mod parents;
mod streams;
mod tls_policy;
mod world;
