//! Examples in pages: `sesame run --check --once` reads each of them in a folder of its own, as people would.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use futures::future::join_all;
use testbed::certs::Ca;
use tokio::process::Command;

use crate::page::{Block, Page};

/// Checks every block of YAML of a page: how many examples there are, and what is wrong with them.
pub async fn check(page: &Page) -> (usize, Vec<String>) {
    let shared: Vec<&str> =
        page.blocks.iter().filter(|block| block.is("yaml", "shared")).map(|block| block.text.as_str()).collect();
    let mut wrong = Vec::new();
    let mut examples = Vec::new();
    for block in page.blocks.iter().filter(|block| block.marks.first().is_some_and(|word| word == "yaml")) {
        for document in block.text.split("\n---\n") {
            if let Err(error) = serde_saphyr::from_str::<serde_json::Value>(document) {
                wrong.push(format!("{}:{}: not valid YAML: {error}", page.name, block.line));
            }
        }
        match block.marks.get(1).map(String::as_str) {
            None | Some("shared") => {}
            Some("objects" | "config") => examples.push(block),
            Some(mark) if mark.starts_with("file=") => {}
            Some(mark) => wrong.push(format!("{}:{}: `{mark}` is no mark of a block", page.name, block.line)),
        }
    }
    let count = examples.len();
    let checks = examples.into_iter().map(|block| check_one(page, block, &shared));
    wrong.extend(join_all(checks).await.into_iter().flatten());
    (count, wrong)
}

/// An object that is served, whatever the configuration says.
const SERVED: &str = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: served}, \
                      spec: {rules: [{host: served.example.com}]}}";

async fn check_one(page: &Page, block: &Block, shared: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    fs::create_dir(&objects).unwrap();
    pem_files(&objects.join("certs"));
    for (number, text) in shared.iter().enumerate() {
        fs::write(objects.join(format!("shared-{number}.yaml")), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
    command.arg("run").arg("--folder").arg(&objects).args(["--check", "--once"]);
    if block.is("yaml", "config") {
        let file = folder.path().join("sesame.yaml");
        fs::write(&file, &block.text).unwrap();
        // A folder that holds nothing to serve is an error of its own.
        fs::write(objects.join("served.yaml"), SERVED).unwrap();
        command.arg("--config-path").arg(file);
    } else {
        fs::write(objects.join("example.yaml"), &block.text).unwrap();
    }
    let output = command.output().await.unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let expected: BTreeSet<&str> = block.marks.iter().skip(2).map(String::as_str).collect();
    let found = codes(&printed);
    (found != expected).then(|| {
        format!("{}:{}: the codes are {found:?}, not {expected:?}:\n{}\n{printed}", page.name, block.line, block.text)
    })
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

/// The codes of errors and warnings in what is printed.
fn codes(printed: &str) -> BTreeSet<&str> {
    let starts = ["error[", "warning["];
    let found = printed.lines().filter_map(|line| {
        let rest = starts.iter().find_map(|start| line.trim_start().strip_prefix(start))?;
        rest.split_once(']').map(|(code, _)| code)
    });
    found.collect()
}

/// The files that Secrets of examples name: a CA, two certificates of it for the names below example.com, and its CRL.
fn pem_files(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let ca = Ca::new("example");
    let [leaf, other] = [(); 2].map(|()| ca.leaf("example.com").dns("*.example.com").make());
    for (name, text) in [
        ("ca.crt", ca.pem()),
        ("tls.crt", leaf.chain_pem()),
        ("tls.key", leaf.key_pem()),
        ("other.crt", other.chain_pem()),
        ("other.key", other.key_pem()),
        ("crl.pem", ca.crl([]).pem()),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}
