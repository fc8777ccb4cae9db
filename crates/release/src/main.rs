//! `make image` and `make release`: everything that is published of a version, in `dist/` or another folder, byte for byte reproducible.
//!
//! In: the binary of the release profile (built by cargo, unless one is given), the tree. Out: see [`Step`]. Nothing is
//! uploaded, and no daemon is asked: the image is written by the crate [`image`](::image), which tests use, too.

mod bundle;
mod image;
mod sbom;
mod target;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use target::Target;

const USAGE: &str = "\
release image [--binary FILE] [--arch amd64|arm64] [--out DIR]   the OCI layout and archive of the image, with its SBOM
release all [--binary FILE] [--arch amd64|arm64] [--out DIR]     the image and everything else of a release
One run makes one architecture. Without --out it goes to dist/, which is emptied first; DIR must be empty or missing.";

/// The version that is released.
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// What is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// `image/` and `sesame-image-VERSION-linux-ARCH.tar`.
    Image,
    /// That, the archive of the binary, manifests, CRDs, chart, SBOM, notes and checksums.
    All,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let mut words = words.iter().map(String::as_str);
    let step = match words.next() {
        Some("image") => Step::Image,
        Some("all") => Step::All,
        _ => bail!("what is to be made?\n{USAGE}"),
    };
    let (mut binary, mut out) = (None, None);
    let mut target = Target::Native;
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("--binary", Some(file)) => binary = Some(PathBuf::from(file)),
            ("--out", Some(folder)) => out = Some(PathBuf::from(folder)),
            ("--arch", Some(architecture)) => target = Target::of(architecture)?,
            _ => bail!("{word} is not understood\n{USAGE}"),
        }
    }
    let dist = empty(out)?;
    let is_release = binary.is_none();
    let binary = binary.map_or_else(|| build(&target), Ok)?;
    image::write(&dist, &binary, &target, is_release)?;
    if step == Step::All {
        bundle::write(&dist, &binary, target.architecture())?;
    }
    Ok(())
}

/// The folder that everything is written to: `dist/`, emptied, or another one that has nothing in it, so that nothing of somebody
/// else's is deleted or gets a checksum.
fn empty(out: Option<PathBuf>) -> Result<PathBuf> {
    let is_ours = out.is_none();
    let folder = out.unwrap_or_else(|| root().join("dist"));
    if is_ours && folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    ensure!(entries.next().is_none(), "{} is not empty", folder.display());
    Ok(folder)
}

/// The binary of the release profile.
fn build(target: &Target) -> Result<PathBuf> {
    let mut cargo = cargo();
    cargo.args(["build", "--locked", "--release", "-p", "sesame"]).current_dir(root());
    target.configure(&mut cargo);
    // The build date is that of the commit, so that a build on another day is the same.
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none() {
        let git = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()).output();
        if let Some(output) = git.ok().filter(|output| output.status.success()) {
            cargo.env("SOURCE_DATE_EPOCH", String::from_utf8_lossy(&output.stdout).trim());
        }
    }
    ensure!(cargo.status().context("cannot run cargo")?.success(), "the release binary cannot be built");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.binary(&folder))
}

/// The cargo that runs us.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The root of the tree.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is two folders below the root of the tree")
}
