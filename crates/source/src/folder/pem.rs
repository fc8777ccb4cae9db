//! Secrets that point to PEM files.
//!
//! Certificates made by other tools need not be copied into YAML: a Secret may name files whose content becomes its
//! entries.
//!
//! ```yaml
//! kind: Secret
//! metadata:
//!   name: cert
//!   annotations:
//!     projectsesame.io/pem-files: tls.crt=certs/site.crt, tls.key=certs/site.key
//! type: kubernetes.io/tls
//! ```
//!
//! Paths begin at the folder of the YAML file. They must be relative and lead, links followed, to a regular file below
//! the source's folder: who may write objects into the folder may not thereby read the machine's other files. The files
//! are watched. While one cannot be read, the Secret stays as it was.

use super::{Limits, file::read_bounded};
use kinds::secret::Content;
use std::path::{Component, Path, PathBuf};

/// The annotation.
pub const PEM_FILES: &str = "projectsesame.io/pem-files";

/// What the annotation of one Secret led to.
pub(super) struct Entries {
    /// The files, whether they could be read or not: a change of one is a change of the Secret.
    pub(super) needs: Vec<PathBuf>,
    /// The entries, or why there are none.
    pub(super) entries: Result<Vec<(Box<str>, Content)>, String>,
}

/// Reads the files that the annotation of a Secret in `folder` names; they must lie below `root`.
pub(super) fn entries(annotation: &str, folder: &Path, root: &Path, limits: &Limits) -> Entries {
    let mut needs = Vec::new();
    let mut entries = Vec::new();
    for part in annotation.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match entry(part, folder, root, limits, &mut needs) {
            Ok(entry) => entries.push(entry),
            Err(why) => return Entries { needs, entries: Err(why) },
        }
    }
    Entries { needs, entries: Ok(entries) }
}

fn entry(
    part: &str,
    folder: &Path,
    root: &Path,
    limits: &Limits,
    needs: &mut Vec<PathBuf>,
) -> Result<(Box<str>, Content), String> {
    let (key, path) = part.split_once('=').ok_or_else(|| format!("`{part}` is not of the form entry=path"))?;
    let (key, path) = (key.trim(), path.trim());
    if key.is_empty() || path.is_empty() {
        return Err(format!("`{part}` is not of the form entry=path"));
    }
    let file = below(folder, Path::new(path), root).ok_or_else(|| format!("`{path}` does not lie below the folder"))?;
    needs.push(file.clone());
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("cannot read `{}`: {error}", path.display()));
    let shown = |error| format!("cannot read `{path}`: {error}");
    let target = file.canonicalize().map_err(shown)?;
    if !target.starts_with(real(root)?) {
        return Err(format!("`{path}` leads out of the folder"));
    }
    let (bytes, _) = read_bounded(&target, limits.pem_bytes).map_err(shown)?;
    Ok((key.into(), Content::from(bytes.as_slice())))
}

/// The path with its `..` taken out, if it is relative and stays below the root by its letters alone.
fn below(folder: &Path, path: &Path, root: &Path) -> Option<PathBuf> {
    let mut result = folder.to_owned();
    for component in path.components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
        if !result.starts_with(root) {
            return None;
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let below = |path: &str| below(Path::new("/r/a"), Path::new(path), Path::new("/r"));
        assert_eq!(below("b/c.pem"), Some("/r/a/b/c.pem".into()));
        assert_eq!(below("./../x.pem"), Some("/r/x.pem".into()));
        assert_eq!(below("../../r/x.pem"), None);
        assert_eq!(below("../../etc/passwd"), None);
        assert_eq!(below("/r/a/x.pem"), None);
    }
}
