//! The cluster for people: `cluster up` leaves one that is reached from outside of it, `cluster down` leaves nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use testbed::cluster;

/// Runs a program with a cache that has the parts, but not the cluster that somebody may have up.
fn run(cache: &std::path::Path, program: &std::path::Path, words: &[&str]) -> (Output, String) {
    let output = Command::new(program).args(words).env("SESAME_CACHE", cache).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output, text)
}

#[test]
fn a_person_brings_a_cluster_up_uses_it_and_takes_it_down() {
    if !cluster::available() || std::env::var_os("SESAME_KUBECONFIG").is_some() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(parts::cache().unwrap().join("parts"), cache.path().join("parts")).unwrap();
    let cluster = |words: &[&str]| run(cache.path(), env!("CARGO_BIN_EXE_cluster").as_ref(), words);
    let links = || std::fs::read_to_string("/proc/net/dev").unwrap();

    let (output, said) = cluster(&["up"]);
    assert!(output.status.success(), "{said}");
    let kubeconfig = said.lines().find_map(|line| line.trim().strip_prefix("export KUBECONFIG=")).unwrap();
    assert!(links().contains("sesame0"));

    let ask = ["--kubeconfig", kubeconfig, "get", "nodes", "--no-headers", "-o", "name"];
    assert_eq!(run(cache.path(), &parts::program("kubectl").unwrap(), &ask).1, "node/n1\n");

    let (output, said) = cluster(&["up"]);
    assert!(!output.status.success() && said.contains("a cluster is up already"), "{said}");
    assert_eq!(cluster(&["down"]).1, "the cluster is gone\n");
    assert!(!links().contains("sesame0"));
    assert_eq!(cluster(&["down"]).1, "no cluster is up\n");
}

#[test]
fn other_words_are_refused() {
    let cache = tempfile::tempdir().unwrap();
    for words in [&[][..], &["sideways"], &["up", "--nodes", "3"], &["up", "--nodes"]] {
        let (output, said) = run(cache.path(), env!("CARGO_BIN_EXE_cluster").as_ref(), words);
        assert!(!output.status.success());
        assert_eq!(said, "cluster: usage: cluster up [--nodes 1|2] [--sesame BINARY] | down\n");
    }
}
