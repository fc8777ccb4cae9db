//! The server and the real Envoy: what people rely on, under load, through restarts, rotations and rejections.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod bed;
mod holders;
mod life;
mod rejection;
mod rotation;
mod secrets;
mod tokens;
mod unauthorized;
mod warming;
mod world;
