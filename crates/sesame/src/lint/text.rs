//! The report for people: each finding as a compiler shows it, and one line that sums up.

use std::fmt::Write as _;

use model::{Code, Severity};
use source::snippet::{self, Shown, Style};

use super::finding::Finding;
use super::{Report, counted};

/// The whole report.
pub fn render(report: &Report, style: Style, quiet: bool) -> String {
    let mut text = findings(&report.findings, style);
    if !quiet {
        let _infallible = writeln!(text, "{}", summary(report));
    }
    text
}

/// The findings. That a kind is not read is said in the [`summary`]: a folder has many of those.
pub fn findings(findings: &[Finding], style: Style) -> String {
    let mut text = String::new();
    for finding in findings.iter().filter(|finding| finding.code != Code::UnknownKind) {
        let _infallible = writeln!(text, "{}\n", show(finding, style));
    }
    text
}

/// One finding.
pub fn show(finding: &Finding, style: Style) -> String {
    let Finding { code, severity, field, location, .. } = finding;
    let related = finding.related.as_ref();
    let related = related.map(|(origin, location)| (format!("{} is here", origin.object), location));
    let shown = Shown {
        code: *code,
        severity: *severity,
        title: &finding.title(),
        field,
        location: location.as_ref(),
        related: related.as_ref().map(|(what, location)| (&**what, *location)),
    };
    snippet::show(&shown, style)
}

/// `4 objects, 2 of them for Sesame: 1 error, 2 warnings`.
pub fn summary(report: &Report) -> String {
    let summary = report.summary;
    let notes = report.findings.iter().filter(|finding| finding.code != Code::UnknownKind);
    let notes = notes.filter(|finding| finding.severity == Severity::Note).count();
    let counts = [(summary.errors, "error"), (summary.warnings, "warning"), (notes, "note")];
    let counts: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| counted(count, word)).collect();
    let counts = if counts.is_empty() { "no findings".to_owned() } else { counts.join(", ") };
    let mut text = format!("{}, {} of them for Sesame: {counts}", counted(summary.objects, "object"), summary.claimed);
    if !report.unread.is_empty() {
        let _infallible = write!(text, "\nnot read: {}", snippet::printable(&report.unread.join(", ")));
    }
    text
}
