//! Runs the tests and closes with one line of counts.
//!
//! In: words for `cargo test`. Out: what cargo and the test programs print, then which programs took longest, what was skipped and
//! why, then `N passed, M failed`. Cargo tells each program's count and never the sum; on a machine without root a part of the
//! tests is skipped, and a reader of the last line has to learn that.
//!
//! Cargo builds, runs the doc tests, and says how it would start each test program ([`programs`]). Left to itself it starts one after
//! the other, and those that [wait for pods](waiting) leave the processors idle for many minutes: they run beside the rest ([`lanes`]).
//!
//! A test that cannot run here says so in one of two ways: a program with a harness of its own prints
//! `test NAME ... ignored, REASON`; a test under the standard harness writes `skipped: REASON: NAME` to its standard error
//! (past the harness, which would keep it to itself) and returns. The harness takes it for passed; the sum does not.

mod count;
mod lanes;
mod programs;
mod slowest;
mod waiting;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

/// Runs what `cargo test` with `arguments` would run, the whole workspace if there are none.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let began = Instant::now();
    let listed = programs::list(arguments)?;
    let built = began.elapsed();
    let (waiting, others): (Vec<_>, Vec<_>) =
        listed.programs.into_iter().partition(|program| waiting::is(&program.name));
    let ended = lanes::run(&[others, waiting])?;

    let mut count = listed.count;
    ended.iter().for_each(|program| count.add(&program.count));
    let times = ended.iter().map(|program| (program.took, program.name.as_str()));
    println!(
        "\n{}{}",
        slowest::list(times.chain([(built, "cargo: build, doc tests")]), began.elapsed()),
        count.summary()
    );
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    Ok(if count.is_good(ci) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
