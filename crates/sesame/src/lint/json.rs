//! The report for programs. `docs/lint.schema.json` describes it; a change that readers would notice raises [`VERSION`].

use kinds::Kind;
use model::{Code, ObjectRef};
use serde::Serialize;
use source::SourceLocation;

use super::finding::Finding;
use super::{Report, Summary};

/// The version of the schema.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema_version: u32,
    tool: Tool,
    summary: Counts,
    findings: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Counts {
    objects: usize,
    claimed: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

/// A finding as an object of JSON.
#[derive(Serialize)]
pub struct Entry<'a> {
    code: String,
    reason: &'static str,
    severity: &'static str,
    message: &'a str,
    help: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Object<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    field: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Related<'a>>,
}

#[derive(Serialize)]
struct Related<'a> {
    object: Object<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    field: &'a str,
    location: Location,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    api_version: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
}

impl<'a> From<&'a ObjectRef> for Object<'a> {
    fn from(object: &'a ObjectRef) -> Self {
        let ObjectRef { kind, namespace, name } = object;
        Self { api_version: Kind::api_version(*kind), kind: kind.name(), namespace, name }
    }
}

/// A place in a file; lines and columns count from one, columns in characters.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    file: String,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
    #[serde(skip_serializing_if = "is_zero")]
    column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl From<&SourceLocation> for Location {
    fn from(location: &SourceLocation) -> Self {
        let position = location.position;
        Self {
            file: location.file.to_string_lossy().into_owned(),
            line: position.line,
            column: position.column,
            end_column: end_column(location),
        }
    }
}

/// The column after the part that is meant, in characters.
pub fn end_column(location: &SourceLocation) -> Option<u32> {
    let excerpt = location.excerpt.as_ref()?;
    let characters = excerpt.line.get(excerpt.start..excerpt.end)?.chars().count();
    Some(location.position.column + u32::try_from(characters).ok()?)
}

impl<'a> From<&'a Finding> for Entry<'a> {
    fn from(finding: &'a Finding) -> Self {
        let Finding { code, severity, message, object, field, location, related } = finding;
        Self {
            code: code.to_string(),
            reason: code.reason(),
            severity: severity.word(),
            message,
            help: Code::help(*code),
            object: object.as_ref().map(Object::from),
            field,
            location: location.as_ref().map(Location::from),
            related: related.as_ref().map(|(origin, location)| Related {
                object: (&origin.object).into(),
                field: origin.field.as_str(),
                location: location.into(),
            }),
        }
    }
}

/// Each finding as a line of its own.
pub fn lines(findings: &[Finding]) -> String {
    let lines = findings.iter().filter_map(|finding| serde_json::to_string(&Entry::from(finding)).ok());
    lines.map(|line| line + "\n").collect()
}

/// The whole report.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let Summary { objects, claimed, errors, warnings, notes } = report.summary;
    let document = Document {
        schema_version: VERSION,
        tool: Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
        summary: Counts { objects, claimed, errors, warnings, notes },
        findings: report.findings.iter().map(Entry::from).collect(),
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}
