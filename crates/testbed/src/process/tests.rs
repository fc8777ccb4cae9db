#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn sh(script: &str) -> (Process, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let process = Command::new("/bin/sh").name("script").args(["-c", script]).start(dir.path().join("log")).unwrap();
    (process, dir)
}

#[tokio::test]
async fn a_line_is_noticed_when_it_is_written() {
    let (process, _dir) = sh("echo one; read -r x < /dev/null; echo two and more; exec sleep 600");
    assert_eq!(process.expect_line("two", LIMIT).await.unwrap(), "two and more");
    assert_eq!(process.expect_line("one", LIMIT).await.unwrap(), "one");
}

#[tokio::test]
async fn an_early_exit_is_reported_at_once_with_the_end_of_the_log() {
    let began = Instant::now();
    let (process, _dir) = sh("echo the disk is on fire >&2; exit 7");
    let error = process.expect_line("ready", LIMIT).await.unwrap_err().to_string();
    assert!(began.elapsed() < LIMIT / 2);
    assert!(error.starts_with("script exited with 7 while the test waited for a log line with \"ready\""), "{error}");
    assert!(error.contains("\n  the disk is on fire\n"), "{error}");
}

#[tokio::test]
async fn a_missed_deadline_says_what_was_waited_for() {
    let (process, _dir) = sh("echo still thinking; exec sleep 600");
    process.expect_line("thinking", LIMIT).await.unwrap();
    let error = process.expect_line("ready", Duration::from_millis(50)).await.unwrap_err().to_string();
    assert!(error.starts_with("waited 50ms for a log line with \"ready\" of script"), "{error}");
    assert!(error.contains("still thinking"), "{error}");
}

#[tokio::test]
async fn stop_is_gentle_first_and_firm_after_the_grace() {
    let (process, _dir) = sh("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    process.expect_line("up", LIMIT).await.unwrap();
    assert_eq!(process.stop(LIMIT).await.unwrap().code(), Some(3));
    assert_eq!(process.log().find("bye").unwrap(), "bye");

    let (process, _dir) = sh("trap '' TERM; echo up; while :; do sleep 0.01; done");
    process.expect_line("up", LIMIT).await.unwrap();
    assert_eq!(process.stop(Duration::from_millis(50)).await.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn dropping_a_process_kills_it_with_its_children() {
    let (process, dir) = sh("sleep 600 & echo child $!; wait");
    let line = process.expect_line("child", LIMIT).await.unwrap();
    let child: i32 = line.trim_start_matches("child ").parse().unwrap();
    drop(process);
    drop(dir);
    let child = rustix::process::Pid::from_raw(child).unwrap();
    let gone = async || match rustix::process::test_kill_process(child) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    crate::eventually("the child to be gone", LIMIT, gone).await.unwrap();
}

#[test]
fn a_process_may_be_used_from_one_runtime_after_another() {
    let (process, _dir) = sh("echo up; exec sleep 600");
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(process.expect_line("up", LIMIT)).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(process.kill()).unwrap().signal(), Some(9));
}
