//! Checks all dependencies with cargo-deny.
//!
//! In: `deny.toml` and `Cargo.lock`. Out: an error if licences, bans, sources or known advisories object. The list of
//! advisories is the only thing that has to be fetched; where it cannot be, that is said, and the rest still counts.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs the checks.
pub fn run() -> Result<()> {
    if !deny(&["check", "--hide-inclusion-graph", "bans", "licenses", "sources"])? {
        bail!("cargo-deny objects to a dependency: see above, and deny.toml");
    }
    if !deny(&["fetch", "db"])? {
        eprintln!("deny: the advisory database could not be reached: advisories were NOT checked");
        return Ok(());
    }
    if !deny(&["check", "--disable-fetch", "advisories"])? {
        bail!("a dependency has a known vulnerability: see above");
    }
    Ok(())
}

fn deny(arguments: &[&str]) -> Result<bool> {
    let mut command = Command::new(parts::program("cargo-deny")?);
    command.current_dir(crate::root()).args(["--all-features"]).args(arguments);
    Ok(command.status().context("starting cargo-deny")?.success())
}
