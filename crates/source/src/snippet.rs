//! Problems and verdicts as a good compiler shows them: what, where, the line itself, what to do.

use crate::{Problem, SourceLocation};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use model::{Code, Severity, Verdict};

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With colours, for a terminal.
    Colour,
}

/// Shows a problem of a source.
pub fn problem(problem: &Problem, style: Style) -> String {
    let title = match &problem.object {
        Some(object) => format!("{object}: {}", problem.message),
        None => problem.message.to_string(),
    };
    show(problem.code, &title, problem.location.as_ref(), &problem.field, style)
}

/// Shows a verdict about an object; `location` is where it is defined, if it came from a file.
pub fn verdict(verdict: &Verdict, location: Option<&SourceLocation>, style: Style) -> String {
    let title = format!("{}: {}", verdict.origin.object, verdict.message);
    show(verdict.code, &title, location, verdict.origin.field.as_str(), style)
}

fn show(code: Code, title: &str, location: Option<&SourceLocation>, field: &str, style: Style) -> String {
    let level = match code.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let (title, field) = (printable(title), printable(field));
    let mut group = Group::with_title(level.primary_title(&title).id(code.to_string()));
    let path = location.map(|location| printable(&location.file.to_string_lossy()));
    if let (Some(location), Some(path)) = (location, &path) {
        let line = location.position.line as usize;
        group = match &location.excerpt {
            Some(excerpt) => {
                let label = (!field.is_empty()).then_some(&*field);
                let part = AnnotationKind::Primary.span(excerpt.start..excerpt.end).label(label);
                group.element(Snippet::source(&*excerpt.line).line_start(line).path(path).annotation(part))
            }
            None => {
                let origin = match location.position.column {
                    _ if line == 0 => Origin::path(path),
                    0 => Origin::path(path).line(line),
                    column => Origin::path(path).line(line).char_column(column as usize),
                };
                group.element(origin)
            }
        };
    }
    let group = group.element(Level::HELP.message(code.help()));
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    renderer.render(&[group])
}

/// Text without anything that a terminal would obey: names and keys come from untrusted input.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    //! What people see.

    use super::*;
    use crate::location::Excerpt;
    use kinds::{ObjectRef, Position, kind};
    use std::path::Path;

    fn location(excerpt: Option<Excerpt>) -> SourceLocation {
        SourceLocation { file: Path::new("conf/a.yaml").into(), position: Position { line: 12, column: 11 }, excerpt }
    }

    fn at_port() -> Excerpt {
        Excerpt { line: "    port: \"80\"".into(), start: 10, end: 14 }
    }

    #[test]
    fn a_problem_with_its_line() {
        let shown = problem(
            &Problem::new(Code::NotDecodable, "expected a number, found text: remove the quotes")
                .on(ObjectRef::new(kind::SERVICE, "shop", "web"))
                .field("spec.ports[0].port")
                .at(location(Some(at_port()))),
            Style::Plain,
        );
        let expected = r#"
error[SES2002]: Service shop/web: expected a number, found text: remove the quotes
  --> conf/a.yaml:12:11
   |
12 |     port: "80"
   |           ^^^^ spec.ports[0].port
   |
   = help: correct the named field"#;
        assert_eq!(shown, expected.trim_start());
    }

    #[test]
    fn a_verdict_without_a_line() {
        let origin = model::ObjectRef::new(kinds::kind::INGRESS, "shop", "web").at("spec.rules[0]");
        let found = Verdict::new(Code::ServiceNotFound, origin, "Service shop/cart does not exist");
        let shown = verdict(&found, Some(&location(None)), Style::Plain);
        assert!(shown.starts_with("error[SES3001]: Ingress shop/web: Service shop/cart does not exist\n"), "{shown}");
        assert!(shown.contains("--> conf/a.yaml:12:11\n"), "{shown}");
        assert!(!verdict(&found, None, Style::Plain).contains("-->"));
    }

    #[test]
    fn nothing_is_shown_that_a_terminal_would_obey() {
        let excerpt = Excerpt { line: "a: \u{1b}[2J".into(), start: 3, end: 7 };
        let found = Problem::new(Code::NotYaml, "bad \u{1b}[31mred").field("a\u{7}").at(location(Some(excerpt)));
        let shown = problem(&found, Style::Plain);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        assert!(problem(&found, Style::Colour).contains("\u{1b}[1m"));
    }
}
