//! What the engine promises, shown on a pipeline small enough to hold in the head (see [`toy`]).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

#[macro_use]
mod toy;

mod backlog;
mod offload;
mod oracle;
mod panics;
mod pending;
mod scale;
mod slices;
mod tracking;
mod wrong_use;

/// The task that owns an engine may move between threads.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<engine::Engine>();
    is_send::<engine::Pipeline>();
};
