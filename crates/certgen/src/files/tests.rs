#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, SystemTime};

use super::*;
use crate::issue::Request;

fn certificates() -> Certificates {
    Certificates::issue(&Request {
        namespace: "gateways".to_owned(),
        fleet: None,
        lifetime: Duration::from_secs(3600),
        now: SystemTime::now(),
    })
    .unwrap()
}

fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mut modes: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    modes.sort();
    modes
}

#[test]
fn keys_are_private_and_nothing_else_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/on/the/way");
    write(&certificates(), &folder, false).unwrap();
    let expected = [
        ("cacert.pem", 0o644),
        ("envoycert.pem", 0o644),
        ("envoykey.pem", 0o600),
        ("sesamecert.pem", 0o644),
        ("sesamekey.pem", 0o600),
    ];
    assert_eq!(modes(&folder), expected.map(|(name, mode)| (name.to_owned(), mode)));
}

#[test]
fn nothing_is_replaced_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (certificates(), certificates());
    write(&first, folder.path(), false).unwrap();
    fs::remove_file(folder.path().join("cacert.pem")).unwrap();

    let error = write(&second, folder.path(), false).unwrap_err();
    assert!(matches!(&error, FilesError::Exists(paths) if paths.len() == 4), "{error}");
    assert!(!folder.path().join("cacert.pem").exists(), "a set is written whole or not at all");

    write(&second, folder.path(), true).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("envoykey.pem")).unwrap(), second.envoy.key);
}

#[test]
fn a_key_that_was_open_to_all_is_closed_when_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("sesamekey.pem");
    fs::write(&key, "old").unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o666)).unwrap();
    write(&certificates(), folder.path(), true).unwrap();
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
