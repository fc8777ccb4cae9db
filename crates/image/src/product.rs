//! The image of Sesame: one program under the names of Sesame and Contour, the certificates of public CAs, and nothing else to
//! run.

use std::path::Path;

use crate::{Image, ImageError, Library};

/// Where TLS libraries look for the certificates of public CAs.
pub const CA_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The image of Sesame, of this full name, from a binary. It has no shell, runs as nobody, and writes nowhere; `contour` is
/// the same program, also where Contour's image has it, so that manifests written for Contour need only another image.
pub fn sesame(name: &str, binary: impl AsRef<Path>) -> Result<Image, ImageError> {
    let libraries = crate::libraries_of(binary.as_ref())?;
    sesame_for(name, crate::architecture(), binary, &libraries)
}

/// The same for an architecture, from a binary for it and the shared libraries that it needs.
pub fn sesame_for(
    name: &str,
    architecture: &str,
    binary: impl AsRef<Path>,
    libraries: &[Library],
) -> Result<Image, ImageError> {
    let inside = "/usr/local/bin/sesame";
    let bundle = Path::new(CA_BUNDLE);
    let certificates = std::fs::read(bundle).map_err(|source| ImageError::File { path: bundle.to_owned(), source })?;
    Ok(Image::new(name)
        .for_architecture(architecture)
        .program_with(binary, inside, libraries)?
        .link("/usr/local/bin/contour", "sesame")?
        .link("/bin/contour", inside)?
        .file(CA_BUNDLE, certificates)?
        .entrypoint([inside])
        .user("65532:65532")
        .label("org.opencontainers.image.title", "Sesame")
        .label(
            "org.opencontainers.image.description",
            "Ingress and Gateway API for Kubernetes, served by fleets of Envoy",
        )
        .label("org.opencontainers.image.version", env!("CARGO_PKG_VERSION"))
        .label("org.opencontainers.image.licenses", "Apache-2.0")
        .label("org.opencontainers.image.source", "https://github.com/projectsesame/sesame"))
}
