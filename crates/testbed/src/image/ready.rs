//! The images that tests use, under the names that manifests use.
//!
//! In: programs of this machine: parts, the caller's own binary, the system's. Out: [`Image`]s. A cluster has the
//! sandbox and the DNS server by itself; a test loads what it needs beyond them.

use std::path::{Path, PathBuf};

use parts::Finder;

use super::{Image, ImageError};

/// The image that holds the namespaces of a pod.
pub const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// The product's own image.
pub const SESAME: &str = "ghcr.io/projectsesame/sesame:dev";

/// The backend that says what it saw.
pub const ECHO: &str = "ghcr.io/projectsesame/echo:dev";

/// A shell, the usual small programs, and curl.
pub const TOOLS: &str = "ghcr.io/projectsesame/tools:dev";

/// What answers the challenges of an ACME server for cert-manager.
pub const ACME_SOLVER: &str = "ghcr.io/projectsesame/acmesolver:dev";

/// What the tools image has of the programs that this machine has. No more than a probe, a hook or a look into a volume
/// needs.
const TOOL_PROGRAMS: [&str; 27] = [
    "cat", "chmod", "cp", "curl", "cut", "date", "dd", "env", "getent", "grep", "head", "hostname", "id", "ln", "ls",
    "mkdir", "mv", "readlink", "rm", "sed", "sh", "sleep", "sort", "tail", "test", "touch", "wc",
];

pub(crate) fn pause(program: &Path) -> Result<Image, ImageError> {
    Ok(Image::new(PAUSE).program(program, "/pause")?.entrypoint(["/pause"]))
}

/// The DNS server of a cluster.
pub fn coredns() -> Result<Image, ImageError> {
    let name = format!("registry.k8s.io/coredns/coredns:v{}", version("coredns"));
    Ok(Image::new(name).program(part("coredns")?, "/coredns")?.entrypoint(["/coredns"]))
}

/// [`SESAME`], the image that is released, from a binary of the caller's.
pub fn sesame(binary: impl AsRef<Path>) -> Result<Image, ImageError> {
    ::image::sesame(SESAME, binary)
}

/// [`ECHO`]: `sesame echo`, from a binary of the caller's.
pub fn echo(binary: impl AsRef<Path>) -> Result<Image, ImageError> {
    let inside = "/usr/local/bin/sesame";
    Ok(Image::new(ECHO).program(binary, inside)?.entrypoint([inside, "echo"]).user("65532:65532"))
}

/// The pinned Envoy, under the names of its published images.
pub fn envoy() -> Result<Image, ImageError> {
    let (version, inside) = (version("envoy"), "/usr/local/bin/envoy");
    Ok(Image::new(format!("docker.io/envoyproxy/envoy:v{version}"))
        .also_named(format!("docker.io/envoyproxy/envoy:distroless-v{version}"))
        .program(part("envoy")?, inside)?
        .entrypoint([inside]))
}

/// Contour, under the name of its published image.
pub fn contour() -> Result<Image, ImageError> {
    let (name, inside) = (format!("ghcr.io/projectcontour/contour:v{}", version("contour")), "/bin/contour");
    Ok(Image::new(name).program(part("contour")?, inside)?.entrypoint([inside]))
}

/// The backend of the Gateway API conformance suite, under the names that the suite's manifests use.
pub fn echo_basic() -> Result<Image, ImageError> {
    let name = |version: &str| format!("registry.k8s.io/gateway-api/conformance/echo-basic:v{version}");
    Ok(Image::new(name(version("echo-basic")))
        .also_named(name("0.2.0"))
        .program(part("echo-basic")?, "/echo-basic")?
        .entrypoint(["/echo-basic"]))
}

/// [`ACME_SOLVER`]: cert-manager's own.
pub fn acme_solver() -> Result<Image, ImageError> {
    let inside = "/acmesolver";
    Ok(Image::new(ACME_SOLVER).program(part("acmesolver")?, inside)?.entrypoint([inside]).user("65532:65532"))
}

/// [`TOOLS`], from the programs of this machine.
pub fn tools() -> Result<Image, ImageError> {
    let system = Finder::from_env();
    let mut found = TOOL_PROGRAMS.iter().filter_map(|name| Some((name, system.on_system(name)?)));
    let image = Image::new(TOOLS).entrypoint(["/usr/bin/sh"]).link("/bin", "usr/bin")?;
    found.try_fold(image, |image, (name, program)| image.program(program, &format!("/usr/bin/{name}")))
}

/// The program of a pinned part.
fn part(name: &str) -> Result<PathBuf, ImageError> {
    parts::program(name).map_err(|missing| ImageError::Tool { program: name.to_owned(), reason: missing.to_string() })
}

/// The version of a pinned part. One that is not pinned has no program either, and that is the error to report.
fn version(part: &str) -> &'static str {
    parts::version(part).unwrap_or("0")
}
