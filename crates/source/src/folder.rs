//! A folder of YAML as a source: every `*.yaml`, `*.yml` and `*.json` below it, read and watched.
//!
//! In: files of any number of documents, `List`s included. Out: what the API server would have sent. The steps:
//!
//! ```text
//! watch (which paths were touched) → walk (which files are there) → file (objects and problems of one file)
//!                                                                     → index (who holds which object) → Update
//! ```
//!
//! * **Nothing good is lost to something bad.** Documents are parsed one by one. A document that cannot be read leaves
//!   in force what the file last said about the objects it may have held; a file that cannot be read, and a folder that
//!   is gone as a whole, leave everything in force. Only what is plainly deleted is deleted.
//! * **A half-written file is not read.** On Linux a file is read when its writer closes it or a finished one is renamed
//!   or linked into place, never while it is being written; there are no delays to get this right by luck. Only deletion
//!   waits a moment: editors remove or rename a file and write it anew, and its hosts must not go and come.
//! * **Order does not matter.** If two files hold the same object, the first in the order of paths is in force and the
//!   other is told; if the first goes, the second takes over.
//! * **Names that begin with a dot are not read**, which is how a mounted ConfigMap hides its versions; the swap of its
//!   `..data` connection is seen.
//! * **PEM files**: see [`pem`].

pub mod pem;

mod file;
mod file_index;
mod walk;
mod watch;

use crate::{Batch, Closed, Feeder, Update, yaml};
use file_index::FileIndex;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};
use walk::Walk;
use watch::{Signals, Touched, Watch};

/// How much a folder may hold. What passes a limit is reported and left out.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes in one file.
    pub file_bytes: u64,
    /// Bytes in one PEM file.
    pub pem_bytes: u64,
    /// Files in the folder.
    pub files: usize,
    /// Folders inside each other.
    pub folders_deep: usize,
    /// Values in one file.
    pub yaml: yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            pem_bytes: 1 << 20,
            files: 200_000,
            folders_deep: 32,
            yaml: yaml::Limits::default(),
        }
    }
}

/// Why a folder cannot be a source at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is something else.
    #[error("{0} is not a folder")]
    NotAFolder(PathBuf),
    /// The system offers no way to watch it.
    #[error("cannot watch the folder {path}")]
    Watch {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: notify::Error,
    },
}

/// Something that is read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, whatever its name ends in, or a folder.
    Path(PathBuf),
    /// What somebody has read already, such as standard input, and what people call it.
    Text {
        /// The bytes.
        bytes: Vec<u8>,
        /// The name.
        shown: PathBuf,
    },
}

/// Reads files and folders once. Together they are one source: an object that stands in two of them is told.
pub fn read(inputs: &[Input], limits: Limits) -> Result<Batch, OpenError> {
    let mut index = FileIndex::default();
    // A folder forgets what it does not hold, so what came in another way is added after all folders.
    let (texts, paths): (Vec<_>, Vec<_>) = inputs.iter().partition(|input| matches!(input, Input::Text { .. }));
    for input in paths.into_iter().chain(texts) {
        match input {
            Input::Path(path) => {
                let failed = |source| OpenError::Read { path: path.clone(), source };
                let absolute = std::path::absolute(path).map_err(failed)?;
                if std::fs::metadata(path).map_err(failed)?.is_dir() {
                    index = Walk::new(absolute, path, limits, Watch::none()).read_into(index);
                } else {
                    let (shown, folder) = (path.as_path().into(), absolute.parent().unwrap_or(&absolute));
                    let reading = file::read(&absolute, &shown, folder, &limits);
                    index.put(&absolute.as_path().into(), shown, reading);
                }
            }
            Input::Text { bytes, shown } => {
                let failed = |source| OpenError::Read { path: shown.clone(), source };
                let (folder, shown) = (std::env::current_dir().map_err(failed)?, shown.as_path().into());
                let path: Arc<Path> = folder.join(&shown).into();
                let reading = file::read_in_memory(bytes, &path, &shown, &folder, &limits);
                index.put(&path, shown, reading);
            }
        }
    }
    let Update { changes, problems, .. } = index.settle();
    Ok(Batch { changes, problems, synced: true, decoded: None })
}

/// A folder that is watched.
pub struct Folder {
    walk: Walk,
    signals: Signals,
}

impl Folder {
    /// Opens a folder. Nothing is read before [`Folder::run`].
    pub fn open(path: &Path, limits: Limits) -> Result<Self, OpenError> {
        let root = absolute_folder(path)?;
        let failed = |source| OpenError::Watch { path: path.into(), source };
        let (watch, signals) = Watch::start(&root).map_err(failed)?;
        Ok(Self { walk: Walk::new(root, path, limits, watch), signals })
    }

    /// Reads the folder once, without watching it.
    pub fn read(path: &Path, limits: Limits) -> Result<Batch, OpenError> {
        absolute_folder(path)?;
        read(&[Input::Path(path.to_owned())], limits)
    }

    /// Reads everything, says so, and then tells of every change until nobody listens any more.
    pub async fn run(self, mut feeder: Feeder) -> Result<(), Closed> {
        let Self { mut walk, signals } = self;
        let mut update;
        (walk, update) = off_the_runtime(walk, Walk::start).await;
        tracing::info!(changes = update.changes.len(), problems = update.problems.len(), "read the folder");
        feeder.send(update).await?;
        feeder.synced();
        loop {
            let touched = tokio::select! {
                touched = signals.wait() => touched,
                () = until(walk.deadline()) => Touched::default(),
                () = feeder.closed() => return Err(Closed),
            };
            (walk, update) = off_the_runtime(walk, |walk| walk.refresh(touched)).await;
            tracing::debug!(changes = update.changes.len(), problems = update.problems.len(), "the folder changed");
            if update != Update::default() {
                feeder.send(update).await?;
            }
        }
    }
}

fn absolute_folder(path: &Path) -> Result<PathBuf, OpenError> {
    let failed = |source| OpenError::Read { path: path.into(), source };
    match std::fs::metadata(path).map_err(failed)?.is_dir() {
        true => std::path::absolute(path).map_err(failed),
        false => Err(OpenError::NotAFolder(path.into())),
    }
}

/// Waits for a moment that may never come.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// Files are read on a thread that may block.
async fn off_the_runtime(mut walk: Walk, work: impl FnOnce(&mut Walk) -> Update + Send + 'static) -> (Walk, Update) {
    let task = tokio::task::spawn_blocking(move || {
        let update = work(&mut walk);
        (walk, update)
    });
    match task.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
