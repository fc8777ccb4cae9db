//! Which paths were touched.
//!
//! In: what the system says about the folders that are watched. Out: sets of paths worth a look, gathered while the last
//! ones are being looked at. Folders are watched one by one and each is listed after its watch is there, so nothing can
//! slip in between; a recursive watch learns of a new folder too late for the first files in it.

use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode},
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashSet},
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::Notify;

/// More paths than this at once, and looking at everything is cheaper than remembering them.
const MOST_PATHS: usize = 100_000;

/// What was touched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Paths that were written, made or given their name.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Paths that were removed or have lost their name; others may have taken it since.
    pub(super) gone: BTreeSet<PathBuf>,
    /// Paths whose permissions may have changed.
    pub(super) attributes: BTreeSet<PathBuf>,
    /// The system lost count: anything may have changed.
    pub(super) everything: bool,
}

struct Shared {
    root: PathBuf,
    touched: Mutex<Touched>,
    /// Files outside the root that are of interest.
    outside: Mutex<HashSet<PathBuf>>,
    changed: Notify,
}

/// The end that waits for something to be touched.
pub(super) struct Signals(Arc<Shared>);

impl Signals {
    /// What was touched since the last time, as soon as there is anything.
    pub(super) async fn wait(&self) -> Touched {
        loop {
            let touched = mem::take(&mut *self.0.touched.lock());
            if touched != Touched::default() {
                return touched;
            }
            self.0.changed.notified().await;
        }
    }
}

/// The folders that are watched.
pub(super) struct Watch {
    live: Option<(RecommendedWatcher, Arc<Shared>)>,
}

impl Watch {
    /// Starts to watch for the root itself to come and go; the folders are added as they are found.
    pub(super) fn start(root: &Path) -> notify::Result<(Self, Signals)> {
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            touched: Mutex::default(),
            outside: Mutex::default(),
            changed: Notify::new(),
        });
        let listener = shared.clone();
        let watcher = notify::recommended_watcher(move |event| listener.on_event(event))?;
        let mut watch = Self { live: Some((watcher, shared.clone())) };
        if let Some(parent) = root.parent() {
            watch.add(parent)?;
        }
        Ok((watch, Signals(shared)))
    }

    /// Watches nothing.
    pub(super) fn none() -> Self {
        Self { live: None }
    }

    /// Whether anything is watched.
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Watches a folder, anew if it was watched: another one may have taken its name.
    pub(super) fn add(&mut self, folder: &Path) -> notify::Result<()> {
        let Some((watcher, _)) = &mut self.live else { return Ok(()) };
        // Not watched before is no error.
        let _ = watcher.unwatch(folder);
        watcher.watch(folder, RecursiveMode::NonRecursive)
    }

    /// Stops watching a folder.
    pub(super) fn remove(&mut self, folder: &Path) {
        if let Some((watcher, _)) = &mut self.live {
            // A folder that is gone is no longer watched anyway.
            let _ = watcher.unwatch(folder);
        }
    }

    /// Tells which files outside the root are of interest.
    pub(super) fn outside(&mut self, files: HashSet<PathBuf>) {
        if let Some((_, shared)) = &self.live {
            *shared.outside.lock() = files;
        }
    }
}

impl Shared {
    fn on_event(&self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            tracing::warn!(error = ?event, "watching the folder failed; scanning all of it");
            return self.note(|touched| touched.everything = true);
        };
        if event.need_rescan() {
            return self.note(|touched| touched.everything = true);
        }
        let Some(sort) = sort(&event.kind) else { return };
        let outside = self.outside.lock();
        let paths: Vec<PathBuf> = event
            .paths
            .into_iter()
            .filter(|path| path.starts_with(&self.root) || outside.contains(path))
            .filter(|path| sort != Sort::Created || !may_be_in_the_making(path))
            .collect();
        drop(outside);
        if paths.is_empty() {
            return;
        }
        self.note(|touched| {
            match sort {
                Sort::Attributes => touched.attributes.extend(paths),
                Sort::Created | Sort::Done => touched.paths.extend(paths),
                Sort::Gone => touched.gone.extend(paths),
            }
            if touched.paths.len() + touched.gone.len() + touched.attributes.len() > MOST_PATHS {
                *touched = Touched { everything: true, ..Touched::default() };
            }
        });
    }

    fn note(&self, change: impl FnOnce(&mut Touched)) {
        change(&mut self.touched.lock());
        self.changed.notify_one();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// A new name; on Linux its content may still be on the way.
    Created,
    /// Something that is done.
    Done,
    /// A name that is no more.
    Gone,
    /// Permissions and times.
    Attributes,
}

fn sort(kind: &EventKind) -> Option<Sort> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Sort::Done),
        // Our own reading makes most of these.
        EventKind::Access(_) => None,
        EventKind::Create(CreateKind::Folder) => Some(Sort::Done),
        EventKind::Create(_) => Some(Sort::Created),
        // Where the end of writing is told, its progress says nothing.
        EventKind::Modify(ModifyKind::Data(_)) if cfg!(target_os = "linux") => None,
        EventKind::Modify(ModifyKind::Metadata(_)) => Some(Sort::Attributes),
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(Sort::Gone),
        // Both ends were told one by one before.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => None,
        _ => Some(Sort::Done),
    }
}

/// Whether somebody is about to write the file and will be heard closing it. A connection, hard or symbolic, is there at once.
#[cfg(target_os = "linux")]
pub(super) fn may_be_in_the_making(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() == 1)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn may_be_in_the_making(_: &Path) -> bool {
    false
}
