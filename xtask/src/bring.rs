//! Brings parts into the cache.
//!
//! In: names of parts or groups (none: everything). Out: each of them in `$SESAME_CACHE/parts/<name>-<version>`, built there only
//! if it is missing or its recipe has changed.
//!
//! Each part has a lock of its own, so that a run that needs Envoy does not wait for another that compiles Kubernetes.
//! A part is made in a folder beside its place and renamed: it is there whole, or not at all. What was done when a
//! run is interrupted stays in the caches of go, pip and cargo, and the next run goes on from there.

mod make;
mod progress;
mod recipe;
mod system;
mod tools;

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use parts::find::variable;
use parts::{Finder, Part, Pins, pins};

use progress::Progress;

/// Brings all that `names` stand for.
pub fn bring(names: &[String]) -> Result<()> {
    let wanted = choose(pins(), names)?;
    let finder = Finder::from_env();
    let shelf = finder.cache()?.join("parts");

    let mut missing = Vec::new();
    for part in &wanted.parts {
        if let Some(path) = finder.replacement(part)? {
            eprintln!("parts: {} is {}, as {} says", part.name, path.display(), variable(&part.name));
            continue;
        }
        let (place, recipe) = (finder.place(part)?, recipe::text(crate::root(), part)?);
        if !is_current(&place, part, &recipe) {
            missing.push(Missing { part, place, recipe });
        }
    }
    tools::check(&finder, missing.iter().map(|missing| &missing.part.recipe), wanted.system)?;
    fs::create_dir_all(&shelf).with_context(|| format!("making {}", shelf.display()))?;
    if wanted.system {
        system::bring(&finder, &pins().system, &shelf)?;
    }
    let mut brought = 0;
    for (number, one) in missing.iter().enumerate() {
        let progress = Progress::new(number + 1, missing.len(), one.part);
        let here =
            bring_one(&shelf, one, &progress).with_context(|| format!("{} could not be brought", one.part.name))?;
        brought += usize::from(here);
    }
    eprintln!("parts: {} wanted, {brought} brought now, into {}", wanted.parts.len(), shelf.display());
    Ok(())
}

/// A part that is not there as it should be.
struct Missing<'a> {
    part: &'a Part,
    /// Where it belongs.
    place: PathBuf,
    /// What it is made by; kept beside it.
    recipe: String,
}

/// What some names stand for.
#[derive(Debug)]
struct Selection<'a> {
    parts: Vec<&'a Part>,
    system: bool,
}

fn choose<'a>(pins: &'a Pins, names: &[String]) -> Result<Selection<'a>> {
    let groups = pins.groups();
    if let Some(unknown) = names.iter().find(|name| pins.part(name).is_none() && !groups.contains(&name.as_str())) {
        let parts: Vec<&str> = pins.parts.iter().map(|part| part.name.as_str()).collect();
        bail!("there is no part or group {unknown:?}\n  groups: {}\n  parts: {}", groups.join(", "), parts.join(", "));
    }
    let all = names.is_empty();
    let named = |part: &Part| names.iter().any(|name| *name == part.name || part.groups.contains(name));
    Ok(Selection {
        parts: pins.parts.iter().filter(|part| all || named(part)).collect(),
        system: all || pins.system.groups.iter().any(|group| names.contains(group)),
    })
}

/// The part is there, and was made by the recipe that holds today.
fn is_current(place: &Path, part: &Part, recipe: &str) -> bool {
    let whole = if part.is_program() { place.join("bin").join(&part.name).is_file() } else { place.is_dir() };
    whole && fs::read_to_string(place.join(recipe::FILE)).is_ok_and(|made_by| made_by == recipe)
}

/// Brings one part, unless (`false`) another run did so while we waited for it.
fn bring_one(shelf: &Path, missing: &Missing<'_>, progress: &Progress) -> Result<bool> {
    let Missing { part, place, recipe } = missing;
    let _lock = lock(shelf, &part.name, || progress.say("another run is bringing it; waiting for that"))?;
    if is_current(place, part, recipe) {
        progress.say("brought by the other run");
        return Ok(false);
    }
    let new = shelf.join(format!(".{}.{}.tmp", part.folder(), std::process::id()));
    remove_unfinished(shelf, part)?;
    fs::create_dir_all(&new).with_context(|| format!("making {}", new.display()))?;
    let log = shelf.join(format!(".{}.log", part.name));
    make::make(part, shelf, &new, &log, progress)?;
    fs::write(new.join(recipe::FILE), recipe)?;
    // The earlier one steps aside only for the moment between two renames: tests may be using it.
    let old = shelf.join(format!(".{}.old.tmp", part.folder()));
    if place.exists() {
        fs::rename(place, &old).with_context(|| format!("moving the earlier {} aside", part.name))?;
    }
    fs::rename(&new, place).with_context(|| format!("moving {} into its place", part.name))?;
    remove_unfinished(shelf, part)?;
    fs::remove_file(&log).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    progress.done(&place.join("bin").join(&part.name));
    Ok(true)
}

/// Takes the lock `name`, which goes with the returned file, and with the process however that ends.
fn lock(shelf: &Path, name: &str, waiting: impl FnOnce()) -> Result<File> {
    let path = shelf.join(format!(".{name}.lock"));
    let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => waiting(),
        Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("locking {}", path.display())),
    }
    file.lock().with_context(|| format!("waiting for {}", path.display()))?;
    Ok(file)
}

/// Removes what interrupted runs have left of `part`. Whoever holds its lock is the only one at work on it.
fn remove_unfinished(shelf: &Path, part: &Part) -> Result<()> {
    let head = format!(".{}.", part.folder());
    for entry in fs::read_dir(shelf)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(&head) && name.ends_with(".tmp")) {
            fs::remove_dir_all(entry.path()).with_context(|| format!("removing {}", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! What a name stands for, that the tree's pins agree with each other, and that a lock is waited for.
    #![allow(clippy::unwrap_used, reason = "a test whose own folder cannot be made may panic")]

    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn chosen(names: &[&str]) -> (Vec<&'static str>, bool) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = choose(pins(), &names).unwrap();
        (wanted.parts.iter().map(|part| part.name.as_str()).collect(), wanted.system)
    }

    #[test]
    fn a_group_brings_what_it_needs() {
        assert_eq!(chosen(&["demo"]), (vec!["envoy"], false));
        assert_eq!(chosen(&["kubectl", "demo"]), (vec!["envoy", "kubectl"], false));
        assert_eq!(chosen(&["lint"]), (vec!["cargo-deny"], false));
        let (test, system) = chosen(&["test"]);
        assert!(system && test.contains(&"kube-apiserver") && !test.contains(&"contour"), "{test:?}");
        assert_eq!(chosen(&[]).0.len(), pins().parts.len());
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_there_are() {
        let said = choose(pins(), &["envoi".to_owned()]).unwrap_err().to_string();
        assert!(
            said.contains("\"envoi\"") && said.contains("conformance, demo") && said.contains("kube-proxy"),
            "{said}"
        );
    }

    #[test]
    fn modules_and_hashes_pin_what_the_pins_say() {
        for part in &pins().parts {
            recipe::text(crate::root(), part).unwrap();
        }
    }

    #[test]
    fn another_version_in_the_pins_is_noticed() {
        for name in ["envoy", "etcd", "contour-crds"] {
            let mut part = pins().part(name).unwrap().clone();
            part.version = "99".into();
            if let parts::pins::Recipe::Go(module, _) | parts::pins::Recipe::Files(module, _) = &mut part.recipe {
                module.version = "99".into();
            }
            let said = recipe::text(crate::root(), &part).unwrap_err().to_string();
            assert!(said.ends_with("as pins.toml does"), "{said}");
        }
    }

    #[test]
    fn a_part_counts_only_with_the_recipe_of_today() {
        let place = std::env::temp_dir().join(format!("sesame-xtask-{}", std::process::id()));
        let part = pins().part("etcd").unwrap();
        fs::create_dir_all(place.join("bin")).unwrap();
        fs::write(place.join("bin/etcd"), "").unwrap();
        assert!(!is_current(&place, part, "new"), "no recipe: made by nobody");
        fs::write(place.join(recipe::FILE), "old").unwrap();
        assert!(!is_current(&place, part, "new"));
        fs::write(place.join(recipe::FILE), "new").unwrap();
        assert!(is_current(&place, part, "new"));
        fs::remove_file(place.join("bin/etcd")).unwrap();
        assert!(!is_current(&place, part, "new"));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn the_second_run_waits_for_the_first_and_says_so() {
        let shelf = std::env::temp_dir().join(format!("sesame-xtask-lock-{}", std::process::id()));
        fs::create_dir_all(&shelf).unwrap();
        let first = lock(&shelf, "etcd", || panic!("nobody else has it")).unwrap();
        let (said, told) = mpsc::channel();
        let second = thread::spawn({
            let shelf = shelf.clone();
            move || lock(&shelf, "etcd", || said.send(()).unwrap()).map(drop)
        });
        told.recv().unwrap();
        assert!(!second.is_finished());
        lock(&shelf, "envoy", || panic!("a lock of another part is in the way")).unwrap();
        drop(first);
        second.join().unwrap().unwrap();
        fs::remove_dir_all(&shelf).unwrap();
    }
}
