//! The certificates as PEM files.
//!
//! In: a set and a folder. Out: five files, the keys readable by their owner alone. Each file appears whole or not at
//! all (it is moved into place), which is also what makes a running Envoy notice that it changed.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;

use crate::issue::Certificates;

/// Readable by all, writable by the owner.
pub const PUBLIC: u32 = 0o644;
/// For the owner alone.
pub const PRIVATE: u32 = 0o600;

/// Why the files could not be written.
#[derive(Debug, Error)]
pub enum FilesError {
    /// Some are there already, and replacing them was not asked for.
    #[error("{} exists already", list(.0))]
    Exists(Vec<PathBuf>),
    /// The file system refused.
    #[error("{} cannot be written", .0.display())]
    Write(PathBuf, #[source] io::Error),
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Writes all files, and gives their paths. Without `overwrite` nothing is touched if any of them exists.
pub fn write(certificates: &Certificates, folder: &Path, overwrite: bool) -> Result<Vec<PathBuf>, FilesError> {
    let files = [
        ("cacert.pem", &certificates.ca, PUBLIC),
        ("sesamecert.pem", &certificates.server.certificate, PUBLIC),
        ("sesamekey.pem", &certificates.server.key, PRIVATE),
        ("envoycert.pem", &certificates.envoy.certificate, PUBLIC),
        ("envoykey.pem", &certificates.envoy.key, PRIVATE),
    ]
    .map(|(name, text, mode)| (folder.join(name), text, mode));

    if !overwrite {
        let there: Vec<PathBuf> =
            files.iter().map(|(path, ..)| path).filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
        if !there.is_empty() {
            return Err(FilesError::Exists(there));
        }
    }
    fs::create_dir_all(folder).map_err(|error| FilesError::Write(folder.to_owned(), error))?;
    for (path, text, mode) in &files {
        write_one(folder, path, text, *mode).map_err(|error| FilesError::Write(path.clone(), error))?;
    }
    Ok(files.map(|(path, ..)| path).into())
}

/// Writes one file: it is moved into place whole.
pub fn write_one(folder: &Path, path: &Path, text: &str, mode: u32) -> io::Result<()> {
    // Made for the owner alone; only what may be public is opened up, before it is moved into place.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::issue::tests::certificates;

    fn modes(folder: &Path) -> Vec<(String, u32)> {
        let mut modes: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                (entry.file_name().into_string().unwrap(), mode)
            })
            .collect();
        modes.sort();
        modes
    }

    #[test]
    fn keys_are_private_and_nothing_else_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made/on/the/way");
        write(&certificates(), &folder, false).unwrap();
        let expected = [
            ("cacert.pem", 0o644),
            ("envoycert.pem", 0o644),
            ("envoykey.pem", 0o600),
            ("sesamecert.pem", 0o644),
            ("sesamekey.pem", 0o600),
        ];
        assert_eq!(modes(&folder), expected.map(|(name, mode)| (name.to_owned(), mode)));
    }

    #[test]
    fn nothing_is_replaced_unless_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (certificates(), certificates());
        write(&first, folder.path(), false).unwrap();
        fs::remove_file(folder.path().join("cacert.pem")).unwrap();

        let error = write(&second, folder.path(), false).unwrap_err();
        assert!(matches!(&error, FilesError::Exists(paths) if paths.len() == 4), "{error}");
        assert!(!folder.path().join("cacert.pem").exists(), "a set is written whole or not at all");

        write(&second, folder.path(), true).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("envoykey.pem")).unwrap(), second.envoy.key);
    }

    #[test]
    fn a_key_that_was_open_to_all_is_closed_when_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("sesamekey.pem");
        fs::write(&key, "old").unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o666)).unwrap();
        write(&certificates(), folder.path(), true).unwrap();
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
