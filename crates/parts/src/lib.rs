//! The real programs that tests, the demo and the checks use: Envoy, etcd, Kubernetes, and files such as CRDs.
//!
//! In: the pins (`parts/pins.toml`, built in), the environment. Out: the path of a program or a folder, or a [`Missing`]
//! that says how to get it. This crate only looks; `cargo xtask parts` (or `make parts`) is what fetches and builds, so that
//! a test never waits for a compiler behind its back.
//!
//! ```no_run
//! # fn main() -> Result<(), parts::Missing> {
//! let envoy = parts::program("envoy")?;
//! let crds = parts::folder("gateway-api-crds")?.join("standard");
//! # Ok(())
//! # }
//! ```

pub mod find;
pub mod pins;

use std::path::PathBuf;

pub use find::{Finder, Missing};
pub use pins::{Part, Pins, pins};

/// The program `name`: what `SESAME_<NAME>` says, else the part of that name in the cache, else the system's.
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    Finder::from_env().program(name)
}

/// The folder of the part `name`, for parts that are files: `gateway-api-crds`, `contour-crds`, `cni`.
pub fn folder(name: &str) -> Result<PathBuf, Missing> {
    Finder::from_env().folder(name)
}

/// The folder outside the tree that all parts stand in: `$SESAME_CACHE`, else `sesame` in the user's cache folder.
pub fn cache() -> Result<PathBuf, Missing> {
    Finder::from_env().cache()
}

/// The pinned version of the part `name`, without a leading `v`.
pub fn version(name: &str) -> Option<&'static str> {
    pins().part(name).map(|part| part.version.as_str())
}
