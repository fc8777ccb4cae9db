//! What a release is built for: the architecture of this machine, or arm64 where a cross toolchain is installed.
//!
//! In: the name of an architecture, as images have it. Out: how cargo is called, where the binary is, and the shared libraries that
//! belong to it. What a cross toolchain lacks is an error that names the missing parts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use image::{Library, Sysroot};

/// The prefix of the cross toolchain's programs, and the folder of its libraries below `/usr`.
const GNU: &str = "aarch64-linux-gnu";
/// Its C compiler, which links as well.
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// What lists the libraries that a program needs.
const READELF: &str = "aarch64-linux-gnu-readelf";
/// The name of the target in Rust.
const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// What a release is built for.
#[derive(Clone, Debug)]
pub enum Target {
    /// This machine's architecture.
    Native,
    /// arm64, built on another architecture.
    CrossArm64(Sysroot),
}

impl Target {
    /// The target of an architecture. An error if it is not this machine's, and parts of a cross toolchain are missing.
    pub fn of(architecture: &str) -> Result<Self> {
        if architecture == image::architecture() {
            return Ok(Self::Native);
        }
        ensure!(
            architecture == "arm64",
            "images for {architecture} cannot be built on {}; only those for arm64 are cross-built",
            image::architecture()
        );
        Self::cross_arm64(Path::new("/usr").join(GNU).join("lib"), output)
    }

    /// arm64, with a cross toolchain that has its libraries in this folder; `output` gives what a program prints with these arguments, and
    /// nothing if it is not installed.
    fn cross_arm64(libraries: PathBuf, output: impl Fn(&str, &[&str]) -> String) -> Result<Self> {
        let missing = missing(&libraries, output);
        ensure!(missing.is_empty(), "an image for arm64 cannot be built here; missing: {}", missing.join(" and "));
        Ok(Self::CrossArm64(Sysroot { readelf: READELF, libraries }))
    }

    /// Its name in images and names of files.
    pub fn architecture(&self) -> &'static str {
        match self {
            Self::Native => image::architecture(),
            Self::CrossArm64(_) => "arm64",
        }
    }

    /// Its name in Rust.
    pub fn triple(&self) -> String {
        match self {
            Self::Native => format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
            Self::CrossArm64(_) => TRIPLE.to_owned(),
        }
    }

    /// Tells `cargo build` about it.
    pub fn configure(&self, cargo: &mut Command) {
        if let Self::CrossArm64(_) = self {
            cargo.args(["--target", TRIPLE]);
            cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
            cargo.env("CC_aarch64_unknown_linux_gnu", COMPILER);
        }
    }

    /// The binary of the release profile, in a target folder.
    pub fn binary(&self, folder: &Path) -> PathBuf {
        let folder = match self {
            Self::Native => folder.to_owned(),
            Self::CrossArm64(_) => folder.join(TRIPLE),
        };
        folder.join("release/sesame")
    }

    /// The shared libraries that a binary is linked to.
    pub fn libraries_of(&self, binary: &Path) -> Result<Vec<Library>> {
        let libraries = match self {
            Self::Native => image::libraries_of(binary),
            Self::CrossArm64(sysroot) => sysroot.libraries_of(binary),
        };
        libraries.with_context(|| format!("cannot find the libraries of {}", binary.display()))
    }
}

/// What a program of this machine prints; nothing if it is not installed.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The parts of the cross toolchain that are not installed, each with how to get it.
fn missing(libraries: &Path, output: impl Fn(&str, &[&str]) -> String) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !output("rustup", &["target", "list", "--installed"]).contains(TRIPLE) {
        missing.push("the Rust target (rustup target add aarch64-unknown-linux-gnu)");
    }
    if !output(COMPILER, &["-dumpmachine"]).contains("aarch64") {
        missing.push("a cross compiler (Debian: apt-get install gcc-aarch64-linux-gnu)");
    }
    if !libraries.join("libc.so.6").exists() {
        missing.push("the C library of the cross compiler (Debian: apt-get install libc6-dev-arm64-cross)");
    }
    if output(READELF, &["--version"]).is_empty() {
        missing.push("readelf of the cross toolchain (Debian: apt-get install binutils-aarch64-linux-gnu)");
    }
    missing
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn another_architecture_has_its_own_triple_folder_and_linker() {
        let sysroot = Sysroot { readelf: READELF, libraries: PathBuf::from("/usr/lib") };
        let target = Target::CrossArm64(sysroot);
        assert_eq!(target.architecture(), "arm64");
        let binary = target.binary(Path::new("target"));
        assert_eq!(binary, Path::new("target/aarch64-unknown-linux-gnu/release/sesame"));
        let mut cargo = Command::new("cargo");
        target.configure(&mut cargo);
        assert_eq!(cargo.get_args().collect::<Vec<_>>(), ["--target", "aarch64-unknown-linux-gnu"]);
        assert!(
            cargo.get_envs().any(|(name, value)| name == "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER"
                && value == Some(COMPILER.as_ref()))
        );
    }

    #[test]
    fn the_architecture_of_this_machine_needs_no_cross_toolchain() {
        let target = Target::of(image::architecture()).unwrap();
        assert_eq!(target.binary(Path::new("target")), Path::new("target/release/sesame"));
        let mut cargo = Command::new("cargo");
        target.configure(&mut cargo);
        assert_eq!((cargo.get_args().count(), cargo.get_envs().count()), (0, 0));
    }

    #[test]
    fn the_error_about_a_cross_toolchain_says_what_is_missing_and_how_to_get_it() {
        let installed = tempfile::tempdir().unwrap();
        std::fs::write(installed.path().join("libc.so.6"), "").unwrap();
        let with = |rust: bool, compiler: bool, library: bool, readelf: bool| {
            let libraries = if library { installed.path().to_owned() } else { installed.path().join("none") };
            let printed = Target::cross_arm64(libraries, |program, arguments| match (program, arguments) {
                ("rustup", ["target", "list", "--installed"]) if rust => {
                    "x86_64-unknown-linux-gnu\naarch64-unknown-linux-gnu\n".to_owned()
                }
                ("rustup", _) => "x86_64-unknown-linux-gnu\n".to_owned(),
                (COMPILER, ["-dumpmachine"]) if compiler => "aarch64-linux-gnu\n".to_owned(),
                (READELF, ["--version"]) if readelf => "GNU readelf (GNU Binutils for Debian) 2.40\n".to_owned(),
                _ => String::new(),
            });
            printed.map(|target| target.architecture()).map_err(|error| error.to_string())
        };
        let rust = "the Rust target (rustup target add aarch64-unknown-linux-gnu)";
        let compiler = "a cross compiler (Debian: apt-get install gcc-aarch64-linux-gnu)";
        let library = "the C library of the cross compiler (Debian: apt-get install libc6-dev-arm64-cross)";
        let readelf = "readelf of the cross toolchain (Debian: apt-get install binutils-aarch64-linux-gnu)";
        let lacks = |what: &str| Err(format!("an image for arm64 cannot be built here; missing: {what}"));
        assert_eq!(
            with(false, false, false, false),
            lacks(&format!("{rust} and {compiler} and {library} and {readelf}"))
        );
        assert_eq!(with(false, true, true, true), lacks(rust));
        assert_eq!(with(true, false, true, true), lacks(compiler));
        assert_eq!(with(true, true, false, true), lacks(library));
        assert_eq!(with(true, true, true, false), lacks(readelf));
        assert_eq!(with(true, true, true, true), Ok("arm64"));
        assert_eq!(output("no-such-program-at-all", &[]), "");
    }

    #[test]
    fn an_architecture_without_images_is_an_error() {
        let error = Target::of("riscv64").unwrap_err().to_string();
        let own = image::architecture();
        assert_eq!(error, format!("images for riscv64 cannot be built on {own}; only those for arm64 are cross-built"));
    }
}
