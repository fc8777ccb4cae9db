//! The status of a ContourConfiguration: whether it is in effect, and what is wrong with it.
//!
//! Contour writes none. The condition is that of the other kinds of its group: `Valid`, with errors and warnings.

use kinds::{ContourConfiguration, Kind, Typed};
use model::status::{
    Acknowledgement, Condition, Finding, Scope, StatusFacts, StatusInput, StatusKind, StatusLayout, cut,
};
use model::{Severity, Verdict};
use std::time::Duration;

const VALID: &str = "Valid";
/// The longest message.
const LONGEST: usize = 8 * 1024;

const STATUS: StatusKind = StatusKind {
    layout: StatusLayout { fields: &[], conditions: &[VALID], lists: &[], marks: &[] },
    facts,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// How the status of objects of a kind is decided: that of the configuration here, all others by their dialects.
pub fn status_of(kind: Kind) -> Option<&'static StatusKind> {
    if ContourConfiguration::KINDS.contains(&kind) { Some(&STATUS) } else { pipeline::status_of(kind) }
}

fn facts(input: &StatusInput<'_>) -> StatusFacts {
    let of = |severity| input.verdicts.iter().filter(move |verdict| verdict.severity() == severity);
    let errors: Vec<String> = of(Severity::Error).map(line).collect();
    let (is_valid, reason, message) = match errors.first() {
        None => (true, "Valid", "The configuration is in effect.".to_owned()),
        Some(first) if errors.len() == 1 => (false, "ErrorPresent", first.clone()),
        Some(first) => (false, "ErrorPresent", format!("{first} (and {} more, see errors)", errors.len() - 1)),
    };
    let findings = |severity, kind| {
        let lines: Vec<String> = of(severity).map(line).collect();
        let message = cut(&lines.join("; "), LONGEST).into_owned();
        if lines.is_empty() { Vec::new() } else { vec![Finding { kind, reason: "SettingsNotValid", message }] }
    };
    let valid = Condition {
        findings: vec![
            ("errors", findings(Severity::Error, "ConfigurationError")),
            ("warnings", findings(Severity::Warning, "ConfigurationWarning")),
        ],
        ..Condition::new(VALID, is_valid.into(), reason, cut(&message, LONGEST).into_owned())
    };
    StatusFacts { object: Scope { conditions: vec![valid], ..Scope::default() }, lists: Vec::new() }
}

fn line(verdict: &Verdict) -> String {
    format!("{}: {}: {}", verdict.code, verdict.origin.field.as_str(), verdict.message)
}
