//! The image: its layout, its archive, its bill of materials.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{VERSION, sbom, target::Target};

/// An image that is larger is no release.
const LARGEST: u64 = 60 << 20;

/// Writes `image/`, the archive and the SBOM. The bound on the size holds for release binaries.
pub fn write(dist: &Path, binary: &Path, target: &Target, is_release: bool) -> Result<()> {
    let architecture = target.architecture();
    let libraries = target.libraries_of(binary)?;
    let bill = sbom::spdx(binary, target, &libraries)?;
    let name = format!("ghcr.io/projectsesame/sesame:{VERSION}");
    let image = image::sesame_for(&name, architecture, binary, &libraries)?
        .file("/usr/share/sbom/sesame.spdx.json", bill.clone())?;
    let archive = dist.join(format!("sesame-image-{VERSION}-linux-{architecture}.tar"));
    let digest = image.write_layout(&dist.join("image"))?;
    image.write(&archive)?;
    std::fs::write(dist.join("sesame.spdx.json"), bill)?;
    let size = std::fs::metadata(&archive).with_context(|| archive.display().to_string())?.len();
    println!("{name} {digest}: {:.1} MB, linux/{architecture}", size as f64 / 1e6);
    ensure!(!is_release || size <= LARGEST, "the image has {size} bytes; {LARGEST} is the limit");
    Ok(())
}
