//! Who holds which object.
//!
//! In: the readings of files, one by one, and the files that are gone. Out: an [`Update`] with what is different from
//! what was said last. An object that stands in several files is held by the first in the order of paths.

use super::file::{Item, Keep, MOST_PROBLEMS, Reading, Signature};
use crate::{Change, ChangeSource, ObjectLocation, Problem, Subject, Update};
use kinds::ObjectRef;
use model::Code;
use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The files, what they hold, and what has been said about it.
#[derive(Default)]
pub(super) struct FileIndex {
    files: BTreeMap<Arc<Path>, FileEntry>,
    /// The files that hold an object, in order; the first is in force.
    holders: HashMap<ObjectRef, Vec<Arc<Path>>>,
    reported: HashMap<ObjectRef, Item>,
    reported_problems: BTreeMap<Arc<Path>, Vec<Problem>>,
    /// Problems of folders.
    folders: BTreeMap<Arc<Path>, Problem>,
    touched_objects: BTreeSet<ObjectRef>,
    touched_paths: BTreeSet<Arc<Path>>,
}

/// What one file holds.
struct FileEntry {
    /// What people call it.
    shown: Arc<Path>,
    items: BTreeMap<ObjectRef, Item>,
    problems: Vec<Problem>,
    signature: Option<Signature>,
    /// The hash of the text that was last read; none if it could not be.
    hash: Option<u64>,
    needs: Vec<PathBuf>,
    /// Whether its name is gone and may come back.
    is_leaving: bool,
}

impl FileIndex {
    /// How many files there are.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether a file is known.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// What the system said about a file when it was read, if nothing but the file itself has a part in it.
    pub(super) fn signature(&self, path: &Path) -> Option<Signature> {
        self.files.get(path).filter(|entry| entry.needs.is_empty())?.signature
    }

    /// Whether the file is known and could not be read.
    pub(super) fn is_unreadable(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|entry| entry.hash.is_none())
    }

    /// The other files that have a part in what the files say, each with those it has a part in.
    pub(super) fn needs(&self) -> impl Iterator<Item = (&Path, &Arc<Path>)> {
        self.files.iter().flat_map(|(path, entry)| entry.needs.iter().map(move |need| (&**need, path)))
    }

    /// The files at or below a path.
    pub(super) fn below(&self, path: &Path) -> Vec<Arc<Path>> {
        below(&self.files, path).map(|(file, _)| file.clone()).collect()
    }

    /// Takes in what a file says.
    pub(super) fn put(&mut self, path: &Arc<Path>, shown: Arc<Path>, reading: Reading) {
        let Reading { version, signature, mut items, mut problems, keep, needs, .. } = reading;
        let hash = version.map(|version| version.hash);
        if let Some(old) = self.files.get_mut(path)
            && (hash.is_some() && old.hash == hash)
            && (needs.is_empty() && old.needs.is_empty())
        {
            old.signature = signature;
            return self.stay(path);
        }
        let old_items = self.files.remove(path).map(|old| old.items).unwrap_or_default();
        keep_former(&old_items, &mut items, &keep, &mut problems);
        for (key, item) in &mut items {
            match old_items.get(key) {
                // One copy is enough, and the listener sees at a glance that nothing changed.
                Some(old) if old.object == item.object => item.object = old.object.clone(),
                Some(_) => {}
                None => self.claim(key, path),
            }
        }
        for key in old_items.keys().filter(|key| !items.contains_key(*key)) {
            self.release(key, path);
        }
        self.touched_objects.extend(old_items.into_keys());
        self.touched_objects.extend(items.keys().cloned());
        self.touched_paths.insert(path.clone());
        self.files
            .insert(path.clone(), FileEntry { shown, items, problems, signature, hash, needs, is_leaving: false });
    }

    /// Notes that a file has lost its name: what it holds stays in force unless another file holds it too.
    pub(super) fn leave(&mut self, path: &Arc<Path>) {
        self.set_leaving(path, true);
    }

    /// Notes that a file is there after all.
    pub(super) fn stay(&mut self, path: &Arc<Path>) {
        self.set_leaving(path, false);
    }

    fn set_leaving(&mut self, path: &Arc<Path>, is_leaving: bool) {
        if let Some(entry) = self.files.get_mut(path)
            && entry.is_leaving != is_leaving
        {
            entry.is_leaving = is_leaving;
            self.touched_objects.extend(entry.items.keys().cloned());
            self.touched_paths.insert(path.clone());
        }
    }

    /// Forgets a file that is gone.
    pub(super) fn remove(&mut self, path: &Path) {
        let Some((path, entry)) = self.files.remove_entry(path) else { return };
        for key in entry.items.keys() {
            self.release(key, &path);
        }
        self.touched_objects.extend(entry.items.into_keys());
        self.touched_paths.insert(path);
    }

    /// Notes what is wrong with a folder, or that nothing is.
    pub(super) fn folder(&mut self, path: &Arc<Path>, problem: Option<Problem>) {
        let changed = match problem {
            Some(problem) => self.folders.insert(path.clone(), problem.clone()) != Some(problem),
            None => self.folders.remove(path).is_some(),
        };
        if changed {
            self.touched_paths.insert(path.clone());
        }
    }

    /// Whether something is wrong with a folder.
    pub(super) fn has_problem(&self, folder: &Path) -> bool {
        self.folders.contains_key(folder)
    }

    /// Whether there is a file, or a folder with a problem, at or below a path.
    pub(super) fn has_below(&self, path: &Path) -> bool {
        below(&self.files, path).next().is_some() || below(&self.folders, path).next().is_some()
    }

    fn claim(&mut self, key: &ObjectRef, path: &Arc<Path>) {
        let holders = self.holders.entry(key.clone()).or_default();
        if let Err(at) = holders.binary_search(path) {
            holders.insert(at, path.clone());
        }
    }

    fn release(&mut self, key: &ObjectRef, path: &Path) {
        if let Some(holders) = self.holders.get_mut(key) {
            // Whoever held it too may now be first.
            self.touched_paths.extend(holders.iter().cloned());
            holders.retain(|holder| **holder != *path);
            if holders.is_empty() {
                self.holders.remove(key);
            }
        }
    }

    /// The file whose copy of an object counts.
    fn in_force(&self, key: &ObjectRef) -> Option<&Arc<Path>> {
        let holders = self.holders.get(key)?;
        holders.iter().find(|path| !self.is_leaving(path)).or(holders.first())
    }

    fn is_leaving(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|entry| entry.is_leaving)
    }

    /// What is different from what was said last.
    pub(super) fn settle(&mut self) -> Update {
        let mut update = Update::default();
        for key in std::mem::take(&mut self.touched_objects) {
            let holders = self.holders.get(&key).map_or(&[][..], Vec::as_slice);
            if holders.len() > 1 {
                self.touched_paths.extend(holders.iter().cloned());
            }
            let now = self.in_force(&key).and_then(|path| self.files.get(path)?.items.get(&key)).cloned();
            let before = match &now {
                Some(item) => self.reported.insert(key.clone(), item.clone()),
                None => self.reported.remove(&key),
            };
            if now == before {
                continue;
            }
            let place = now.as_ref().or(before.as_ref()).map(|item| item.place.clone());
            let (Some(place), object) = (place, now.map(|item| item.object)) else { continue };
            update.changes.push(Change { key, object, source: ChangeSource::File(place) });
        }
        for path in std::mem::take(&mut self.touched_paths) {
            let problems = self.problems(&path);
            let before = match problems.is_empty() {
                true => self.reported_problems.remove(&path).unwrap_or_default(),
                false => self.reported_problems.insert(path.clone(), problems.clone()).unwrap_or_default(),
            };
            if problems != before {
                let shown =
                    problems.iter().chain(&before).find_map(|problem| Some(problem.location.as_ref()?.file.clone()));
                update.problems.insert(Subject::File(shown.unwrap_or(path)), problems);
            }
        }
        update
    }

    /// Everything that is wrong with a file or folder.
    fn problems(&self, path: &Arc<Path>) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.folders.get(path).cloned().into_iter().collect();
        if let Some(entry) = self.files.get(path) {
            problems.extend(entry.problems.iter().cloned());
            let duplicates = entry.items.iter().filter_map(|(key, item)| self.duplicate(key, item, path));
            problems.extend(duplicates.take(MOST_PROBLEMS).enumerate().map(|(index, (problem, place))| {
                // To show a line the file is read again, which is too much for a file of nothing but duplicates.
                let location = if index < 10 { place.location("metadata.name") } else { place.start_location() };
                problem.at(location)
            }));
        }
        problems
    }

    /// What is to be said of an object that another file holds too, and first.
    fn duplicate<'i>(
        &self,
        key: &ObjectRef,
        item: &'i Item,
        path: &Arc<Path>,
    ) -> Option<(Problem, &'i ObjectLocation)> {
        let first = self.in_force(key).filter(|first| *first != path && !self.is_leaving(path))?;
        let entry = self.files.get(first)?;
        let line = entry.items.get(key)?.place.start().line;
        let why = format!("already defined in {}, at line {line}, which takes effect", entry.shown.display());
        Some((Problem::new(Code::DuplicateObject, why).on(key.clone()).field("metadata.name"), &item.place))
    }
}

/// The entries of a map at or below a path: in the order of paths they stand together.
pub(super) fn below<'m, K: Borrow<Path> + Ord, V>(
    map: &'m BTreeMap<K, V>,
    path: &'m Path,
) -> impl Iterator<Item = (&'m K, &'m V)> {
    let from = map.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
    from.take_while(move |(key, _)| (*key).borrow().starts_with(path))
}

/// Keeps in force what a file held and cannot be read now, and says so.
fn keep_former(
    old: &BTreeMap<ObjectRef, Item>,
    items: &mut BTreeMap<ObjectRef, Item>,
    keep: &Keep,
    problems: &mut [Problem],
) {
    let kept: Vec<_> = old.iter().filter(|(key, _)| keep.keeps(key) && !items.contains_key(*key)).collect();
    if kept.is_empty() {
        return;
    }
    let names: Vec<String> = kept.iter().take(3).map(|(key, _)| key.to_string()).collect();
    let more = match kept.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = format!("; {}{more} stay{} as before", names.join(", "), if kept.len() == 1 { "s" } else { "" });
    if let Some(problem) = keep.because().and_then(|index| problems.get_mut(index)) {
        problem.message = format!("{}{note}", problem.message).into();
    }
    items.extend(kept.into_iter().map(|(key, item)| (key.clone(), item.clone())));
}
