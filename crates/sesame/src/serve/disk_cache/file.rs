//! The file of the disk cache: replaced as a whole, readable for nobody else.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::seal::Sealed;

/// The largest file that is read. Tables are much smaller: an Envoy reads no message of 2 GiB.
const LARGEST: u64 = 8 << 30;

/// Where the state is kept.
pub struct CacheFile {
    state: PathBuf,
    /// What is being written. A file that is there was left by a process that was killed.
    next: PathBuf,
}

impl CacheFile {
    /// A file in a folder.
    pub fn new(dir: PathBuf) -> Self {
        Self { state: dir.join("state"), next: dir.join("state.new") }
    }

    /// All of it, if there is one.
    pub fn read(&self) -> Result<Option<Vec<u8>>> {
        let cannot = || format!("cannot read {}", self.state.display());
        let mut file = match fs::File::open(&self.state) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.with_context(cannot)?,
        };
        let size = file.metadata().with_context(cannot)?.len();
        ensure!(size <= LARGEST, "{} has {size} bytes", self.state.display());
        let mut bytes = Vec::with_capacity(usize::try_from(size)?);
        file.read_to_end(&mut bytes).with_context(cannot)?;
        Ok(Some(bytes))
    }

    /// Replaces it; gives its size. It is not synced: what a machine loses with its power is found to be damaged.
    pub fn write(&self, sealed: &Sealed) -> Result<usize> {
        self.remove_next();
        let written = self.try_write(sealed);
        if written.is_err() {
            self.remove_next();
        }
        written.with_context(|| format!("cannot write {}", self.state.display()))
    }

    fn try_write(&self, sealed: &Sealed) -> std::io::Result<usize> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.next)?;
        file.write_all(&sealed.header)?;
        file.write_all(&sealed.body)?;
        fs::rename(&self.next, &self.state)?;
        Ok(sealed.header.len() + sealed.body.len())
    }

    /// Takes it away.
    pub fn remove(&self) {
        self.remove_next();
        let _ = fs::remove_file(&self.state);
    }

    fn remove_next(&self) {
        // If it stays, creating it fails and is told.
        let _ = fs::remove_file(&self.next);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sealed(body: &[u8]) -> Sealed {
        Sealed { header: b"header ".to_vec(), body: body.to_vec() }
    }

    #[test]
    fn it_is_replaced_as_a_whole_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::new(folder.path().to_owned());
        assert_eq!(file.read().unwrap(), None);
        // Left by a process that was killed, and for everybody to read.
        fs::write(folder.path().join("state.new"), "half").unwrap();
        for body in ["one", "two"] {
            assert_eq!(file.write(&sealed(body.as_bytes())).unwrap(), 10);
            assert_eq!(file.read().unwrap(), Some(format!("header {body}").into_bytes()));
        }
        let mode = fs::metadata(folder.path().join("state")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        file.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::remove_dir(folder.path()).unwrap();
        assert!(file.write(&sealed(b"one")).is_err());
    }
}
