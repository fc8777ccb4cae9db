//! The runner of all tests: what goes in and out of it is untouched, and what is inside stays inside.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

const SANDBOX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/sandbox");

/// Runs a script in a sandbox of its own, although this test is in one already.
fn sandboxed(script: &str) -> Output {
    sandbox(&["--", "sh", "-c", script]).env_remove("SESAME_SANDBOX").output().unwrap()
}

fn sandbox(args: &[&str]) -> Command {
    let mut command = Command::new(SANDBOX);
    command.args(args);
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn output_and_exit_codes_pass_through() {
    let output = sandboxed("echo out; echo err >&2; exit 101");
    assert_eq!(output.status.code(), Some(101));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("out\n", "err\n"));
    assert!(sandboxed("true").status.success());
}

#[test]
fn a_deadly_signal_passes_through() {
    assert_eq!(sandboxed("kill -ABRT $$").status.signal(), Some(6));
    assert_eq!(sandboxed("kill -KILL $$").status.signal(), Some(9));
}

#[test]
fn it_works_without_standard_input() {
    let mut closed = sandbox(&["--", "sh", "-c", "echo fine"]);
    let output = closed.env_remove("SESAME_SANDBOX").stdin(Stdio::null()).output().unwrap();
    assert_eq!(text(&output.stdout), "fine\n");
    let script = format!("exec <&-; exec {SANDBOX} -- echo fine");
    let output = Command::new("sh").args(["-c", &script]).env_remove("SESAME_SANDBOX").output().unwrap();
    assert_eq!(text(&output.stdout), "fine\n");
}

#[test]
fn the_program_sees_only_its_own_processes_and_no_way_out() {
    let output = sandboxed("ls -d /proc/[0-9]* | wc -l; ip -o link | wc -l");
    let out = text(&output.stdout);
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].trim().parse::<u32>().unwrap() < 6, "{out}");
    assert_eq!(lines.last().unwrap().trim(), "1", "{out}");
    let output = sandboxed("ip route get 192.0.2.1");
    assert!(text(&output.stderr).contains("unreachable"), "{}", text(&output.stderr));
}

#[test]
fn only_tests_are_sandboxed() {
    let namespace = || std::fs::read_link("/proc/self/ns/net").unwrap();
    let readlink = ["readlink", "/proc/self/ns/net"];
    let outside = sandbox(&readlink).env_remove("SESAME_SANDBOX").output().unwrap();
    assert_eq!(text(&outside.stdout).trim(), namespace().to_str().unwrap());

    let folder = tempfile::tempdir().unwrap();
    let deps = folder.path().join("deps");
    std::fs::create_dir(&deps).unwrap();
    let like_a_test = deps.join("readlink");
    std::os::unix::fs::symlink("/bin/readlink", &like_a_test).unwrap();
    let inside = |command: &mut Command| text(&command.output().unwrap().stdout).trim().to_owned();
    let mut test = sandbox(&[like_a_test.to_str().unwrap(), readlink[1]]);
    assert_ne!(inside(test.env_remove("SESAME_SANDBOX")), namespace().to_str().unwrap());
    // A test that starts a test: one sandbox is enough.
    let mut nested = sandbox(&[like_a_test.to_str().unwrap(), readlink[1]]);
    assert_eq!(inside(&mut nested), namespace().to_str().unwrap());
}

#[test]
fn where_there_are_no_namespaces_the_program_runs_and_is_told_why() {
    let folder = tempfile::tempdir().unwrap();
    for tool in ["setpriv", "ip"] {
        std::os::unix::fs::symlink("/bin/true", folder.path().join(tool)).unwrap();
    }
    // `unshare` is there but refuses.
    std::os::unix::fs::symlink("/bin/false", folder.path().join("unshare")).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let script = ["--", "/bin/sh", "-c", "echo \"$SESAME_SANDBOX_MISSING\""];
    let output = sandbox(&script).env_remove("SESAME_SANDBOX").env("PATH", path).output().unwrap();
    assert!(text(&output.stdout).starts_with("this user may not make namespaces"), "{output:?}");
}
