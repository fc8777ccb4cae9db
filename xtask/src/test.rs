//! Runs the tests and closes with one line of counts.
//!
//! In: what `cargo test` and the test programs print. Out: the same, as it comes, then what was skipped and why, then
//! `N passed, M failed`. Cargo tells each program's count and never the sum; on a machine without root a part of the tests is
//! skipped, and a reader of the last line has to learn that.
//!
//! A test that cannot run here says so in one of two ways: a program with a harness of its own prints
//! `test NAME ... ignored, REASON`; a test under the standard harness writes `skipped: REASON: NAME` to its standard error
//! (past the harness, which would keep it to itself) and returns. The harness takes it for passed; the sum does not.

mod count;

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{ExitCode, Stdio};
use std::thread;

use anyhow::{Context, Result};

use count::Count;

/// Runs `cargo test` with `arguments`, on the whole workspace if there are none.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut cargo = crate::cargo();
    cargo.current_dir(crate::root()).args(["test", "--no-fail-fast"]);
    if arguments.is_empty() {
        cargo.arg("--workspace");
    }
    cargo.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    if std::io::stderr().is_terminal() {
        cargo.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = cargo.spawn().context("starting cargo")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let stderr = child.stderr.take().context("cargo has no error output")?;

    let errors = thread::spawn(move || pass_on(stderr, std::io::stderr()));
    let mut count = pass_on(stdout, std::io::stdout())?;
    count.add(errors.join().expect("passing on lines does not panic")?);
    let status = child.wait().context("waiting for cargo")?;

    count.take_end(status.success());
    println!("\n{}", count.summary());
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    Ok(if count.is_good(ci) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes on all that comes, byte for byte, and counts what the lines tell.
fn pass_on(from: impl Read, mut to: impl Write) -> Result<Count> {
    let mut from = BufReader::new(from);
    let mut count = Count::default();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        count.take_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(count)
}
