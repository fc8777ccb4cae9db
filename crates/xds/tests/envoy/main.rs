//! The server and the real Envoy: what people rely on, under load, through restarts, rotations and refusals.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod bed;
mod holders;
mod life;
mod refusal;
mod rotation;
mod secrets;
mod stranger;
mod tokens;
mod warming;
mod world;
