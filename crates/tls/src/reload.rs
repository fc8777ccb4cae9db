//! What is made from files, made again when they change.
//!
//! In: paths, and how to make something from them. Out: what was last made, before each use of which the stamps of the files are
//! compared (a `stat` call each); if one differs, all are read again. That needs no watcher and no timer, follows the symlink swaps of
//! mounted Secrets, and leaves running connections alone. Files that do not fit together, as in the middle of a rotation, leave the
//! last good state in place until they change again.

use crate::TlsError;
use parking_lot::Mutex;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tracing::{info, warn};

/// Inode, modification time and size of each file.
type Stamp = Vec<Option<(u64, i64, i64, u64)>>;

/// Something that is made from files.
pub struct Reloaded<T> {
    /// What the files are of, for the log.
    of: &'static str,
    paths: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>,
    current: Mutex<(Stamp, T)>,
}

impl<T: Clone> Reloaded<T> {
    /// Reads the files for the first time.
    pub fn load(
        of: &'static str,
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let stamp = stamp(&paths);
        let current = Mutex::new((stamp, read()?));
        Ok(Self { of, paths, read: Box::new(read), current })
    }

    /// What the files give now, or gave last.
    pub fn get(&self) -> T {
        let stamp = stamp(&self.paths);
        let mut current = self.current.lock();
        if current.0 != stamp {
            match (self.read)() {
                Ok(value) => {
                    info!(of = self.of, files = ?self.paths, "reloaded the certificates");
                    current.1 = value;
                }
                Err(error) => {
                    warn!(
                        error = &error as &dyn std::error::Error,
                        of = self.of,
                        "failed to reload the certificates; keeping the current ones"
                    );
                }
            }
            // Not tried again for the same files: a flood of handshakes must not read them over and over.
            current.0 = stamp;
        }
        current.1.clone()
    }

    /// What the files gave last, without a look at them.
    pub fn last(&self) -> T {
        self.current.lock().1.clone()
    }
}

fn stamp(paths: &[PathBuf]) -> Stamp {
    let stat = |path: &PathBuf| {
        let meta = fs::metadata(path).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
    };
    paths.iter().map(stat).collect()
}
