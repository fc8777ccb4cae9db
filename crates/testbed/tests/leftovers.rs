//! Whatever a test started ends with it, also when its process or its runner is killed.
//!
//! One test, alone in its program, because it looks at all processes of the sandbox. The victim is this program again, in
//! a sandbox of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testbed::{ApiServer, Command, Envoy, Process, StateDir};

const SANDBOX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/sandbox");
const NAME: &str = "killing_a_test_or_its_runner_leaves_nothing_behind";
const ROLE: &str = "TEST_ROLE";
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn killing_a_test_or_its_runner_leaves_nothing_behind() {
    match std::env::var(ROLE).as_deref() {
        Ok("victim") => return victim().await,
        Ok("next") => return drop(StateDir::new("next").unwrap()),
        _ => {}
    }
    let temp = tempfile::tempdir().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = processes();

    // The test process dies: the runner tidies up, and keeps the logs as of any failed test.
    let (runner, test) = start_victim(temp.path()).await;
    kill_process(test, Signal::KILL).unwrap();
    let status = testbed::within("the runner to end", LIMIT, runner.exited()).await.unwrap().unwrap();
    assert!(!status.success());
    nothing_runs(&before).await;
    let left = sandboxes(temp.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!left[0].join("data").exists());
    assert!(fs::read_dir(left[0].join("logs")).unwrap().count() >= 3);
    fs::remove_dir_all(&left[0]).unwrap();

    // The runner dies: nobody tidies up, but nothing runs, and the next test removes what lies about.
    let (runner, _) = start_victim(temp.path()).await;
    kill_process(Pid::from_raw(runner.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    runner.exited().await.unwrap();
    nothing_runs(&before).await;
    let left = sandboxes(temp.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].join("data").exists());
    let next = play("next", temp.path());
    assert!(testbed::within("the next test to end", LIMIT, next.exited()).await.unwrap().unwrap().success());
    assert_eq!(sandboxes(temp.path()), Vec::<std::path::PathBuf>::new());

    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
}

/// Starts real parts, says so, and waits for its end.
async fn victim() {
    let _api = ApiServer::start().await.unwrap();
    let _envoy = Envoy::start(json!({})).await.unwrap();
    println!("victim is process {}", std::process::id());
    std::future::pending().await
}

/// This program again, in a sandbox of its own.
fn play(role: &str, temp: &Path) -> Process {
    Command::new("env")
        .name(role)
        .args(["-u", "SESAME_SANDBOX", SANDBOX, "--"])
        .arg(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(ROLE, role)
        .env("TMPDIR", temp)
        .start(temp.join(format!("{role}.log")))
        .unwrap()
}

/// Starts the victim; gives its runner and the process of the test.
async fn start_victim(temp: &Path) -> (Process, Pid) {
    let runner = play("victim", temp);
    runner.expect_line("victim is process", LIMIT).await.unwrap();
    let running = processes();
    assert!(running.iter().any(|process| process.name == "kube-apiserver"), "{running:?}");
    // The innermost of the processes of this program is the test; we are the outermost.
    let own = fs::read_to_string("/proc/self/comm").unwrap();
    let test = running.iter().rfind(|process| process.name == own.trim() && process.is_nested()).unwrap();
    (runner, Pid::from_raw(test.id).unwrap())
}

async fn nothing_runs(before: &BTreeSet<Running>) {
    let look = async || match processes().difference(before).collect::<Vec<_>>() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    };
    testbed::eventually("all that the victim started to be gone", LIMIT, look).await.unwrap();
}

/// The folders of sandboxes below a temporary folder.
fn sandboxes(temp: &Path) -> Vec<std::path::PathBuf> {
    let groups = fs::read_dir(temp).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    groups.flat_map(|group| fs::read_dir(group).unwrap()).map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect()
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Running {
    id: i32,
    name: String,
    namespace: Option<std::path::PathBuf>,
}

impl Running {
    fn is_nested(&self) -> bool {
        self.namespace != fs::read_link("/proc/self/ns/pid").ok()
    }
}

/// All processes of this sandbox and of those inside it.
fn processes() -> BTreeSet<Running> {
    let ids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?.trim().to_owned();
        Some(Running { id, name, namespace: fs::read_link(format!("/proc/{id}/ns/pid")).ok() })
    })
    .collect()
}
