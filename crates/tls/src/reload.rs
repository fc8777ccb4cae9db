//! What is made from files, made again when they change.
//!
//! In: paths, and how to make something from them. Out: what was last made, before each use of which the stamps of the files are
//! compared (a `stat` call each); if one differs, all are read again. That needs no watcher and no timer, follows the symlink swaps of
//! mounted Secrets, and leaves running connections alone. Files that cannot be used (they do not fit together, as in the middle of a
//! rotation, or have expired) leave the last good state in place. They are read again when they change, and now and then: a
//! certificate that is not valid yet will be.

use crate::TlsError;
use parking_lot::Mutex;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Inode, modification time and size of each file.
type Stamp = Vec<Option<(u64, i64, i64, u64)>>;

/// How long files that cannot be used are left alone while they do not change: a flood of handshakes must not read them over and over.
const AGAIN: Duration = Duration::from_secs(10);

/// Something that is made from files.
pub struct Reloaded<T> {
    /// What the files are of, for the log.
    of: &'static str,
    paths: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>,
    current: Mutex<State<T>>,
}

struct State<T> {
    stamp: Stamp,
    value: T,
    /// When the files with that stamp were last read in vain, and why it was.
    failure: Option<(Instant, String)>,
}

impl<T: Clone> Reloaded<T> {
    /// Reads the files for the first time.
    pub fn load(
        of: &'static str,
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let stamp = stamp(&paths);
        let current = Mutex::new(State { stamp, value: read()?, failure: None });
        Ok(Self { of, paths, read: Box::new(read), current })
    }

    /// What the files give now, or gave last.
    pub fn get(&self) -> T {
        let stamp = stamp(&self.paths);
        let mut current = self.current.lock();
        let is_due = current.failure.as_ref().is_some_and(|(at, _)| at.elapsed() >= AGAIN);
        if current.stamp != stamp || is_due {
            match (self.read)() {
                Ok(value) => {
                    info!(of = self.of, files = ?self.paths, "reloaded the certificates");
                    (current.value, current.failure) = (value, None);
                }
                Err(error) => {
                    let why = error.to_string();
                    if current.failure.as_ref().is_none_or(|(_, logged)| *logged != why) {
                        warn!(
                            error = &error as &dyn std::error::Error,
                            of = self.of,
                            "failed to reload the certificates; keeping the current ones"
                        );
                    }
                    current.failure = Some((Instant::now(), why));
                }
            }
            current.stamp = stamp;
        }
        current.value.clone()
    }

    /// What the files gave last, without a look at them.
    pub fn last(&self) -> T {
        self.current.lock().value.clone()
    }

    /// Whether the files could not be used when they were last read.
    pub fn is_refused(&self) -> bool {
        self.current.lock().failure.is_some()
    }
}

fn stamp(paths: &[PathBuf]) -> Stamp {
    let stat = |path: &PathBuf| {
        let meta = fs::metadata(path).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
    };
    paths.iter().map(stat).collect()
}
