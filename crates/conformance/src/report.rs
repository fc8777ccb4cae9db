//! The report that the suite writes, as upstream collects it: whether each profile holds.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// What we read of a ConformanceReport.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Report {
    #[serde(default)]
    profiles: Vec<Profile>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
struct Profile {
    name: String,
    core: Part,
    extended: Option<Part>,
}

/// The core of a profile, or what it has beyond.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Part {
    result: String,
    statistics: Statistics,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
struct Statistics {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Report {
    /// Reads the file that the suite wrote.
    pub fn read(file: &Path) -> Result<Report> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        serde_saphyr::from_str(&text).with_context(|| file.display().to_string())
    }

    /// A line for each profile.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.profiles.iter().map(|profile| {
            let extended = profile.extended.as_ref().map(|part| format!(", extended {}", part.line()));
            format!("{}: core {}{}", profile.name, profile.core.line(), extended.unwrap_or_default())
        })
    }

    /// What speaks against conformance to the profiles named.
    pub fn objections(&self, profiles: &[&str]) -> Vec<String> {
        let found = |name: &str| self.profiles.iter().find(|profile| profile.name == name);
        let of = |name: &&str| match found(name) {
            None => Some(format!("the report has no profile {name}")),
            Some(profile) if !profile.holds() => Some(format!("{name} does not hold")),
            Some(_) => None,
        };
        profiles.iter().filter_map(of).collect()
    }
}

impl Profile {
    /// All core tests passed, and none of the others failed: those are skipped whose features are not claimed.
    fn holds(&self) -> bool {
        self.core.result == "success" && self.extended.as_ref().is_none_or(|part| part.statistics.failed == 0)
    }
}

impl Part {
    fn line(&self) -> String {
        let Statistics { passed, failed, skipped } = self.statistics;
        format!("{} ({passed} passed, {failed} failed, {skipped} skipped)", self.result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
kind: ConformanceReport
profiles:
- name: GATEWAY-HTTP
  summary: words
  core: {result: success, statistics: {Passed: 40, Failed: 0, Skipped: 0}}
  extended: {result: partial, statistics: {Passed: 9, Failed: 0, Skipped: 55}, supportedFeatures: [ListenerSet]}
- name: GATEWAY-TCP
  core: {result: failure, statistics: {Passed: 19, Failed: 1, Skipped: 0}, failedTests: [TCPRouteX]}
";

    #[test]
    fn a_profile_that_failed_or_is_missing_is_an_objection() {
        let report: Report = serde_saphyr::from_str(TEXT).expect("it is a report");
        assert!(report.objections(&["GATEWAY-HTTP"]).is_empty());
        let all = report.objections(&["GATEWAY-HTTP", "GATEWAY-TCP", "GATEWAY-UDP"]);
        assert_eq!(all, ["GATEWAY-TCP does not hold", "the report has no profile GATEWAY-UDP"]);
        let lines: Vec<String> = report.lines().collect();
        assert!(lines[0].starts_with("GATEWAY-HTTP: core success (40 passed"), "{lines:?}");
    }
}
