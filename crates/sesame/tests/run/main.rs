//! `sesame run` as people use it: a folder, the real binary, a real Envoy.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod check;
mod envoy;
mod folder;
mod log;
mod served;
