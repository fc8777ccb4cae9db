//! Sesame's own build steps, as `cargo xtask <step>`; the Makefile calls them.
//!
//! In: a step and its words. Out: the step done, or one error that says what to do about it. Steps stand here when a line of
//! shell in the Makefile would not do.

mod bring;
mod crds;
mod deny;
mod deploy;
mod docs;
mod neutral;
mod previous;
mod test;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask parts [NAME…]      bring parts, or groups of parts, into the cache; all of them if none is named
cargo xtask test [ARGUMENT…]   bring what tests need, run `cargo test` (on the whole workspace if no argument is given), count
cargo xtask crds [--check]     write deploy/crds from its description, or say whether it is as that says
cargo xtask deploy [--check]   write the manifests, the kustomize base and the chart in deploy, or say whether they are up to date
cargo xtask deny               licences, bans, sources and advisories of all dependencies, with cargo-deny
cargo xtask previous           build the commit in deploy/previous-version into the cache; prints the folder
cargo xtask neutral            say where neutral crates name a dialect's kind
cargo xtask docs               write the pages that come from the program itself: docs/errors.md, docs/configuration.md";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<ExitCode> {
    match words.split_first().map(|(step, rest)| (step.as_str(), rest)) {
        Some(("parts", names)) => bring::bring(names).map(|()| ExitCode::SUCCESS),
        Some(("test", arguments)) => {
            bring::bring(&["test".to_owned()])?;
            test::run(arguments)
        }
        Some(("crds", [])) => crds::run(false).map(|()| ExitCode::SUCCESS),
        Some(("crds", [flag])) if flag == "--check" => crds::run(true).map(|()| ExitCode::SUCCESS),
        Some(("deploy", [])) => deploy::run(false).map(|()| ExitCode::SUCCESS),
        Some(("deploy", [flag])) if flag == "--check" => deploy::run(true).map(|()| ExitCode::SUCCESS),
        Some(("deny", [])) => {
            bring::bring(&["cargo-deny".to_owned()])?;
            deny::run().map(|()| ExitCode::SUCCESS)
        }
        Some(("neutral", [])) => neutral::run().map(|()| ExitCode::SUCCESS),
        Some(("previous", [])) => previous::build().map(|()| ExitCode::SUCCESS),
        Some(("docs", [])) => docs::write().map(|()| ExitCode::SUCCESS),
        Some(("help" | "--help" | "-h", _)) => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("no such step\n{USAGE}"),
    }
}

/// The root of the tree.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the tree")
}

/// The cargo that runs us.
fn cargo() -> std::process::Command {
    std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
