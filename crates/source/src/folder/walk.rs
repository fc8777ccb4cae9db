//! Which files are there.
//!
//! In: paths that were touched. Out: what changed, after each touched path has been looked at: a file is read, a folder
//! is watched and listed, what is no longer there is forgotten. Looking twice does no harm, so any hint is good enough.

use super::{
    Limits,
    file::{self, Signature},
    file_index::{FileIndex, below},
    watch::{Touched, Watch, may_be_in_the_making},
};
use crate::{Problem, SourceLocation, Update};
use model::Code;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a name may be gone before it counts as deleted.
const GRACE: Duration = Duration::from_millis(200);

/// The folder as it is known.
pub(super) struct Walk {
    root: PathBuf,
    /// What people call the root.
    shown: PathBuf,
    limits: Limits,
    watch: Watch,
    index: FileIndex,
    /// The folders that were listed, and where each really is, links followed.
    folders: BTreeMap<PathBuf, PathBuf>,
    /// The same the other way round: a folder reached by two paths is read by the first.
    real_folders: HashMap<PathBuf, PathBuf>,
    /// Files that have a part in what others say: PEM files, the targets of links.
    needs: BTreeMap<PathBuf, BTreeSet<Arc<Path>>>,
    /// Folders that are watched for the sake of those.
    extra: HashSet<PathBuf>,
    /// Folders that are read by another path.
    twice: BTreeSet<PathBuf>,
    /// Names that are gone, and when it is certain that they do not come back.
    leaving: BTreeMap<PathBuf, Instant>,
}

/// Whether a file that looks as it did is read again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// It is: something is known to have happened to it.
    Closely,
    /// It is not: nobody knows whether anything happened.
    AtAGlance,
}

impl Walk {
    pub(super) fn new(root: PathBuf, shown: &Path, limits: Limits, watch: Watch) -> Self {
        Self {
            root,
            shown: shown.to_owned(),
            limits,
            watch,
            index: FileIndex::default(),
            folders: BTreeMap::new(),
            real_folders: HashMap::new(),
            needs: BTreeMap::new(),
            extra: HashSet::new(),
            twice: BTreeSet::new(),
            leaving: BTreeMap::new(),
        }
    }

    /// Reads everything for the first time.
    pub(super) fn start(&mut self) -> Update {
        self.refresh(Touched { everything: true, ..Touched::default() })
    }

    /// Reads everything into what was read of other inputs.
    pub(super) fn read_into(mut self, index: FileIndex) -> FileIndex {
        self.index = index;
        self.look(&self.root.clone(), Look::AtAGlance);
        self.index
    }

    /// When to look again, even if nothing is touched until then.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.leaving.values().min().copied()
    }

    /// Looks at what was touched.
    pub(super) fn refresh(&mut self, touched: Touched) -> Update {
        let mut affected: BTreeSet<Arc<Path>> = BTreeSet::new();
        if touched.everything {
            affected.extend(self.needs.values().flatten().cloned());
            self.look(&self.root.clone(), Look::AtAGlance);
        }
        for path in &touched.paths {
            affected.extend(self.dependents(path));
            if !path.starts_with(&self.root) {
                continue;
            }
            match self.hidden_in(path) {
                // Links beside a hidden name may lead through it.
                Some(folder) => affected.extend(self.links_in(&folder)),
                None => self.look(path, Look::Closely),
            }
        }
        for path in touched.gone.iter().filter(|path| self.is_known(path)).cloned().collect::<Vec<_>>() {
            let path = &path;
            match fs::symlink_metadata(path) {
                Err(_) => self.leave(path),
                // Who made it will be heard when it is done.
                Ok(_) if may_be_in_the_making(path) => {}
                Ok(_) if self.hidden_in(path).is_none() => self.look(path, Look::Closely),
                Ok(_) => {}
            }
        }
        for path in &touched.attributes {
            affected.extend(self.dependents(path));
            if self.index.is_unreadable(path) || self.is_unlisted(path) {
                self.look(path, Look::Closely);
            }
        }
        affected.extend(self.settle_leaving());
        for file in affected {
            self.look(&file, Look::Closely);
        }
        self.settle_needs();
        self.index.settle()
    }

    /// Whether anything is known of a path or what is below it.
    fn is_known(&self, path: &Path) -> bool {
        path == self.root
            || self.index.has_below(path)
            || below(&self.folders, path).next().is_some()
            || below(&self.needs, path).next().is_some()
    }

    /// Notes that a name is gone. Many editors rename or remove a file and write it anew, so it counts as deleted only
    /// after a moment.
    fn leave(&mut self, path: &Path) {
        if !self.watch.is_live() {
            return self.forget(path);
        }
        for file in self.index.below(path) {
            self.index.leave(&file);
        }
        self.leaving.entry(path.to_owned()).or_insert_with(|| Instant::now() + GRACE);
    }

    /// Forgets the names that have not come back, and tells whom they had a part in.
    fn settle_leaving(&mut self) -> Vec<Arc<Path>> {
        let now = Instant::now();
        let due: Vec<_> = self.leaving.iter().filter(|(_, at)| **at <= now).map(|(path, _)| path.clone()).collect();
        let mut affected = Vec::new();
        for path in due {
            self.leaving.remove(&path);
            if fs::symlink_metadata(&path).is_err() {
                affected.extend(self.dependents(&path));
                if path.starts_with(&self.root) {
                    self.look(&path, Look::Closely);
                }
            }
        }
        affected
    }

    /// Looks at one path, whatever it is.
    fn look(&mut self, path: &Path, look: Look) {
        match fs::symlink_metadata(path) {
            Err(error) if path == self.root => self.note(
                path,
                Code::FileNotReadable,
                &format!("the folder is gone, its last objects stay in effect: {error}"),
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.forget(path),
            Err(error) => self.note(path, Code::FileNotReadable, &format!("cannot be looked at: {error}")),
            Ok(_) => self.look_at(path, look),
        }
    }

    /// Looks at a path that is there.
    fn look_at(&mut self, path: &Path, look: Look) {
        self.leaving.remove(path);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.folder(path, look),
            Ok(metadata) if !metadata.is_file() => self.forget(path),
            Ok(metadata) => {
                if self.folders.contains_key(path) {
                    self.forget(path);
                }
                let is_same = look == Look::AtAGlance
                    && self.index.signature(path).is_some_and(|known| Signature::of(&metadata) == Some(known));
                match is_same {
                    true => self.index.stay(&path.into()),
                    false if is_manifest(path) => self.file(path),
                    false => {}
                }
            }
            // A connection that leads nowhere: the file is not deleted, it cannot be read.
            Err(_) if is_manifest(path) => self.file(path),
            Err(_) => {}
        }
    }

    fn file(&mut self, path: &Path) {
        let shown = self.shown(path);
        if !self.index.knows(path) && self.index.len() >= self.limits.files {
            let most = self.limits.files;
            return self.note(
                &self.root.clone(),
                Code::FileTooLarge,
                &format!("there are more than {most} files; the rest is not read"),
            );
        }
        let reading = file::read(path, &shown, &self.root, &self.limits);
        self.index.put(&path.into(), shown, reading);
    }

    /// Watches a folder, and then looks at what is in it.
    fn folder(&mut self, path: &Path, look: Look) {
        let depth = path.strip_prefix(&self.root).map_or(0, |below| below.components().count());
        if depth > self.limits.folders_deep {
            let most = self.limits.folders_deep;
            return self.note(
                path,
                Code::FileTooLarge,
                &format!("it lies more than {most} folders deep and is not read"),
            );
        }
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) => return self.note(path, Code::FileNotReadable, &format!("cannot be read: {error}")),
        };
        if let Some(first) = self.real_folders.get(&real)
            && first != path
            && first.canonicalize().is_ok_and(|first| first == real)
        {
            let first = self.shown(first).display().to_string();
            self.twice.insert(path.to_owned());
            let why = format!("it is the same directory as {first}, which is read");
            return self.note(path, Code::DirectoryReadOnce, &why);
        }
        if self.folders.get(path).is_some_and(|known| *known != real) {
            // Another folder has taken its place.
            self.forget(path);
        }
        self.twice.remove(path);
        self.real_folders.insert(real.clone(), path.to_owned());
        self.folders.insert(path.to_owned(), real);
        self.extra.remove(path);
        // A file may have had the name before.
        self.index.remove(path);
        let watched = self.watch.add(path);
        let names = fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<BTreeSet<_>>>());
        let names = match names {
            Ok(names) => names,
            Err(error) => return self.note(path, Code::FileNotReadable, &format!("cannot be listed: {error}")),
        };
        self.index.folder(&path.into(), None);
        if let Err(error) = watched {
            self.note(path, Code::NotWatched, &format!("changes in it will not be seen: {error}"));
        }
        for child in self.known_below(path) {
            if child.file_name().is_some_and(|name| !names.contains(name)) {
                self.leave(&child);
            }
        }
        for name in names.iter().filter(|name| !is_hidden(name)) {
            self.look(&path.join(name), look);
        }
    }

    /// What stands directly in a folder as far as is known.
    fn known_below(&self, folder: &Path) -> BTreeSet<PathBuf> {
        let files = self.index.below(folder);
        let folders = below(&self.folders, folder).map(|(path, _)| &**path);
        files
            .iter()
            .map(|file| &**file)
            .chain(folders)
            .filter_map(|path| path.strip_prefix(folder).ok()?.components().next())
            .map(|child| folder.join(child))
            .collect()
    }

    /// Forgets a path and everything below it.
    fn forget(&mut self, path: &Path) {
        for file in self.index.below(path) {
            self.index.remove(&file);
        }
        let gone: Vec<_> = below(&self.folders, path).map(|(folder, _)| folder.clone()).collect();
        let others = if gone.is_empty() { BTreeSet::new() } else { std::mem::take(&mut self.twice) };
        for folder in gone {
            self.watch.remove(&folder);
            self.index.folder(&folder.as_path().into(), None);
            if let Some(real) = self.folders.remove(&folder)
                && self.real_folders.get(&real) == Some(&folder)
            {
                self.real_folders.remove(&real);
            }
        }
        self.index.folder(&path.into(), None);
        // A folder that was read by this path may be there by another.
        for other in others.iter().filter(|other| !other.starts_with(path)) {
            self.look(other, Look::Closely);
        }
    }

    /// The files that a path, or something below it, has a part in.
    fn dependents(&self, path: &Path) -> Vec<Arc<Path>> {
        below(&self.needs, path).flat_map(|(_, files)| files.iter().cloned()).collect()
    }

    /// The folder in which the first hidden part of a path stands, if it has one.
    fn hidden_in(&self, path: &Path) -> Option<PathBuf> {
        let mut folder = self.root.clone();
        for part in path.strip_prefix(&self.root).ok()? {
            if is_hidden(part) {
                return Some(folder);
            }
            folder.push(part);
        }
        None
    }

    /// The files that are read through links in a folder, their own or those of their PEM files.
    fn links_in(&self, folder: &Path) -> Vec<Arc<Path>> {
        let needs = self.needs.iter().filter(|(need, _)| need.parent() == Some(folder)).flat_map(|(_, files)| files);
        let files = self.needs.values().flatten().filter(|file| file.parent() == Some(folder));
        needs.chain(files).cloned().collect()
    }

    /// Whether a path is a folder that could not be listed.
    fn is_unlisted(&self, path: &Path) -> bool {
        path.is_dir() && self.index.has_problem(path)
    }

    /// Watches the folders of the files that have a part in others, as far as they are not watched anyway.
    fn settle_needs(&mut self) {
        let mut needs: BTreeMap<PathBuf, BTreeSet<Arc<Path>>> = BTreeMap::new();
        for (need, file) in self.index.needs() {
            needs.entry(need.to_owned()).or_default().insert(file.clone());
        }
        if needs.keys().eq(self.needs.keys()) {
            self.needs = needs;
            return;
        }
        let parents: HashSet<PathBuf> = needs.keys().filter_map(|need| Some(need.parent()?.to_owned())).collect();
        let wanted: HashSet<PathBuf> =
            parents.into_iter().filter(|folder| !self.folders.contains_key(folder)).collect();
        for folder in self.extra.difference(&wanted).filter(|folder| !self.folders.contains_key(*folder)) {
            self.watch.remove(folder);
        }
        // A folder that is not there yet is seen when it comes: its parent is watched.
        let extra =
            wanted.into_iter().filter(|folder| self.extra.contains(folder) || self.watch.add(folder).is_ok()).collect();
        self.extra = extra;
        self.watch.outside(needs.keys().filter(|need| !need.starts_with(&self.root)).cloned().collect());
        self.needs = needs;
    }

    fn note(&mut self, path: &Path, code: Code, why: &str) {
        let problem = Problem::new(code, why).at(SourceLocation::file(self.shown(path)));
        self.index.folder(&path.into(), Some(problem));
    }

    /// What people call a path.
    fn shown(&self, path: &Path) -> Arc<Path> {
        match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => self.shown.as_path().into(),
            Ok(below) => self.shown.join(below).into(),
            Err(_) => path.into(),
        }
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
}

#[cfg(test)]
mod tests;
