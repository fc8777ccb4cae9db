//! The report as SARIF 2.1.0, which code scanning services and editors read.

use std::collections::BTreeSet;

use model::{Code, Severity};
use serde_json::{Value, json};
use source::SourceLocation;

use super::Report;
use super::finding::Finding;
use super::json::end_column;

/// The whole report.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let codes: BTreeSet<Code> = report.findings.iter().map(|finding| finding.code).collect();
    let codes: Vec<Code> = codes.into_iter().collect();
    let results = report.findings.iter().map(|finding| result(finding, &codes));
    let driver = json!({
        "name": env!("CARGO_PKG_NAME"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
    });
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
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

fn result(finding: &Finding, codes: &[Code]) -> Value {
    let mut result = json!({
        "ruleId": finding.code.to_string(),
        "ruleIndex": codes.iter().position(|code| *code == finding.code),
        "level": level(finding.severity),
        "message": { "text": format!("{} ({})", finding.title(), finding.code.help()) },
    });
    let logical = finding.object.as_ref().map(|object| {
        let name = if finding.field.is_empty() { object.to_string() } else { format!("{object}: {}", finding.field) };
        json!([{ "fullyQualifiedName": name }])
    });
    let mut location = json!({});
    if let Some(place) = &finding.location {
        location["physicalLocation"] = physical(place);
    }
    if let Some(logical) = logical {
        location["logicalLocations"] = logical;
    }
    if location.as_object().is_some_and(|location| !location.is_empty()) {
        result["locations"] = json!([location]);
    }
    if let Some((origin, place)) = &finding.related {
        result["relatedLocations"] =
            json!([{ "id": 1, "message": { "text": origin.to_string() }, "physicalLocation": physical(place) }]);
    }
    result
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
