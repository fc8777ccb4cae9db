//! `e2e --list` and the page about scenarios.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

#[test]
fn every_scenario_is_listed_and_on_the_page() {
    let output = Command::new(env!("CARGO_BIN_EXE_e2e")).arg("--list").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let page = include_str!("../../../docs/availability.md");
    assert_eq!(listed.lines().count(), e2e::SCENARIOS.len(), "{listed}");
    for scenario in e2e::SCENARIOS {
        assert!(listed.contains(scenario.name), "{} is not listed", scenario.name);
        assert!(page.contains(&format!("`{}`", scenario.name)), "{} is not in docs/availability.md", scenario.name);
    }
}
