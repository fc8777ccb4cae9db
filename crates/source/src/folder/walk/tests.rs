//! What is found when nobody can say what was touched.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn service(name: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n")
}

fn names(update: &Update) -> Vec<(String, bool)> {
    update.changes.iter().map(|change| (change.key.name.to_string(), change.object.is_some())).collect()
}

#[test]
fn a_look_at_everything_finds_every_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["a", "b", "c"] {
        fs::write(path(&format!("{name}.yaml")), service(name)).unwrap();
    }
    let mut walk = Walk::new(folder.path().to_owned(), folder.path(), Limits::default(), Watch::none());
    assert_eq!(walk.start().changes.len(), 3);
    let everything = || Touched { everything: true, ..Touched::default() };
    assert_eq!(walk.refresh(everything()), Update::default());

    fs::write(path("a.yaml"), service("a").replace("v1\n", "v1\nspec: {externalName: x}\n")).unwrap();
    fs::remove_file(path("b.yaml")).unwrap();
    fs::create_dir(path("d")).unwrap();
    fs::write(path("d/e.yaml"), service("e")).unwrap();
    let found = [("a", true), ("b", false), ("e", true)].map(|(name, there)| (name.to_owned(), there));
    assert_eq!(names(&walk.refresh(everything())), found);

    // What was a folder is now a file, and the other way round.
    fs::remove_dir_all(path("d")).unwrap();
    fs::write(path("d"), "").unwrap();
    fs::remove_file(path("c.yaml")).unwrap();
    fs::create_dir(path("c.yaml")).unwrap();
    let found = [("c", false), ("e", false)].map(|(name, there)| (name.to_owned(), there));
    assert_eq!(names(&walk.refresh(everything())), found);
}
