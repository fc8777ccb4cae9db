//! How each test of the suite ended, by the lines that Go's test runner prints.
//!
//! `--- PASS: TestConformance/NAME (1.25s)` ends the test NAME; deeper names are steps of it, and say where a failed one
//! failed.

use std::collections::BTreeMap;

/// What stands before a line of the runner itself where a test's last line had no end.
const MARK: char = '\u{16}';

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// It needs a feature that the GatewayClass does not list.
    Skipped,
}

/// What a run has told so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    tests: BTreeMap<String, (Outcome, f64)>,
}

impl Results {
    /// Takes a line of output; gives the test that it ends, if it ends one.
    pub fn take_line(&mut self, line: &str) -> Option<(String, Outcome, f64)> {
        let (outcome, name, seconds) = parse(line)?;
        self.tests.insert(name.to_owned(), (outcome, seconds));
        Some((name.to_owned(), outcome, seconds))
    }

    /// The names of the tests that ended so, in order.
    pub fn of(&self, wanted: Outcome) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, (outcome, _))| *outcome == wanted).map(|(name, _)| name.as_str())
    }

    /// The `count` slowest tests and how many seconds each took.
    pub fn slowest(&self, count: usize) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> =
            self.tests.iter().map(|(name, (_, seconds))| (name.as_str(), *seconds)).collect();
        all.sort_by(|left, right| right.1.total_cmp(&left.1));
        all.truncate(count);
        all
    }

    /// The table of a run, in Markdown: how it was started, the packing, the tests that passed of those that were not skipped, the
    /// seconds from its first test to its last, and its slowest tests.
    pub fn table(&self, command: &str, packing: &str, seconds: f64) -> String {
        let (passed, failed) = (self.of(Outcome::Passed).count(), self.of(Outcome::Failed).count());
        let slowest = self.slowest(SLOWEST).into_iter().map(|(test, seconds)| format!("{test} {seconds:.1} s"));
        let slowest = slowest.collect::<Vec<_>>().join(", ");
        let all = passed + failed;
        format!(
            "| run | packing | passed | seconds | slowest tests |\n|---|---|---|---|---|\n\
             | `{command}` | {packing} | {passed} of {all} | {seconds:.0} | {slowest} |"
        )
    }
}

/// How many of the slowest tests a table lists.
const SLOWEST: usize = 5;

fn parse(line: &str) -> Option<(Outcome, &str, f64)> {
    let (verdict, rest) =
        line.trim_start_matches([MARK, ' ']).strip_prefix("--- ")?.split_once(": TestConformance/")?;
    let (name, time) = rest.split_once(" (")?;
    let outcome = match verdict {
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        "SKIP" => Outcome::Skipped,
        _ => return None,
    };
    let seconds = time.split_once("s)")?.0.parse().ok()?;
    (!name.contains('/')).then_some((outcome, name, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_the_test_that_it_names_and_steps_end_none() {
        let mut results = Results::default();
        let lines = [
            "=== RUN   TestConformance/HTTPRouteWeight",
            "\u{16}--- PASS: TestConformance/HTTPRouteWeight (1.25s)",
            "        --- FAIL: TestConformance/TLSRoute/a_step (0.10s)",
            "    --- FAIL: TestConformance/TLSRoute (30.01s)",
            "    --- SKIP: TestConformance/Mesh (0.00s)",
            "--- FAIL: TestConformance (31.40s)",
        ];
        let ended: Vec<_> = lines.iter().filter_map(|line| results.take_line(line)).collect();
        assert_eq!(ended.len(), 3);
        assert_eq!(ended[0], ("HTTPRouteWeight".to_owned(), Outcome::Passed, 1.25));
        assert_eq!(results.of(Outcome::Failed).collect::<Vec<_>>(), ["TLSRoute"]);
        assert_eq!(results.of(Outcome::Skipped).collect::<Vec<_>>(), ["Mesh"]);
        assert_eq!(results.slowest(1), [("TLSRoute", 30.01)]);
        let table = results.table("make conformance", "scoped", 31.4);
        let row = "| `make conformance` | scoped | 1 of 2 | 31 | TLSRoute 30.0 s, HTTPRouteWeight 1.2 s, Mesh 0.0 s |";
        assert_eq!(table.lines().last(), Some(row));
    }
}
