//! The report as workflow commands of GitHub Actions: each finding is an annotation on the line of a pull request.

use std::fmt::Write as _;

use model::Severity;

use super::Report;
use super::finding::Finding;
use super::json::end_column;

/// The annotations.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let _infallible = writeln!(text, "{}", command(finding));
    }
    text
}

fn command(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(location) = &finding.location {
        properties.push(format!("file={}", property(&location.file.to_string_lossy())));
        let position = location.position;
        for (name, number) in [("line", position.line), ("col", position.column)] {
            if number > 0 {
                properties.push(format!("{name}={number}"));
            }
        }
        properties.extend(end_column(location).map(|end| format!("endColumn={end}")));
    }
    properties.push(format!("title={}", property(&format!("{} {}", finding.code, finding.code.title()))));
    let message = data(&format!("{}\nhelp: {}", finding.title(), finding.code.help()));
    format!("::{word} {}::{message}", properties.join(","))
}

/// What a message must not have: a line of its own would be another command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What a property must not have.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::Position;
    use model::Code;
    use source::SourceLocation;
    use std::path::Path;

    #[test]
    fn nothing_in_a_name_ends_the_command() {
        let file = Path::new("a,b:\nc.yaml").into();
        let location = SourceLocation { position: Position { line: 3, column: 5 }, ..SourceLocation::file(file) };
        let finding = Finding { location: Some(location), ..Finding::whole(Code::NoName, "x\n::error::y 100%") };
        let expected = "::error file=a%2Cb%3A%0Ac.yaml,line=3,col=5,title=SES2007 kind%2C apiVersion or name is \
                        missing::x%0A::error::y 100%25%0Ahelp: add the missing field";
        assert_eq!(command(&finding), expected);
    }
}
