//! What a folder says when it changes: every way in which tools put files into place and take them away.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kinds::{Object, Secret, Service};
use source::{Change, Feed, Folder, Subject, feed, feed::CAPACITY, folder::Limits};
use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::timeout};

/// A watched folder, and what it has said so far.
struct Bed {
    folder: TempDir,
    feed: Feed,
    objects: BTreeMap<String, Object>,
    problems: BTreeMap<PathBuf, Vec<String>>,
    /// Every change, in order: an object by name, and whether it was there.
    log: Vec<(String, bool)>,
    run: JoinHandle<()>,
}

impl Bed {
    async fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The folder stands inside another, so that it can itself be taken away.
        fs::create_dir(folder.path().join("conf")).unwrap();
        let root = folder.path().join("conf");
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (feeder, feed) = feed(CAPACITY);
        let source = Folder::open(&root, Limits::default()).unwrap();
        let run = tokio::spawn(async move {
            let _ = source.run(feeder).await;
        });
        let (objects, problems, log) = Default::default();
        let mut bed = Self { folder, feed, objects, problems, log, run };
        while !bed.step("the first reading").await {}
        bed.log.clear();
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("conf").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Takes in the next batch; whether all is synced.
    async fn step(&mut self, what: &str) -> bool {
        let next = timeout(Duration::from_secs(20), self.feed.next()).await;
        let batch = next.unwrap_or_else(|_| panic!("waited for {what}")).expect("the source runs");
        for Change { key, object, .. } in batch.changes {
            self.log.push((key.to_string(), object.is_some()));
            match object {
                Some(object) => self.objects.insert(key.to_string(), object),
                None => self.objects.remove(&key.to_string()),
            };
        }
        for (subject, problems) in batch.problems {
            let Subject::File(file) = subject else { panic!("a file") };
            let file = file.strip_prefix(self.folder.path().join("conf")).unwrap().to_owned();
            match problems.is_empty() {
                true => self.problems.remove(&file),
                false => self.problems.insert(file, problems.iter().map(ToString::to_string).collect()),
            };
        }
        batch.synced
    }

    async fn until(&mut self, what: &str, done: impl Fn(&Bed) -> bool) {
        while !done(self) {
            self.step(what).await;
        }
    }

    /// Waits until exactly these objects are there, by their one word of content.
    async fn until_objects(&mut self, expected: &[&str]) {
        let what = format!("{expected:?}, have {:?}", self.contents());
        self.until(&what, |bed| bed.contents() == expected).await;
    }

    fn contents(&self) -> Vec<String> {
        self.objects.values().map(content).collect()
    }

    /// A change that comes after all the others: what has not happened by then does not happen.
    async fn settle(&mut self) {
        let marker = format!("marker{}", self.log.len());
        self.write("zz-marker.yaml", &service(&marker, "x"));
        let key = format!("Service default/{marker}");
        self.until("the marker", |bed| bed.objects.contains_key(&key)).await;
        fs::remove_file(self.path("zz-marker.yaml")).unwrap();
        self.until("the marker to go", |bed| !bed.objects.contains_key(&key)).await;
        self.log.retain(|(name, _)| *name != key);
    }

    fn was_ever_gone(&self) -> bool {
        self.log.iter().any(|(_, is_there)| !is_there)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.run.abort();
    }
}

fn service(name: &str, content: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{externalName: \"{content}\"}}\n")
}

/// `name=content`
fn content(object: &Object) -> String {
    let word = if let Some(service) = object.get::<Service>() {
        service.spec.external_name.ok().cloned().flatten().unwrap_or_default()
    } else if let Some(secret) = object.get::<Secret>() {
        String::from_utf8_lossy(secret.get("a").unwrap().unwrap_or_default()).into()
    } else {
        "".into()
    };
    format!("{}={word}", object.meta().name)
}

#[tokio::test]
async fn a_file_is_written_and_removed() {
    let mut bed = Bed::new(&[]).await;
    bed.write("a.yaml", &service("a", "1"));
    bed.until_objects(&["a=1"]).await;
    bed.write("a.yaml", &service("a", "2"));
    bed.until_objects(&["a=2"]).await;
    fs::remove_file(bed.path("a.yaml")).unwrap();
    bed.until_objects(&[]).await;
    assert_eq!(bed.log.len(), 3, "{:?}", bed.log);
}

#[tokio::test]
async fn a_file_is_not_read_before_its_writer_closes_it() {
    let mut bed = Bed::new(&[("a.yaml", &service("a", "1"))]).await;
    let (first, second) = (service("b", "1"), service("c", "1"));
    let mut file = fs::File::create(bed.path("a.yaml")).unwrap();
    let mut new = fs::File::create(bed.path("new.yaml")).unwrap();
    for file in [&mut file, &mut new] {
        file.write_all(b"apiVersion: v1\nkind: Service\nmetadata: {name: half").unwrap();
        file.flush().unwrap();
    }
    bed.settle().await;
    assert_eq!((bed.contents(), &bed.problems, bed.was_ever_gone()), (vec!["a=1".into()], &BTreeMap::new(), false));
    for (mut file, text) in [(file, first), (new, second)] {
        file.set_len(0).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    bed.until_objects(&["b=1", "c=1"]).await;
}

#[tokio::test]
async fn a_file_is_renamed_into_place() {
    let mut bed = Bed::new(&[("a.yaml", &service("a", "1"))]).await;
    bed.write(".a.yaml.tmp", &service("a", "2"));
    fs::rename(bed.path(".a.yaml.tmp"), bed.path("a.yaml")).unwrap();
    bed.until_objects(&["a=2"]).await;
    let outside = bed.folder.path().join("outside");
    fs::write(&outside, service("a", "3")).unwrap();
    fs::rename(&outside, bed.path("a.yaml")).unwrap();
    bed.until_objects(&["a=3"]).await;
    fs::write(&outside, service("b", "1")).unwrap();
    fs::hard_link(&outside, bed.path("b.yaml")).unwrap();
    bed.until_objects(&["a=3", "b=1"]).await;
    assert!(!bed.was_ever_gone());
}

#[tokio::test]
async fn an_editor_that_moves_the_old_file_away_first_takes_nothing_down() {
    let mut bed = Bed::new(&[("a.yaml", &service("a", "1"))]).await;
    for round in 2..6 {
        // As vim does it: rename to a backup, write anew, remove the backup.
        fs::rename(bed.path("a.yaml"), bed.path("a.yaml~")).unwrap();
        tokio::task::yield_now().await;
        let mut file = fs::File::create(bed.path("a.yaml")).unwrap();
        for byte in service("a", &round.to_string()).bytes() {
            file.write_all(&[byte]).unwrap();
        }
        drop(file);
        fs::remove_file(bed.path("a.yaml~")).unwrap();
        bed.until_objects(&[&format!("a={round}")]).await;
    }
    // As others do it: remove, write anew.
    fs::remove_file(bed.path("a.yaml")).unwrap();
    bed.write("a.yaml", &service("a", "9"));
    bed.until_objects(&["a=9"]).await;
    bed.settle().await;
    assert!(!bed.was_ever_gone(), "{:?}", bed.log);
    assert_eq!(bed.problems, BTreeMap::new());
}

#[tokio::test]
async fn a_broken_file_keeps_its_last_good_objects_until_it_is_mended() {
    let text = format!("{}---\n{}", service("a", "1"), service("b", "1"));
    let mut bed = Bed::new(&[("x.yaml", &text)]).await;
    // The second document breaks, the first changes and is taken over.
    bed.write("x.yaml", &format!("{}---\nkind: [\n", service("a", "2")));
    bed.until_objects(&["a=2", "b=1"]).await;
    bed.until("the problem", |bed| !bed.problems.is_empty()).await;
    let problem = &bed.problems[Path::new("x.yaml")][0];
    assert!(problem.contains("SES2001") && problem.contains("Service default/b stays as before"), "{problem}");
    // Everything breaks.
    fs::write(bed.path("x.yaml"), b"\xff\xff").unwrap();
    bed.until("the other problem", |bed| bed.problems[Path::new("x.yaml")][0].contains("UTF-8")).await;
    assert_eq!(bed.contents(), ["a=2", "b=1"]);
    // An object that can be named but not read keeps itself alone.
    bed.write("x.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: 5\n");
    bed.until_objects(&["a=2"]).await;
    bed.write("x.yaml", &service("b", "3"));
    bed.until_objects(&["b=3"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
}

#[tokio::test]
async fn equal_content_is_no_change() {
    let mut bed = Bed::new(&[("a.yaml", &service("a", "1"))]).await;
    bed.write("a.yaml", &service("a", "1"));
    fs::File::open(bed.path("a.yaml")).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    bed.settle().await;
    assert_eq!(bed.log, []);
    // A comment moves the object in its file: the same object is told with its new place.
    let before = bed.objects.clone();
    bed.write("a.yaml", &format!("# new\n{}", service("a", "1")));
    bed.until("the new place", |bed| bed.log.len() == 1).await;
    assert_eq!(bed.objects, before);
}

#[tokio::test]
async fn sub_folders_come_move_and_go() {
    let mut bed = Bed::new(&[]).await;
    // Filled while the news of it is on the way.
    fs::create_dir_all(bed.path("new/deep")).unwrap();
    bed.write("new/deep/a.yaml", &service("a", "1"));
    bed.until_objects(&["a=1"]).await;
    bed.write("new/deep/b.yaml", &service("b", "1"));
    bed.until_objects(&["a=1", "b=1"]).await;
    // Moved inside the folder: nothing is gone, and the new place is watched.
    fs::rename(bed.path("new"), bed.path("other")).unwrap();
    bed.settle().await;
    assert!(!bed.was_ever_gone(), "{:?}", bed.log);
    assert_eq!(bed.problems, BTreeMap::new());
    bed.write("other/deep/b.yaml", &service("b", "2"));
    bed.until_objects(&["a=1", "b=2"]).await;
    // Moved in from outside, and out.
    let outside = bed.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("c.yaml"), service("c", "1")).unwrap();
    fs::rename(&outside, bed.path("in")).unwrap();
    bed.until_objects(&["a=1", "b=2", "c=1"]).await;
    fs::rename(bed.path("other"), &outside).unwrap();
    bed.until_objects(&["c=1"]).await;
    fs::remove_dir_all(bed.path("in")).unwrap();
    bed.until_objects(&[]).await;
    fs::create_dir(bed.path("in")).unwrap();
    bed.write("in/c.yaml", &service("c", "2"));
    bed.until_objects(&["c=2"]).await;
}

#[tokio::test]
async fn a_file_that_is_renamed_does_not_lose_its_objects() {
    let mut bed = Bed::new(&[("a.yaml", &service("a", "1"))]).await;
    fs::rename(bed.path("a.yaml"), bed.path("b.yaml")).unwrap();
    bed.settle().await;
    assert!(!bed.was_ever_gone(), "{:?}", bed.log);
    assert_eq!((bed.contents(), &bed.problems), (vec!["a=1".into()], &BTreeMap::new()));
    bed.write("b.yaml", &service("a", "2"));
    bed.until_objects(&["a=2"]).await;
}

/// Makes a folder look as the kubelet mounts a ConfigMap or Secret, or swaps its content as it does.
fn mount(folder: &Path, version: &str, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    let data = folder.join(format!("..{version}"));
    fs::create_dir(&data).unwrap();
    for (name, text) in files {
        fs::write(data.join(name), text).unwrap();
    }
    let old = fs::read_link(folder.join("..data")).ok();
    symlink(format!("..{version}"), folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    for (name, _) in files {
        if !folder.join(name).is_symlink() {
            symlink(format!("..data/{name}"), folder.join(name)).unwrap();
        }
    }
    if let Some(old) = old {
        for entry in fs::read_dir(folder.join(&old)).unwrap() {
            let name = entry.unwrap().file_name();
            if !data.join(&name).exists() {
                fs::remove_file(folder.join(&name)).unwrap();
            }
        }
        fs::remove_dir_all(folder.join(old)).unwrap();
    }
}

#[tokio::test]
async fn a_mounted_config_map_is_swapped() {
    let mut bed = Bed::new(&[]).await;
    let config = bed.path("mounted");
    mount(&config, "1", &[("a.yaml", &service("a", "1")), ("b.yaml", &service("b", "1"))]);
    bed.until_objects(&["a=1", "b=1"]).await;
    for round in 2..5 {
        let word = round.to_string();
        mount(&config, &word, &[("a.yaml", &service("a", &word)), ("b.yaml", &service("b", "1"))]);
        bed.until_objects(&[&format!("a={round}"), "b=1"]).await;
    }
    assert!(!bed.was_ever_gone(), "{:?}", bed.log);
    mount(&config, "9", &[("a.yaml", &service("a", "9")), ("c.yaml", &service("c", "1"))]);
    bed.until_objects(&["a=9", "c=1"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
}

#[tokio::test]
async fn pem_files_are_watched() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  annotations: {projectsesame.io/pem-files: a=certs/a.pem}\n";
    let mut bed = Bed::new(&[("s.yaml", secret)]).await;
    assert!(bed.problems[Path::new("s.yaml")][0].contains("SES2008"));
    mount(&bed.path("certs"), "1", &[("a.pem", "one")]);
    bed.until_objects(&["s=one"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
    mount(&bed.path("certs"), "2", &[("a.pem", "two")]);
    bed.until_objects(&["s=two"]).await;
    fs::remove_dir_all(bed.path("certs")).unwrap();
    bed.until("the problem", |bed| !bed.problems.is_empty()).await;
    assert_eq!(bed.contents(), ["s=two"]);
    fs::create_dir(bed.path("certs")).unwrap();
    bed.write("certs/a.pem", "three");
    bed.until_objects(&["s=three"]).await;
    bed.write("certs/a.pem", "four");
    bed.until_objects(&["s=four"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
}

#[tokio::test]
async fn the_target_of_a_link_is_watched() {
    let mut bed = Bed::new(&[]).await;
    let outside = bed.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), service("a", "1")).unwrap();
    symlink(outside.join("a"), bed.path("a.yaml")).unwrap();
    bed.until_objects(&["a=1"]).await;
    fs::write(outside.join("a"), service("a", "2")).unwrap();
    bed.until_objects(&["a=2"]).await;
    // The target goes: the file is not deleted, it cannot be read.
    fs::remove_file(outside.join("a")).unwrap();
    bed.until("the problem", |bed| !bed.problems.is_empty()).await;
    assert_eq!(bed.contents(), ["a=2"]);
    fs::write(outside.join("a"), service("a", "3")).unwrap();
    bed.until_objects(&["a=3"]).await;
    fs::remove_file(bed.path("a.yaml")).unwrap();
    bed.until_objects(&[]).await;
}

#[tokio::test]
async fn a_linked_folder_is_read_once_and_by_whichever_path_is_there() {
    let mut bed = Bed::new(&[("real/a.yaml", &service("a", "1"))]).await;
    symlink("real", bed.path("b-connection")).unwrap();
    bed.until("the note", |bed| bed.problems.contains_key(Path::new("b-connection"))).await;
    // Another folder takes its place behind the connection.
    fs::create_dir(bed.path(".next")).unwrap();
    fs::write(bed.path(".next/b.yaml"), service("b", "1")).unwrap();
    symlink(".next", bed.path(".connection")).unwrap();
    fs::rename(bed.path(".connection"), bed.path("b-connection")).unwrap();
    bed.until_objects(&["a=1", "b=1"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
    fs::write(bed.path(".next/b.yaml"), service("b", "2")).unwrap();
    bed.until_objects(&["a=1", "b=2"]).await;
    fs::remove_file(bed.path("b-connection")).unwrap();
    bed.until_objects(&["a=1"]).await;
}

#[tokio::test]
async fn the_second_file_takes_over_when_the_first_goes() {
    let mut bed = Bed::new(&[("a.yaml", &service("x", "1")), ("b.yaml", &service("x", "2"))]).await;
    assert_eq!(bed.contents(), ["x=1"]);
    assert!(bed.problems[Path::new("b.yaml")][0].contains("SES2005"));
    fs::remove_file(bed.path("a.yaml")).unwrap();
    bed.until_objects(&["x=2"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
    bed.write("0.yaml", &service("x", "0"));
    bed.until_objects(&["x=0"]).await;
    bed.until("the problem", |bed| bed.problems.contains_key(Path::new("b.yaml"))).await;
    bed.write("0.yaml", &service("z", "0"));
    bed.until_objects(&["x=2", "z=0"]).await;
    assert!(!bed.was_ever_gone());
}

#[tokio::test]
async fn a_folder_that_is_taken_away_keeps_what_it_held_until_it_is_back() {
    let mut bed = Bed::new(&[("a.yaml", &service("a", "1")), ("b.yaml", &service("b", "1"))]).await;
    let away = bed.folder.path().join("away");
    fs::rename(bed.path(""), &away).unwrap();
    bed.until("the problem", |bed| bed.problems.contains_key(Path::new(""))).await;
    assert_eq!(bed.contents(), ["a=1", "b=1"]);
    fs::remove_file(away.join("b.yaml")).unwrap();
    fs::write(away.join("a.yaml"), service("a", "2")).unwrap();
    fs::rename(&away, bed.path("")).unwrap();
    bed.until_objects(&["a=2"]).await;
    assert_eq!(bed.problems, BTreeMap::new());
    bed.write("a.yaml", &service("a", "3"));
    bed.until_objects(&["a=3"]).await;
}

#[tokio::test]
async fn many_changes_at_once_are_all_seen() {
    let mut bed = Bed::new(&[]).await;
    for number in 0..300 {
        bed.write(&format!("{number:03}.yaml"), &service(&format!("s{number:03}"), "1"));
        if number % 3 == 0 {
            fs::remove_file(bed.path(&format!("{number:03}.yaml"))).unwrap();
        }
    }
    let expected: Vec<_> = (0..300).filter(|number| number % 3 != 0).map(|number| format!("s{number:03}=1")).collect();
    bed.until_objects(&expected.iter().map(String::as_str).collect::<Vec<_>>()).await;
}
