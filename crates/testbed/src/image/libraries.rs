//! The shared libraries of a program, as the system's own loader finds them.
//!
//! In: a program. Out: the paths that `ldd` prints, the loader among them; none for a static program. `ldd` may run the
//! program, which is fine for the ones that a test runs anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::ImageError;

/// All libraries that `program` is linked to, directly or through others.
pub(super) fn of(program: &Path) -> Result<Vec<PathBuf>, ImageError> {
    if let Err(source) = std::fs::metadata(program) {
        return Err(ImageError::File { path: program.to_owned(), source });
    }
    let failed = |reason: String| ImageError::Tool { program: format!("ldd {}", program.display()), reason };
    let out = Command::new("ldd").arg(program).env("LC_ALL", "C").output().map_err(|e| failed(e.to_string()))?;
    let errors = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() && !errors.contains("not a dynamic executable") {
        return Err(failed(errors.trim().to_owned()));
    }
    parse(program, &String::from_utf8_lossy(&out.stdout))
}

/// Reads `name => /path (address)`, `/path (address)` and `name => not found`; other lines name nothing that has a
/// file.
pub(super) fn parse(program: &Path, output: &str) -> Result<Vec<PathBuf>, ImageError> {
    let mut found = Vec::new();
    for line in output.lines() {
        let line = line.trim();
        let (name, target) = line.split_once(" => ").unwrap_or((line, line));
        if target.starts_with("not found") {
            return Err(ImageError::Library { program: program.to_owned(), library: name.to_owned() });
        }
        if let Some(path) = target.split_whitespace().next().filter(|path| path.starts_with('/')) {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}
