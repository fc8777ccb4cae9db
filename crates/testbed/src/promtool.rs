//! Prometheus' own opinion of metrics.

use crate::report::debug_as_report;
use std::io::Write;
use std::process::{Command, Stdio};

/// Asks `promtool check metrics` about a page in the classic text format.
///
/// # Errors
/// What it complains about.
pub fn check_metrics(page: &str) -> Result<(), Error> {
    let mut promtool = Command::new(parts::program("promtool")?)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = promtool.stdin.take() {
        input.write_all(page.as_bytes())?;
    }
    let output = promtool.wait_with_output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() && said.trim().is_empty() { Ok(()) } else { Err(Error::Lint(said)) }
}

/// Why the check did not pass.
#[derive(thiserror::Error)]
pub enum Error {
    /// The program is not there.
    #[error(transparent)]
    Part(#[from] parts::Missing),
    /// It could not be run.
    #[error("promtool")]
    Run(#[from] std::io::Error),
    /// It found something.
    #[error("promtool: {0}")]
    Lint(String),
}
debug_as_report!(Error);
