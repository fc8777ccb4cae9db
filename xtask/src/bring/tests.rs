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
    assert!(system && test.contains(&"kube-apiserver") && !test.contains(&"gateway-api-conformance"), "{test:?}");
    assert_eq!(chosen(&[]).0.len(), pins().parts.len());
}

#[test]
fn an_unknown_name_is_answered_with_those_there_are() {
    let said = choose(pins(), &["envoi".to_owned()]).unwrap_err().to_string();
    assert!(said.contains("\"envoi\"") && said.contains("conformance, demo") && said.contains("kube-proxy"), "{said}");
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
