//! The report as SARIF 2.1.0, which code scanning services and editors read.
//!
//! A result must stand in a file: GitHub refuses a whole log for one that does not. What is about no file, such as that nothing is
//! served, is a notification of the run, with a descriptor of its own.

use std::collections::BTreeSet;

use model::{Code, Severity};
use serde_json::{Value, json};
use source::SourceLocation;

use super::Report;
use super::finding::Finding;
use super::json::end_column;

/// The whole report.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let (results, notifications): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|finding| finding.location.is_some());
    let (rules, descriptors) = (codes(&results), codes(&notifications));
    let mut driver = json!({
        "name": env!("CARGO_PKG_NAME"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
    });
    let is_complete = !report.findings.iter().any(|finding| finding.code == Code::FileNotReadable);
    let mut invocation = json!({ "executionSuccessful": is_complete });
    if !notifications.is_empty() {
        driver["notifications"] = descriptors.iter().map(|code| rule(*code)).collect();
        invocation["toolExecutionNotifications"] =
            notifications.iter().map(|finding| notification(finding, &descriptors)).collect();
    }
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "invocations": [invocation],
            "columnKind": "unicodeCodePoints",
            "results": results.iter().map(|finding| result(finding, &rules)).collect::<Vec<_>>(),
        }],
    });
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

/// The codes of findings, each once.
fn codes(findings: &[&Finding]) -> Vec<Code> {
    findings.iter().map(|finding| finding.code).collect::<BTreeSet<_>>().into_iter().collect()
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.to_string(),
        "name": code.reason(),
        "shortDescription": { "text": code.title() },
        "help": { "text": code.help() },
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

fn level(severity: Severity) -> &'static str {
    severity.word()
}

fn message(finding: &Finding) -> Value {
    json!({ "text": format!("{} ({})", finding.title(), finding.code.help()) })
}

/// The object and field.
fn logical(finding: &Finding) -> Option<Value> {
    let object = finding.object.as_ref()?;
    let name = if finding.field.is_empty() { object.to_string() } else { format!("{object}: {}", finding.field) };
    Some(json!([{ "fullyQualifiedName": name }]))
}

fn result(finding: &Finding, codes: &[Code]) -> Value {
    let mut location = json!({ "physicalLocation": finding.location.as_ref().map(physical) });
    if let Some(logical) = logical(finding) {
        location["logicalLocations"] = logical;
    }
    let mut result = json!({
        "ruleId": finding.code.to_string(),
        "ruleIndex": codes.iter().position(|code| *code == finding.code),
        "level": level(finding.severity),
        "message": message(finding),
        "locations": [location],
    });
    if let Some((origin, place)) = &finding.related {
        result["relatedLocations"] =
            json!([{ "id": 1, "message": { "text": origin.to_string() }, "physicalLocation": physical(place) }]);
    }
    result
}

/// A finding that is about no file.
fn notification(finding: &Finding, codes: &[Code]) -> Value {
    let index = codes.iter().position(|code| *code == finding.code);
    let mut notification = json!({
        "descriptor": { "id": finding.code.to_string(), "index": index },
        "level": level(finding.severity),
        "message": message(finding),
    });
    if let Some(logical) = logical(finding) {
        notification["locations"] = json!([{ "logicalLocations": logical }]);
    }
    notification
}

fn physical(location: &SourceLocation) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(&location.file.to_string_lossy()) } });
    let position = location.position;
    if position.line > 0 {
        let mut region = json!({ "startLine": position.line });
        if position.column > 0 {
            region["startColumn"] = position.column.into();
        }
        if let Some(end) = end_column(location) {
            region["endColumn"] = end.into();
        }
        physical["region"] = region;
    }
    physical
}

/// A path as a relative reference, or as `file://` if it is absolute.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte as char),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("conf/a b.yaml"), "conf/a%20b.yaml");
        assert_eq!(uri("/tmp/é.yaml"), "file:///tmp/%C3%A9.yaml");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
    }
}
