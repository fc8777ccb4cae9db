//! What parts need of the system: one apt line.
//!
//! In: the packages in the pins. Out: the line run, where we are root and there is apt; printed elsewhere, which is no error:
//! a test that needs one of them says so, and the rest must run for everyone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use parts::pins::{Package, System};
use parts::{Finder, Missing};

/// Installs what is missing, or says how.
pub fn bring(finder: &Finder<'_>, system: &System, shelf: &Path) -> Result<()> {
    let packages = missing(finder, system)?;
    if packages.is_empty() {
        return Ok(());
    }
    if !(is_root()? && finder.on_system("apt-get").is_some()) {
        let line = install_line(&packages).join(" ");
        eprintln!("parts: tests need packages of the system, which only root can install:\n  {line}");
        return Ok(());
    }
    let _lock =
        super::lock(shelf, "system", || eprintln!("parts: another run is installing packages; waiting for that"))?;
    let packages = missing(finder, system)?;
    if packages.is_empty() {
        return Ok(());
    }
    let line = install_line(&packages);
    eprintln!("parts: {}", line.join(" "));
    // The lists may be older than the packages, or not there at all; if they cannot be renewed, the old may still do.
    apt(&["apt-get", "-qq", "update"].map(str::to_owned))?;
    apt(&line)?;
    let still = missing(finder, system)?;
    ensure!(still.is_empty(), "apt-get did not bring {}; see above", names(&still).join(", "));
    Ok(())
}

fn apt(line: &[String]) -> Result<()> {
    // Another apt may be at work on this machine: wait for it.
    let mut command = Command::new(&line[0]);
    command.args(["-o", "DPkg::Lock::Timeout=300"]).args(&line[1..]);
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
    command.status().map(drop).with_context(|| format!("starting {}", line[0]))
}

/// The packages of which something is missing. A variable that names what is not there is an error of its own.
fn missing<'a>(finder: &Finder<'_>, system: &'a System) -> Result<Vec<&'a Package>> {
    let mut packages = Vec::new();
    for package in &system.packages {
        let programs = package.programs.iter().map(|program| finder.program(program));
        let folders = package.folder.iter().map(|folder| finder.folder(&folder.name));
        match programs.chain(folders).collect::<Result<Vec<_>, _>>() {
            Ok(_) => {}
            Err(Missing::NotInstalled { .. }) => packages.push(package),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(packages)
}

fn install_line(packages: &[&Package]) -> Vec<String> {
    let head = ["apt-get", "install", "-y", "--no-install-recommends"].map(str::to_owned);
    head.into_iter().chain(names(packages)).collect()
}

fn names(packages: &[&Package]) -> Vec<String> {
    packages.iter().map(|package| package.name.clone()).collect()
}

/// Whether this process may do what root may: its effective user, from the kernel's own page about us.
fn is_root() -> Result<bool> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).context("no Uid in /proc/self/status")?;
    Ok(line.split_whitespace().nth(1) == Some("0"))
}
