//! The closing table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::TrafficReport;

/// What came of a scenario.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What became of the requests meanwhile; none if it had none.
    pub traffic: TrafficReport,
    /// How long it took.
    pub took: Duration,
    /// What it found wrong beside requests.
    pub error: Option<String>,
}

impl Row {
    /// Whether nothing was wrong.
    pub fn is_good(&self) -> bool {
        self.error.is_none() && self.traffic.failed == 0
    }
}

/// All rows, with their columns below each other.
pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max("scenario".len());
    let mut text =
        format!("{:width$}  {:>8}  {:>6}  {:>11}  {:>7}\n", "scenario", "requests", "failed", "longest gap", "seconds");
    for Row { name, traffic, took, error } in rows {
        let gap = format!("{} ms", traffic.gap.as_millis());
        let seconds = took.as_secs_f64();
        _ = write!(text, "{name:width$}  {:>8}  {:>6}  {gap:>11}  {seconds:>7.1}", traffic.requests, traffic.failed);
        if let Some(error) = error {
            _ = write!(text, "  FAILED: {}", error.lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_a_failure_says_why() {
        let row = |name, requests, error: Option<&str>| Row {
            name,
            traffic: TrafficReport { requests, gap: Duration::from_millis(12), ..TrafficReport::default() },
            took: Duration::from_millis(1500),
            error: error.map(str::to_owned),
        };
        let text = table(&[row("install", 7, None), row("certificate-rotation", 123_456, Some("late\nmore"))]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "scenario              requests  failed  longest gap  seconds");
        assert_eq!(lines[1], "install                      7       0        12 ms      1.5");
        assert_eq!(lines[2], "certificate-rotation    123456       0        12 ms      1.5  FAILED: late");
    }
}
