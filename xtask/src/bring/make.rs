//! Makes one part, by the ecosystem's own tools.
//!
//! In: a part and an empty folder. Out: `bin/<name>` in that folder, or the part's files. Nothing is told to the tools
//! about where to fetch from: that is the user's configuration. What they fetch they check themselves (go.sum,
//! `--require-hashes`, `--locked`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use parts::Part;
use parts::pins::{Crate, Files, GoProgram, Module, Recipe, Wheel};

use super::progress::Progress;

/// Makes `part` in the folder `into`. What the tools say goes to `log`.
pub fn make(part: &Part, shelf: &Path, into: &Path, log: &Path, progress: &Progress) -> Result<()> {
    if part.is_program() {
        fs::create_dir(into.join("bin"))?;
    }
    match &part.recipe {
        Recipe::Wheel(wheel) => from_wheel(part, wheel, into, log, progress),
        Recipe::Go(module, program) => {
            let target = into.join("bin").join(&part.name);
            let mut go = go(module);
            go.args(go_arguments(module, program)).arg("-o").arg(&target).arg(&program.package);
            progress.run("building with go", &mut go, log)?;
            ensure!(target.is_file(), "go made no program of {}: has the package tests?", program.package);
            Ok(())
        }
        Recipe::Files(module, files) => from_module(module, files, into, log, progress),
        Recipe::Crate(krate) => from_crate(part, krate, shelf, into, log, progress),
    }
}

/// How a Go program is built, up to the output and the package.
pub fn go_arguments(module: &Module, program: &GoProgram) -> Vec<String> {
    let mut ldflags = String::from("-s -w");
    for variable in &module.stamp {
        ldflags.push_str(&format!(" -X {variable}=v{}", module.version));
    }
    let verb: &[&str] = if program.test { &["test", "-c"] } else { &["build"] };
    let flags = ["-mod=readonly", "-buildvcs=false", "-trimpath"];
    let tags = (!program.tags.is_empty()).then(|| format!("-tags={}", program.tags.join(",")));
    let words = verb.iter().chain(&flags).map(|word| (*word).to_owned());
    words.chain(tags).chain([format!("-ldflags={ldflags}")]).collect()
}

/// How a crate's program is built. Optimising a program that runs for seconds would take minutes.
pub fn cargo_arguments(krate: &Crate, version: &str) -> Vec<String> {
    let config = ["lto=false", "codegen-units=16", "opt-level=1"];
    let config = config.iter().flat_map(|line| ["--config".to_owned(), format!("profile.release.{line}")]);
    let install = ["install", "--locked", &krate.package, "--version"].map(str::to_owned);
    install.into_iter().chain([format!("={version}")]).chain(config).collect()
}

/// Go in the folder of `module`. A newer Go that a go.mod asks for is fetched as a module, whatever the user's default.
fn go(module: &Module) -> Command {
    let mut go = Command::new("go");
    go.current_dir(crate::root().join("parts/go").join(&module.folder));
    go.envs([("CGO_ENABLED", "0"), ("GOTOOLCHAIN", "auto"), ("GOWORK", "off")]);
    go
}

fn from_wheel(part: &Part, wheel: &Wheel, into: &Path, log: &Path, progress: &Progress) -> Result<()> {
    let folder = into.join("wheel");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest"]).arg(&folder);
    pip.arg("--requirement").arg(crate::root().join("parts").join(&wheel.hashes));
    progress.run("fetching with pip", &mut pip, log)?;

    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(only_file(&folder)?).arg(&folder);
    progress.run("unpacking", &mut unpack, log)?;
    let program = into.join("bin").join(&part.name);
    fs::rename(folder.join(&wheel.file), &program).with_context(|| format!("the wheel has no {}", wheel.file))?;
    make_executable(&program)?;
    Ok(fs::remove_dir_all(&folder)?)
}

fn from_module(module: &Module, files: &Files, into: &Path, log: &Path, progress: &Progress) -> Result<()> {
    progress.run("fetching with go", go(module).args(["mod", "download", &module.path]), log)?;
    let listed = go(module)
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", &module.path])
        .output()
        .context("starting go")?;
    let source = PathBuf::from(String::from_utf8_lossy(&listed.stdout).trim());
    ensure!(source.is_dir(), "go does not say where {} is: {}", module.path, String::from_utf8_lossy(&listed.stderr));
    for path in &files.take {
        let from = source.join(path);
        let name = from.file_name().with_context(|| format!("{path} in pins.toml has no name"))?;
        copy(&from, &into.join(name)).with_context(|| format!("copying {path} of {}", module.path))?;
    }
    let Some(requirements) = &files.requirements else { return Ok(()) };
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--require-hashes", "--target"]);
    pip.arg(into.join("lib")).arg("--requirement").arg(crate::root().join("parts").join(requirements));
    progress.run("fetching with pip", &mut pip, log)
}

fn from_crate(part: &Part, krate: &Crate, shelf: &Path, into: &Path, log: &Path, progress: &Progress) -> Result<()> {
    // A build folder that outlives this run, so that an interrupted build goes on; it goes when the part is there.
    let build = shelf.join(format!(".{}.build", part.name));
    let mut cargo = crate::cargo();
    cargo.args(cargo_arguments(krate, &part.version)).arg("--no-track").arg("--root").arg(into);
    cargo.arg("--target-dir").arg(&build).current_dir(shelf);
    progress.run("building with cargo", &mut cargo, log)?;
    Ok(fs::remove_dir_all(&build)?)
}

/// The one file in `folder`.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let files: Vec<_> = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    match <[PathBuf; 1]>::try_from(files) {
        Ok([file]) => Ok(file),
        Err(files) => bail!("one wheel was expected, not {files:?}"),
    }
}

/// Copies a file or a folder. Go's module cache is read-only; a copy should not be, or the cache could not be removed.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(fs::write(to, fs::read(from)?)?);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}
