//! The status of Mappings and Hosts, in the fields that Emissary's CRDs have; they prune all others.
//!
//! In: the verdicts about an object and what its translation has decided. Out: facts. A reason begins with the code and the field of the
//! first error; all of them are told by events.

use model::{
    Severity, Verdict,
    status::{Acknowledgement, Scope, StatusFacts, StatusInput, StatusKind, StatusLayout, StatusValue, cut},
};
use std::time::Duration;

/// The field of a Host that says where its certificate comes from.
pub const CERTIFICATE_SOURCE: &str = "tlsCertificateSource";

/// The longest reason.
const LONGEST: usize = 8 * 1024;

/// Where the certificate of a Host comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It has none that can be used.
    Unknown,
    /// It asks for none.
    None,
    /// A Secret that somebody else writes.
    Other,
}

impl Source {
    /// The word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Source::Unknown => "Unknown",
            Source::None => "None",
            Source::Other => "Other",
        }
    }
}

/// The status of Mappings.
pub const MAPPING: StatusKind = StatusKind {
    layout: StatusLayout { fields: &["state", "reason"], conditions: &[], lists: &[], marks: &[] },
    facts: mapping,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// The status of Hosts.
pub const HOST: StatusKind = StatusKind {
    layout: StatusLayout {
        fields: &["state", "errorReason", CERTIFICATE_SOURCE],
        conditions: &[],
        lists: &[],
        marks: &[],
    },
    facts: host,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// What the status of a Mapping must say.
fn mapping(input: &StatusInput<'_>) -> StatusFacts {
    let values = match error(input.verdicts) {
        None => vec![("state", StatusValue::text("Running"))],
        Some(reason) => vec![("state", StatusValue::text("Inactive")), ("reason", StatusValue::Text(reason))],
    };
    StatusFacts { object: Scope { values, ..Scope::default() }, lists: Vec::new() }
}

/// What the status of a Host must say.
fn host(input: &StatusInput<'_>) -> StatusFacts {
    let mut values = match error(input.verdicts) {
        None => vec![("state", StatusValue::text("Ready"))],
        Some(reason) => vec![("state", StatusValue::text("Error")), ("errorReason", StatusValue::Text(reason))],
    };
    values.extend(input.translated.into_iter().flat_map(|facts| facts.object.values.iter().cloned()));
    StatusFacts { object: Scope { values, ..Scope::default() }, lists: Vec::new() }
}

/// The first error; nothing where there is none.
fn error(verdicts: &[Verdict]) -> Option<String> {
    let mut errors = verdicts.iter().filter(|verdict| verdict.severity() == Severity::Error);
    let (first, more) = (errors.next()?, errors.count());
    let more = if more == 0 { String::new() } else { format!(" (and {more} more, see events)") };
    let line = match first.origin.field.as_str() {
        "" => format!("{}: {}{more}", first.code, first.message),
        field => format!("{} {field}: {}{more}", first.code, first.message),
    };
    Some(cut(&line, LONGEST).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Code, ObjectRef};

    #[test]
    fn the_first_error_is_the_reason() {
        let object = ObjectRef::new(kinds::kind::MAPPING, "ns", "a");
        let verdict = |code, field: &str| Verdict::new(code, object.at(field), "why");
        let warning = verdict(Code::EmissaryIgnored, "spec.docs");
        let verdicts = [
            warning.clone(),
            verdict(Code::MappingService, "spec.service"),
            verdict(Code::MappingMatch, "spec.prefix"),
        ];
        let text = |facts: StatusFacts| format!("{:?}", facts.object.values);
        let running = text(mapping(&StatusInput { verdicts: &[warning], ..StatusInput::default() }));
        assert_eq!(running, r#"[("state", Text("Running"))]"#);
        let inactive = text(mapping(&StatusInput { verdicts: &verdicts, ..StatusInput::default() }));
        let service = Code::MappingService;
        assert!(inactive.contains(&format!("{service} spec.service: why (and 1 more, see events)")), "{inactive}");
        assert!(text(host(&StatusInput { verdicts: &verdicts, ..StatusInput::default() })).contains("errorReason"));
    }
}
