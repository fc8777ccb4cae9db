//! Where parts keep their files and logs while a test runs.
//!
//! In: a name. Out: a folder below `$SESAME_SANDBOX`, the folder of this test process, and paths for logs. Data goes with
//! the test; logs go when the whole test process ended well (`tools/sandbox` removes the rest of the folder then, and
//! keeps the logs otherwise). What a killed process left is found by the next one: a live process holds a lock on its
//! folder, so a folder that can be locked is nobody's.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::report::debug_as_report;

/// How long the logs of a failed run stay.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// No folder could be made.
#[derive(thiserror::Error)]
pub enum Error {
    /// The process was started without the sandbox.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// The file system refused.
    #[error("cannot make {}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
debug_as_report!(Error);

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { path: path.into(), source }
}

/// A folder for one part, and the place of its logs.
#[derive(Debug)]
pub struct StateDir {
    dir: PathBuf,
    /// What the names of its logs begin with: all logs of a process stand in one folder.
    logs: PathBuf,
    temporary: bool,
}

impl StateDir {
    /// A fresh folder for the test that runs on this thread, removed when dropped.
    pub fn new(name: &str) -> Result<StateDir, Error> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let root = own_folder()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // The test harness names a thread after its test.
        let test = std::thread::current().name().unwrap_or("test").replace("::", ".");
        let dir = root.join("data").join(format!("{number}-{name}"));
        fs::create_dir_all(&dir).map_err(io(&dir))?;
        Ok(StateDir { dir, logs: root.join("logs").join(format!("{test}.{number}.")), temporary: true })
    }

    /// A folder that stays, logs included: for parts that outlive the process that starts them.
    pub fn at(dir: impl Into<PathBuf>) -> Result<StateDir, Error> {
        let dir = dir.into();
        let logs = dir.join("logs");
        fs::create_dir_all(&logs).map_err(io(&logs))?;
        Ok(StateDir { dir, logs: logs.join(""), temporary: false })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Where the log of a program of this part goes.
    pub fn log(&self, program: &str) -> PathBuf {
        let mut path = self.logs.clone().into_os_string();
        path.push(format!("{program}.log"));
        path.into()
    }

    /// Writes a file into the folder and says where it is. Whoever reads it sees all of it or none.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, Error> {
        let path = self.dir.join(name);
        let mut file = tempfile::NamedTempFile::new_in(&self.dir).map_err(io(&path))?;
        file.write_all(contents.as_ref()).map_err(io(&path))?;
        file.persist(&path).map_err(|error| io(&path)(error.error))?;
        Ok(path)
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        // Best effort: what stays is removed with the process's folder.
        let _ = fs::remove_dir_all(&self.dir);
        if std::thread::panicking() {
            eprintln!("testbed: logs of this test: {}*", self.logs.display());
        }
    }
}

/// The folder of this process, made and locked at first use.
fn own_folder() -> Result<PathBuf, Error> {
    // The lock lasts as long as the file is open: until the process ends, in whatever way.
    static LOCK: OnceLock<File> = OnceLock::new();
    let root = PathBuf::from(std::env::var_os("SESAME_SANDBOX").ok_or_else(|| match crate::Net::here() {
        Err(error) => error,
        Ok(_) => crate::net::Error::NoSandbox,
    })?);
    if LOCK.get().is_none() {
        let lock = claim(&root)?;
        // Two tests may come here at once; the loser's lock is a second handle on the same file and simply closes.
        let _ = LOCK.set(lock);
    }
    Ok(root)
}

/// Makes and locks `root`, and removes its siblings that nobody holds.
fn claim(root: &Path) -> Result<File, Error> {
    let all = root.parent().unwrap_or(root);
    fs::create_dir_all(all).map_err(io(all))?;
    // Only one process at a time makes or removes folders, so that none is removed before it is locked.
    let door = all.join("door");
    let door = File::create(&door).and_then(|file| file.lock().map(|()| file)).map_err(io(&door))?;
    fs::create_dir_all(root.join("logs")).map_err(io(root))?;
    let path = root.join("lock");
    let lock = File::create(&path).and_then(|file| file.lock_shared().map(|()| file)).map_err(io(&path))?;
    for entry in fs::read_dir(all).map_err(io(all))?.flatten() {
        let path = entry.path();
        if path.is_dir() && path != root && is_left_over(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
    drop(door);
    Ok(lock)
}

/// Whether the process that made this folder is gone, and its logs need not be kept.
fn is_left_over(folder: &Path) -> bool {
    if let Ok(lock) = File::open(folder.join("lock"))
        && lock.try_lock().is_err()
    {
        return false;
    }
    match fs::metadata(folder.join("failed")).and_then(|mark| mark.modified()) {
        Ok(failed) => failed.elapsed().is_ok_and(|age| age > KEEP),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_next_process_removes_what_dead_ones_left_and_keeps_the_rest() {
        let all = tempfile::tempdir().unwrap();
        let folder = |name: &str| all.path().join(name);
        for name in ["killed", "alive", "failed"] {
            fs::create_dir_all(folder(name).join("logs")).unwrap();
            File::create(folder(name).join("lock")).unwrap();
        }
        fs::create_dir(folder("never-locked")).unwrap();
        fs::write(folder("failed").join("failed"), "").unwrap();
        let alive = File::open(folder("alive").join("lock")).unwrap();
        alive.lock_shared().unwrap();

        let _own = claim(&folder("own")).unwrap();

        let mut left: Vec<_> = fs::read_dir(all.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["alive", "door", "failed", "own"]);
    }
}
