//! Examples in pages: `sesame run --check --once` reads each of them in a folder of its own, as people would.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use testbed::certs::{Ca, KeyType};
use tokio::process::Command;

use crate::page::{Block, Page};

/// Checks every block of YAML of a page: how many examples there are, and what is wrong with them.
pub async fn check(page: &Page) -> (usize, Vec<String>) {
    let shared: Vec<&str> =
        page.blocks.iter().filter(|block| block.is("yaml", "shared")).map(|block| block.text.as_str()).collect();
    let mut wrong = Vec::new();
    let mut examples = Vec::new();
    for block in page.blocks.iter().filter(|block| block.marks.first().is_some_and(|word| word == "yaml")) {
        // An example may be about text that is no YAML, or of more than a parser takes.
        let is_odd = block.marks.iter().any(|mark| mark == "SES2001" || mark == "SES2006");
        for document in block.text.split("\n---\n").filter(|_| !is_odd) {
            if let Err(error) = serde_saphyr::from_str::<serde_json::Value>(document) {
                wrong.push(format!("{}:{}: not valid YAML: {error}", page.name, block.line));
            }
        }
        match block.marks.get(1).map(String::as_str) {
            None | Some("shared" | "with") => {}
            Some("objects" | "manifests" | "config") => examples.push(block),
            Some(mark) if mark.starts_with("file=") => {}
            Some(mark) => wrong.push(format!("{}:{}: `{mark}` is no mark of a block", page.name, block.line)),
        }
    }
    let count = examples.len();
    let checks = examples.into_iter().map(|block| check_one(page, block, &shared));
    wrong.extend(join_all(checks).await.into_iter().flatten());
    (count, wrong)
}

/// How long a command may take that fails by itself.
const LIMIT: Duration = Duration::from_secs(60);

/// An object that is served, whatever the configuration says.
const SERVED: &str = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: served}, \
                      spec: {rules: [{host: served.example.com}]}}";

async fn check_one(page: &Page, block: &Block, shared: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    fs::create_dir(&objects).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
    if block.is("yaml", "manifests") {
        fs::write(objects.join("example.yaml"), &block.text).unwrap();
        command.arg("lint").arg("-f").arg(&objects);
    } else {
        pem_files(&objects.join("certs"));
        for (number, text) in shared.iter().enumerate() {
            fs::write(objects.join(format!("shared-{number}.yaml")), text).unwrap();
        }
        // A folder that holds nothing to serve is an error of its own.
        fs::write(objects.join("served.yaml"), SERVED).unwrap();
        command.arg("run").arg("--folder").arg(&objects).args(["--check", "--once"]);
        let with = |other: &&Block| other.is("yaml", "with") && other.marks.get(2) == block.marks.get(2);
        let config = if block.is("yaml", "config") { Some(block) } else { page.blocks.iter().find(with) };
        if let Some(config) = config {
            let file = folder.path().join("sesame.yaml");
            fs::write(&file, &config.text).unwrap();
            command.arg("--config-path").arg(file);
        }
        if !block.is("yaml", "config") {
            fs::write(objects.join("example.yaml"), &block.text).unwrap();
        }
    }
    let output = command.output().await.unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let expected: BTreeSet<&str> = block.marks.iter().skip(2).map(String::as_str).collect();
    let mut found = codes(&printed, &["error[", "warning["]);
    // Notes are told of much that is right.
    found.extend(codes(&printed, &["note["]).intersection(&expected).copied());
    (found != expected).then(|| {
        format!("{}:{}: the codes are {found:?}, not {expected:?}:\n{}\n{printed}", page.name, block.line, block.text)
    })
}

/// Runs the commands that show a code: how many there are, and what is wrong with them. The lines below a command are printed by it,
/// up to a `…` if they have one; those below `cat` are the file.
pub async fn commands(page: &Page) -> (usize, Vec<String>) {
    let blocks = page.blocks.iter().filter(|block| block.is("console", "codes"));
    let wrong = join_all(blocks.clone().map(|block| run(page, block))).await;
    (blocks.count(), wrong.into_iter().flatten().collect())
}

async fn run(page: &Page, block: &Block) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let (mut printed, mut expected) = (String::new(), Vec::new());
    let mut lines = block.text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            expected.push(line.split('…').next().unwrap_or_default());
            continue;
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        match &words[..] {
            ["cat", name] => {
                let mut text = String::new();
                while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                    text += &format!("{line}\n");
                }
                fs::write(folder.path().join(name), text).unwrap();
            }
            ["mkdir", name] => fs::create_dir(folder.path().join(name)).unwrap(),
            ["sesame", args @ ..] => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
                let ended = command.args(args).current_dir(folder.path()).kill_on_drop(true).output();
                let output = tokio::time::timeout(LIMIT, ended).await.expect("it ends by itself").unwrap();
                printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            }
            _ => panic!("{}:{}: {command} is not known here", page.name, block.line),
        }
    }
    let missing: Vec<&&str> =
        expected.iter().filter(|text| !printed.lines().any(|line| line.starts_with(**text))).collect();
    let is_shown = block.marks.get(2).is_some_and(|code| codes(&printed, &["error["]).contains(&**code));
    (!missing.is_empty() || !is_shown)
        .then(|| format!("{}:{}: {missing:?} is missing in\n{printed}", page.name, block.line))
}

/// Asks the program for every flag in blocks of commands: how many there are, and those that it does not know.
pub async fn flags(page: &Page) -> (usize, Vec<String>) {
    let lines = page.blocks.iter().filter(|block| block.is("text", "flags")).flat_map(|block| block.text.lines());
    let asked = lines.flat_map(|line| {
        let words = line.split_whitespace().skip(1);
        let (flags, command): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("--"));
        flags.into_iter().map(move |flag| (command.clone(), flag))
    });
    let asked = asked.map(async |(command, flag)| {
        // Whether a value belongs to it does not matter: what is unknown is told first.
        let output = Command::new(env!("CARGO_BIN_EXE_sesame")).args(&command).arg(flag).arg("--help").output();
        let said = String::from_utf8(output.await.unwrap().stderr).unwrap();
        let known = !said.contains("unexpected argument") && !said.contains("unrecognized");
        (!known).then(|| format!("{}: {} {flag}: {said}", page.name, command.join(" ")))
    });
    let answers = join_all(asked).await;
    (answers.len(), answers.into_iter().flatten().collect())
}

/// The codes in what is printed, behind one of these words.
fn codes<'p>(printed: &'p str, starts: &[&str]) -> BTreeSet<&'p str> {
    let found = printed.lines().filter_map(|line| {
        let rest = starts.iter().find_map(|start| line.trim_start().strip_prefix(start))?;
        rest.split_once(']').map(|(code, _)| code)
    });
    found.collect()
}

/// The files that Secrets of examples name: a CA, two certificates of it for the names below example.com, and its CRL; and some that
/// cannot be used.
fn pem_files(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let (ca, other_ca) = (Ca::new("example"), Ca::new("other"));
    let leaf = || ca.leaf("example.com").dns("*.example.com");
    for (name, leaf) in [
        ("tls", leaf().make()),
        ("other", leaf().make()),
        ("expired", leaf().expired().make()),
        ("ed25519", leaf().key(KeyType::Ed25519).make()),
        ("nameless", ca.nameless_leaf("").make()),
        ("must-staple", leaf().must_staple().make()),
    ] {
        fs::write(folder.join(format!("{name}.crt")), leaf.chain_pem()).unwrap();
        fs::write(folder.join(format!("{name}.key")), leaf.key_pem()).unwrap();
    }
    for (name, text) in [
        ("ca.crt", ca.pem().to_owned()),
        ("two-cas.crt", format!("{}{}", ca.pem(), other_ca.pem())),
        ("crl.pem", ca.crl([]).pem().to_owned()),
        ("stale-crl.pem", ca.stale_crl([]).pem().to_owned()),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}
