//! The image: its layout, its archive, its bill of materials.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{VERSION, sbom};

/// An image that is larger is no release.
const LARGEST: u64 = 60 << 20;

/// Writes `image/`, the archive and the SBOM. The bound on the size holds for release binaries.
pub fn write(dist: &Path, binary: &Path, is_release: bool) -> Result<()> {
    let arch = image::architecture();
    let bill = sbom::spdx(binary)?;
    let name = format!("ghcr.io/projectsesame/sesame:{VERSION}");
    let image = image::sesame(&name, binary)?.file("/usr/share/sbom/sesame.spdx.json", bill.clone())?;
    let archive = dist.join(format!("sesame-image-{VERSION}-linux-{arch}.tar"));
    let digest = image.write_layout(&dist.join("image"))?;
    image.write(&archive)?;
    std::fs::write(dist.join("sesame.spdx.json"), bill)?;
    let size = std::fs::metadata(&archive).with_context(|| archive.display().to_string())?.len();
    println!("{name} {digest}: {:.1} MB, linux/{arch}", size as f64 / 1e6);
    ensure!(!is_release || size <= LARGEST, "the image has {size} bytes; {LARGEST} is the limit");
    Ok(())
}

/// Says what is missing for an image of another architecture.
pub fn other_architecture(arch: &str) -> Result<()> {
    ensure!(arch == "arm64", "there are images for amd64 and arm64, not for {arch}");
    let has_output = |program: &str, arguments: &[&str], word: &str| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(word))
    };
    let mut missing = Vec::new();
    if !has_output("rustup", &["target", "list", "--installed"], "aarch64-unknown-linux-gnu") {
        missing.push("the Rust target (rustup target add aarch64-unknown-linux-gnu)");
    }
    if !has_output("aarch64-linux-gnu-gcc", &["-dumpmachine"], "aarch64") {
        missing.push(
            "a cross compiler and its C library (Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)",
        );
    }
    if !missing.is_empty() {
        bail!("no image for {arch} can be made here; missing: {}", missing.join(" and "));
    }
    bail!(
        "the tools for {arch} are here, but only an image of the machine's own architecture is made: run this on {arch}"
    )
}
