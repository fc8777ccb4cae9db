//! Counts tests by the lines that their harness prints.
//!
//! In: lines of `cargo test` and of the tests, and how cargo ended. Out: how many passed, failed and were skipped.
//! A test program that dies has no result line: cargo's own count of failed targets tells of it.

#[cfg(test)]
mod tests;

use std::fmt::Write;

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
    /// Result lines that say FAILED.
    failed_programs: usize,
    /// Failed targets by cargo's count.
    failed_targets: usize,
    /// Cargo failed, and no test did.
    broken: bool,
}

impl Count {
    /// Takes one line of output.
    pub fn take_line(&mut self, line: &str) {
        let line = without_colour(line);
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

    /// Takes how cargo ended: programs that died count as one failed test each.
    pub fn take_end(&mut self, success: bool) {
        self.passed = self.passed.saturating_sub(self.returned);
        self.skipped += self.returned;
        self.failed += self.failed_targets.saturating_sub(self.failed_programs);
        self.broken = !success && self.failed == 0;
    }

    /// Adds what another stream told.
    pub fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.returned += other.returned;
        self.reasons.extend(other.reasons);
        self.failed_programs += other.failed_programs;
        self.failed_targets += other.failed_targets;
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
fn without_colour(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, coloured)) = rest.split_once("\u{1b}[") {
        plain.push_str(head);
        rest = coloured.split_once('m').map_or("", |(_, tail)| tail);
    }
    plain.push_str(rest);
    plain
}
