//! Counts tests by the lines that their harness prints.
//!
//! In: lines of `cargo test` and of the tests, and how cargo and each test program ended. Out: how many passed, failed and were skipped,
//! and what each failed test said first: in a log of thousands of lines that is hard to find.
//! A test program that dies has no result line: how it ended tells of it, or, where cargo ran it, cargo's count of failed targets.

use std::fmt::Write;
use std::mem;
use std::process::ExitStatus;

/// What was counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Tests that called themselves skipped; the harness counted them as passed.
    returned: usize,
    /// `NAME: REASON` of each skipped test whose reason is known.
    reasons: Vec<String>,
    /// The name of each failed test with the first lines that it printed.
    failures: Vec<String>,
    /// How many lines of the last failure are still taken.
    more_of_failure: usize,
    /// Result lines that say FAILED.
    failed_programs: usize,
    /// Failed targets by cargo's count.
    failed_targets: usize,
    /// Cargo failed, and no test did.
    broken: bool,
}

/// How many lines of a failed test are repeated at the end.
const LINES_OF_FAILURE: usize = 24;

impl Count {
    /// Takes one line of output.
    pub fn take_line(&mut self, line: &str) {
        let line = without_colour(line);
        self.take_failure(line.trim_end());
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.failed_programs += usize::from(result.starts_with("FAILED"));
            self.passed += number_before(result, " passed");
            self.failed += number_before(result, " failed");
            self.skipped += number_before(result, " ignored");
        } else if let Some((name, reason)) =
            line.strip_prefix("test ").and_then(|test| test.split_once(" ... ignored, "))
        {
            self.reasons.push(format!("{name}: {reason}"));
        } else if let Some((reason, name)) = line.strip_prefix("skipped: ").and_then(|test| test.rsplit_once(": ")) {
            self.reasons.push(format!("{name}: {reason}"));
            self.returned += 1;
        } else if line.starts_with("error: ")
            && (line.ends_with(" target failed:") || line.ends_with(" targets failed:"))
        {
            self.failed_targets = number_before(line, " target");
        }
    }

    /// Takes a line of what the harness prints of a failed test, which ends where the backtrace begins.
    fn take_failure(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) {
            self.failures.push(name.to_owned());
            self.more_of_failure = LINES_OF_FAILURE;
        } else if matches!(line, "stack backtrace:" | "failures:") {
            self.more_of_failure = 0;
        } else if self.more_of_failure > 0
            && !line.is_empty()
            && let Some(failure) = self.failures.last_mut()
        {
            _ = write!(failure, "\n    {line}");
            self.more_of_failure -= 1;
        }
    }

    /// Takes how cargo ended: programs that died count as one failed test each.
    pub fn take_end(&mut self, success: bool) {
        let (returned, failed_programs) = (mem::take(&mut self.returned), mem::take(&mut self.failed_programs));
        self.passed = self.passed.saturating_sub(returned);
        self.skipped += returned;
        self.failed += mem::take(&mut self.failed_targets).saturating_sub(failed_programs);
        self.broken = !success && self.failed == 0;
    }

    /// Takes which test program the lines came from, and how it ended.
    pub fn take_program(&mut self, name: &str, status: ExitStatus) {
        self.failed_targets = usize::from(!status.success());
        if self.failed_targets > self.failed_programs {
            self.failures.push(format!("it ended without a result ({status})"));
        }
        self.failures.iter_mut().for_each(|failure| failure.insert_str(0, &format!("{name}: ")));
        self.take_end(status.success());
    }

    /// Adds what another stream or program told.
    pub fn add(&mut self, other: &Count) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.returned += other.returned;
        self.reasons.extend_from_slice(&other.reasons);
        self.failures.extend_from_slice(&other.failures);
        self.failed_programs += other.failed_programs;
        self.failed_targets += other.failed_targets;
        self.broken |= other.broken;
    }

    /// Nothing failed; and in CI nothing was left out for lack of root either.
    pub fn is_good(&self, ci: bool) -> bool {
        self.failed == 0 && !self.broken && !(ci && self.for_lack_of_root().next().is_some())
    }

    /// The closing lines; the counts are the last.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let (root, other): (Vec<_>, Vec<_>) = self.reasons.iter().partition(|reason| needs_root(reason));
        for (why, which) in [("skipped for lack of root (run as root to have them)", root), ("skipped", other)] {
            if !which.is_empty() {
                text.push_str(why);
                text.push(':');
                which.iter().for_each(|reason| _ = write!(text, "\n  {reason}"));
                text.push('\n');
            }
        }
        if !self.failures.is_empty() {
            text.push_str("failed:");
            self.failures.iter().for_each(|failure| _ = write!(text, "\n  {failure}"));
            text.push('\n');
        }
        if self.broken {
            text.push_str("the tests were not all built or run: see above\n");
        }
        _ = write!(text, "{} passed, {} failed", self.passed, self.failed);
        if self.skipped > 0 {
            _ = write!(text, ", {} skipped", self.skipped);
        }
        text
    }

    fn for_lack_of_root(&self) -> impl Iterator<Item = &String> {
        self.reasons.iter().filter(|reason| needs_root(reason))
    }
}

/// The reason, not the name, speaks of root.
fn needs_root(reason: &str) -> bool {
    let why = reason.split_once(": ").map_or(reason, |(_, why)| why);
    why.split(|c: char| !c.is_alphanumeric()).any(|word| word == "root")
}

/// The number right before `word`; 0 if there is none.
fn number_before(text: &str, word: &str) -> usize {
    let Some((head, _)) = text.split_once(word) else { return 0 };
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    head[head.len() - digits..].parse().unwrap_or(0)
}

/// The text without the terminal's colour codes (`ESC [ … m`).
pub fn without_colour(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, coloured)) = rest.split_once("\u{1b}[") {
        plain.push_str(head);
        rest = coloured.split_once('m').map_or("", |(_, tail)| tail);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    //! The closing line, from what cargo and the harness print.

    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn counted(lines: &str, errors: &str, success: bool) -> Count {
        let mut count = Count::default();
        lines.lines().for_each(|line| count.take_line(line));
        let mut second = Count::default();
        errors.lines().for_each(|line| second.take_line(line));
        count.add(&second);
        count.take_end(success);
        count
    }

    const TWO_PROGRAMS: &str = "\
running 2 tests
test a ... ok
test b ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 1 test
test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 12.00s
";

    #[test]
    fn all_programs_are_summed() {
        let count = counted(TWO_PROGRAMS, "", true);
        assert_eq!(count.summary(), "3 passed, 0 failed");
        assert!(count.is_good(true));
    }

    #[test]
    fn a_failed_test_is_a_failure() {
        let lines = "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s\n\
                 error: 1 target failed:\n    `-p parts --lib`";
        let count = counted(lines, "", false);
        assert_eq!(count.summary(), "5 passed, 2 failed");
        assert!(!count.is_good(false));
    }

    #[test]
    fn what_a_failed_test_said_is_repeated_at_the_end() {
        let lines = "failures:\n\n---- a::b stdout ----\n\nthread 'a::b' panicked at src/a.rs:3:5:\n  left: 1\n right: 2\n\
                 stack backtrace:\n   0: rust_begin_unwind\n\n\nfailures:\n    a::b\n\n\
                 test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s";
        let said = "failed:\n  a::b\n    thread 'a::b' panicked at src/a.rs:3:5:\n      left: 1\n     right: 2\n5 passed, 1 failed";
        assert_eq!(counted(lines, "", false).summary(), said);
    }

    #[test]
    fn a_program_that_died_counts_as_a_failed_test() {
        let lines = format!(
            "{TWO_PROGRAMS}test result: FAILED. 0 passed; 1 failed; 0 ignored\n\
         \u{1b}[1m\u{1b}[91merror\u{1b}[0m: 3 targets failed:\n    `-p a --lib`\n    `-p b --test x`\n    `-p c --test y`"
        );
        assert_eq!(counted(&lines, "", false).summary(), "3 passed, 3 failed");
    }

    #[test]
    fn programs_that_ended_are_added_and_named_where_they_failed() {
        let mut all = counted("test result: ok. 2 passed; 0 failed; 0 ignored", "", true);
        let mut program = Count::default();
        program.take_line("test result: ok. 3 passed; 0 failed; 0 ignored");
        program.take_line("skipped: needs a cluster: a");
        program.take_program("-p a --lib", ExitStatus::from_raw(0));
        all.add(&program);
        assert_eq!(all.summary(), "skipped:\n  a: needs a cluster\n4 passed, 0 failed, 1 skipped");
        let mut died = Count::default();
        died.take_program("-p a --test b", ExitStatus::from_raw(9));
        all.add(&died);
        let mut failed = Count::default();
        let lines = ["---- c stdout ----", "no", "failures:", "test result: FAILED. 0 passed; 1 failed; 0 ignored"];
        lines.iter().for_each(|line| failed.take_line(line));
        failed.take_program("-p a --lib", ExitStatus::from_raw(101 << 8));
        all.add(&failed);
        let said = "failed:\n  -p a --test b: it ended without a result (signal: 9 (SIGKILL))\n  \
            -p a --lib: c\n    no\n4 passed, 2 failed, 1 skipped";
        assert!(all.summary().ends_with(said), "{}", all.summary());
    }

    #[test]
    fn what_cargo_could_not_build_stays_an_error_whatever_else_passed() {
        let mut all = counted("error: could not compile `parts` (lib)", "", false);
        all.add(&counted(TWO_PROGRAMS, "", true));
        assert!(!all.is_good(false));
    }

    #[test]
    fn what_does_not_build_is_no_success() {
        let count = counted("error: could not compile `parts` (lib) due to 1 previous error", "", false);
        assert_eq!(count.summary(), "the tests were not all built or run: see above\n0 passed, 0 failed");
        assert!(!count.is_good(false));
    }

    #[test]
    fn lack_of_root_is_told_and_fails_in_ci() {
        let count = counted(TWO_PROGRAMS, "skipped: needs root: node::two_nodes\n", true);
        assert_eq!(
            count.summary(),
            "skipped for lack of root (run as root to have them):\n  node::two_nodes: needs root\n2 passed, 0 failed, 1 skipped"
        );
        assert!(count.is_good(false));
        assert!(!count.is_good(true));
    }

    #[test]
    fn a_harness_of_its_own_may_skip_too() {
        let lines = "test one_node ... ignored, needs root\n\
                 test on_a_cluster ... ignored, SESAME_KUBECONFIG is not set\n\
                 test result: ok. 4 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let count = counted(lines, "", true);
        assert_eq!(
            count.summary(),
            "skipped for lack of root (run as root to have them):\n  one_node: needs root\n\
         skipped:\n  on_a_cluster: SESAME_KUBECONFIG is not set\n4 passed, 0 failed, 2 skipped"
        );
        assert!(!count.is_good(true));
    }

    #[test]
    fn a_skip_for_another_reason_does_not_fail_ci() {
        assert!(counted(TWO_PROGRAMS, "skipped: needs a cluster: root_path", true).is_good(true));
    }
}
