//! A release that is made twice, of the same binary: the same files, byte for byte, whoever makes it and where.
//!
//! The binary is the program under test itself: what it does is no part of a release, and it is smaller than `sesame`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const RELEASE: &str = env!("CARGO_BIN_EXE_release");
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn release(step: &str, out: &Path) -> Output {
    Command::new(RELEASE).args([step, "--binary", RELEASE, "--out"]).arg(out).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> String {
    stdout(&Command::new(program).args(arguments).env("LC_ALL", "C").current_dir(folder).output().unwrap())
}

/// Everything below a folder: paths with digests.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let listed = run("find", &[".", "-type", "f", "-exec", "sha256sum", "{}", "+"], folder);
    let files = listed.lines().map(|line| line.split_once("  ./").unwrap());
    files.map(|(digest, path)| (path.to_owned(), digest.to_owned())).collect()
}

#[test]
fn two_releases_of_one_binary_are_the_same_bytes() {
    let work = tempfile::tempdir().unwrap();
    let (one, other) = (work.path().join("one"), work.path().join("deeper/other"));
    let told = stdout(&release("all", &one));
    // Another place of the binary, another working directory, time zone, language and umask.
    let copy = work.path().join("copy");
    std::fs::copy(RELEASE, &copy).unwrap();
    let again = Command::new("sh")
        .args(["-c", "umask 077 && exec \"$0\" all --binary \"$1\" --out \"$2\"", RELEASE])
        .args([&copy, &other])
        .envs([("TZ", "Asia/Kathmandu"), ("LC_ALL", "C"), ("SOURCE_DATE_EPOCH", "1")])
        .current_dir(work.path())
        .output()
        .unwrap();
    assert_eq!(stdout(&again), told);
    let made = files(&one);
    assert_eq!(files(&other), made);

    // All of these and no others, besides the layout of the image.
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let archive = format!("sesame-v{VERSION}-linux-{architecture}");
    let mut expected = [
        "NOTES.md",
        "SHA256SUMS",
        &format!("{archive}.tar.gz"),
        &format!("sesame-{VERSION}.tgz"),
        "sesame-certgen.yaml",
        "sesame-crds.yaml",
        "sesame-deployment.yaml",
        "sesame-gateway.yaml",
        &format!("sesame-image-v{VERSION}-linux-{architecture}.tar"),
        &format!("sesame-monitoring-v{VERSION}.tar.gz"),
        "sesame.spdx.json",
        "sesame.yaml",
    ]
    .map(str::to_owned);
    expected.sort();
    let (image, rest): (Vec<&String>, Vec<&String>) = made.keys().partition(|path| path.starts_with("image/"));
    assert_eq!(rest, expected.iter().collect::<Vec<_>>());
    assert!(image.iter().any(|path| *path == "image/index.json"), "{image:?}");
    let blob_of = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        one.join("image/blobs/sha256").join(digest)
    };
    let json = |path: &Path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
    let manifest = json(&blob_of(&json(&one.join("image/index.json"))["manifests"][0]));
    let layer = blob_of(&manifest["layers"][0]);
    let inside = run("tar", &["-xOf", layer.to_str().unwrap(), "usr/share/sbom/sesame.spdx.json"], &one);
    assert!(inside == std::fs::read_to_string(one.join("sesame.spdx.json")).unwrap(), "the image has another SBOM");

    // The checksums are those of all files but themselves and the layout, as `sha256sum` reads them.
    let checked = run("sha256sum", &["-c", "--strict", "SHA256SUMS"], &one);
    let checked: Vec<&str> = checked.lines().map(|line| line.strip_suffix(": OK").unwrap()).collect();
    assert_eq!(checked, rest.iter().filter(|path| **path != "SHA256SUMS").copied().collect::<Vec<_>>());

    // The program has three names, in an archive whose owners and times say nothing of who made it.
    let listing = run("tar", &["-tvf", &format!("{archive}.tar.gz"), "--full-time", "--numeric-owner"], &one);
    let named = |end: &str| listing.lines().any(|line| line.ends_with(&format!(" {archive}/{end}")));
    for name in ["sesame", "contour -> sesame", "kubectl-sesame -> sesame", "LICENSE", "README.md"] {
        assert!(named(name), "{name}:\n{listing}");
    }
    assert_eq!(listing.lines().count(), 5, "{listing}");
    for line in listing.lines() {
        assert!(line.contains(" 0/0 ") && line.contains("1970-01-01"), "{line}");
    }
    bill_of_materials(&one.join("sesame.spdx.json"));
}

/// A document of SPDX whose ids are unique and well formed, and whose relationships lead to packages.
fn bill_of_materials(file: &Path) {
    let bill: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(bill["spdxVersion"], "SPDX-2.3");
    let packages = bill["packages"].as_array().unwrap();
    let ids: BTreeMap<&str, &Value> =
        packages.iter().map(|package| (package["SPDXID"].as_str().unwrap(), package)).collect();
    assert_eq!(ids.len(), packages.len(), "ids are unique");
    for id in ids.keys() {
        let is_well_formed = |rest: &str| rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        assert!(id.strip_prefix("SPDXRef-").is_some_and(is_well_formed), "{id}");
    }
    for relation in bill["relationships"].as_array().unwrap() {
        assert!(ids.contains_key(relation["relatedSpdxElement"].as_str().unwrap()), "{relation}");
    }
    let digest = run("sha256sum", &[RELEASE], file.parent().unwrap());
    let ours = &ids["SPDXRef-sesame"]["checksums"][0]["checksumValue"];
    assert_eq!(digest.split(' ').next(), ours.as_str());
    let is_listed = |name: &str| packages.iter().any(|package| package["name"] == name);
    assert!(is_listed("tokio") && is_listed("rustls"), "crates that are linked");
    assert!(!is_listed("proptest"), "what tests alone use");
}

/// Nothing of somebody else's is deleted, and nothing gets a checksum that is no part of the release.
#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let work = tempfile::tempdir().unwrap();
    std::fs::write(work.path().join("precious"), "text").unwrap();
    let refused = stderr(&release("image", work.path()));
    assert_eq!(refused, format!("error: {} is not empty\n", work.path().display()));
    assert_eq!(files(work.path()).into_keys().collect::<Vec<_>>(), ["precious"]);
}

#[test]
fn a_wrong_word_ends_in_the_usage() {
    let usage = |words: &[&str]| stderr(&Command::new(RELEASE).args(words).output().unwrap());
    assert!(usage(&["all", "--out"]).starts_with("error: --out is not understood\nrelease image ["));
    assert!(usage(&["everything"]).starts_with("error: what is to be made?\nrelease image ["));
}
